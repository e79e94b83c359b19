//! Whether the addresses of a Node lead to its kubelet (contract NODE-ADDR-12).

use harness_testkit::prelude::*;
use suites_common::joining::ccm_initialises_others;

pub(super) const CHECKS: &[Check] = &[Check::of("NODE-ADDR-12", |cx| Box::pin(logs_are_read(cx)))
    .needs(&[Capability::Instances])
    .with(&[Facility::CcmControl, Facility::KubeletAddresses])];

/// Checks this on the Nodes of the CCM's own Pods.
async fn logs_are_read(cx: &CheckCx) -> Verdict {
    ccm_initialises_others(cx).await?;
    for replica in cx.replicas() {
        replica.becomes(runs()).await?;
        replica.log()?.becomes(can_be_read()).when("at the address of its Node").await?;
    }
    Ok(())
}
