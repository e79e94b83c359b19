//! One trial: a scenario, carried out with one fault or none.

use crate::divergence::Divergence;
use crate::fault::Fault;
use crate::pattern::{Pattern, Plan};
use crate::point::{Names, Point, points};
use crate::scenario::{Scenario, Step};
use crate::world::World;
use futures::FutureExt;
use futures::future::{Either, select};
use harness_clusters::AuditQuery;
use harness_core::check::{CheckError, CheckId, chain};
use harness_core::probe::{ReadError, poll};
use harness_session::Session;
use harness_session::ccm::Form;
use harness_testkit::prelude::{CheckCx, Entry};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The id that names of objects and requests of trials begin with.
const ID: CheckId = CheckId::new("EXPLORE-01");
/// How often cluster and cloud are compared with what they must be.
const LOOK: Duration = Duration::from_millis(25);
/// For how long the CCM must not write to the cloud to have finished.
const QUIET: Duration = Duration::from_millis(250);
/// How long it may continue to write after everything is as it must be.
const RESTLESS: Duration = Duration::from_secs(10);
/// What a fault may add to the time that a step usually takes: three failures in a row, each followed by twice the pause
/// (k8s.io/cloud-provider/controllers/service/controller.go: minRetryDelay 5 s), and a CCM that starts again.
const RECOVERY: Duration = Duration::from_secs(60);

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// As it must.
    Agrees,
    /// Not as it must.
    Diverges(Broken),
    /// The CCM did not make the request at which the fault was to be.
    NotReached,
    /// Cluster, cloud or harness failed.
    Error(String),
}

/// What was wrong in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    /// At which step of the scenario, from 0.
    pub(crate) step: usize,
    /// What differs.
    pub(crate) divergences: Vec<Divergence>,
}

/// A finished trial.
pub(crate) struct Tried {
    pub(crate) outcome: Outcome,
    /// The points that it had; only of a trial without a fault.
    pub(crate) points: Vec<Point>,
}

/// Carries out a scenario without a fault, and finds its points.
pub(crate) async fn record(session: &Arc<Session>, scenario: &Scenario) -> Tried {
    run(session, scenario, None).await
}

/// Carries out a plan.
pub(crate) async fn carry_out(session: &Arc<Session>, plan: &Plan) -> Outcome {
    run(session, &plan.scenario, Some((&plan.point, plan.pattern))).await.outcome
}

async fn run(session: &Arc<Session>, scenario: &Scenario, fault: Option<(&Point, Pattern)>) -> Tried {
    let began = Instant::now();
    let mut tried = match prepared(session).await {
        Err(stop) => return Tried { outcome: Outcome::Error(stop.in_words()), points: Vec::new() },
        Ok(cx) => {
            let tried = attempt(session, &cx, scenario, fault).await;
            let cleaned = cx.clean_up().await;
            let tried = tried.unwrap_or_else(|stop| Tried { outcome: ended(stop), points: Vec::new() });
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

fn ended(stop: CheckError) -> Outcome {
    Outcome::Error(stop.in_words())
}

async fn prepared(session: &Arc<Session>) -> Result<CheckCx, CheckError> {
    let turn = session.dir().hold_cluster(true).map_err(|error| CheckError::Error(chain(&error)))?;
    session.unless_interrupted(session.ensure_ccm(Form::Replicas)).await?;
    CheckCx::new(ID, session.clone(), turn, None).await
}

/// One scenario in progress.
struct Progress<'a> {
    session: &'a Session,
    cx: &'a CheckCx,
    scenario: &'a Scenario,
    world: World<'a>,
    /// How long it may take until everything is as it must be.
    patience: Duration,
    /// After how long without any change the CCM is not expected to change anything more.
    idle: Duration,
}

async fn attempt(
    session: &Arc<Session>,
    cx: &CheckCx,
    scenario: &Scenario,
    fault: Option<(&Point, Pattern)>,
) -> Result<Tried, CheckError> {
    let (since_ms, mark) = (jiff::Timestamp::now().as_millisecond(), session.journal().mark()?);
    let usual = cx.limits().load_balancer().max(cx.limits().life_of_machine());
    let patience = if fault.is_some() { usual + RECOVERY } else { usual };
    let world = World::new(cx, session.next_number());
    let idle = fault.map_or(patience, |(_, pattern)| idle_after(pattern));
    let mut progress = Progress { session, cx, scenario, world, patience, idle };
    let Some((point, pattern)) = fault else {
        let broken = progress.all_steps().await?;
        let points = match broken {
            None => progress.points(since_ms, mark).await?,
            Some(_) => Vec::new(),
        };
        return Ok(Tried { outcome: broken.map_or(Outcome::Agrees, Outcome::Diverges), points });
    };
    let (broken, reached) = match point {
        Point::Step { step } => (progress.around(*step, pattern).await?, true),
        Point::Api { .. } | Point::Cloud { .. } => {
            let fault = Fault::set(session, point, pattern, &|name| cx.name(name), cx.prefix()).await?;
            let outcome = progress.during(&fault, pattern).await;
            let reached = fault.hits().await;
            fault.clear().await?;
            (outcome?, reached? > 0)
        }
    };
    let outcome = match broken {
        Some(broken) => Outcome::Diverges(broken),
        None if reached => Outcome::Agrees,
        None => Outcome::NotReached,
    };
    Ok(Tried { outcome, points: Vec::new() })
}

impl Progress<'_> {
    async fn all_steps(&mut self) -> Result<Option<Broken>, CheckError> {
        self.steps(0, self.scenario.steps.len()).await
    }

    /// The steps from `first` up to, but not including, `end`.
    async fn steps(&mut self, first: usize, end: usize) -> Result<Option<Broken>, CheckError> {
        for (at, step) in self.scenario.steps.iter().enumerate().take(end).skip(first) {
            match step {
                Step::Settle => {
                    let divergences = self.settled().await?;
                    if !divergences.is_empty() {
                        return Ok(Some(Broken { step: at, divergences }));
                    }
                }
                _ => self.world.carry_out(step).await?,
            }
        }
        Ok(None)
    }

    /// All steps, while a fault is set. With a pattern that kills the CCM, it is killed when the fault is met.
    async fn during(&mut self, fault: &Fault<'_>, pattern: Pattern) -> Result<Option<Broken>, CheckError> {
        if !pattern.kills() {
            return self.all_steps().await;
        }
        let (session, cx) = (self.session, self.cx);
        let limit = self.patience * u32::try_from(self.scenario.steps.len()).unwrap_or(u32::MAX);
        let killed = async {
            let met = async |seen: &mut String| {
                let hits = fault.hits().await.map_err(|stop| ReadError::passing(stop.in_words()))?;
                *seen = format!("{hits} requests");
                Ok((hits > 0).then_some(()))
            };
            poll("the request is made", limit, Duration::from_millis(5), met).await?;
            kill(session, cx).await?;
            fault.clear().await?;
            start(cx).await
        };
        let steps = pin!(self.all_steps().boxed_local());
        let killed = pin!(killed.boxed_local());
        match select(steps, killed).await {
            // The request was never made.
            Either::Left((broken, _)) => broken,
            Either::Right((killed, steps)) => {
                killed?;
                steps.await
            }
        }
    }

    /// All steps; one of them happens while the CCM does not run, or has no watches.
    async fn around(&mut self, step: usize, pattern: Pattern) -> Result<Option<Broken>, CheckError> {
        if let Some(broken) = self.steps(0, step).await? {
            return Ok(Some(broken));
        }
        let after = match pattern {
            Pattern::Unseen => step + 2,
            _ => step + 1,
        };
        let broken = match pattern {
            Pattern::Down => {
                kill(self.session, self.cx).await?;
                let broken = self.steps(step, after).await?;
                start(self.cx).await?;
                broken
            }
            _ => {
                let interruption = self.cx.interrupt_watches().await?;
                let broken = self.steps(step, after).await?;
                interruption.expire().await?;
                broken
            }
        };
        match broken {
            Some(broken) => Ok(Some(broken)),
            None => self.steps(after, self.scenario.steps.len()).await,
        }
    }

    /// Waits until everything is as the steps so far require and the CCM has finished; returns what is not in the end.
    async fn settled(&self) -> Result<Vec<Divergence>, CheckError> {
        let mut last = self.agreed().await?;
        if !last.is_empty() {
            return Ok(last);
        }
        if let Some(restless) = self.restless().await? {
            return Ok(vec![restless]);
        }
        // Whatever the CCM did last must not have broken it.
        last = self.world.divergences().await?;
        if !last.is_empty() {
            last = self.agreed().await?;
        }
        Ok(last)
    }

    async fn agreed(&self) -> Result<Vec<Divergence>, CheckError> {
        let (mut last, mut writes, mut changed) = (Vec::new(), 0, Instant::now());
        let look = async |seen: &mut String| {
            let found = self.world.divergences().await.map_err(|stop| ReadError::passing(stop.in_words()))?;
            *seen = found.iter().map(Divergence::to_string).collect::<Vec<_>>().join("; ");
            let written = self.session.journal().last_since(0, 1, |call| call.write)?;
            let written = written.first().map_or(0, |call| call.seq);
            if found != last || written != writes {
                (last, writes, changed) = (found, written, Instant::now());
            }
            Ok((last.is_empty() || changed.elapsed() >= self.idle).then_some(()))
        };
        let agreed = poll("cluster and cloud are as they must be", self.patience, LOOK, look);
        match self.session.unless_interrupted(agreed.map(|agreed| Ok(agreed.err()))).await? {
            None => Ok(last),
            Some(why) if last.is_empty() => Err(CheckError::Error(why.text)),
            Some(_) => Ok(last),
        }
    }

    /// What the CCM still does, if it does not stop writing to the cloud.
    async fn restless(&self) -> Result<Option<Divergence>, CheckError> {
        let mut mark = self.session.journal().mark()?;
        let (began, mut since) = (Instant::now(), Instant::now());
        let mut last = String::new();
        let look = async |seen: &mut String| {
            let (_, calls) = self.session.journal().kept_since(mark)?;
            if let Some(call) = calls.iter().rfind(|call| call.write) {
                (last, since) = (call.request.clone(), Instant::now());
            }
            mark = calls.last().map_or(mark, |call| call.seq);
            *seen = format!("{last}, {:.1} s ago", since.elapsed().as_secs_f64());
            let over = since.elapsed() >= QUIET;
            Ok((over || began.elapsed() >= RESTLESS).then_some(over))
        };
        let over = poll("the CCM has finished", RESTLESS * 2, LOOK, look).await?;
        Ok((!over).then(|| Divergence {
            subject: "the CCM".to_owned(),
            expected: "no more writes to the cloud, as everything is as it must be".to_owned(),
            actual: format!("writes for {} s, the last one {last}", RESTLESS.as_secs()),
        }))
    }

    async fn points(&self, since_ms: i64, mark: u64) -> Result<Vec<Point>, CheckError> {
        let query =
            AuditQuery { user: "system:serviceaccount:".to_owned(), since_ms, ..AuditQuery::default() };
        let requests = match self.session.cluster().request_faults() {
            // Without faults of requests, they are not points.
            None => Vec::new(),
            Some(_) => self.session.cluster().asked(&query).await?,
        };
        self.session.journal().catch_up().await?;
        let (_, calls): (u64, Vec<Entry>) = self.session.journal().kept_since(mark)?;
        let machines = self.scenario.machines();
        let names = Names {
            namespace: self.cx.prefix().to_owned(),
            machines: machines
                .iter()
                .map(|name| (self.cx.name(name), name.clone()))
                .collect::<BTreeMap<_, _>>(),
        };
        Ok(points(&names, &requests, &calls))
    }
}

/// After how long without any change a CCM does nothing more: longer than the framework's pauses after an error, which
/// double from 5 s, or than a CCM that was killed needs to start and lead.
fn idle_after(pattern: Pattern) -> Duration {
    match pattern {
        Pattern::Failures => RECOVERY,
        pattern if pattern.kills() => RECOVERY / 2,
        _ => RECOVERY / 3,
    }
}

/// Kills the CCM; it stays down.
async fn kill(session: &Session, cx: &CheckCx) -> Result<(), CheckError> {
    for replica in cx.replicas() {
        replica.will_end();
        replica.kill().await?;
    }
    // Nothing runs that could hold it, and waiting for its end would only take time.
    session.ccm().forget_ended_leader().await?;
    Ok(())
}

/// Starts the CCM again and waits until it leads.
async fn start(cx: &CheckCx) -> Result<(), CheckError> {
    for replica in cx.replicas() {
        replica.returns().await?;
    }
    Ok(())
}
