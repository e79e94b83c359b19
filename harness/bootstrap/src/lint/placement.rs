//! Rows 01, 02, 08 to 15 and 20: where the CCM runs, and how many replicas.

use super::linted::{Claims, Linted};
use super::report::Report;
use super::tolerations::targets_control_plane;
use crate::check::Checked;
use crate::finding::{Edit, Level};
use bootstrap_manifests::workload::{CONTROL_PLANE, DnsPolicy, PodTerm, Role, Workload, WorkloadKind};

pub(super) fn lint(linted: &Linted, report: &mut Report) {
    if !linted.claims.hosted {
        network(linted, report);
        control_plane(linted, report);
        spread(linted, report);
        addresses_and_storage(linted, report);
    }
    kind_and_priority(linted, report);
    autoscalers(linted, report);
}

fn network(linted: &Linted, report: &mut Report) {
    let workload = linted.workload;
    if !workload.host_network {
        let level = if linted.claims.without_network { Level::Must } else { Level::Should };
        report.add(
            ("BOOT-LINT-01", level),
            workload.host_network_place.clone(),
            format!("{} does not use the host's network", linted.title()),
            "the pod network may need a working CCM, and the host already has a route to the cloud (recommendation 1 of \
         kubernetes.io/blog/2025/02/14/cloud-controller-manager-chicken-egg-problem)",
            Some((String::from("hostNetwork: true\n"), linted.set("hostNetwork", "true"))),
        );
    }
    let wrong = match workload.dns {
        DnsPolicy::ClusterFirstWithHostNet => true,
        DnsPolicy::ClusterFirst => !workload.host_network,
        DnsPolicy::Default | DnsPolicy::None => false,
    };
    if wrong {
        let level = if linted.claims.cloud_by_name { Level::Must } else { Level::Should };
        report.add(
            ("BOOT-LINT-02", level),
            workload.dns_place.clone(),
            format!("{} resolves names by cluster DNS", linted.title()),
            "CoreDNS does not run before Nodes are initialised: it does not tolerate their taint (\
             kubernetes#93533)",
            Some((String::from("dnsPolicy: Default\n"), linted.set("dnsPolicy", "Default"))),
        );
    }
    if linted.claims.without_proxy && !linted.checked.names_api_server(linted.index) {
        report.add(
            ("BOOT-LINT-19", Level::Should),
            workload.spec_place.clone(),
            format!("{} reaches the API server only by its Service address", linted.title()),
            "without kube-proxy this address does not answer before the CNI works (contract cycle (c); kubernetes \
             PR#49017)",
            Some((
                String::from(
                    "env:\n  - name: KUBERNETES_SERVICE_HOST\n    value: <address of the API server>\n  \
                     - name: KUBERNETES_SERVICE_PORT\n    value: \"6443\"\n",
                ),
                None,
            )),
        );
    }
}

fn control_plane(linted: &Linted, report: &mut Report) {
    if linted.is_ccm() && !targets_control_plane(linted) {
        report.add(
            ("BOOT-LINT-08", Level::Should),
            linted.at("nodeSelector"),
            format!("{} is not restricted to control planes", linted.title()),
            "a CCM can delete Nodes, so it should run where the control plane is protected (recommendation 3 of \
         kubernetes.io/blog/2025/02/14/cloud-controller-manager-chicken-egg-problem)",
            Some((
                format!("nodeSelector:\n  {CONTROL_PLANE}: \"\"\n"),
                linted.insert(None, &["nodeSelector", CONTROL_PLANE], "\"\""),
            )),
        );
    }
}

fn spread(linted: &Linted, report: &mut Report) {
    let workload = linted.workload;
    let own = |term: &PodTerm| {
        term.topology_key == "kubernetes.io/hostname"
            && term.means(&workload.namespace, &workload.namespace, &workload.labels)
    };
    let (required, preferred) = (workload.apart.iter().any(own), workload.rather_apart.iter().any(own));
    if workload.kind != WorkloadKind::Deployment || workload.replicas < 2 || required {
        return;
    }
    if preferred && !workload.host_network {
        return;
    }
    let what = if preferred {
        format!("replicas of {} can run on the same host, where they need the same port", linted.title())
    } else {
        format!("replicas of {} can run on the same Node", linted.title())
    };
    let own_labels: String =
        workload.written_labels().map(|(key, value)| format!("      {key}: {value}\n")).collect();
    let labels: String =
        workload.written_labels().map(|(key, value)| format!("            {key}: {value}\n")).collect();
    report.add(
        ("BOOT-LINT-09", Level::Should),
        workload.affinity_place.clone(),
        what,
        "if that Node fails, all of them are lost; on the host's network only one gets the port (recommendation 3.1 of \
         kubernetes.io/blog/2025/02/14/cloud-controller-manager-chicken-egg-problem)",
        Some((
            format!(
                "affinity:\n  podAntiAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n      \
                 - topologyKey: kubernetes.io/hostname\n        labelSelector:\n          matchLabels:\n{labels}"
            ),
            linted.insert(
                None,
                &["affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"],
                &format!("- topologyKey: kubernetes.io/hostname\n  labelSelector:\n    matchLabels:\n{own_labels}"),
            ),
        )),
    );
}

fn addresses_and_storage(linted: &Linted, report: &mut Report) {
    let why = "the kubelet cannot resolve it before the Node has an address, which the CCM sets \
               (pkg/kubelet/kubelet_pods.go, contract KBL-09)";
    for place in &linted.workload.host_ip {
        let what = format!("{} reads status.hostIP into its environment", linted.title());
        let edit = linted.workload.object.map(|object| Edit::DropHostIp { object, path: linted.spec() });
        let fix = String::from("# remove the variable, or use the Node's name: fieldPath: spec.nodeName\n");
        report.add(("BOOT-LINT-14", Level::Must), place.clone(), what, why, Some((fix, edit)));
    }
    for place in &linted.workload.pod_ip {
        let what = format!("{} reads status.podIP into its environment", linted.title());
        let why = "on the host's network it is the Node's address, and empty until the Node has one";
        report.add(("BOOT-LINT-14", Level::Should), place.clone(), what, why, None);
    }
    for place in &linted.workload.storage {
        let what = format!("{} uses a PersistentVolumeClaim or a CSI volume", linted.title());
        let why = "provisioners and CSI drivers start only on initialised Nodes";
        report.add(("BOOT-LINT-15", Level::Must), place.clone(), what, why, None);
    }
}

fn kind_and_priority(linted: &Linted, report: &mut Report) {
    let workload = linted.workload;
    if !matches!(workload.kind, WorkloadKind::Deployment | WorkloadKind::DaemonSet | WorkloadKind::Pod) {
        let what = format!("the CCM is a {}", workload.kind);
        let why = "Deployments and DaemonSets can be scaled and replaced; a static Pod is acceptable (recommendation 2 of \
         kubernetes.io/blog/2025/02/14/cloud-controller-manager-chicken-egg-problem)";
        report.add(("BOOT-LINT-11", Level::Should), workload.place.clone(), what, why, None);
    }
    let critical = workload.priority_class.as_ref().is_some_and(|(class, _)| {
        ["system-cluster-critical", "system-node-critical"].contains(&class.as_str())
    });
    if !critical {
        let place =
            workload.priority_class.as_ref().map_or(linted.at("priorityClassName"), |(_, p)| p.clone());
        report.add(
            ("BOOT-LINT-13", Level::Should),
            place,
            format!("{} has no critical priority", linted.title()),
            "when resources are short it must outlive the Pods that depend on it (recommendation 3 of \
         kubernetes.io/blog/2025/02/14/cloud-controller-manager-chicken-egg-problem)",
            Some((
                String::from("priorityClassName: system-cluster-critical\n"),
                linted.set("priorityClassName", "system-cluster-critical"),
            )),
        );
    }
}

fn autoscalers(linted: &Linted, report: &mut Report) {
    for object in linted.checked.objects.of_kind("HorizontalPodAutoscaler") {
        let target = object.node.at(&["spec", "scaleTargetRef"]);
        let kind = target.and_then(|target| target.text_at("kind")).unwrap_or_default();
        let name = target.and_then(|target| target.text_at("name")).unwrap_or_default();
        let own = object.namespace == linted.workload.namespace
            && bootstrap_manifests::manifest::object_name(kind, name) == linted.title();
        if own {
            let what = format!("HorizontalPodAutoscaler/{} scales {}", object.name, linted.title());
            let why = "only one replica works at a time, so more replicas add no throughput (last paragraph of \
                       kubernetes.io/blog/2025/02/14/cloud-controller-manager-chicken-egg-problem)";
            report.add(("BOOT-LINT-12", Level::Should), object.at(), what, why, None);
        }
    }
}

/// Row 20: CCMs on the same host need different ports.
pub(super) fn ports_between(checked: &Checked, claims: Claims, report: &mut Report) {
    let family: Vec<&Workload> = checked
        .set
        .workloads
        .iter()
        // If the user names the CCM, the others become bystanders. They are still recognised as CCMs by the flag that all
        // of them have.
        .filter(|workload| matches!(workload.role, Role::Ccm) || workload.flag("cloud-provider").is_some())
        .filter(|workload| workload.host_network)
        .collect();
    if claims.hosted {
        return;
    }
    for (index, workload) in family.iter().enumerate() {
        let Some(other) = family[..index].iter().find(|other| port(other) == port(workload)) else {
            continue;
        };
        let what = format!(
            "{} and {} both listen on port {} of the host",
            workload.title(),
            other.title_with_place(),
            port(workload)
        );
        let why = "on one Node only one of them gets it (hcloud PR#495; cloud-provider options)";
        let fix = Some((String::from("args:\n  - --secure-port=10259 # any free port\n"), None));
        report.add(("BOOT-LINT-20", Level::Should), workload.place.clone(), what, why, fix);
    }
}

/// The secure port.
pub(super) fn port(workload: &Workload) -> i64 {
    workload.flag("secure-port").and_then(|(port, _)| port.parse().ok()).unwrap_or(10_258)
}
