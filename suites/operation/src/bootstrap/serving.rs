//! Serving certificates of kubelets, which depend on the addresses that the CCM sets (contract BOOT-DYN-12).

use super::needs::{COLD, INSTANCES, MACHINES};
use harness_testkit::prelude::*;

/// The first version whose kubelets leave all addresses of their Nodes to an external cloud provider.
const NO_GUESSES: u32 = 29;

pub(super) const CHECKS: &[Check] =
    &[Check::of("BOOT-DYN-12", |cx| Box::pin(certificates_follow_the_addresses(cx)))
        .needs(INSTANCES)
        .of_the_cloud(MACHINES)
        .with(COLD)
        .served_since(NO_GUESSES, "kubelets that guess no address of their Nodes")
        .in_a_dedicated_cluster(Environment::ServingCertificates)
        .takes(5)];

async fn certificates_follow_the_addresses(cx: &CheckCx) -> Verdict {
    let cold = cx.cold_cluster(Network::Present).await?;
    cx.no_certificate_was_requested(&cold).await?;
    cx.apply_as_shipped().await?;
    cx.all_initialised(&cold).await?;
    cx.kubelets_ask_for_their_addresses(&cold).await
}
