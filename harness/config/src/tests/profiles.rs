//! Profiles: which are rejected, and with which messages.

use super::{PROFILE_HEAD, SOUND, folder, said};
use crate::{
    AddressType, Capabilities, Deployment, Framework, Image, Instances, LeaseTiming, NULL_PROFILE, Ownership,
    Profile, ProviderIdFormat, REFERENCE_PROFILE,
};
use harness_core::check::Capability;
use harness_core::files;
use std::collections::BTreeSet;
use std::time::Duration;
use tempfile::TempDir;

fn written(profile: &str) -> TempDir {
    folder(&[
        ("profile.yaml", &format!("{PROFILE_HEAD}{profile}")),
        ("manifests/10-rbac.yaml", ""),
        ("manifests/20-ccm.yml", ""),
        ("manifests/30-more.json", ""),
        ("manifests/README.md", ""),
        ("empty/README.md", ""),
    ])
}

/// Checks a profile that is valid except for `line`.
#[track_caller]
fn check(line: &str, expected: &str) {
    let folder = written(&format!("{SOUND}{line}\n"));
    let path = format!("{}/profile.yaml", folder.path().display());
    let problems = Profile::load(&path).expect_err("the profile has faults");
    assert_eq!(said(&problems, folder.path()), expected);
}

#[track_caller]
fn check_whole(profile: &str, expected: &str) {
    let folder = written(profile);
    let problems = Profile::load(&folder.path().to_string_lossy()).expect_err("the profile has faults");
    assert_eq!(said(&problems, folder.path()), expected);
}

#[test]
fn faults_of_form() {
    check("cloud: {dialekt: native}", "profile.yaml:6: cloud.dialekt: unknown key; did you mean 'dialect'?");
    let dialects = fake_cloud_dialects::NAMES.join(", ");
    let refused =
        format!("profile.yaml:6: cloud.dialect: 'nativ' is none of {dialects}; did you mean 'native'?");
    check("cloud: {dialect: nativ}", &refused);
    for (cloud, why) in [
        ("{dialect: native, driver: {command: [a]}}", "cloud: has 'dialect' and 'driver'; keep one"),
        (
            "{driver: {}}",
            "cloud.driver: names no driver; write 'url' with 'tokenFile', 'command', or 'image'",
        ),
        ("{driver: {command: []}}", "cloud.driver.command: is empty; write the program and its arguments"),
        (
            "{driver: {url: \"http://h:1\"}}",
            "cloud.driver.tokenFile: is missing; name the file that holds the driver's token",
        ),
        ("{driver: {command: [a], url: \"http://h:1\"}}", "cloud.driver: has 'url' and 'command'; keep one"),
        ("{driver: {image: a, command: [b]}}", "cloud.driver: has 'command' and 'image'; keep one"),
        ("{driver: {command: [a], tokenFile: t}}", "cloud.driver.tokenFile: has no meaning without 'url'"),
        ("{dialect: native, real: {driver: {command: [a]}}}", "cloud: has 'dialect' and 'real'; keep one"),
        (
            "{real: {driver: {}}}",
            "cloud.real.driver: names no driver; write 'url' with 'tokenFile', 'command', or 'image'",
        ),
        (
            "{real: {credentials: {}}}",
            "cloud.real.driver: is missing; name the driver that reads the cloud's inventory",
        ),
        (
            "{driver: {command: [a], arguments: [--b]}}",
            "cloud.driver.arguments: has no meaning without 'image'",
        ),
    ] {
        check(&format!("cloud: {cloud}"), &format!("profile.yaml:6: {why}"));
    }
    for (credentials, why) in [
        ("{A: {env: B, file: c}}", "A: has 'env' and 'file'; keep one"),
        ("{A: {}}", "A: is empty; write 'env' or 'file'"),
        ("{IMAGE: {env: B}}", "IMAGE: the harness fills this one in itself"),
    ] {
        let cloud = format!("cloud: {{real: {{driver: {{command: [a]}}, credentials: {credentials}}}}}");
        let said = format!("profile.yaml:6: cloud.real.credentials.{why}");
        check(&format!("{cloud}\nproviderId: {{format: 'acme://{{id}}'}}"), &said);
    }
    check(
        "securePort: 65536",
        "profile.yaml:6: securePort: 65536 is out of range; a whole number from 0 to 65535",
    );
    check(
        "securePort: https",
        "profile.yaml:6: securePort: a whole number from 0 to 65535 was expected, found the text 'https'",
    );
    check("replicas: 0", "profile.yaml:6: replicas: 0 is out of range; a whole number from 1 to 9");
    check("deployment: on-moon", "profile.yaml:6: deployment: 'on-moon' is none of in-cluster, hosted");
    check(
        "framework: {version: v1.36}",
        "profile.yaml:6: framework.version: 'v1.36': not a framework version; write e.g. \"1.36\"",
    );
    check(
        "framework: {version: 1.9}",
        "profile.yaml:6: framework.version: '1.9': older than 1.20, the oldest version that is judged",
    );
    check(
        "framework: {profile: true, version: '1.99'}",
        "profile.yaml:6: framework.version: '1.99': newer than 1.36, the newest version that is judged; write \"1.36\"",
    );
    check(
        "leaseTiming: {duration: 15}",
        "profile.yaml:6: leaseTiming.duration: '15': a duration needs a unit, e.g. '30s' or '1m30s'",
    );
    check(
        "providerId: {format: 'acme://'}",
        "profile.yaml:6: providerId.format: 'acme://': must hold '{id}' exactly once, e.g. 'native://{id}'",
    );
    check(
        "providerId: {format: '{id}'}",
        "profile.yaml:6: providerId.format: '{id}': must have the form '<provider>://...{id}'",
    );
    check(
        "flags: {extra: [-v=2]}",
        "profile.yaml:6: flags.extra[0]: '-v=2': not an argument; write e.g. '--cluster-cidr=10.244.0.0/16'",
    );
    check(
        "flags: {accepted: [--framwork]}",
        "profile.yaml:6: flags.accepted[0]: '--framwork' would be one flag; did you mean 'framework', all flags of the framework?",
    );
    check(
        "flags: {accepted: [v=2]}",
        "profile.yaml:6: flags.accepted[0]: 'v=2': not a flag's name; write e.g. 'node-status-update-frequency', without value, or 'framework'",
    );
    check(
        "image: {reference: 'a b'}",
        "profile.yaml:6: image.reference: 'a b': not an image reference; write e.g. 'registry.example/ccm:v1.2.3', with a name in lower case",
    );
    check(
        "implementedElsewhere: {handled by: x}",
        "profile.yaml:6: implementedElsewhere.handled by: not the key of an annotation, such as 'acme.example/handled-by'",
    );
    check(
        "alsoReportedAs: {ExternalIP: Internal}",
        "profile.yaml:6: alsoReportedAs.ExternalIP: 'Internal' is none of Hostname, InternalIP, ExternalIP, InternalDNS, ExternalDNS; did you mean 'InternalIP'?",
    );
    check(
        "annotationEffects: {acme.example/size: {values: [a, a], at: /details/size}}",
        "profile.yaml:6: annotationEffects.acme.example/size.values: has to be two values that differ",
    );
    check(
        "annotationEffects: {acme.example/size: {values: [a, b], at: size}}",
        "profile.yaml:6: annotationEffects.acme.example/size.at: 'size' is not a JSON pointer, such as /details/size",
    );
    check(
        "placeholders: {IMAGE: x}",
        "profile.yaml:6: placeholders.IMAGE: the harness fills this one in itself",
    );
    check(
        "placeholders: {cluster-id: x}",
        "profile.yaml:6: placeholders.cluster-id: a placeholder's name has capitals, digits and '_' only, e.g. 'CLUSTER_ID' for '${CLUSTER_ID}'",
    );
    check(
        "environment: {A=B: x}",
        "profile.yaml:6: environment.A=B: not the name of an environment variable",
    );
    check("environment: {A: [x]}", "profile.yaml:6: environment.A: text was expected, found a list");
}

#[test]
fn unknown_capabilities() {
    let base = "name: acme\nmanifests: [manifests]\n";
    check_whole(
        &format!("{base}capabilities: {{instances: v2, loadbalancer: true}}\n"),
        "profile.yaml:5: capabilities.loadbalancer: unknown key; did you mean 'loadBalancer'?",
    );
    check_whole(
        &format!("{base}capabilities: {{instances: v2, snapshots: true}}\n"),
        "profile.yaml:5: capabilities.snapshots: unknown key; known here: instances, shutdown, zones, regions, loadBalancer, targets, routes, routeTrigger, \
         clusters, additionalLabels, ipMode, dualStack, protocols, affinity, sourceRanges, sharedLB, leaderElection",
    );
    check_whole(
        &format!("{base}capabilities: {{instances: V2, routes: maybe}}\n"),
        "2 problems in the configuration:\n  \
         profile.yaml:5: capabilities.instances: 'V2' is none of v1, v2, none; did you mean 'v2'?\n  \
         profile.yaml:5: capabilities.routes: true or false was expected, found the text 'maybe'",
    );
    check_whole(
        &format!(
            "{base}capabilities: {{instances: none, zones: true, affinity: true, protocols: [TCP, tcp]}}\n"
        ),
        "4 problems in the configuration:\n  \
         profile.yaml:5: capabilities.protocols[1]: 'tcp' is none of TCP, UDP, SCTP; did you mean 'TCP'?\n  \
         profile.yaml:5: capabilities.affinity: has no meaning without 'loadBalancer: true'\n  \
         profile.yaml:5: capabilities.protocols: has no meaning without 'loadBalancer: true'\n  \
         profile.yaml:5: capabilities.zones: has no meaning without 'instances'",
    );
}

#[test]
fn faults_that_show_when_keys_are_seen_together() {
    check(
        "framework: {profile: true}",
        "profile.yaml:6: framework.version: is missing; name the framework's version, e.g. \"1.36\"",
    );
    check(
        "framework: {profile: false, version: 1.36}",
        "profile.yaml:6: framework.version: has no meaning with 'profile: false'",
    );
    check(
        "image: {reference: a:1, build: {package: a}}",
        "profile.yaml:6: image: has more than one of 'reference', 'command' and 'build'; keep one",
    );
    check(
        "addressOrder: [InternalIP, ExternalIP, InternalIP]",
        "profile.yaml:6: addressOrder[2]: 'InternalIP' is listed twice",
    );
    check(
        "location: {zone: \"a\\0b\"}",
        "profile.yaml:6: location.zone: holds a NUL, which no text here may",
    );
    check("image: {}", "profile.yaml:6: image: is empty; write 'reference', 'command' or 'build'");
    check(
        "image: {command: fake-cloud}",
        "profile.yaml:6: image.command: 'fake-cloud' is none of reference-ccm, reference-ccm-mutant, \
         reference-network-proxy, reference-network-proxy-mutant, reference-csi-driver, reference-csi-driver-mutant",
    );
    check(
        "image: {build: {binary: a}}",
        "profile.yaml:6: image.build.package: is missing; name the package to build",
    );
    check(
        "leaseTiming: {duration: 5s}",
        "profile.yaml:6: leaseTiming: 'duration' must be longer than 'renewDeadline'",
    );
    check(
        "leaseTiming: {retryPeriod: 9s}",
        "profile.yaml:6: leaseTiming: 'renewDeadline' must be longer than 1.2 times 'retryPeriod'",
    );
    check("replicas: 1", "profile.yaml:6: replicas: leader election shows with at least 2 replicas");
    check(
        "workload: {namespace: acme}",
        "profile.yaml:6: workload.name: is missing; name the Deployment or DaemonSet",
    );
    check(
        "flags: {extra: [--leader-elect-lease-duration=9s]}",
        "profile.yaml:6: flags.extra[0]: the harness sets --leader-elect-lease-duration itself; see 'timing' of the run file",
    );
    check(
        "declared: [{id: SVC-DEL-01, reason: lazy}, {id: SVC-DEL-01, reason: again}, {id: SVC-DEL-02}, {id: svc, reason: x}]",
        "3 problems in the configuration:\n  \
         profile.yaml:6: declared[2].reason: is missing; say why the CCM deviates\n  \
         profile.yaml:6: declared[3].id: 'svc': not a check's id; write e.g. 'NODE-INIT-01'\n  \
         profile.yaml:6: declared[1].id: 'SVC-DEL-01' is declared twice",
    );
}

#[test]
fn manifests_must_be_there() {
    let base = "name: acme\ncapabilities: {instances: v2}\n";
    check_whole(base, "profile.yaml: manifests: is missing; list the CCM's manifests ('[]' deploys nothing)");
    check_whole(
        &format!("{base}manifests: [manifests, gone.yaml]\n"),
        "profile.yaml:5: manifests[1]: there is no file or folder gone.yaml",
    );
    check_whole(
        &format!("{base}manifests:\n- empty\n"),
        "profile.yaml:6: manifests[0]: the folder empty holds no .yaml, .yml or .json file",
    );
    check_whole(
        &format!("{base}manifests: []\nimage: {{reference: a}}\n"),
        "profile.yaml:6: image: has no use without manifests",
    );
}

#[test]
fn the_meaning_of_a_short_profile() {
    let folder = written(SOUND);
    let profile = Profile::load(&folder.path().to_string_lossy()).expect("the profile is sound");
    let names: Vec<_> = profile.manifests.iter().map(|p| p.file_name().expect("files have names")).collect();
    assert_eq!(names, ["10-rbac.yaml", "20-ccm.yml", "30-more.json"]);
    assert_eq!(profile.framework, Framework::Other);
    assert_eq!((&profile.image, &profile.workload), (&None, &None));
    assert_eq!((profile.cloud.dialect(), profile.secure_port, profile.replicas), (Some("native"), 10_258, 2));
    assert_eq!(profile.lease.to_string(), "kube-system/cloud-controller-manager");
    assert_eq!((profile.lease_timing, profile.deployment), (LeaseTiming::DEFAULT, Deployment::InCluster));
    assert_eq!(profile.provider_id.render("i-1"), "native://i-1");
    assert!(!profile.accepts("--leader-elect-lease-duration"));
    assert_eq!(
        profile.declares(),
        BTreeSet::from([
            Capability::Instances,
            Capability::InstancesV2,
            Capability::Shutdown,
            Capability::Zones,
            Capability::Regions,
            Capability::LoadBalancer,
            Capability::NodeTargets,
            Capability::LeaderElection,
            Capability::SecurePort,
        ])
    );
    assert_eq!(
        profile.capabilities.declared(),
        ["instances=v2", "zones", "loadBalancer", "leaderElection", "protocols=TCP"]
    );
}

#[test]
fn settings_for_unusual_clouds_are_read() {
    let more = "alsoReportedAs: {ExternalIP: InternalIP}\n\
                annotationEffects: {acme.example/size: {values: [s, l], at: /details/size, shows: [small, large]}}\n";
    let pool = SOUND.replacen("loadBalancer: true", "loadBalancer: true, targets: pool", 1);
    assert_ne!(pool, SOUND, "the profile has the capability");
    let folder = written(&format!("{pool}{more}"));
    let profile = Profile::load(&folder.path().to_string_lossy()).expect("the profile is sound");
    assert!(!profile.declares().contains(&Capability::NodeTargets), "the cloud chooses backends");
    assert!(profile.declares().contains(&Capability::VendorAnnotations));
    assert!(profile.capabilities.declared().contains(&"targets=pool".to_owned()));
    let effect = &profile.annotation_effects["acme.example/size"];
    assert_eq!(
        (effect.at.as_str(), &effect.shows),
        ("/details/size", &["small", "large"].map(str::to_owned))
    );
    assert_eq!(profile.also_reported_as.len(), 1);
}

#[test]
fn machines_have_ids_of_the_dialects_form() {
    let folder = written(SOUND);
    let profile = Profile::load(&folder.path().to_string_lossy()).expect("the profile is sound");
    assert_eq!(profile.provider_id_of("node-1"), "native://i-node-1");
    let hcloud = Profile::load("hcloud").expect("the built-in profile is sound");
    let provider_id = hcloud.provider_id_of("node-1");
    let number = hcloud.provider_id.instance(&provider_id).expect("an id");
    assert!(hcloud.instance_ids().allow(number), "{provider_id}");
    assert_eq!(provider_id, format!("hcloud://{number}"));
}

#[test]
fn the_meaning_of_a_full_profile() {
    let folder = written(
        "name: acme\n\
         description: The CCM of Acme.\n\
         framework: {profile: true, version: 1.30}\n\
         image: {build: {package: acme-ccm, binary: acme, features: [b, a]}}\n\
         manifests: [manifests/20-ccm.yml, manifests/10-rbac.yaml]\n\
         workload: {namespace: acme, name: acme-ccm, container: main}\n\
         cloud: {dialect: native}\n\
         capabilities: {instances: v1, leaderElection: false}\n\
         lease: {namespace: acme, name: acme-ccm}\n\
         leaseTiming: {duration: 30s, renewDeadline: 20s, retryPeriod: 5s}\n\
         securePort: 0\n\
         flags: {accepted: [--v, node-status-update-frequency], extra: [--cluster-cidr=10.244.0.0/16]}\n\
         providerId: {format: 'acme:///{id}/eu'}\n\
         location: {region: eu, zone: eu-1}\n\
         instanceType: acme.cpu-1\n\
         addressOrder: [Hostname, InternalIP]\n\
         replicas: 1\n\
         placeholders: {CLUSTER_ID: 0012}\n\
         environment: {ACME_URL: '${CLOUD_ENDPOINT}/v2'}\n\
         declared: [{id: SVC-DEL-01, reason: lazy}]\n\
         deployment: hosted\n",
    );
    let profile = Profile::load(&folder.path().to_string_lossy()).expect("the profile is sound");
    assert_eq!(profile.framework.version().as_deref(), Some("1.30"));
    let Some(Image::Build(build)) = &profile.image else { panic!("the image is built") };
    assert_eq!((build.package.as_str(), build.binary.as_str()), ("acme-ccm", "acme"));
    let names: Vec<_> = profile.manifests.iter().map(|p| p.file_name().expect("files have names")).collect();
    assert_eq!(names, ["20-ccm.yml", "10-rbac.yaml"]);
    assert_eq!(profile.lease_timing.duration, Duration::from_secs(30));
    assert!(profile.accepts("v") && profile.accepts("--node-status-update-frequency"));
    assert_eq!(profile.provider_id.instance("acme:///i-1/eu"), Some("i-1"));
    assert_eq!(profile.provider_id.instance("acme:///i-1"), None);
    assert_eq!(profile.placeholders["CLUSTER_ID"], "0012", "a number keeps its spelling");
    assert_eq!(profile.declared[0].id, "SVC-DEL-01");
    assert_eq!(profile.address_order, [AddressType::Hostname, AddressType::InternalIp]);
    assert_eq!((profile.location.region.as_str(), profile.location.zone.as_str()), ("eu", "eu-1"));
    assert_eq!(profile.instance_type.as_deref(), Some("acme.cpu-1"));
    assert_eq!(profile.deployment, Deployment::Hosted);
}

#[test]
fn provider_ids() {
    let format = ProviderIdFormat::new("native://{id}").expect("it holds {id}");
    assert_eq!(format.instance("native://i-7"), Some("i-7"));
    assert_eq!((format.instance("native://"), format.instance("other://i-7")), (None, None));
    assert_eq!(ProviderIdFormat::new("native://"), None);
}

#[test]
fn the_null_profile_claims_all_that_the_reference_does() {
    let claims = |name: &str| -> (Capabilities, Framework) {
        // The reference's manifests are not needed for its claims.
        let text = files::read(&files::built_in(&format!("{name}/profile.yaml"))).expect("it is built in");
        let text = text
            .replace("manifests: [manifests]", "manifests: []")
            .replace("image: {command: reference-ccm}\n", "");
        let folder = folder(&[("profile.yaml", &text)]);
        let profile = Profile::load(&folder.path().to_string_lossy()).expect("built-in profiles are sound");
        assert!(profile.deploys_nothing());
        (profile.capabilities, profile.framework)
    };
    assert_eq!(claims(NULL_PROFILE), claims(REFERENCE_PROFILE));
    assert_eq!(claims(NULL_PROFILE).0.instances, Instances::V2);
    let null = Profile::load(NULL_PROFILE).expect("the null profile is sound");
    assert_eq!((null.name.as_str(), null.image, null.manifests.len()), ("null", None, 0));
}

#[test]
fn load_balancers_say_whose_they_are() {
    let uid = "820f7e93-acb2-4996-8480-9a5a83e8d4da";
    assert_eq!(Ownership::Uid.owner(uid, "default/web"), uid);
    // The name that digitalocean-cloud-controller-manager v0.1.68 gave the load balancer of this Service.
    assert_eq!(Ownership::Name.owner(uid, "default/web"), "a820f7e93acb2499684809a5a83e8d4d");
    assert_eq!(Ownership::Name.owner("", ""), "a");
    assert_eq!(Ownership::Service.owner(uid, "default/web"), "default/web");
}
