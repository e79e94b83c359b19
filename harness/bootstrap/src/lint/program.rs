//! Rows 10 and 16 to 18: command line, probes, image, resources.

use super::linted::Linted;
use super::placement::port;
use super::report::Report;
use crate::finding::{Edit, Level};
use bootstrap_manifests::workload::{Container, WorkloadKind, fixed_image, image_fault};

pub(super) fn lint(linted: &Linted, report: &mut Report) {
    if linted.is_ccm() {
        election(linted, report);
        provider(linted, report);
        probes(linted, report);
    }
    for (index, container) in linted.workload.containers.iter().enumerate() {
        image(linted, report, index, container);
    }
    for (index, container) in linted.workload.containers.iter().enumerate() {
        if !container.init && !container.requests {
            let what = format!("container '{}' does not request cpu and memory", container.name);
            let why = "without requests it is the first to run short of resources or to be evicted (the Kubernetes blog of 2025-02-14 sets them)";
            let fix = String::from("resources:\n  requests:\n    cpu: 50m\n    memory: 64Mi\n");
            let place = container.resources_place.clone();
            let edit = linted.insert(Some(index), &["resources", "requests"], "cpu: 50m\nmemory: 64Mi");
            report.add(("BOOT-LINT-18", Level::Should), place, what, why, Some((fix, edit)));
        }
    }
}

fn election(linted: &Linted, report: &mut Report) {
    let workload = linted.workload;
    let Some((value, place)) = workload.flag("leader-elect").filter(|(value, _)| value == "false") else {
        return;
    };
    let several = workload.replicas > 1 || workload.kind == WorkloadKind::DaemonSet;
    let what = match (several, workload.surges) {
        (true, _) => format!("several Pods of {} work at once: --leader-elect={value}", linted.title()),
        (false, true) => {
            format!("two Pods of {} work at once during a rollout: --leader-elect={value}", linted.title())
        }
        (false, false) => return,
    };
    let why = "two writers undo each other's work in the cloud (recommendation 2 of \
         kubernetes.io/blog/2025/02/14/cloud-controller-manager-chicken-egg-problem; kubespray#11934)";
    let edit = workload.object.map(|object| Edit::Argument {
        object,
        path: linted.spec(),
        flag: String::from("leader-elect"),
        value: String::from("true"),
    });
    report.add(
        ("BOOT-LINT-10", Level::Must),
        place,
        what,
        why,
        Some((String::from("- --leader-elect=true\n"), edit)),
    );
}

fn provider(linted: &Linted, report: &mut Report) {
    let fix = Some((String::from("- --cloud-provider=<name of the provider>\n"), None));
    match linted.workload.flag("cloud-provider") {
        Some((value, place)) if value.is_empty() || value == "external" => {
            let what = format!("--cloud-provider={value} does not name a provider");
            let why = "an empty value is refused, and 'external' selects no provider: the process exits \
                       (cloud-provider options Validate, InitCloudProvider)";
            report.add(("BOOT-LINT-17", Level::Must), place, what, why, fix);
        }
        None if linted.workload.has_arguments() => {
            let what = format!("{} has no flag --cloud-provider", linted.title());
            let why = "the framework refuses an empty provider; ignore this if the program sets its own \
                       (cloud-provider options Validate)";
            report.add(("BOOT-LINT-17", Level::Should), linted.workload.spec_place.clone(), what, why, fix);
        }
        _ => {}
    }
}

fn probes(linted: &Linted, report: &mut Report) {
    let secure = port(linted.workload);
    let containers = linted.workload.containers.iter().filter(|container| !container.init);
    for probe in containers.flat_map(|container| &container.probes) {
        // A port other than the CCM's own belongs to another program of the Pod.
        if probe.port.is_some_and(|port| port != secure) && probe.path == "/healthz" {
            continue;
        }
        let kind = probe.kind;
        let why = "the CCM serves only /healthz, over HTTPS on its secure port; with any other probe the kubelet \
                   restarts it for ever (contract OBS-01 to -03)";
        let fix = format!("{kind}:\n  httpGet:\n    scheme: HTTPS\n    path: /healthz\n    port: {secure}\n");
        if ["/livez", "/readyz", "/health", "/ready", "/"].contains(&probe.path.as_str()) {
            let what = format!("{kind} requests {}", probe.path);
            let edit = probe_edit(linted, kind);
            report.add(("BOOT-LINT-16", Level::Must), probe.path_place.clone(), what, why, Some((fix, edit)));
        } else if probe.scheme != "HTTPS" && probe.port == Some(secure) {
            let what = format!("{kind} uses {} on the secure port", probe.scheme);
            report.add(("BOOT-LINT-16", Level::Must), probe.port_place.clone(), what, why, Some((fix, None)));
        }
    }
}

fn probe_edit(linted: &Linted, kind: &'static str) -> Option<Edit> {
    let object = linted.workload.object?;
    Some(Edit::ProbePath { object, path: linted.spec(), kind: kind.to_owned() })
}

fn image(linted: &Linted, report: &mut Report, index: usize, container: &Container) {
    let place = container.image_place.clone();
    if let Some(fault) = image_fault(&container.image) {
        let what = format!("the image '{}' cannot be parsed: {fault}", container.image);
        let why =
            "the kubelet reports InvalidImageName and never starts the container (distribution/reference)";
        let edit = linted.workload.object.map(|object| Edit::Image {
            object,
            path: linted.spec(),
            container: index,
        });
        let fix = fixed_image(&container.image).map(|image| (format!("image: {image}\n"), edit));
        return report.add(("BOOT-LINT-18", Level::Must), place, what, why, fix);
    }
    let name = container.image.rsplit('/').next().unwrap_or_default();
    let pinned = name.contains('@') || name.split_once(':').is_some_and(|(_, tag)| tag != "latest");
    if !pinned && !container.image.contains('$') {
        let what = format!("the image '{}' is not pinned to a version", container.image);
        let why = "Nodes that boot on different days may run different programs (the Kubernetes blog of 2025-02-14 uses a tag, and warns of it)";
        report.add(("BOOT-LINT-18", Level::Should), place, what, why, None);
    }
}
