//! Rows 03 to 07: tolerations.

use super::linted::Linted;
use super::report::Report;
use crate::finding::{Edit, Level};
use bootstrap_manifests::workload::{
    CONTROL_PLANE, Effect, MASTER, NETWORK_UNAVAILABLE, NOT_READY, Taint, UNINITIALIZED, UNREACHABLE, borne,
};

pub(super) fn lint(linted: &Linted, report: &mut Report) {
    if linted.claims.hosted {
        return;
    }
    let claimed = if linted.claims.without_network { Level::Must } else { Level::Should };
    let missing = |taint: &Taint| !borne(&linted.workload.effective_tolerations(), taint);
    let no_schedule = |key: &str, value: &str| Taint::new(key, value, Effect::NoSchedule);
    let mut lacks = |row: (&'static str, Level), taint: Taint, why: &str| {
        if missing(&taint) {
            let what = format!("{} does not tolerate {taint}", linted.title());
            let near = near_miss(linted, &taint);
            let what = near.map_or(what.clone(), |reason| format!("{what}: {reason}"));
            report.add(row, linted.workload.tolerations_place.clone(), what, why, tolerate(linted, &taint));
        }
    };
    lacks(
        ("BOOT-LINT-03", Level::Must),
        no_schedule(UNINITIALIZED, "true"),
        "every Node starts with this taint, and only the CCM removes it; its value is 'true', which a toleration \
         without operator does not match (kubelet initialNode; recommendation 4 of \
         kubernetes.io/blog/2025/02/14/cloud-controller-manager-chicken-egg-problem)",
    );
    let targets = targets_control_plane(linted);
    if targets && linted.is_ccm() {
        lacks(
            ("BOOT-LINT-04", Level::Must),
            no_schedule(CONTROL_PLANE, ""),
            "kubeadm sets this taint on every control plane that is not the cluster's only Node (recommendation 4 of \
         kubernetes.io/blog/2025/02/14/cloud-controller-manager-chicken-egg-problem)",
        );
        let valued = no_schedule(CONTROL_PLANE, "true");
        if !missing(&no_schedule(CONTROL_PLANE, "")) {
            lacks(
                ("BOOT-LINT-04", Level::Should),
                valued,
                "some distributions give the taint a value, which a toleration without 'operator: Exists' does not \
                 match (hcloud PR#251, rke2#7822)",
            );
        }
        lacks(
            ("BOOT-LINT-04", Level::Should),
            no_schedule(MASTER, ""),
            "the taint's name before Kubernetes 1.25 (kubeadm constants)",
        );
    }
    lacks(
        ("BOOT-LINT-05", claimed),
        no_schedule(NOT_READY, ""),
        "every new Node gets this taint at admission and keeps it until its network is set up; neither DaemonSets nor \
         default tolerations cover its NoSchedule form (admission TaintNodesByCondition; recommendation 4 of \
         kubernetes.io/blog/2025/02/14/cloud-controller-manager-chicken-egg-problem)",
    );
    for key in [NOT_READY, UNREACHABLE] {
        no_execute(linted, report, key);
    }
    if linted.claims.routes {
        let why = "with routes, a restarted CCM finds Nodes with this taint, which its own route controller removes \
                   (only DaemonSets on the host's network tolerate it by default)";
        let taint = no_schedule(NETWORK_UNAVAILABLE, "");
        if missing(&taint) {
            let what = format!("{} does not tolerate {taint}", linted.title());
            let place = linted.workload.tolerations_place.clone();
            report.add(("BOOT-LINT-07", Level::Should), place, what, why, tolerate(linted, &taint));
        }
    }
}

/// Row 06: how long the Pod stays on a Node that is not Ready.
fn no_execute(linted: &Linted, report: &mut Report, key: &'static str) {
    let workload = linted.workload;
    let Some(seconds) = workload.bears_for(key) else { return };
    let taint = Taint::new(key, "", Effect::NoExecute);
    let written = workload.tolerations.iter().find(|toleration| toleration.bears(&taint));
    let (place, what) = match written.and_then(|toleration| toleration.place.clone()) {
        Some(place) => {
            (place, format!("{} is evicted from a Node with {taint} after {seconds} s", linted.title()))
        }
        None => (
            workload.tolerations_place.clone(),
            format!(
                "{} is evicted from a Node with {taint} after {seconds} s, the API server's default",
                linted.title()
            ),
        ),
    };
    let why = "a CCM that is evicted during a slow boot starts over (admission DefaultTolerationSeconds; DaemonSets get \
               this toleration without a limit)";
    report.add(("BOOT-LINT-06", Level::Should), place, what, why, tolerate(linted, &taint));
}

/// Why a toleration that looks right does not match.
fn near_miss(linted: &Linted, taint: &Taint) -> Option<String> {
    let own = linted.workload.tolerations.iter().find(|toleration| toleration.key == taint.key)?;
    let place = own.place.as_ref().map(|place| format!(" at line {}", place.line)).unwrap_or_default();
    if own.effect.is_some_and(|effect| effect != taint.effect) {
        return Some(format!("the toleration{place} is for another effect"));
    }
    (!own.exists).then(|| {
        let value =
            if own.value.is_empty() { String::from("the empty value") } else { format!("'{}'", own.value) };
        format!("the toleration{place} has no 'operator: Exists' and matches only {value}")
    })
}

/// The toleration as YAML, and the change that adds it.
fn tolerate(linted: &Linted, taint: &Taint) -> Option<(String, Option<Edit>)> {
    let text =
        format!("tolerations:\n  - key: {}\n    operator: Exists\n    effect: {}\n", taint.key, taint.effect);
    let edit = linted.workload.object.map(|object| Edit::Tolerate {
        object,
        path: linted.spec(),
        key: taint.key.clone(),
        effect: taint.effect,
    });
    Some((text, edit))
}

/// Whether it selects control planes, or may run on one because it selects nothing.
pub(super) fn targets_control_plane(linted: &Linted) -> bool {
    let workload = linted.workload;
    let key = |key: &str| key == CONTROL_PLANE || key == MASTER;
    let selected = workload.node_selector.iter().any(|(own, ..)| key(own));
    let terms = workload.node_affinity.iter().flatten();
    let affine = terms.flat_map(|term| &term.expressions).any(|expression| key(&expression.key));
    selected || affine
}
