//! One trial: a scenario, carried out with some faults or none.

use crate::divergence::Broken;
use crate::fault::Fault;
use crate::invariants::Invariants;
use crate::plan::Plan;
use crate::point::Point;
use crate::progress::{IDLE, Progress, RECOVERY, idle_after};
use crate::world::World;
use harness_core::check::{CheckError, CheckId, chain};
use harness_core::ledger::INTERRUPTED;
use harness_session::Session;
use harness_session::ccm::Form;
use harness_testkit::prelude::CheckCx;
use std::sync::Arc;
use tokio::time::Instant;

/// The id that names of objects and requests of trials begin with.
const ID: CheckId = CheckId::new("EXPLORE-01");

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// As it must.
    Agrees,
    /// Not as it must.
    Diverges(Broken),
    /// The CCM did not make a request at which a fault was to be.
    NotReached,
    /// The CCM was deployed and did not start to work, so nothing was tried.
    NotStarted(String),
    /// Cluster, cloud or harness failed.
    Error(String),
}

/// A finished trial.
pub(crate) struct Tried {
    pub(crate) outcome: Outcome,
    /// The points that it had; only of a trial without a fault that ended as it must.
    pub(crate) points: Vec<Point>,
}

/// Carries out a plan. Without faults, the points of its scenario are found.
pub(crate) async fn carry_out(session: &Arc<Session>, plan: &Plan) -> Tried {
    let began = Instant::now();
    let mut tried = match prepared(session).await {
        Err(stop) => {
            let outcome = match stop {
                CheckError::Blocked { .. } => Outcome::NotStarted(stop.in_words()),
                _ => Outcome::Error(stop.in_words()),
            };
            return Tried { outcome, points: Vec::new() };
        }
        Ok(cx) => {
            let tried = session.unless_interrupted(attempt(session, &cx, plan)).await;
            let cleaned = async { Ok(cx.clean_up().await) };
            let cleaned = session.unless_interrupted(cleaned).await.map_err(CheckError::in_words).flatten();
            if session.is_interrupted() {
                // Its environment is removed as a whole.
                cx.leaves_it_to_its_environment();
                return Tried { outcome: Outcome::Error(INTERRUPTED.to_owned()), points: Vec::new() };
            }
            let failed =
                |stop: CheckError| Tried { outcome: Outcome::Error(stop.in_words()), points: Vec::new() };
            let tried = tried.unwrap_or_else(failed);
            match (&tried.outcome, cleaned) {
                (Outcome::Agrees, Err(why)) => {
                    Tried { outcome: Outcome::Error(format!("the cleanup failed: {why}")), ..tried }
                }
                _ => tried,
            }
        }
    };
    if matches!(tried.outcome, Outcome::Diverges(_))
        && let Err(why) = session.stood_since(began).await
    {
        tried.outcome = Outcome::Error(why);
    }
    tried
}

async fn prepared(session: &Arc<Session>) -> Result<CheckCx, CheckError> {
    let turn = session.dir().hold_cluster(true).map_err(|error| CheckError::Error(chain(&error)))?;
    session.unless_interrupted(session.ensure_ccm(Form::Replicas)).await?;
    CheckCx::new(ID, session.clone(), turn, None).await
}

async fn attempt(session: &Arc<Session>, cx: &CheckCx, plan: &Plan) -> Result<Tried, CheckError> {
    let (since_ms, mark) = (jiff::Timestamp::now().as_millisecond(), session.journal().mark()?);
    let usual = cx.limits().load_balancer().max(cx.limits().life_of_machine());
    let patience = usual + RECOVERY;
    // While a slow cloud makes a load balancer, nothing changes for as long as that takes.
    let idle = plan.faults.iter().map(|fault| idle_after(fault.pattern)).max().unwrap_or(IDLE);
    let idle = idle.max(cx.limits().load_balancer_work());
    let mut progress = Progress {
        session,
        cx,
        scenario: &plan.scenario,
        world: World::new(cx, session.next_number()),
        invariants: Invariants::new(session, cx, mark, plan.needs_standby()),
        patience,
        idle,
    };
    let mut set = Vec::new();
    for fault in plan.faults.iter().filter(|fault| !matches!(fault.at, Point::Step { .. })) {
        let name_of = |name: &str| cx.name(name);
        let made = Fault::set(session, &fault.at, fault.pattern, &name_of, cx.prefix()).await?;
        set.push((made, fault.pattern));
    }
    let killing = set.iter().find(|(_, pattern)| pattern.kills()).map(|(fault, pattern)| (fault, *pattern));
    let broken = progress.during(killing, plan.at_step()).await;
    let mut reached = true;
    for (fault, _) in &set {
        reached &= fault.hits().await? > 0;
        fault.clear().await?;
    }
    match broken? {
        Some(mut broken) => {
            broken.requests = progress.requests(since_ms, mark).await?;
            Ok(Tried { outcome: Outcome::Diverges(broken), points: Vec::new() })
        }
        None if !reached => Ok(Tried { outcome: Outcome::NotReached, points: Vec::new() }),
        None => {
            let points = match plan.faults.is_empty() {
                true => progress.points(since_ms, mark).await?,
                false => Vec::new(),
            };
            Ok(Tried { outcome: Outcome::Agrees, points })
        }
    }
}
