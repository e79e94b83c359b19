//! A CCM does nothing with volumes (contract CSIM-09).

use harness_testkit::prelude::*;
use std::collections::BTreeSet;
use suites_common::joining::registered;

pub(super) const CHECKS: &[Check] = &[Check::of("CSIM-09", |cx| Box::pin(keeps_off_volumes(cx)))
    .of_the_cloud(&[])
    .with(&[Facility::CcmControl, Facility::AuditLog])
    .after_the_run()];

/// Volumes, claims and attachments, and their API groups.
const RESOURCES: &[(&str, &str)] =
    &[("", "persistentvolumes"), ("", "persistentvolumeclaims"), ("storage.k8s.io", "volumeattachments")];
const READS: &[&str] = &["get", "list", "watch"];

/// Describes a request that writes one of them.
fn written(asked: &Asked) -> Option<String> {
    let resource = asked.resource.split('/').next().unwrap_or_default();
    let ours = RESOURCES.contains(&(asked.group.as_str(), resource)) && !READS.contains(&asked.verb.as_str());
    ours.then(|| format!("{} {} (answer {})", asked.verb, asked.resource, asked.code))
}

async fn keeps_off_volumes(cx: &CheckCx) -> Verdict {
    let account = cx.ccm_account()?;
    cx.ccm_runs().await?;
    if cx.declares(Capability::Instances) && cx.makes_machines() {
        // Even in a short run the CCM has now done some work. Other checks judge whether it can.
        let (_, node) = registered(cx, machine("volumes")).await?;
        match node.becomes(initialised()).within(cx.limits().start()).when("by a CCM that works").await {
            Ok(_) | Err(CheckError::Violation(_)) => {}
            Err(stop) => return Err(stop),
        }
    }
    let asked = cx.asked_by(&account, false).await?;
    let written: BTreeSet<String> = asked.iter().filter_map(written).collect();
    if written.is_empty() {
        return Ok(());
    }
    let promise = format!("{} writes no volume, claim or attachment", account.user());
    let written: Vec<String> = written.into_iter().collect();
    Err(CheckError::violation(promise, "reads alone", written.join("; ")))
}
