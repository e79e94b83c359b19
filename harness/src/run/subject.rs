//! What was tested, as the report tells it.

use super::planned::framework_notes;
use crate::ccm::{Form, fingerprint};
use crate::cluster::{Fidelity, facts};
use crate::config::{HumanDuration, Limits, RunPlan};
use crate::cx::Suite;
use crate::ledger::Subject;
use crate::session::{Session, load_manifests};
use sha2::{Digest, Sha256};

/// What was tested.
pub(super) fn subject(
    suites: &'static [Suite],
    plan: &RunPlan,
    session: Option<&Session>,
    reproduce: &str,
) -> Subject {
    let manifests = load_manifests(plan).ok().flatten();
    let mut subject = Subject {
        profile: plan.profile.name.clone(),
        manifests_sha256: manifests.map(|m| fingerprint(&m.documents)).unwrap_or_default(),
        framework_version: plan.profile.framework.version(),
        capabilities: plan.profile.capabilities.declared(),
        dialect: plan.profile.dialect.clone(),
        backend: plan.cluster.backend().to_string(),
        simulated: facts(plan.cluster.backend()).fidelity == Fidelity::Simulated,
        harness_version: env!("CARGO_PKG_VERSION").to_owned(),
        check_set: check_set(suites),
        reproduce: reproduce.to_owned(),
        declared: plan.profile.declared.iter().map(|d| (d.id.clone(), d.reason.clone())).collect(),
        ..Subject::default()
    };
    if let Some(session) = session {
        let (state, record) = (session.state(), &session.state().cluster);
        subject.image.clone_from(&state.ccm_image);
        subject.image_digest.clone_from(&state.ccm_image_digest);
        let about = record.about.clone();
        subject.topology = about.topology;
        subject.kubernetes_version = about.kubernetes.unwrap_or_else(|| format!("1.{}", state.served_minor));
        subject.kind_version = about.kind_version;
        subject.node_image = about.node_image;
        subject.node_image_digest = about.node_image_digest;
        subject.changes = session.ccm().rendered(Form::Replicas).map(|r| r.changes).unwrap_or_default();
        subject.changes.extend(state.changes.iter().cloned());
        subject.changes.extend(framework_notes(suites, plan.profile.framework));
        if plan.profile.instance_cache != Limits::INSTANCE_CACHE {
            let age = HumanDuration(plan.profile.instance_cache);
            subject.changes.push(format!("what it knows of a machine may be {age} old, as the profile says"));
        }
        if plan.profile.location.fixed {
            subject.changes.push("zone and region are the profile's for every machine".to_owned());
        }
        let budgets = plan.profile.budgets.iter();
        subject.changes.extend(budgets.map(|(budget, limit)| {
            format!("budget {budget} is {}, as the profile asks for", HumanDuration(*limit))
        }));
    }
    subject
}

/// Identifies the set of checks.
fn check_set(suites: &[Suite]) -> String {
    let mut hash = Sha256::new();
    for check in suites.iter().flat_map(Suite::checks) {
        hash.update(format!("{} {} {}\n", check.id, check.level, check.title));
    }
    hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
