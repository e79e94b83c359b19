//! Rows 21 and 22, and what the contract assumes: objects can be read, are accepted by the API server, and exist.

use super::linted::Linted;
use super::report::Report;
use crate::check::Checked;
use crate::finding::{Edit, Level};
use bootstrap_manifests::known::Need;
use bootstrap_manifests::manifest::Severity;
use bootstrap_manifests::workload::{CcmDoubt, Role, Stage, cloud_controllers};

/// Reports what could not be read, and whether there are several CCMs.
pub(super) fn read(checked: &Checked, report: &mut Report) {
    for problem in &checked.objects.problems {
        let level = match problem.severity {
            Severity::Unreadable => Level::Must,
            Severity::Ignored => Level::Info,
        };
        let fix = Some((format!("# {}\n", problem.hint), None));
        let why = "the verdict does not include what cannot be read";
        report.add(("BOOT-READ", level), problem.place.clone(), problem.what.clone(), why, fix);
    }
    for object in &checked.objects.all {
        let Some(what) = checked.objects.unknown_kind(object) else { continue };
        let why = "the verdict does not include objects of unknown kinds";
        let place = object.place_of(&object.node, "kind");
        report.add(("BOOT-KIND", Level::Info), place, what, why, None);
    }
    let (found, doubt) = cloud_controllers(&checked.set.workloads);
    if doubt == Some(CcmDoubt::Several) {
        let ccms: Vec<_> = found
            .iter()
            .map(|index| &checked.set.workloads[*index])
            .filter(|workload| workload.role == Role::Ccm)
            .collect();
        for workload in ccms.iter().skip(1) {
            let what = format!("{} is one of {} CCMs", workload.title(), ccms.len());
            let why = "each of them counts as a CCM that initialises Nodes, so one that boots hides another that does \
                       not; choose one with --ccm KIND/NAME";
            report.add(("BOOT-READ", Level::Info), workload.place.clone(), what, why, None);
        }
    }
}

/// Reports objects other than workloads that the API server refuses, and fields that it does not know.
pub(super) fn refused_objects(checked: &Checked, report: &mut Report) {
    for own in &checked.set.refused {
        let what = format!("{}: {}", own.title, own.what);
        report.add(("BOOT-API", Level::Must), own.place.clone(), what, REFUSES, None);
    }
    for own in &checked.set.orphans {
        let what = format!("{}: {}", own.title, own.what);
        let why = "the garbage collector deletes objects whose owner does not exist";
        report.add(("BOOT-API", Level::Must), own.place.clone(), what, why, None);
    }
    for field in &checked.set.unknown {
        let title = bootstrap_manifests::accept::title(&checked.objects.all[field.object]);
        let what = format!("{title}: Kubernetes has no field {}", field.path);
        let why =
            "kubectl refuses the object; a client without field validation applies it without the field";
        report.add(("BOOT-API", Level::Should), field.place.clone(), what, why, None);
    }
}

/// Why a refusal matters.
const REFUSES: &str = "the API server refuses the whole object (pkg/apis/core/validation)";

/// Reports why the API server refuses a workload.
pub(super) fn refused(linted: &Linted, report: &mut Report) {
    for (place, what, hint) in &linted.workload.refused {
        let what = format!("{}: {what}", bootstrap_manifests::accept::title(linted.object));
        report.add(
            ("BOOT-API", Level::Must),
            place.clone(),
            what,
            REFUSES,
            Some((format!("# {hint}\n"), None)),
        );
    }
}

/// Reports references to objects that do not exist.
pub(super) fn missing(linted: &Linted, report: &mut Report) {
    for reference in &linted.checked.set.missing[linted.index] {
        let then = match reference.stage {
            Stage::Creation => "no Pod is created",
            Stage::Scheduling => "the Pod stays Pending",
            Stage::Start
            | Stage::Work
            | Stage::Initialisation
            | Stage::TaintedNodes
            | Stage::UntaintedNodes => "the container is not started",
        };
        let key = reference.key.as_ref().map(|key| format!(" with the key '{key}'")).unwrap_or_default();
        let what = format!(
            "{}: {}{key} is neither in the manifests nor built in: {then}",
            linted.title(),
            reference.title()
        );
        let why = "the objects that a Pod refers to must exist; without them its containers are not created";
        let fix = format!("# add it to the manifests, or pass --assume {}\n", reference.title());
        report.add(("BOOT-REF", Level::Must), reference.place.clone(), what, why, Some((fix, None)));
    }
}

/// Row 22: the permissions of the CCM's service account.
pub(super) fn rights(linted: &Linted, report: &mut Report) {
    if !linted.is_ccm() {
        return;
    }
    let gaps = &linted.checked.set.gaps[linted.index];
    if gaps.is_empty() {
        return;
    }
    // Whether a process exits without the permissions for its start is compiled into it.
    let needed = gaps.iter().any(|gap| !matches!(gap.need, Need::Other | Need::Start));
    let level = if needed { Level::Must } else { Level::Should };
    let listed: Vec<String> =
        gaps.iter().map(|gap| format!("{} {} ({})", gap.verb, gap.resource, gap.row)).collect();
    let workload = linted.workload;
    let what = format!("ServiceAccount/{} lacks: {}", workload.service_account, listed.join(", "));
    let why = "a CCM on the framework needs at least these (contract area AUTH); those for Services and deletions \
               never decide the boot";
    let text = crate::fix::rbac(workload, gaps);
    let edit = workload.object.map(|object| Edit::Grant { object, path: linted.spec(), text: text.clone() });
    let place = workload.service_account_place.clone();
    report.add(("BOOT-LINT-22", level), place, what, why, Some((text, edit)));
}

/// Row 21: webhooks that block their own Pods.
pub(super) fn webhooks(checked: &Checked, report: &mut Report) {
    for webhook in &checked.set.webhooks {
        if webhook.backends.is_none() {
            continue;
        }
        let guarded: Vec<&str> = [
            (webhook.guards.pods, "pods"),
            (webhook.guards.bindings, "pods/binding"),
            (webhook.guards.tokens, "serviceaccounts/token"),
            (webhook.guards.revisions, "controllerrevisions"),
            (webhook.guards.replica_sets, "replicasets"),
            (webhook.guards.jobs, "jobs"),
            (webhook.guards.nodes, "nodes"),
            (webhook.guards.statuses, "nodes/status"),
            (webhook.guards.leases, "leases"),
        ]
        .iter()
        .filter_map(|(guarded, name)| guarded.then_some(*name))
        .collect();
        let what =
            format!("{} intercepts requests for {} and fails closed", webhook.title, guarded.join(", "));
        let why = "until its own Pods run, it blocks these requests, and its Pods may depend on them";
        let edit = Edit::FailOpen { object: webhook.object, webhook: webhook.index };
        let fix = Some((String::from("failurePolicy: Ignore\n"), Some(edit)));
        report.add(("BOOT-LINT-21", Level::Should), webhook.place.clone(), what, why, fix);
    }
}
