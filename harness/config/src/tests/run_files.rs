//! Run files: which are rejected, and with which messages, and the meaning of defaults.

use super::{PROFILE_HEAD, RUN_HEAD, SOUND, folder, planned, said};
use crate::{
    BackendChoice, BackendKind, Budget, Image, Keep, Kubernetes, NodeIp, ProviderId, RunFile, RunPlan,
    Source, Timing, Topology, WantedCluster, plan,
};
use std::time::Duration;

#[track_caller]
fn check(run_file: &str, expected: &str) {
    let (folder, plan) = planned(run_file, RunFile::default());
    let problems = plan.expect_err("the file has faults");
    assert_eq!(said(&problems, folder.path()), expected);
}

#[test]
fn misspelt_keys_are_named_with_the_right_ones() {
    check("keeep: always", "run.yaml:4: keeep: unknown key; did you mean 'keep'?");
    check(
        "require_complete: true",
        "run.yaml:4: require_complete: unknown key; did you mean 'requireComplete'?",
    );
    check("cluster: {topolgy: single}", "run.yaml:4: cluster.topolgy: unknown key; did you mean 'topology'?");
    check("topology: single", "run.yaml:4: topology: unknown key here; did you mean 'cluster.topology'?");
    check(
        "cluster:\n  banana: 1",
        "run.yaml:5: cluster.banana: unknown key; known here: backend, topology, kubernetes, kubeconfig, allowForeign, providerId, nodeIp, seed",
    );
}

#[test]
fn misspelt_words_are_named_with_the_right_ones() {
    check(
        "keep: on-failur",
        "run.yaml:4: keep: 'on-failur' is none of never, on-failure, always; did you mean 'on-failure'?",
    );
    check("timing: slow", "run.yaml:4: timing: 'slow' is none of fast, default");
    check(
        "cluster: {backend: Kind}",
        "run.yaml:4: cluster.backend: 'Kind' is none of auto, kind, embedded, existing, none; did you mean 'kind'?",
    );
    check(
        "cluster: {topology: three-nodes}",
        "run.yaml:4: cluster.topology: 'three-nodes' is none of single, three-node, no-cni, dual-stack, two-node, nor a path with a '/'; did you mean 'three-node'?",
    );
}

#[test]
fn wrong_types_say_what_was_expected_and_found() {
    check("jobs: many", "run.yaml:4: jobs: a whole number from 1 to 256 was expected, found the text 'many'");
    check("jobs: 0", "run.yaml:4: jobs: 0 is out of range; a whole number from 1 to 256");
    check("jobs: 1.5", "run.yaml:4: jobs: 1.5 is out of range; a whole number from 1 to 256");
    check(
        "requireComplete: 1",
        "run.yaml:4: requireComplete: true or false was expected, found the number 1",
    );
    check(
        "select: {only: NODE-*}",
        "run.yaml:4: select.only: a list such as [SVC-*] was expected, found the text 'NODE-*'",
    );
    check(
        "select: [a]",
        "run.yaml:4: select: keys and values (such as suites, only, skip) were expected, found a list",
    );
    check(
        "select: {only: [NODE-*, {a: b}]}",
        "run.yaml:4: select.only[1]: text was expected, found keys and values",
    );
    check(
        "cluster: {nodeIp: no}",
        "run.yaml:4: cluster.nodeIp: one of kept, dropped was expected, found the truth value false (quote it to mean the text)",
    );
    check("limits: {scale: 0}", "run.yaml:4: limits.scale: 0 is out of range; a number from 0.1 to 20");
}

#[test]
fn an_unquoted_null_is_not_taken_for_absent_where_text_may_stand() {
    check(
        "output: {dir: null}",
        "run.yaml:4: output.dir: 'null' means no value; quote it to mean the text, or leave the key out",
    );
}

#[test]
fn bad_durations_say_how_to_write_one() {
    check(
        "limits: {budgets: {watch: 30}}",
        "run.yaml:4: limits.budgets.watch: '30': a duration needs a unit, e.g. '30s' or '1m30s'",
    );
    check(
        "limits: {budgets: {watch: 30 seconds}}",
        "run.yaml:4: limits.budgets.watch: '30 seconds': not a duration; write e.g. '250ms', '30s', '1m30s' or '2h'",
    );
    check(
        "limits: {budgets: {watch: 0s}}",
        "run.yaml:4: limits.budgets.watch: '0s': must be longer than zero",
    );
    check(
        "limits: {budgets: {quiet-node: 5s}}",
        "run.yaml:4: limits.budgets.quiet-node: unknown key; did you mean 'quiet-nodes'?",
    );
}

#[test]
fn unusable_versions_of_kubernetes() {
    check(
        "cluster: {kubernetes: 1.19}",
        "run.yaml:4: cluster.kubernetes: '1.19': older than 1.20, the oldest Kubernetes that is supported",
    );
    check(
        "cluster: {kubernetes: '9.9'}",
        "run.yaml:4: cluster.kubernetes: '9.9': no release of Kubernetes; their versions begin with '1.', such as 1.36",
    );
    for text in ["latest", "1.x", "v1.36.1.2", "kindest node:v1"] {
        check(
            &format!("cluster: {{kubernetes: {text}}}"),
            &format!(
                "run.yaml:4: cluster.kubernetes: '{text}': neither a version such as 1.36 or 1.36.1 nor a node image such as kindest/node:v1.36.1"
            ),
        );
    }
}

#[test]
fn keys_of_the_other_backend_are_refused() {
    check(
        "cluster: {backend: existing, topology: single, kubernetes: 1.36, kubeconfig: none.conf}",
        "3 problems in the configuration:\n  \
         run.yaml:4: cluster.topology: has no meaning with 'backend: existing'\n  \
         run.yaml:4: cluster.kubernetes: has no meaning with 'backend: existing'\n  \
         run.yaml:4: cluster.kubeconfig: there is no file none.conf",
    );
    check(
        "cluster: {kubeconfig: x, allowForeign: true}",
        "2 problems in the configuration:\n  \
         run.yaml:4: cluster.kubeconfig: has a meaning only with 'backend: existing'\n  \
         run.yaml:4: cluster.allowForeign: has a meaning only with 'backend: existing'",
    );
}

#[test]
fn fast_timing_needs_the_flags() {
    check(
        "timing: fast",
        "run.yaml:4: timing: 'fast' needs flags that the profile does not list as accepted: \
         --leader-elect-lease-duration, --leader-elect-renew-deadline, --leader-elect-retry-period, \
         --node-status-update-frequency",
    );
}

#[test]
fn all_problems_of_all_files_come_together() {
    let folder = folder(&[
        (
            "run.yaml",
            "kind: Conformance\nprofile: ./acme\njobs: 0\nkeeep: never\ncluster: {topology: ./x.yaml}\n",
        ),
        (
            "acme/profile.yaml",
            "apiVersion: ccm-conformance/v1\nkind: Profile\nname: acme\nmanifests: [gone]\nsecurePort: 70000\n",
        ),
    ]);
    let over = RunFile { timing: Some(Timing::Fast), jobs: Some(1000), ..RunFile::default() };
    let problems = plan(&Source::File(folder.path().join("run.yaml")), over).expect_err("there are faults");
    assert_eq!(
        said(&problems, folder.path()),
        "9 problems in the configuration:\n  \
         --jobs: 1000 is out of range; a whole number from 1 to 256\n  \
         --timing: 'fast' needs flags that the profile does not list as accepted: \
         --leader-elect-lease-duration, --leader-elect-renew-deadline, --leader-elect-retry-period, \
         --node-status-update-frequency\n  \
         ./acme/profile.yaml: capabilities: is missing; say what the CCM can do, e.g. 'instances: v2'\n  \
         ./acme/profile.yaml:4: manifests[0]: there is no file or folder ./acme/gone\n  \
         ./acme/profile.yaml:5: securePort: 70000 is out of range; a whole number from 0 to 65535\n  \
         run.yaml: apiVersion: is missing; write 'apiVersion: ccm-conformance/v1'\n  \
         run.yaml:3: jobs: 0 is out of range; a whole number from 1 to 256\n  \
         run.yaml:4: keeep: unknown key; did you mean 'keep'?\n  \
         run.yaml:5: cluster.topology: there is no such file: ./x.yaml"
    );
}

#[test]
fn files_that_cannot_be_read_at_all() {
    let folder = folder(&[
        ("twice.yaml", &format!("{RUN_HEAD}keep: never\nkeep: always\n")),
        ("broken.yaml", "kind: [Conformance\n"),
        ("list.yaml", "- a\n"),
        ("two.yaml", &format!("{RUN_HEAD}---\n{RUN_HEAD}")),
        ("header.yaml", "apiVersion: ccm-conformance/v2\nkind: Profile\n"),
        ("empty.yaml", ""),
    ]);
    for (file, expected) in [
        ("twice.yaml", "twice.yaml:4: the key 'keep' is given twice"),
        ("broken.yaml", "broken.yaml:1: unclosed bracket '['"),
        (
            "header.yaml",
            "2 problems in the configuration:\n  \
             header.yaml:1: apiVersion: 'ccm-conformance/v2' is not understood here; write 'ccm-conformance/v1'\n  \
             header.yaml:2: kind: 'Profile' is not understood here; write 'Conformance'",
        ),
        (
            "list.yaml",
            "list.yaml:1: keys and values (such as apiVersion, kind, profile) were expected, found a list",
        ),
        (
            "empty.yaml",
            "2 problems in the configuration:\n  \
             empty.yaml: apiVersion: is missing; write 'apiVersion: ccm-conformance/v1'\n  \
             empty.yaml: kind: is missing; write 'kind: Conformance'",
        ),
        ("none.yaml", "none.yaml: cannot be read: there is no such file or folder; check the path"),
    ] {
        let over = RunFile { profile: Some(String::from("null")), ..RunFile::default() };
        let problems = plan(&Source::File(folder.path().join(file)), over).expect_err("the file is unusable");
        assert_eq!(said(&problems, folder.path()), expected);
    }
    let over = RunFile { profile: Some(String::from("null")), ..RunFile::default() };
    let problems =
        plan(&Source::File(folder.path().join("two.yaml")), over).expect_err("one document is wanted");
    assert_eq!(problems.0.len(), 1, "{problems}");
}

#[test]
fn an_unknown_profile_names_the_nearest() {
    let over = RunFile { profile: Some(String::from("nul")), ..RunFile::default() };
    let problems = plan(&Source::Defaults, over).expect_err("there is no such profile");
    let said = problems.to_string();
    let start = "--profile: no built-in profile is called 'nul', and a path has a '/'; did you mean 'null'? built in: ";
    assert!(said.starts_with(start) && said.contains("'ccm-conformance init' writes"), "{said}");
    let folder = tempfile::tempdir().expect("a folder");
    let empty = folder.path().display().to_string();
    for (path, start) in [
        ("./nowhere".to_owned(), "--profile: there is no profile at ./nowhere; built in: ".to_owned()),
        (empty.clone(), format!("--profile: folder {empty} has no profile.yaml; built in: ")),
    ] {
        let over = RunFile { profile: Some(path), ..RunFile::default() };
        let problems = plan(&Source::Defaults, over).expect_err("there is no such profile");
        assert!(problems.to_string().starts_with(&start), "{problems}");
    }
}

#[test]
fn a_profile_that_cannot_be_looked_at_is_not_called_absent() {
    let folder = tempfile::tempdir().expect("a folder");
    // The error of a folder of another user does not exist for root; this one is the same for everyone.
    let file = folder.path().join("profile.yaml");
    std::os::unix::fs::symlink(&file, &file).expect("a link");
    let over = RunFile { profile: Some(folder.path().display().to_string()), ..RunFile::default() };
    let problems = plan(&Source::Defaults, over).expect_err("it cannot be read").to_string();
    let start = format!("--profile: {} cannot be read: ", file.display());
    assert!(problems.starts_with(&start) && problems.contains("symbolic links"), "{problems}");
}

#[test]
fn an_output_that_is_a_file_is_refused() {
    check("output: {dir: acme/profile.yaml}", "run.yaml:4: output.dir: acme/profile.yaml is not a folder");
}

#[test]
fn the_meaning_of_a_full_file() {
    let (folder, plan) = planned(
        "cluster: {backend: kind, topology: dual-stack, kubernetes: 1.30, providerId: chosen, nodeIp: dropped}\n\
         select: {suites: [failover], only: [HA-*], skip: [HA-06]}\n\
         output: {dir: out}\n\
         keep: on-failure\n\
         jobs: 4\n\
         limits: {scale: 2, budgets: {watch: 7s, quiet-services: 1m30s}}\n\
         requireComplete: true\n\
         timing: default\n",
        RunFile::default(),
    );
    let plan = plan.expect("the file is sound");
    assert_eq!(plan.cluster.backend(), Some(BackendKind::Kind));
    let kind = plan.cluster.desired().own().expect("kind makes clusters");
    assert_eq!(kind.topology, Topology::DualStack);
    assert_eq!(kind.kubernetes, Kubernetes::Version { minor: 30, patch: None });
    assert_eq!((kind.provider_id, kind.node_ip), (ProviderId::Chosen, NodeIp::Dropped));
    assert_eq!(plan.selection.suites, ["failover"]);
    assert_eq!(plan.selection.only, ["HA-*"]);
    assert_eq!(plan.selection.skip, ["HA-06"]);
    assert_eq!(plan.output, folder.path().join("out"));
    assert_eq!((plan.keep, plan.jobs, plan.require_complete), (Keep::OnFailure, 4, true));
    assert_eq!(plan.limits.budget(Budget::Watch), Duration::from_secs(7));
    assert_eq!(plan.limits.quiet_services(), Duration::from_secs(90));
    assert_eq!(plan.limits.life(), Duration::from_secs(20));
    assert_eq!(plan.timing, Timing::Default);
    assert!(plan.ccm_arguments().is_empty());
}

#[test]
fn the_meaning_of_an_empty_file() {
    let (_folder, plan) = planned("select:\n  only:\n", RunFile::default());
    let plan = plan.expect("keys without a value count as absent");
    assert_eq!(plan.cluster.backend(), None);
    let own = plan.cluster.desired().own().expect("a cluster of the harness's own is the default");
    assert_eq!((&own.topology, &own.kubernetes), (&Topology::Single, &Kubernetes::Newest));
    assert_eq!((plan.keep, plan.require_complete, plan.timing), (Keep::Never, false, Timing::Default));
    assert_eq!(plan.limits.failover(), Duration::from_secs(30));
}

#[test]
fn a_ccm_with_few_workers_gets_fewer_checks_at_a_time() {
    let jobs = |workers: &str, text: &str| {
        let folder = folder(&[
            ("run.yaml", &format!("{RUN_HEAD}profile: ./acme\n{text}")),
            ("acme/profile.yaml", &format!("{PROFILE_HEAD}{SOUND}workers: {workers}\n")),
            ("acme/manifests/ccm.yaml", ""),
        ]);
        let plan = plan(&Source::File(folder.path().join("run.yaml")), RunFile::default());
        plan.expect("a sound run file").jobs
    };
    assert_eq!((jobs("1", ""), jobs("2", ""), jobs("200", "")), (8, 16, 32));
    assert_eq!(jobs("1", "jobs: 20\n"), 20, "what the user asks for");
}

#[test]
fn a_program_needs_the_embedded_cluster_and_to_be_there() {
    let on = |backend: BackendChoice, profile: &str, binary: &str| {
        let over = RunFile {
            profile: Some(profile.to_owned()),
            binary: Some(binary.to_owned()),
            cluster: crate::ClusterKeys { backend: Some(backend), ..Default::default() },
            ..RunFile::default()
        };
        plan(&Source::Defaults, over)
    };
    let plan = on(BackendChoice::Embedded, "digitalocean", "/bin/sh").expect("a plan");
    assert_eq!(plan.binary.as_deref(), Some(std::path::Path::new("/bin/sh")));
    assert!(on(BackendChoice::Auto, "reference", "/bin/sh").is_ok());
    let file = tempfile::NamedTempFile::new().expect("a file");
    let plain = file.path().display().to_string();
    for (backend, profile, binary, why) in [
        (BackendChoice::Kind, "reference", "/bin/sh", "only with '--cluster embedded'"),
        (BackendChoice::Embedded, "reference", "/nowhere/ccm", "/nowhere/ccm: there is no such file"),
        (BackendChoice::Embedded, "reference", plain.as_str(), "is not executable"),
        (BackendChoice::Embedded, "null", "/bin/sh", "profile 'null' deploys nothing"),
    ] {
        let refused = on(backend, profile, binary).expect_err("refused").to_string();
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn a_backend_that_was_named_is_the_one_that_is_used() {
    let on = |backend| {
        let cluster = crate::ClusterKeys { backend, ..Default::default() };
        let plan = plan(&Source::Defaults, RunFile { cluster, ..RunFile::default() }).expect("a plan");
        plan.cluster.settled(BackendKind::Embedded).backend()
    };
    assert_eq!(on(None), BackendKind::Embedded);
    assert_eq!(on(Some(BackendChoice::Auto)), BackendKind::Embedded);
    assert_eq!(on(Some(BackendChoice::Kind)), BackendKind::Kind);
    assert_eq!(on(Some(BackendChoice::Existing)), BackendKind::Existing);
}

#[test]
fn another_image_takes_the_place_of_the_profiles() {
    let image = |text: &str| RunFile { image: Some(text.to_owned()), ..RunFile::default() };
    let on = |profile: &str, text: &str| {
        plan(&Source::Defaults, RunFile { profile: Some(profile.to_owned()), ..image(text) })
    };
    let other = on("hcloud", "hetznercloud/hcloud-cloud-controller-manager:v1.34.0").expect("a plan");
    let wanted = "hetznercloud/hcloud-cloud-controller-manager:v1.34.0".to_owned();
    assert_eq!(other.profile.image, Some(Image::Reference(wanted)));
    let refused =
        |result: Result<RunPlan<WantedCluster>, crate::Problems>| result.expect_err("refused").to_string();
    assert!(refused(on("null", "a:b")).contains("profile 'null' deploys nothing"));
    assert!(refused(on("hcloud", "a b")).contains("not an image reference"));
    let (_folder, named_in_manifests) = planned("", image("a:b"));
    assert!(refused(named_in_manifests).contains("its manifests name the image"));
    let folder = folder(&[
        ("profile.yaml", &format!("{PROFILE_HEAD}{SOUND}")),
        ("manifests/ccm.yaml", "image: ${IMAGE}\n"),
    ]);
    let left_open = on(&folder.path().display().to_string(), "a:b").expect("the manifests name none");
    assert_eq!(left_open.profile.image, Some(Image::Reference("a:b".to_owned())));
    check("image: [a]", "run.yaml:4: image: text was expected, found a list");
}
