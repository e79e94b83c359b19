//! More than two replicas: they are there for failures, and change nothing while there is none (BOOT-DYN-13).

use harness_testkit::prelude::*;
use serde_json::json;
use suites_common::joining::joined;
use suites_common::leases::unchanged;
use tokio::time::Instant;

pub(super) const CHECKS: &[Check] = &[Check::of("BOOT-DYN-13", |cx| Box::pin(adds_no_writer(cx)))
    .by_calls()
    .needs(&[Capability::LeaderElection, Capability::Instances])
    .with(&[Facility::CcmControl, Facility::Standby])
    .alone()
    .takes(5)
    .takes_on_machines(10)];

/// How many Nodes the CCM has to process each time.
const NODES: usize = 10;
const SERVICES: usize = 3;

async fn adds_no_writer(cx: &CheckCx) -> Verdict {
    let (_, alone_ms) = work(cx, "few").await?;
    // The earlier holder of the Lease may be gone.
    let leader = cx.active_replica().await?.name().to_owned();
    let (lease, mark) = (cx.lease(), cx.cloud().mark_now().await?);
    let before = lease.becomes(held()).await?;
    let newcomers = cx.newcomers().await?;
    let (nodes, together_ms) = work(cx, "many").await?;
    let count = cx.replicas().len();
    cx.record(
        "ms",
        format!("{alone_ms} with {count} replicas, {together_ms} with {}", count + newcomers.len()),
    );
    // Each replica has read the Lease twice by then.
    let stays = lease.keeps(unchanged(&before)).within(2 * cx.limits().lease().longest_poll());
    stays.when("next to three more replicas").await?;
    let is_work = move |call: &Entry| call.write || nodes.iter().any(|node| node.concerns(call));
    let others = |call: &Entry| call.credential.as_deref() != Some(&leader);
    let calls = cx.cloud().calls().since(mark).that(is_work).that(others).list().await?;
    if calls.is_empty() {
        return Ok(());
    }
    let expected = format!("the work of replica {leader} alone");
    let seen = format!("{} calls of {} besides", calls.len(), json!(callers(&calls)));
    Err(cx.cloud().breaks("one replica works next to three more", &expected, &seen))
}

/// Creates Nodes and, if the CCM supports them, Services, all at once. Returns them and the milliseconds
/// until all were as expected.
async fn work<'a>(cx: &'a CheckCx, group: &str) -> Result<(Vec<Node<'a>>, u128), CheckError> {
    let since = Instant::now();
    let names: Vec<String> = (0..NODES).map(|number| format!("{group}-{number}")).collect();
    let nodes = futures::future::try_join_all(names.iter().map(|name| joined(cx, machine(name))));
    let services = async {
        let count = if cx.declares(Capability::LoadBalancer) { SERVICES } else { 0 };
        for number in 0..count {
            let name = format!("{group}-{number}");
            cx.service(load_balancer(&name).port(80)).await?.provisioned().await?;
        }
        Ok::<_, CheckError>(())
    };
    let (nodes, ()) = futures::future::try_join(nodes, services).await?;
    Ok((nodes.into_iter().map(|(_, node)| node).collect(), since.elapsed().as_millis()))
}
