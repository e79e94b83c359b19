//! A scenario in progress: its steps, and the waits until cluster and cloud are as the steps so far require.

use crate::divergence::{Broken, Divergence, Requests};
use crate::fault::Fault;
use crate::invariants::Invariants;
use crate::pattern::Pattern;
use crate::point::{Names, Point, points};
use crate::scenario::{Scenario, Step};
use crate::world::World;
use futures::FutureExt;
use futures::future::{Either, select};
use harness_clouds::{Effect, Fault as CloudFault, Match, Op, fresh_id};
use harness_clusters::{Asked, AuditQuery};
use harness_core::check::CheckError;
use harness_core::objects::show_entry;
use harness_core::probe::{ReadError, pause, poll};
use harness_session::Session;
use harness_testkit::prelude::{CheckCx, Entry, Replica, Subject, is_back};
use std::pin::pin;
use std::time::Duration;
use tokio::time::Instant;

/// How often cluster and cloud are compared with what they must be.
const LOOK: Duration = Duration::from_millis(25);
/// For how long the CCM must not write to the cloud to have finished.
const QUIET: Duration = Duration::from_millis(250);
/// How long it may continue to write after everything is as it must be.
const RESTLESS: Duration = Duration::from_secs(10);
/// What a fault may add to the time that a step usually takes: three failures in a row, each followed by twice the pause
/// (k8s.io/cloud-provider/controllers/service/controller.go: minRetryDelay 5 s), and a CCM that starts again.
pub(crate) const RECOVERY: Duration = Duration::from_secs(60);
/// After how long without any change a CCM usually does nothing more: longer than the framework's first pauses after an
/// error, which double from 5 s.
pub(crate) const IDLE: Duration = Duration::from_secs(20);
/// How many requests of each kind are kept for a reader.
const MOST_REQUESTS: usize = 40;
/// How long watches are behind: enough for a CCM that has just started to act on what it sees.
const BEHIND: Duration = Duration::from_secs(3);

/// One scenario in progress.
pub(crate) struct Progress<'a> {
    pub(crate) session: &'a Session,
    pub(crate) cx: &'a CheckCx,
    pub(crate) scenario: &'a Scenario,
    pub(crate) world: World<'a>,
    pub(crate) invariants: Invariants<'a>,
    /// How long it may take until everything is as it must be.
    pub(crate) patience: Duration,
    /// After how long without any change the CCM is not expected to change anything more.
    pub(crate) idle: Duration,
}

impl Progress<'_> {
    /// All steps. At one of them the CCM may be down, or its watches disturbed.
    async fn all_steps(&mut self, disturbed: Option<(usize, Pattern)>) -> Result<Option<Broken>, CheckError> {
        match disturbed {
            Some((step, pattern)) => self.around(step, pattern).await,
            None => self.steps(0, self.scenario.steps.len()).await,
        }
    }

    /// The steps from `first` up to, but not including, `end`.
    async fn steps(&mut self, first: usize, end: usize) -> Result<Option<Broken>, CheckError> {
        for (at, step) in self.scenario.steps.iter().enumerate().take(end).skip(first) {
            match step {
                Step::Settle => {
                    let divergences = self.settled().await?;
                    if !divergences.is_empty() {
                        return Ok(Some(Broken { step: at, divergences, requests: Requests::default() }));
                    }
                }
                _ => self.world.carry_out(step).await?,
            }
        }
        Ok(None)
    }

    /// All steps. If a fault is given, the CCM, or its leader if a standby is ready, is killed when a request meets it.
    pub(crate) async fn during(
        &mut self,
        killing: Option<(&Fault<'_>, Pattern)>,
        disturbed: Option<(usize, Pattern)>,
    ) -> Result<Option<Broken>, CheckError> {
        let Some((fault, pattern)) = killing else { return self.all_steps(disturbed).await };
        let (session, cx) = (self.session, self.cx);
        let limit = self.patience * u32::try_from(self.scenario.steps.len()).unwrap_or(u32::MAX);
        let leader = match pattern.needs_standby() {
            true => Some(cx.active_replica().await?),
            false => None,
        };
        let killed = async {
            let met = async |seen: &mut String| {
                let hits = fault.hits().await.map_err(|stop| ReadError::passing(stop.in_words()))?;
                *seen = format!("{hits} requests");
                Ok((hits > 0).then_some(()))
            };
            poll("the request is made", limit, Duration::from_millis(5), met).await?;
            match leader {
                Some(leader) => {
                    end(session, &[leader]).await?;
                    fault.clear().await
                }
                None => {
                    end(session, &cx.replicas()).await?;
                    fault.clear().await?;
                    start(cx).await
                }
            }
        };
        let steps = pin!(self.all_steps(disturbed).boxed_local());
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

    /// All steps; the CCM does not run at one of them, or its watches are disturbed.
    async fn around(&mut self, step: usize, pattern: Pattern) -> Result<Option<Broken>, CheckError> {
        if let Some(broken) = self.steps(0, step).await? {
            return Ok(Some(broken));
        }
        let all = self.scenario.steps.len();
        let after = match pattern {
            Pattern::Unseen => step + 2,
            Pattern::Delayed => (step..all).find(|at| !self.scenario.acts_at(*at)).unwrap_or(all),
            _ => step + 1,
        };
        let (session, cx) = (self.session, self.cx);
        let broken = match pattern {
            Pattern::Down => {
                end(session, &cx.replicas()).await?;
                let broken = self.steps(step, after).await?;
                start(cx).await?;
                broken
            }
            Pattern::Delayed => {
                set_lag(session, true).await?;
                let broken = self.steps(step, after).await?;
                pause(BEHIND).await;
                set_lag(session, false).await?;
                broken
            }
            Pattern::StaleStart => {
                set_lag(session, true).await?;
                let broken = self.steps(step, after).await?;
                end(session, &cx.replicas()).await?;
                start(cx).await?;
                pause(BEHIND).await;
                set_lag(session, false).await?;
                broken
            }
            Pattern::ListsBehind => {
                let id = fresh_id();
                session.cloud().inject(id, &lists_behind()).await?;
                let broken = self.steps(step, after).await?;
                pause(BEHIND).await;
                session.cloud().clear_fault(id).await?;
                broken
            }
            Pattern::LeaseLost => self.without_lease(step, after).await?,
            _ => {
                let interruption = cx.interrupt_watches().await?;
                let broken = self.steps(step, after).await?;
                interruption.expire().await?;
                broken
            }
        };
        match broken {
            Some(broken) => Ok(Some(broken)),
            None => self.steps(after, all).await,
        }
    }

    /// Some steps while another client has the Lease. The leader has to end, as it cannot know who works now.
    async fn without_lease(&mut self, step: usize, after: usize) -> Result<Option<Broken>, CheckError> {
        let cx = self.cx;
        let leader = cx.active_replica().await?;
        leader.will_end();
        let stolen = cx.lease().steal().await?;
        let step_down = leader.cannot_renew();
        let broken = self.steps(step, after).await?;
        let ended = step_down.is_in_time().await;
        stolen.let_go().await?;
        let stayed = match ended {
            Ok(()) => None,
            Err(CheckError::Violation(violation)) => Some(Divergence {
                subject: "the replicas".to_owned(),
                expected: "a leader that has lost its Lease ends (HA-05)".to_owned(),
                actual: violation.seen,
            }),
            Err(stop) => return Err(stop),
        };
        match (broken, stayed) {
            (Some(broken), _) => Ok(Some(broken)),
            (None, Some(stayed)) => {
                Ok(Some(Broken { step, divergences: vec![stayed], requests: Requests::default() }))
            }
            (None, None) => {
                leader.becomes(is_back()).within(cx.limits().start()).await?;
                Ok(None)
            }
        }
    }

    /// Waits until everything is as the steps so far require and the CCM has finished; returns what is not in the end, and
    /// what was not on the way.
    async fn settled(&mut self) -> Result<Vec<Divergence>, CheckError> {
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
        if last.is_empty() {
            last = self.invariants.broken(&self.world).await?;
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

    /// The requests of the CCM to the API server and to the cloud. On a cluster without faults of requests, those to the
    /// API server are left out.
    async fn recorded(&self, since_ms: i64, mark: u64) -> Result<(Vec<Asked>, Vec<Entry>), CheckError> {
        let query =
            AuditQuery { user: "system:serviceaccount:".to_owned(), since_ms, ..AuditQuery::default() };
        let requests = match self.session.cluster().api_faults() {
            None => Vec::new(),
            Some(_) => self.session.cluster().asked(&query).await?,
        };
        self.session.journal().catch_up().await?;
        let (_, calls) = self.session.journal().kept_since(mark)?;
        Ok((requests, calls))
    }

    /// The last requests so far, for a reader.
    pub(crate) async fn requests(&self, since_ms: i64, mark: u64) -> Result<Requests, CheckError> {
        let (requests, calls) = self.recorded(since_ms, mark).await?;
        let is_write = |request: &&Asked| {
            let reads = matches!(request.verb.as_str(), "get" | "list" | "watch");
            !reads && !matches!(request.resource.as_str(), "leases" | "events")
        };
        let api = requests.iter().filter(is_write).map(|request| {
            let Asked { verb, resource, name, code, .. } = request;
            format!("{verb} {resource} {name}: {code}")
        });
        let (mut api, mut cloud): (Vec<String>, Vec<String>) =
            (api.collect(), calls.iter().map(show_entry).collect());
        api.drain(..api.len().saturating_sub(MOST_REQUESTS));
        cloud.drain(..cloud.len().saturating_sub(MOST_REQUESTS));
        Ok(Requests { api, cloud })
    }

    /// The points of the history so far.
    pub(crate) async fn points(&self, since_ms: i64, mark: u64) -> Result<Vec<Point>, CheckError> {
        let (requests, calls) = self.recorded(since_ms, mark).await?;
        let named = |name: &String| (self.cx.name(name), name.clone());
        let machines = self.scenario.machines().iter().map(named).collect();
        let names = Names { namespace: self.cx.prefix().to_owned(), machines };
        Ok(points(&names, &requests, &calls))
    }
}

/// After how long without any change a CCM does nothing more after a fault: if it failed several times, or was killed and
/// has to start and lead, later than otherwise.
pub(crate) fn idle_after(pattern: Pattern) -> Duration {
    match pattern {
        Pattern::Failures => RECOVERY,
        pattern if pattern.kills() => RECOVERY / 2,
        _ => IDLE,
    }
}

/// Kills replicas, the leader among them; they stay down.
async fn end(session: &Session, replicas: &[Replica<'_>]) -> Result<(), CheckError> {
    for replica in replicas {
        replica.will_end();
        replica.kill().await?;
    }
    // Nothing that runs holds it, and waiting until it expires would only take time.
    session.ccm().forget_killed_leader().await?;
    Ok(())
}

/// Starts the CCM again and waits until it leads.
async fn start(cx: &CheckCx) -> Result<(), CheckError> {
    for replica in cx.replicas() {
        replica.returns().await?;
    }
    Ok(())
}

/// Lists of the cloud that show the state of this moment until the fault is cleared.
fn lists_behind() -> CloudFault {
    let matching = Match { ops: vec![Op::InstanceList, Op::LbList, Op::RouteList], ..Match::default() };
    CloudFault { matching, effect: Effect::Stale, calls: None, for_ms: None }
}

async fn set_lag(session: &Session, lags: bool) -> Result<(), CheckError> {
    let faults = session.cluster().api_faults();
    let faults = faults.ok_or_else(|| {
        CheckError::Error("only the embedded API server can show the CCM an earlier state".to_owned())
    })?;
    Ok(faults.set_lag(lags).await?)
}
