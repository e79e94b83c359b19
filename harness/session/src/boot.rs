//! The boot model's expectation for a profile's manifests, and its explanation for a cluster that did not boot.

use crate::SessionError;
use bootstrap::{
    CloudEndpoint, Cluster, Cni, Effect, Expectation, Finding, Level, Source, Taint, Topology, Version,
    YesNo, expect,
};
use harness_clusters::{PlannedMachine, Role, planned_machines};
use harness_config::{Deployment, DesiredCluster, Kubernetes, NodeIp, OwnCluster, Profile, RunPlan};
use harness_core::check::chain;
use harness_core::files;
use std::path::PathBuf;

/// The circumstances of a boot that its cluster does not determine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// How the pod network is set up.
    pub cni: Cni,
    /// Whether the only control plane keeps the taint of kubeadm, which kind removes.
    pub keeps_taint: bool,
    /// Whether the Nodes start with the condition `NetworkUnavailable`.
    pub routes: bool,
    /// Whether the CCM reaches its cloud by a DNS name.
    pub cloud_by_name: bool,
}

impl Circumstances {
    /// The usual ones, with this pod network.
    pub fn usual(cni: Cni) -> Circumstances {
        Circumstances { cni, keeps_taint: false, routes: false, cloud_by_name: false }
    }
}

/// The model's result for the profile's manifests on such a cluster, in each of these circumstances. `None` if nothing
/// is deployed, or the harness does not create the cluster.
///
/// # Errors
/// Manifests that cannot be read, with file and line.
pub fn expectation(
    profile: &Profile,
    cluster: &DesiredCluster,
    circumstances: &[Circumstances],
) -> Option<Result<Expectation, String>> {
    let own = cluster.own()?;
    if profile.deploys_nothing() {
        return None;
    }
    let clusters = match clusters(profile, own, circumstances) {
        Ok(clusters) => clusters,
        Err(why) => return Some(Err(why)),
    };
    Some(expected(profile, &clusters))
}

/// The lint's findings for the profile's manifests, on the cluster that is created or, if an existing one is used, on one
/// with a control plane and a worker. `None` if nothing is deployed.
///
/// # Errors
/// Those of [`expectation`].
pub fn manifest_findings(
    profile: &Profile,
    cluster: &DesiredCluster,
) -> Option<Result<Vec<Finding>, String>> {
    if profile.deploys_nothing() {
        return None;
    }
    let usual = Circumstances::usual(Cni::Independent);
    let anywhere = || {
        let topology = match profile.deployment {
            Deployment::Hosted => Topology::Hosted,
            Deployment::InCluster => Topology::ControlPlaneAndWorker,
        };
        expected(profile, &[Cluster::new(topology, usual.cni)])
    };
    let said = expectation(profile, cluster, &[usual]).unwrap_or_else(anywhere);
    Some(said.map(|expectation| expectation.findings))
}

/// Whether the API server of the run's own cluster accepts the manifests, also those of an old release.
///
/// # Errors
/// [`SessionError::Usage`]: the objects that it refuses, with file and line.
pub(super) fn check_accepted(plan: &RunPlan) -> Result<(), SessionError> {
    let cluster = plan.cluster.desired();
    let profiles = std::iter::once(&plan.profile).chain(plan.old_release.as_ref().map(|old| &old.profile));
    let refused: Vec<String> = profiles.flat_map(|profile| refused_objects(profile, cluster)).collect();
    if refused.is_empty() {
        return Ok(());
    }
    Err(SessionError::Usage(format!(
        "the API server does not accept the manifests; 'ccm-conformance bootstrap check' shows what to change:\n  {}",
        refused.join("\n  ")
    )))
}

/// The oldest minor version of Kubernetes whose API server refuses what the model says, as far as users meet it.
const OLDEST_WITH_ITS_RULES: u32 = 30;

/// The objects of a profile's manifests that no API server of the run's own cluster accepts, with file, line and reason.
/// The values of placeholders are not known, so fields with one do not count.
pub fn refused_objects(profile: &Profile, cluster: &DesiredCluster) -> Vec<String> {
    let minor = match cluster.own().map(|own| &own.kubernetes) {
        None => return Vec::new(),
        Some(Kubernetes::Version { minor, .. }) => Some(*minor),
        Some(Kubernetes::Newest | Kubernetes::Image(_)) => None,
    };
    // Older API servers have other rules, and serve other versions.
    if minor.is_some_and(|minor| minor < OLDEST_WITH_ITS_RULES) {
        return Vec::new();
    }
    // Manifests that the model cannot read are left to the API server.
    let findings = manifest_findings(profile, cluster).and_then(Result::ok).unwrap_or_default();
    let refused = |finding: &Finding| match finding.id {
        "BOOT-API" => {
            let left_open =
                finding.what.contains("${") || (minor.is_none() && finding.is_of_an_old_version());
            finding.level == Level::Must && !left_open
        }
        "BOOT-KIND" => true,
        _ => false,
    };
    let shown = |finding: &Finding| {
        let remedy = match finding.id {
            "BOOT-KIND" => "; add the CustomResourceDefinition of its kind, or leave it out",
            _ => "",
        };
        format!("{}: {}{remedy}", finding.at(), finding.what)
    };
    findings.iter().filter(|finding| refused(finding)).map(shown).collect()
}

fn expected(profile: &Profile, clusters: &[Cluster]) -> Result<Expectation, String> {
    let ccm = profile.workload.as_ref().map(|workload| workload.name.as_str());
    let source = |path: &PathBuf| {
        let text = files::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Source::new(&path.display().to_string(), &text))
    };
    let sources: Result<Vec<Source>, String> = profile.manifests.iter().map(source).collect();
    expect(sources?, clusters, &[], ccm)
}

/// The cluster that will be created, as the model's input, in each of the circumstances.
fn clusters(
    profile: &Profile,
    own: &OwnCluster,
    circumstances: &[Circumstances],
) -> Result<Vec<Cluster>, String> {
    let machines = match profile.deployment {
        // The CCM runs on a management cluster that is up, so this cluster does not affect it.
        Deployment::Hosted => None,
        Deployment::InCluster => Some(planned_machines(&own.topology).map_err(|error| chain(&error))?),
    };
    let topology = match &machines {
        None => Topology::Hosted,
        Some(machines) if machines.len() == 1 => Topology::SingleNode,
        Some(machines) if machines.iter().all(|machine| machine.role == Role::ControlPlane) => {
            Topology::ThreeControlPlanes
        }
        Some(_) => Topology::ControlPlaneAndWorker,
    };
    let machines = match machines {
        None => None,
        Some(machines) => Some(machines.iter().map(machine).collect::<Result<Vec<_>, String>>()?),
    };
    let version = match own.kubernetes {
        Kubernetes::Version { minor, .. } => Version { major: 1, minor },
        Kubernetes::Newest | Kubernetes::Image(_) => Version::DEFAULT,
    };
    let cluster = |now: &Circumstances| {
        let mut cluster = Cluster {
            // The harness gives the CCM the addresses of the API server and, usually, of the fake cloud.
            cloud_endpoint: if now.cloud_by_name { CloudEndpoint::Name } else { CloudEndpoint::Address },
            // A network that waits for addresses waits for those of the CCM, whatever the kubelet reports.
            node_ip: yes(own.node_ip == NodeIp::Kept && now.cni != Cni::WaitsForAddresses),
            machines: machines.clone(),
            version,
            routes: yes(now.routes),
            ..Cluster::new(topology, now.cni)
        };
        if let (true, Some([only])) = (now.keeps_taint, cluster.machines.as_deref_mut()) {
            only.kubeadms_taints = true;
            cluster.topology = Topology::SingleControlPlane;
        }
        cluster
    };
    Ok(circumstances.iter().map(cluster).collect())
}

fn yes(it_is: bool) -> YesNo {
    if it_is { YesNo::Yes } else { YesNo::No }
}

/// Whether the harness creates a cluster of one machine, on which BOOT-DYN-02 can set the taint of a control plane.
fn has_one_machine(profile: &Profile, cluster: &DesiredCluster) -> bool {
    let machines = cluster.own().map(|own| planned_machines(&own.topology));
    profile.deployment == Deployment::InCluster
        && machines.is_some_and(|machines| machines.is_ok_and(|machines| machines.len() == 1))
}

/// A machine of the topology, as the model's input.
fn machine(planned: &PlannedMachine) -> Result<bootstrap::PlannedMachine, String> {
    let registration = &planned.registration;
    if let Some(why) = &registration.unknown {
        return Err(format!("the taints of a {} are not known: {why}", planned.role));
    }
    let taint = |taint: &harness_clusters::PlannedTaint| {
        let effect = match taint.effect.as_str() {
            "NoExecute" => Effect::NoExecute,
            "PreferNoSchedule" => Effect::PreferNoSchedule,
            _ => Effect::NoSchedule,
        };
        Taint::new(&taint.key, &taint.value, effect)
    };
    Ok(bootstrap::PlannedMachine {
        control_plane: planned.role == Role::ControlPlane,
        kubeadms_taints: registration.kubeadms_taint,
        taints: registration.taints.iter().map(taint).collect(),
        labels: registration.labels.clone(),
    })
}

/// The expectation, one line for each cluster of the bootstrap checks, for the user before the run.
pub fn expected_boot(profile: &Profile, cluster: &DesiredCluster) -> Option<String> {
    let usual = Circumstances::usual(Cni::Independent);
    let mut all = vec![usual, Circumstances::usual(Cni::None)];
    if has_one_machine(profile, cluster) {
        all.insert(1, Circumstances { keeps_taint: true, ..usual });
    }
    match expectation(profile, cluster, &all)? {
        Ok(expectation) => Some(together(expectation.summary().trim_end())),
        // Manifests that cannot be read are reported when they are loaded; a vendor's templates may be too much for the
        // model.
        Err(why) => Some(format!("unknown: {}", why.trim_end())),
    }
}

/// The lines of a summary, `CLUSTER: RESULT`; clusters that do not boot for the same reason are in one line.
fn together(summary: &str) -> String {
    let mut lines: Vec<(Vec<&str>, &str)> = Vec::new();
    for line in summary.lines() {
        let (cluster, result) = line.split_once(": ").unwrap_or((line, ""));
        match lines.iter_mut().find(|(_, known)| *known == result && result.contains(": ")) {
            Some((clusters, _)) => clusters.push(cluster),
            None => lines.push((vec![cluster], result)),
        }
    }
    let lines = lines.iter().map(|(clusters, result)| format!("{}: {result}", clusters.join(", ")));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_config::{ProviderId, RunFile, Source, plan};
    use std::io::Write;

    /// The expectation for the reference CCM on a topology with these nodes, without a network that waits for it.
    fn expected(nodes: &str) -> String {
        let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().expect("a file");
        write!(file, "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n{nodes}\n").expect("written");
        let profile = plan(&Source::Defaults, RunFile::default()).expect("a plan").profile;
        let own = OwnCluster {
            topology: harness_config::Topology::File(file.path().to_owned()),
            kubernetes: Kubernetes::Newest,
            provider_id: ProviderId::Empty,
            node_ip: NodeIp::Kept,
            serving: harness_config::ServingCertificates::SelfSigned,
            seed: None,
        };
        match expectation(&profile, &DesiredCluster::Own(own), &[Circumstances::usual(Cni::Independent)])
            .expect("a deployment")
        {
            Ok(expectation) => expectation.summary().trim_end().to_owned(),
            Err(why) => why,
        }
    }

    #[test]
    fn the_model_is_asked_about_the_machines_that_a_topology_has() {
        assert_eq!(expected("nodes: [{role: control-plane}]"), "single-node with CNI independent: boots");
        assert_eq!(
            expected("nodes: [{role: control-plane}, {role: worker}, {role: worker}]"),
            "1 control plane and 2 workers (1 tainted) with CNI independent: boots"
        );
        assert_eq!(
            expected("nodes: [{role: control-plane}, {role: control-plane}, {role: control-plane}]"),
            "3 control planes (3 tainted) with CNI independent: boots"
        );
        let removed = "kubeadmConfigPatches: ['{kind: InitConfiguration, nodeRegistration: {taints: []}}']\n\
                       nodes: [{role: control-plane}, {role: worker}]";
        assert_eq!(
            expected(removed),
            "1 control plane and 1 worker (none tainted) with CNI independent: boots"
        );
    }

    #[test]
    fn a_taint_that_the_ccm_does_not_tolerate_everywhere_is_a_deadlock() {
        let tainted = "kubeadmConfigPatches: ['{kind: InitConfiguration, nodeRegistration: \
                       {taints: [{key: mine, effect: NoSchedule}]}}']\n\
                       nodes: [{role: control-plane}]";
        let said = expected(tainted);
        assert!(said.starts_with("single-node with CNI independent: "), "{said}");
        assert!(!said.ends_with(": boots"), "{said}");
    }

    /// The plan's cluster of one machine.
    fn single() -> DesiredCluster {
        DesiredCluster::Own(OwnCluster {
            topology: harness_config::Topology::Single,
            kubernetes: Kubernetes::Newest,
            provider_id: ProviderId::Empty,
            node_ip: NodeIp::Kept,
            serving: harness_config::ServingCertificates::SelfSigned,
            seed: None,
        })
    }

    /// The profile of the reference CCM with the manifests of a variant.
    fn variant(name: &str) -> Profile {
        let mut profile = plan(&Source::Defaults, RunFile::default()).expect("a plan").profile;
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bootstrap");
        profile.manifests = vec![folder.join(name).join("ccm.yaml")];
        profile
    }

    /// BOOT-DYN-02 sets the taint that kind and the embedded cluster remove.
    #[test]
    fn the_forecast_for_one_machine_includes_the_taint_of_its_control_plane() {
        let stuck = variant("mbt-03-no-control-plane-toleration");
        let said = expected_boot(&stuck, &single()).expect("a deployment");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], "single-node with CNI independent: boots", "{said}");
        assert!(lines[1].starts_with("single-control-plane with CNI independent: does not boot"), "{said}");
        assert_eq!(lines.len(), 3, "{said}");
        let tainted = Circumstances { keeps_taint: true, ..Circumstances::usual(Cni::Independent) };
        let expected = expectation(&stuck, &single(), &[tainted]).expect("a deployment").expect("manifests");
        let explained = expected.explain_with(&bootstrap::Observed { pods: Vec::new(), nodes: Vec::new() });
        assert!(explained.contains("node-role.kubernetes.io/control-plane:NoSchedule"), "{explained}");
        let good = expected_boot(&variant("good-deployment"), &single()).expect("a deployment");
        assert!(good.lines().all(|line| line.ends_with(": boots")), "{good}");
    }

    #[test]
    fn one_reason_for_several_clusters_is_given_once() {
        assert_eq!(together("a: boots\nb: boots"), "a: boots\nb: boots");
        assert_eq!(
            together("a: does not boot: X: y\nb: boots\nc: does not boot: X: y"),
            "a, c: does not boot: X: y\nb: boots"
        );
        let stuck =
            expected_boot(&variant("mbt-01-no-uninitialized-toleration"), &single()).expect("a deployment");
        assert_eq!(stuck.matches("does not tolerate").count(), 1, "{stuck}");
    }

    #[test]
    fn the_model_knows_what_a_check_has_put_in_the_way_of_a_boot() {
        let outcome = |name: &str, circumstances: Circumstances| {
            let expected = expectation(&variant(name), &single(), &[circumstances]);
            expected.expect("a deployment").expect("manifests").summary()
        };
        let usual = Circumstances::usual(Cni::Independent);
        let by_name = Circumstances { cloud_by_name: true, ..usual };
        assert!(outcome("mbt-06-cluster-dns", usual).ends_with(": boots\n"));
        assert!(outcome("mbt-06-cluster-dns", by_name).contains("does not boot"));
        let routes = Circumstances { routes: true, ..usual };
        assert!(outcome("restarted-with-routes", usual).ends_with(": boots\n"));
        assert!(outcome("restarted-with-routes", routes).contains("network-unavailable"));
    }

    /// The expectation for a CCM that does not tolerate not-ready:NoSchedule, on Nodes with addresses from their
    /// kubelets.
    #[test]
    fn a_network_that_waits_for_the_ccms_addresses_does_not_come_without_them() {
        let profile = Profile::load("hcloud").expect("a profile of this program");
        let waits = Circumstances::usual(Cni::WaitsForAddresses);
        let expected = expectation(&profile, &single(), &[waits]);
        let summary = expected.expect("a deployment").expect("manifests").summary();
        assert!(summary.contains("does not boot"), "{summary}");
    }

    #[test]
    fn manifests_that_no_api_server_accepts_are_refused_before_anything_is_started() {
        let refusal_of = |replicas: &str, more: &str| {
            let folder = tempfile::tempdir().expect("a folder");
            let good = std::fs::read_to_string(&variant("good-deployment").manifests[0]).expect("manifests");
            let text = good.replacen("\n  replicas: 2\n", &format!("\n  replicas: {replicas}\n"), 1);
            assert!(text.contains(replicas), "{text}");
            let file = folder.path().join("ccm.yaml");
            std::fs::write(&file, text + more).expect("written");
            let wanted = plan(&Source::Defaults, RunFile::default()).expect("a plan");
            let cluster = wanted.cluster.clone().settled(harness_config::BackendKind::Embedded);
            let mut plan = wanted.on(cluster);
            plan.profile.manifests = vec![file];
            let shown =
                |error: SessionError| error.to_string().replace(&format!("{}/", folder.path().display()), "");
            check_accepted(&plan).map_err(shown).err()
        };
        let refusal = |replicas: &str| refusal_of(replicas, "");
        assert_eq!(refusal("2"), None);
        let monitor =
            "---\napiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: ccm}\n";
        let why = refusal_of("2", monitor).expect("an unknown kind");
        assert!(
            why.contains("ServiceMonitor.monitoring.coreos.com/ccm is a custom resource; add the"),
            "{why}"
        );
        assert_eq!(refusal("'${REPLICAS}'"), None);
        let old = "---\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: ccm, namespace: kube-system}\n";
        assert_eq!(refusal_of("2", old), None, "the cluster may be old enough to serve it");
        let why = refusal("two").expect("refused");
        assert!(why.contains("\n  ccm.yaml:"), "{why}");
        assert!(why.contains("spec.replicas: expected a 32-bit integer, got the string 'two'"), "{why}");
    }

    #[test]
    fn unknown_parts_of_a_topology_are_reported() {
        let versioned = "kubeadmConfigPatches: ['{kind: InitConfiguration, apiVersion: kubeadm.k8s.io/v1beta2, \
                         nodeRegistration: {taints: []}}']";
        assert_eq!(
            expected(versioned),
            "the taints of a control-plane are not known: a patch of InitConfiguration applies to \
             kubeadm.k8s.io/v1beta2 only"
        );
    }
}
