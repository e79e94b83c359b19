//! Flags of leader election: invalid values are rejected, and with election disabled no Lease is held (HA-13, -14).

use super::needs::ELECTION;
use harness_testkit::prelude::*;
use suites_common::joining::registered;

/// The CCM elects leaders, and has the framework's flags.
const BY_FLAGS: &[Capability] = &[Capability::LeaderElection, Capability::FrameworkFlags];
const WITHOUT: &[Capability] = &[ELECTION[0], ELECTION[1], Capability::FrameworkFlags];

/// Flags that contradict each other or name something that does not exist.
const NONSENSE: [(&str, &[&str]); 3] = [
    (
        "lease",
        &[
            "--leader-elect=true",
            "--leader-elect-lease-duration=10s",
            "--leader-elect-renew-deadline=10s",
            "--leader-elect-retry-period=2s",
        ],
    ),
    (
        "renewal",
        &[
            "--leader-elect=true",
            "--leader-elect-lease-duration=15s",
            "--leader-elect-renew-deadline=2s",
            "--leader-elect-retry-period=2s",
        ],
    ),
    ("lock", &["--leader-elect=true", "--leader-elect-resource-lock=endpoints"]),
];

const fn of_nonsense(at: usize) -> Check {
    let id = CheckId::of_claim("HA-13", NONSENSE[at].0);
    let run: for<'a> fn(&'a CheckCx, usize) -> Body<'a> = |cx, at| Box::pin(refuses_nonsense(cx, at));
    Check::row(id, run, at)
        .needs(BY_FLAGS)
        .of_the_cloud(&[])
        .with(&[Facility::CcmControl])
        .on_a_fresh_cluster()
}

pub(super) const CHECKS: &[Check] = &[
    of_nonsense(0),
    of_nonsense(1),
    of_nonsense(2),
    Check::of("HA-14", |cx| Box::pin(works_without_election(cx)))
        .needs(WITHOUT)
        .with(&[Facility::CcmControl])
        .on_a_fresh_cluster(),
];

async fn refuses_nonsense(cx: &CheckCx, at: usize) -> Verdict {
    let alone = cx.ccm_alone(NONSENSE[at].1).await?;
    let refused = alone.becomes(refuses()).within(cx.limits().start()).await;
    alone.explained(refused).await
}

async fn works_without_election(cx: &CheckCx) -> Verdict {
    let alone = cx.ccm_alone(&cx.without_routes(&["--leader-elect=false"])).await?;
    let (_, node) = registered(cx, machine("unelected")).await?;
    let worked = node.becomes(initialised()).within(cx.limits().start()).when("by a CCM that is not elected");
    alone.explained(worked.await).await?;
    cx.lease().keeps(gone()).when("as there is no election").await
}
