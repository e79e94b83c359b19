//! The leader's machine is lost. The replicas are on two machines, and the other replica takes over (contract
//! BOOT-DYN-09).

use super::needs::{COLD, INSIDE, MACHINES};
use harness_testkit::prelude::*;
use std::time::Instant;
use suites_common::joining::registered;

pub(super) const CHECKS: &[Check] = &[Check::of("BOOT-DYN-09", |cx| Box::pin(outlives_its_machine(cx)))
    .needs(&[Capability::Instances, Capability::LeaderElection])
    .of_the_cloud(MACHINES)
    .with(COLD)
    .with(INSIDE)
    .with(&[Facility::NodeControl, Facility::ShippedReplicas])
    .in_a_dedicated_cluster(Environment::TwoWorkers)
    .takes(50)];

async fn outlives_its_machine(cx: &CheckCx) -> Verdict {
    let cold = cx.cold_cluster(Network::Present).await?;
    let hosts = cx.two_hosts(&cold).await?;
    cx.apply_as_shipped().await?;
    cx.all_initialised(&cold).await?;
    cx.boot(&cold).becomes(runs_on_two_machines()).within(cx.limits().start()).await?;
    cx.runs_nowhere_but_on(&hosts)?;
    // It does not matter which replica leads: the check cuts the power of one machine after the other.
    let mut limit = cx.failover_as_shipped() + cx.limits().watch();
    let mut lost = None::<Loss<'_>>;
    for (number, host) in (1..).zip(&hosts) {
        if let Some(lost) = lost.take() {
            lost.returns(&cold).await?;
            // A CCM that started before its machine reached the API server ends, and is started again after a pause.
            limit += cx.limits().start();
        }
        lost = Some(host.loses_power().await?);
        let since = Instant::now();
        let (_, node) = registered(cx, machine(&format!("joins-{number}"))).await?;
        let joins = node.becomes(initialised()).within(limit);
        joins.when(format!("by the replica that is left, while {} has no power", host.name())).await?;
        cx.record(&format!("without_machine_{number}_ms"), since.elapsed().as_millis());
    }
    Ok(())
}
