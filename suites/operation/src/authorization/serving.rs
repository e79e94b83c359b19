//! The rights with which a CCM authenticates clients of its metrics: without them it admits no client
//! (AUTH-11, -12).

use super::missing_rights::{TRIAL, Worker};
use harness_testkit::prelude::*;
use suites_common::joining::ends_or_works;
use suites_common::joining::registered;

const SERVED: &[Capability] = &[Capability::SecurePort, Capability::Instances];
const REACHED: &[Facility] = &[TRIAL[0], Facility::HostPorts];

pub(super) const CHECKS: &[Check] = &[
    Check::of("AUTH-11", |cx| Box::pin(exits_or_refuses_all_requests(cx)))
        .needs(SERVED)
        .with(REACHED)
        .on_a_fresh_cluster(),
    Check::of("AUTH-12", |cx| Box::pin(refuses_all_requests(cx)))
        .needs(SERVED)
        .with(REACHED)
        .on_a_fresh_cluster(),
];

async fn exits_or_refuses_all_requests(cx: &CheckCx) -> Verdict {
    let worker = Worker::start(cx, "AUTH-11", true, &[]).await?;
    let (_, node) = registered(cx, machine("served")).await?;
    let outcome = (&worker.trial, &node).becomes(ends_or_works()).within(cx.limits().start()).await;
    if worker.trial.explained(outcome).await? {
        return Ok(());
    }
    cx.record("another-way", "it keeps running");
    let port = worker.trial.secure_port()?;
    for path in ["/metrics", "/configz"] {
        port.get(path).becomes(refused()).when("without a credential").await?;
    }
    Ok(())
}

async fn refuses_all_requests(cx: &CheckCx) -> Verdict {
    let worker = Worker::start(cx, "AUTH-12", true, &[]).await?;
    let (_, node) = registered(cx, machine("served")).await?;
    worker.sees(&node, initialised(), cx.limits().start(), "as ever").await?;
    let (reader, port) = (cx.reader().await?, worker.trial.secure_port()?);
    for path in ["/metrics", "/configz"] {
        port.get(path).becomes(refused()).when("without a credential").await?;
        port.get_as(path, &reader).becomes(refused()).when("as it cannot find out who asks").await?;
    }
    worker.keeps_running().await?;
    worker.has_it_again().await?;
    // The CCM may cache its decisions for ten seconds.
    let limit = 2 * cx.limits().watch();
    port.get_as("/metrics", &reader).becomes(answers(200)).within(limit).when("as it can again").await?;
    Ok(())
}
