//! Environments in which trials are carried out, one after another.

use crate::plan::Plan;
use crate::trial::{Outcome, Tried, carry_out};
use harness_config::RunPlan;
use harness_core::check::chain;
use harness_core::events::Events;
use harness_session::Session;
use harness_session::up::{Environment, Leave, Prepared};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// What all environments share.
pub(crate) struct Environments<'a> {
    /// With one replica of the CCM, so that none takes over from one that is killed.
    alone: Arc<Prepared>,
    /// With two.
    with_standby: Arc<Prepared>,
    handle: &'a Handle,
    events: &'a Events,
    cancel: &'a CancellationToken,
    /// Whether an environment has shown how it is made.
    shows: AtomicBool,
}

impl<'a> Environments<'a> {
    pub(crate) fn new(
        plan: &RunPlan,
        (handle, events, cancel): (&'a Handle, &'a Events, &'a CancellationToken),
    ) -> Environments<'a> {
        let with = |replicas| {
            let mut plan = plan.clone();
            plan.profile.replicas = replicas;
            Prepared::new(Arc::new(plan))
        };
        let shows = AtomicBool::new(false);
        Environments { alone: with(1), with_standby: with(2), handle, events, cancel, shows }
    }

    /// An environment that is made when the first trial needs it.
    pub(crate) fn lane(&self, lane: u32) -> Lane<'_, 'a> {
        Lane { all: self, lane, current: None }
    }
}

/// One environment at a time.
pub(crate) struct Lane<'e, 'a> {
    all: &'e Environments<'a>,
    lane: u32,
    current: Option<Current>,
}

struct Current {
    environment: Environment,
    session: Arc<Session>,
    has_standby: bool,
}

impl Lane<'_, '_> {
    /// Carries out a plan. An environment that a trial has left in an unknown state is replaced.
    ///
    /// # Errors
    /// An environment could not be created.
    pub(crate) fn trial(&mut self, plan: &Plan) -> Result<Tried, String> {
        let wanted = plan.needs_standby();
        if self.current.as_ref().is_some_and(|current| current.has_standby != wanted) {
            self.leave();
        }
        let session = match &self.current {
            Some(current) => current.session.clone(),
            None => match self.up(wanted) {
                Ok(session) => session,
                Err(why) if self.all.cancel.is_cancelled() => {
                    return Ok(Tried { outcome: Outcome::Error(why), points: Vec::new() });
                }
                Err(why) => return Err(why),
            },
        };
        let tried = self.all.handle.block_on(carry_out(&session, plan));
        drop(session);
        if !matches!(tried.outcome, Outcome::Agrees | Outcome::NotReached) {
            self.leave();
        }
        Ok(tried)
    }

    /// Whether the environment that exists has a second replica; `None` if there is none.
    pub(crate) fn has_standby(&self) -> Option<bool> {
        self.current.as_ref().map(|current| current.has_standby)
    }

    fn up(&mut self, has_standby: bool) -> Result<Arc<Session>, String> {
        let all = self.all;
        let prepared = if has_standby { &all.with_standby } else { &all.alone };
        let mut environment = Environment::new(prepared.clone(), self.lane);
        // The first one shows what is made; all others are made like it.
        let is_first = !all.shows.swap(true, Ordering::Relaxed);
        let events = if is_first { all.events.clone() } else { all.events.without_stages() };
        match all.handle.block_on(environment.up(&events, all.cancel)) {
            Ok(session) => {
                self.current = Some(Current { environment, session: session.clone(), has_standby });
                Ok(session)
            }
            Err(error) => {
                self.down(environment);
                Err(chain(&error))
            }
        }
    }

    /// Removes the environment, if there is one.
    pub(crate) fn leave(&mut self) {
        if let Some(Current { environment, session, .. }) = self.current.take() {
            drop(session);
            self.down(environment);
        }
    }

    fn down(&self, environment: Environment) {
        if let Err(why) = self.all.handle.block_on(environment.down(Leave::Nothing)) {
            self.all.events.say(format!("left behind ('ccm-conformance clean' tries again):\n{why}"));
        }
    }
}
