//! The soak: whatever happens, in any order, everything reaches its expected state; and when nothing happens,
//! nothing is written (contract HA-08, HA-10, SCALE-03). It lasts as long as the run's `--soak` says.

mod plan;
mod population;

use harness_testkit::prelude::*;
use plan::{Change, End, NODES, Round, Rounds, SERVICES, Trouble};
use population::Population;
use std::future::IntoFuture;
use std::time::Duration;
use suites_common::leases::unchanged;
use tokio::time::Instant;

/// The suite of the soak.
pub const SUITE: Suite = Suite {
    name: "soak",
    proves: "for the given time every change is followed, and nothing is done without a change",
    judges: Party::Ccm,
    tables: &[CHECKS],
};

const ALL: &[Capability] = &[Capability::LeaderElection, Capability::Instances, Capability::LoadBalancer];
/// The contract's ten minutes. Checks that take that long start first.
const USUAL_S: u32 = 600;

const CHECKS: &[Check] = &[
    Check::of("HA-08.soak", |cx| Box::pin(follows_the_leader(cx)))
        .by_calls()
        .needs(ALL)
        .with(&[
            Facility::CcmControl,
            Facility::ProcessControl,
            Facility::ApiControl,
            Facility::Faults,
            Facility::Standby,
        ])
        .alone()
        .takes(USUAL_S)
        .soaks(),
    Check::of("HA-10.soak", |cx| Box::pin(leads_throughout(cx)))
        .needs(ALL)
        .with(&[Facility::Faults])
        .alone()
        .takes(USUAL_S)
        .soaks(),
    Check::of("SCALE-03.soak", |cx| Box::pin(rests(cx)))
        .by_calls()
        .needs(&[Capability::Instances, Capability::LoadBalancer])
        .alone()
        .takes(USUAL_S)
        .soaks(),
];

/// Objects that the soak does not touch, as they were at the beginning.
struct Untouched<'a> {
    node: Node<'a>,
    service: Service<'a>,
    balancer: LoadBalancer,
}

impl<'a> Untouched<'a> {
    async fn made(cx: &'a CheckCx) -> Result<Untouched<'a>, CheckError> {
        let machine = cx.machine(machine("untouched")).await?;
        let node = cx.node(machine.node()).await?;
        node.becomes(initialised()).await?;
        let service = cx.service(load_balancer("untouched").port(80)).await?;
        let balancer = service.gets_published().await?;
        Ok(Untouched { node, service, balancer })
    }

    /// Checks that they stay so for the whole soak.
    async fn stays(&self, cx: &CheckCx) -> Verdict {
        let same = no_other_than(&self.balancer, "stays the same", |_| true);
        let balancer = self.service.balancer();
        let balancer = balancer.keeps(same).within(cx.soak()).when("while others come and go");
        let node = self.node.keeps(initialised().only()).within(cx.soak()).when("while others come and go");
        futures::future::try_join(balancer.into_future(), node.into_future()).await.map(drop)
    }
}

/// What has happened, for the report.
#[derive(Default)]
struct Tally {
    rounds: usize,
    changes: usize,
    troubles: usize,
    leaders: usize,
}

impl Tally {
    fn note(&mut self, cx: &CheckCx, round: &Round) {
        self.rounds += 1;
        self.changes += round.changes.len();
        self.troubles += usize::from(round.trouble.is_some());
        self.leaders += usize::from(round.leader.is_some());
        cx.record("seed", cx.seed());
        cx.record(
            "happened",
            format!(
                "{} changes in {} rounds, {} with a cloud that failed, {} with a leader that ended",
                self.changes, self.rounds, self.troubles, self.leaders
            ),
        );
    }
}

/// The time within which everything in a round has to reach its expected state. Machines are polled
/// periodically, and failed calls are retried.
fn patience(cx: &CheckCx) -> Duration {
    let limits = cx.limits();
    let failures = limits.service_after(4).max(limits.nodes_after(limits.watch()));
    limits.life_of_machine() + failures + limits.load_balancer_work() * 2
}

async fn follows_the_leader(cx: &CheckCx) -> Verdict {
    let untouched = Untouched::made(cx).await?;
    let happens = async {
        let (mut population, mut tally) = (Population::of(cx), Tally::default());
        let end = Instant::now() + cx.soak();
        for round in Rounds::of(cx.seed(), true) {
            tally.note(cx, &round);
            match round.leader {
                None => goes_by(cx, &mut population, &round).await?,
                Some(how) => goes_by_without(cx, &mut population, &round, how).await?,
            }
            // However slow the soak is, a leader has to have ended.
            if Instant::now() >= end && tally.leaders > 0 {
                break;
            }
        }
        population.stands(patience(cx)).await
    };
    futures::future::try_join(happens, untouched.stays(cx)).await.map(drop)
}

/// A round of changes. The cloud may fail during it.
async fn goes_by(cx: &CheckCx, population: &mut Population<'_>, round: &Round) -> Verdict {
    let trouble = match round.trouble {
        Some(Trouble { status, calls }) => Some(cx.cloud().anything().answers(status).times(calls).await?),
        None => None,
    };
    for change in &round.changes {
        population.meets(*change).await?;
    }
    if let Some(trouble) = trouble {
        // If nothing calls the cloud, the fault meets no call.
        pause(cx.limits().settle()).await;
        trouble.clear().await?;
    }
    population.settles(patience(cx)).await
}

/// A round in which the leader ends.
async fn goes_by_without(cx: &CheckCx, population: &mut Population<'_>, round: &Round, how: End) -> Verdict {
    let leader = leader(cx, population).await?;
    let led = cx.lease().becomes(held()).await?;
    let taken = taken_over(transitions_of(&led));
    leader.will_end();
    let limit = cx.limits().failover();
    for change in &round.changes {
        population.meets(*change).await?;
    }
    match how {
        End::Killed => {
            leader.kill().await?;
            cx.lease().becomes(taken).within(limit).await?;
        }
        End::Terminated => {
            leader.hands_over(transitions_of(&led)).await?;
        }
        End::CutOff => {
            let partition = leader.is_cut_off().await?;
            cx.lease().becomes(taken).within(limit).await?;
            partition.restore().await?;
        }
        End::Frozen => {
            let frozen = leader.freezes().await?;
            cx.lease().becomes(taken).within(limit).await?;
            frozen.wake().await?;
            // The old leader may take until its renew deadline to notice that it no longer leads (contract HA-09).
            pause(cx.limits().step_down()).await;
        }
    }
    leader.returns().await?;
    population.settles(patience(cx) + cx.limits().failover()).await
}

/// Finds the leader: the replica that made the last change in the cloud, for work that it just got.
async fn leader<'a>(cx: &'a CheckCx, population: &mut Population<'_>) -> Result<Replica<'a>, CheckError> {
    let mark = cx.cloud().mark_now().await?;
    population.gives_work(WORK + u16::try_from(mark % 1000).unwrap_or_default()).await?;
    population.settles(patience(cx)).await?;
    let calls = cx.cloud().calls().writes().since(mark).list().await?;
    let who = calls.iter().rev().find_map(|call| call.credential.clone());
    let who = who.ok_or_else(|| CheckError::Error("no call of the leader has a credential".to_owned()))?;
    Ok(cx.replica(&who))
}

/// The first of the ports that show which replica leads.
const WORK: u16 = 40_000;

async fn leads_throughout(cx: &CheckCx) -> Verdict {
    let untouched = Untouched::made(cx).await?;
    let lease = cx.lease();
    let before = lease.becomes(held()).await?;
    let happens = async {
        let (mut population, mut tally) = (Population::of(cx), Tally::default());
        let end = Instant::now() + cx.soak();
        for round in Rounds::of(cx.seed(), false) {
            tally.note(cx, &round);
            goes_by(cx, &mut population, &round).await?;
            if Instant::now() >= end {
                break;
            }
        }
        population.stands(patience(cx)).await
    };
    let kept = lease.keeps(unchanged(&before)).within(cx.soak());
    futures::future::try_join3(happens, untouched.stays(cx), kept.into_future()).await.map(drop)
}

/// For how long after new Nodes a write may still be about them.
const LATE: Duration = Duration::from_secs(15);

async fn rests(cx: &CheckCx) -> Verdict {
    let mut population = Population::of(cx);
    for at in 0..NODES {
        population.meets(Change::Node(at)).await?;
    }
    for at in 0..SERVICES {
        population.meets(Change::Service(at)).await?;
    }
    population.settles(patience(cx)).await?;
    population.stands(patience(cx)).await?;
    // A CCM that collects changes of Nodes writes a little later, and routes are made in the next round.
    let late = if cx.declares(Capability::Routes) { cx.limits().route().max(LATE) } else { LATE };
    pause(late).await;
    population.rests().await?;
    let mark = cx.cloud().mark_now().await?;
    let changes = cx.cloud().calls().writes().since(mark);
    changes.keeps(no_calls()).within(cx.soak()).when("while nothing happens").await?;
    cx.record("watched_s", cx.soak().as_secs());
    population.stands(cx.limits().watch()).await
}
