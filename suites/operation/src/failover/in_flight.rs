//! Work that a leader has begun when it loses the lead: a creation, an edit and a deletion that the cloud has
//! received and not yet carried out (contract HA-04, HA-08).

use super::busy::{in_order, time_to_take_up};
use super::needs::ELECTION_AND_LB;
use harness_testkit::prelude::*;
use serde_json::json;
use suites_common::joining::registered;

pub(super) const CHECKS: &[Check] = &[
    Check::of("HA-04.frozen", |cx| Box::pin(survives_a_frozen_leader(cx)))
        .by_calls()
        .needs(ELECTION_AND_LB)
        .with(&[Facility::CcmControl, Facility::ProcessControl, Facility::Barriers])
        .alone()
        .takes(25),
    Check::of("HA-08.terminated", |cx| Box::pin(survives_a_terminated_leader(cx)))
        .by_calls()
        .needs(ELECTION_AND_LB)
        .with(&[Facility::CcmControl, Facility::Barriers])
        .alone()
        .takes(12),
    Check::of("HA-08.partition", |cx| Box::pin(survives_a_partition(cx)))
        .by_calls()
        .needs(ELECTION_AND_LB)
        .with(&[Facility::CcmControl, Facility::ApiControl, Facility::Barriers])
        .alone()
        .takes(20),
];

/// Three Services, and the calls that the leader has made for them.
struct InFlight<'a> {
    cx: &'a CheckCx,
    leader: Replica<'a>,
    /// The number of leader transitions before.
    transitions: i32,
    /// The last call in the cloud's request log before.
    mark: u64,
    /// The Service whose load balancer is being created.
    made: Service<'a>,
    /// The Service whose load balancer is being changed.
    edited: Service<'a>,
    /// The Service whose load balancer is being deleted.
    removed: Service<'a>,
    /// The barriers that hold these calls.
    barriers: Vec<Barrier<'a>>,
}

/// The calls with which a CCM may change a load balancer after an edit of its Service, or replace it.
pub(super) const EDITS: &[Op] =
    &[Op::LbUpdate, Op::LbCreate, Op::LbDelete, Op::AuxCreate, Op::AuxUpdate, Op::AuxDelete];
/// The port after the edit.
const PORT: u16 = 8080;

impl<'a> InFlight<'a> {
    /// Waits until the leader has made calls for all three Services. A CCM with fewer workers has made fewer,
    /// and the other Services wait for a worker.
    async fn begun(cx: &'a CheckCx) -> Result<InFlight<'a>, CheckError> {
        let made = cx.service(load_balancer("made").port(80).not_yet()).await?;
        let edited = cx.service(load_balancer("edited").port(80)).await?.provisioned().await?;
        let removed = cx.service(load_balancer("removed").port(80)).await?.provisioned().await?;
        let leader = cx.active_replica().await?;
        let led = cx.lease().becomes(held()).await?;
        let transitions = transitions_of(&led);
        let mark = cx.cloud().mark()?;
        let creation = made.cloud().holds(&[Op::LbCreate]).await?;
        made.wants_a_balancer().await?;
        creation.is_reached_unless(made.is_served()).await?;
        let edit = edited.cloud().holds(EDITS).await?;
        edited.patch(&json!({"spec": {"ports": [{"port": PORT, "protocol": "TCP"}]}})).await?;
        if cx.workers() > 1 {
            let follows = one_balancer("follows the edit", |lb| lb.frontends.iter().all(|f| f.port == PORT));
            edit.is_reached_unless(edited.balancer().is(follows)).await?;
        }
        let deletion = removed.cloud().holds(&[Op::LbDelete, Op::AuxDelete]).await?;
        removed.delete().await?;
        if cx.workers() > 2 {
            deletion.is_reached_unless(removed.is_cleaned_up()).await?;
        }
        let barriers = vec![creation, edit, deletion];
        Ok(InFlight { cx, leader, transitions, mark, made, edited, removed, barriers })
    }

    /// The leader loses the lead, for which `loses` waits, while the cloud carries out the calls. The process that made
    /// them may not be there any more to get the answers. Returns the result of `loses`.
    async fn handed_over<T>(
        &mut self,
        loses: impl AsyncFnOnce(&Replica<'a>, i32) -> Result<T, CheckError>,
    ) -> Result<T, CheckError> {
        let barriers = std::mem::take(&mut self.barriers);
        self.leader.will_end();
        let limits = self.cx.limits();
        let (lost, carried_out) = tokio::join!(loses(&self.leader, self.transitions), async {
            pause(limits.settle()).await;
            for barrier in barriers {
                barrier.release().await?;
            }
            // A cloud that had not begun a call when its client left does not carry it out. The next
            // leader has to make the call again.
            let limit = limits.failover() + time_to_take_up(self.cx);
            self.made.balancer().becomes(at_least_one()).within(limit).await
        });
        carried_out?;
        lost
    }

    /// Checks that each load balancer is as its Service wants it, exists once, and stays so.
    async fn stands(&self) -> Verdict {
        let limit = time_to_take_up(self.cx);
        let made =
            self.made.balancer().becomes(one_active()).within(limit).when("whose creation was begun").await?;
        self.made.becomes(publishes(&made)).within(limit).await?;
        let follows = one_balancer(
            "is one and follows the edit",
            |lb| matches!(lb.frontends.as_slice(), [only] if only.port == PORT),
        );
        let follows = follows.expecting(format!("one load balancer with one frontend, on port {PORT}"));
        self.edited.balancer().becomes(follows).within(limit).when("whose edit was begun").await?;
        self.removed
            .balancer()
            .becomes(nothing_left())
            .within(limit)
            .when("whose deletion was begun")
            .await?;
        self.removed.becomes(gone()).within(limit).await?;
        let stays = no_other_than(&made, "stays the only one", |_| true);
        self.made.balancer().keeps(stays).within(self.cx.limits().settle()).await
    }
}

async fn taken_over_since(cx: &CheckCx, transitions: i32) -> Verdict {
    cx.lease().becomes(taken_over(transitions)).within(cx.limits().failover()).await.map(drop)
}

async fn survives_a_frozen_leader(cx: &CheckCx) -> Verdict {
    let mut work = InFlight::begun(cx).await?;
    let frozen = work
        .handed_over(async |leader, before| {
            let frozen = leader.freezes().await?;
            taken_over_since(cx, before).await?;
            Ok(frozen)
        })
        .await?;
    let (_, node) = registered(cx, machine("meanwhile")).await?;
    node.becomes(initialised()).within(2 * cx.limits().watch()).when("by the new leader").await?;
    work.stands().await?;
    frozen.wake().await?;
    // The old leader may take until its renew deadline to notice that it no longer leads (contract HA-09).
    pause(cx.limits().step_down()).await;
    work.stands().await
}

async fn survives_a_terminated_leader(cx: &CheckCx) -> Verdict {
    let mut work = InFlight::begun(cx).await?;
    work.handed_over(async |leader, before| leader.hands_over(before).await).await?;
    work.stands().await?;
    in_order(cx, work.mark, work.leader.name()).await
}

async fn survives_a_partition(cx: &CheckCx) -> Verdict {
    let mut work = InFlight::begun(cx).await?;
    let partition = work
        .handed_over(async |leader, before| {
            let partition = leader.is_cut_off().await?;
            taken_over_since(cx, before).await?;
            Ok(partition)
        })
        .await?;
    work.stands().await?;
    in_order(cx, work.mark, work.leader.name()).await?;
    partition.restore().await?;
    pause(cx.limits().settle()).await;
    work.stands().await?;
    in_order(cx, work.mark, work.leader.name()).await
}
