//! One call of the cloud API from arrival to answer.
//!
//! # Order of events
//! The call arrives and gets its number in the journal; its credential is checked; the first fault that
//! applies hits; barriers hold it; it takes effect; it is answered. If neither a fault nor a barrier applies,
//! all of this happens under one lock, so that the order of the journal is the order in which calls took
//! effect.

use super::state::{Shared, State};
use super::twist::Twist;
use super::unknown::Unknown;
use fake_cloud_driver::{Effect, Entry, LbParts, Match, Outcome};
use fake_cloud_kit::{Answer, Asker, Call, Denial, Identity, Plan, Request, Run};
use fake_cloud_model::Cloud;
use fake_cloud_recording::barriers::Place;
use fake_cloud_recording::faults::pause;
use fake_cloud_recording::journal::millis;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// The largest body of a call, in bytes.
pub(crate) const BODY_LIMIT_BYTES: usize = 1 << 20;

/// The connection has to be closed without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("closed without an answer, as a fault has ordered")]
pub(crate) struct Closed;

/// The service of the cloud that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// The cloud's API, with a credential.
    Api,
    /// The metadata service, called by a machine.
    Metadata,
}

/// How much of a call's body was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// The whole body.
    Complete,
    /// More than [`BODY_LIMIT_BYTES`]; the request contains none of it.
    TooLong,
    /// Only a part: the caller disconnected.
    BrokenOff,
}

/// A call that has arrived. When it is dropped, it has ended, in whatever way.
pub(super) struct InFlight {
    shared: Arc<Shared>,
    seq: u64,
    service: Service,
    peer: IpAddr,
    credential: Option<Arc<str>>,
    call: Call,
    /// The part that the dialect does not know.
    unknown: Option<String>,
    names: OnceCell<BTreeSet<String>>,
    /// `METHOD /path?query`.
    line: String,
    /// Barriers that were raised later do not hold it.
    youngest_barrier: u64,
    /// The barrier at which it waits.
    waits_at: Option<u64>,
    /// The fault that changes how it takes effect.
    twist: Option<(u64, Twist)>,
}

/// The next step of a call.
enum Step {
    Answer(Answer),
    Wait(Duration),
    WaitAt(Place),
    Hang(Option<Duration>),
    Close,
}

/// The effect of a call, until it has taken place.
type Pending = Option<Run>;

/// A call that was received.
struct Arrived<'a> {
    service: Service,
    peer: IpAddr,
    request: &'a Request,
    call: Call,
    unknown: Option<String>,
}

/// Carries a call out.
pub(super) async fn answer(
    shared: Arc<Shared>,
    service: Service,
    peer: IpAddr,
    request: Request,
    body: Body,
) -> Result<Answer, Closed> {
    let Plan { call, run, unknown } = match service {
        Service::Api => shared.dialect.plan(&request),
        Service::Metadata => shared.dialect.metadata(&request, Asker::of(&request, peer)),
    };
    let mut run = Some(run);
    // Declared before the lock is taken: if anything panics, the lock is released before the call ends.
    let mut flight;
    let mut step = {
        let mut state = shared.state();
        let now = shared.now();
        let identity = match service {
            Service::Api => shared.dialect.identify(&request, &state.credentials),
            Service::Metadata => Identity::Anybody,
        };
        let call = match service {
            Service::Api => shared.dialect.meaning(&request, call, &mut state.cloud, now),
            Service::Metadata => call,
        };
        let arrived = Arrived { service, peer, request: &request, call, unknown };
        flight = InFlight::open(&shared, &mut state, now, arrived, &identity);
        flight.admit(&mut state, now, &identity, body, &mut run)
    };
    drop(request);
    loop {
        step = match step {
            Step::Answer(answer) => {
                return Ok(match service {
                    Service::Api => shared.dialect.with_headers(answer, shared.now()),
                    Service::Metadata => answer,
                });
            }
            Step::Close => return Err(Closed),
            Step::Hang(None) => std::future::pending().await,
            Step::Hang(Some(time)) => {
                pause(time).await;
                return Err(Closed);
            }
            Step::Wait(time) => {
                pause(time).await;
                flight.resume(&mut run)
            }
            Step::WaitAt(mut place) => {
                place.released().await;
                flight.waits_at = None;
                flight.resume(&mut run)
            }
        }
    }
}

impl InFlight {
    /// Enters a call into the journal. `identity` is its credential.
    fn open(
        shared: &Arc<Shared>,
        state: &mut State,
        now: Duration,
        arrived: Arrived<'_>,
        identity: &Identity,
    ) -> InFlight {
        let Arrived { service, peer, request, call, unknown } = arrived;
        let credential = match identity {
            Identity::Known(name) => Some(name.clone()),
            Identity::Unknown | Identity::Rejected(_) | Identity::Anybody => None,
        };
        let entry = Entry {
            seq: 0,
            at_ms: millis(now),
            took_ms: None,
            peer,
            credential: credential.as_deref().map(str::to_owned),
            op: call.op,
            write: call.op.is_write(),
            resource: call.resource.clone().map(|resource| state.credentials.redact(resource)),
            owner: call.owner.clone().or_else(|| state.cloud.owner_of(call.op, &call.named)),
            request: state.credentials.redact(request.line()),
            user_agent: request.user_agent().map(|name| state.credentials.redact(name.to_owned())),
            outcome: Outcome::UnderWay,
            unknown: unknown.clone().map(|what| state.credentials.redact(what)),
            change: None,
        };
        if let (Some(what), request) = (&entry.unknown, &entry.request) {
            tracing::warn!(request, "unknown to this dialect: {what}");
        }
        let seq = state.journal.open(entry);
        shared.arrivals.notify_waiters();
        InFlight {
            shared: shared.clone(),
            seq,
            service,
            peer,
            credential,
            call,
            unknown,
            names: OnceCell::new(),
            line: request.line(),
            youngest_barrier: state.barriers.raised(),
            waits_at: None,
            twist: None,
        }
    }

    /// Rejects unknown callers and incomplete calls; otherwise begins.
    fn admit(
        &mut self,
        state: &mut State,
        now: Duration,
        identity: &Identity,
        body: Body,
        run: &mut Pending,
    ) -> Step {
        match (identity, body) {
            (_, Body::BrokenOff) => {
                self.close(state, now, Outcome::Abandoned);
                Step::Close
            }
            (Identity::Unknown, _) => self.deny(state, now, Denial::Unauthenticated),
            (Identity::Rejected(denial), _) => self.deny(state, now, denial.clone()),
            (_, Body::TooLong) => self.deny(state, now, Denial::TooLarge { limit_bytes: BODY_LIMIT_BYTES }),
            (Identity::Known(_) | Identity::Anybody, Body::Complete) => self.begin(state, now, run),
        }
    }

    /// Looks for faults, then continues.
    fn begin(&mut self, state: &mut State, now: Duration, run: &mut Pending) -> Step {
        let State { cloud, faults, .. } = state;
        let Some(hit) = faults.hit(now, |matching| self.is_meant(cloud, matching)) else {
            return match state.cloud.latency() {
                Duration::ZERO => self.proceed(state, now, run),
                latency => Step::Wait(latency),
            };
        };
        let fault = hit.id;
        if let Some(twist) = Twist::of(&hit) {
            self.twist = Some((fault, twist));
            return self.proceed(state, now, run);
        }
        match hit.effect {
            Effect::Status { status, retry_after_s } => {
                self.close(state, now, Outcome::Faulted { status: Some(status), fault });
                Step::Answer(self.shared.dialect.refuse(Denial::Fault { status, retry_after_s }))
            }
            Effect::Malformed => {
                let answer = self.shared.dialect.malformed();
                self.close(state, now, Outcome::Faulted { status: Some(answer.status.as_u16()), fault });
                Step::Answer(answer)
            }
            Effect::Refuse => {
                self.close(state, now, Outcome::Faulted { status: None, fault });
                Step::Close
            }
            Effect::Hang { ms } => {
                state.journal.mark(self.seq, Outcome::Faulted { status: None, fault });
                Step::Hang(ms.map(Duration::from_millis))
            }
            Effect::Latency { ms } => Step::Wait(Duration::from_millis(ms)),
            _ => self.proceed(state, now, run),
        }
    }

    /// Continues after something has held the call.
    fn resume(&mut self, run: &mut Pending) -> Step {
        let shared = self.shared.clone();
        let mut state = shared.state();
        self.proceed(&mut state, shared.now(), run)
    }

    /// Waits at the next barrier, or takes effect.
    fn proceed(&mut self, state: &mut State, now: Duration, run: &mut Pending) -> Step {
        let State { cloud, barriers, .. } = state;
        if let Some(place) = barriers.arrive(self.youngest_barrier, |matching| self.is_meant(cloud, matching))
        {
            self.waits_at = Some(place.barrier);
            return Step::WaitAt(place);
        }
        if let (Some(what), Unknown::Refused) = (&self.unknown, self.shared.unknown) {
            return self.deny(state, now, Denial::Unknown { what: what.clone() });
        }
        let Some(run) = run.take() else { return Step::Close };
        let before = state.cloud.parts_of(self.call.op, &self.call.named);
        let (answer, fault) = match self.twist.take() {
            None => (run(&mut state.cloud, now), None),
            Some((fault, twist)) => {
                let lost = if let Twist::LoseAnswer(after) = twist { Some(after) } else { None };
                let (answer, seen) = twist.carry_out(run, &mut state.cloud, now);
                if let Some(after) = lost {
                    self.created(state, &answer);
                    self.changed(state, before, &answer);
                    state.journal.mark(self.seq, Outcome::Faulted { status: None, fault });
                    return after.map_or(Step::Close, |time| Step::Hang(Some(time)));
                }
                (answer, seen.then_some(fault))
            }
        };
        self.created(state, &answer);
        self.changed(state, before, &answer);
        let status = answer.status.as_u16();
        let outcome = match fault {
            Some(fault) => Outcome::Faulted { status: Some(status), fault },
            None => Outcome::Answered { status },
        };
        self.close(state, now, outcome);
        Step::Answer(answer)
    }

    fn created(&self, state: &mut State, answer: &Answer) {
        if let Some(id) = &answer.created {
            state.journal.created(self.seq, id.clone());
        }
    }

    /// Records how a write changed the load balancers that it is about; `before` is their earlier state.
    fn changed(&self, state: &mut State, before: Option<LbParts>, answer: &Answer) {
        let Some(before) = before else { return };
        let mut named = self.call.named.clone();
        named.extend(answer.created.clone());
        named.extend(before.load_balancers.iter().map(|lb| lb.id.clone()));
        if let Some(after) = state.cloud.parts_of(self.call.op, &named) {
            state.journal.changed(self.seq, before, after);
        }
    }

    fn deny(&self, state: &mut State, now: Duration, denial: Denial) -> Step {
        let answer = self.shared.dialect.refuse(denial);
        self.close(state, now, Outcome::Answered { status: answer.status.as_u16() });
        Step::Answer(answer)
    }

    fn close(&self, state: &mut State, now: Duration, outcome: Outcome) {
        state.journal.close(self.seq, now, outcome);
    }

    /// All names of its object, computed when they are first needed.
    fn names(&self, cloud: &Cloud) -> &BTreeSet<String> {
        self.names.get_or_init(|| cloud.names_of(self.call.op, &self.call.named))
    }

    fn is_meant(&self, cloud: &Cloud, matching: &Match) -> bool {
        let Match { ops, resource, credential, peer, from_page, request: _ } = matching;
        // A machine has the metadata service next to it: an outage or a throttled account does not concern it.
        (self.service == Service::Api || !matching.is_general())
            && (ops.is_empty() || ops.contains(&self.call.op))
            && credential.as_ref().is_none_or(|name| self.credential.as_deref() == Some(name.as_str()))
            && peer.is_none_or(|peer| peer.to_canonical() == self.peer)
            && from_page.is_none_or(|page| self.call.page >= page)
            && matching.fits_request(&self.line)
            && resource.as_ref().is_none_or(|wanted| self.names(cloud).contains(wanted))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if let Some(barrier) = self.waits_at {
            state.barriers.leave(barrier);
        }
        // Changes nothing for a call that was answered: only the first end counts.
        self.close(&mut state, self.shared.now(), Outcome::Abandoned);
    }
}
