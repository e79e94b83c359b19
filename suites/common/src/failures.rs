//! What a cloud may do instead of answering a look-up (contract NODE-INIT-10, NODE-LIFE-03).

use harness_testkit::prelude::*;
use std::time::Duration;

/// How long a look-up meets silence before its connection is closed. A client with a shorter deadline times out by
/// itself. It is short because a CCM with one worker does nothing else meanwhile, for no other check either.
const SILENCE_MS: u64 = 3_000;

/// How often a look-up is answered and the next one fails.
const HALVES: usize = 20;

/// Every other call is answered; the others fail with this status, and in the end all of them.
pub fn every_other_fails(with: u16) -> Vec<Effect> {
    [Effect::Latency { ms: 0 }, status(with)].into_iter().cycle().take(2 * HALVES).collect()
}

/// One way to fail.
pub struct Failure {
    /// Its name, in ids and texts.
    pub name: &'static str,
    /// What calls meet, one after the other; the last stays.
    pub effects: &'static [Effect],
}

const fn status(status: u16) -> Effect {
    Effect::Status { status, retry_after_s: None }
}

/// How long a look-up is not answered at all: longer than any client waits.
pub const PATIENCE: Duration = Duration::from_secs(35);

/// No call is answered for that long.
pub fn no_answer() -> [Effect; 1] {
    [Effect::Hang { ms: Some(u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX)) }]
}

/// No answer at first, and then a gateway's word that there is none.
pub const SILENCE: &[Effect] = &[Effect::Hang { ms: Some(SILENCE_MS) }, status(504)];

/// Everything that can go wrong with a look-up but that the machine is gone.
pub const FAILURES: [Failure; 8] = [
    Failure { name: "401", effects: &[status(401)] },
    Failure { name: "403", effects: &[status(403)] },
    Failure { name: "429", effects: &[Effect::Status { status: 429, retry_after_s: Some(1) }] },
    Failure { name: "500", effects: &[status(500)] },
    Failure { name: "503", effects: &[status(503)] },
    Failure { name: "refused", effects: &[Effect::Refuse] },
    Failure { name: "malformed", effects: &[Effect::Malformed] },
    Failure { name: "silence", effects: SILENCE },
];

/// A check for each failure, all of them claims of one contract row; `run` is given the failure's place.
pub const fn for_each_failure(
    row: &'static str,
    takes_s: u32,
    run: for<'a> fn(&'a CheckCx, usize) -> Body<'a>,
) -> [Check; FAILURES.len()] {
    let first = of_failure(row, takes_s, run, 0);
    let (mut checks, mut at) = ([first; FAILURES.len()], 1);
    while at < FAILURES.len() {
        checks[at] = of_failure(row, takes_s, run, at);
        at += 1;
    }
    checks
}

/// The same for look-ups that a loop of the CCM waits for before it goes on with other objects.
pub const fn holding_up_a_loop(mut checks: [Check; FAILURES.len()]) -> [Check; FAILURES.len()] {
    let mut at = 0;
    while at < FAILURES.len() {
        checks[at] = checks[at].holds_up_a_loop();
        at += 1;
    }
    checks
}

const fn of_failure(
    row: &'static str,
    takes_s: u32,
    run: for<'a> fn(&'a CheckCx, usize) -> Body<'a>,
    at: usize,
) -> Check {
    let id = CheckId::of_claim(row, FAILURES[at].name);
    Check::row(id, run, at).needs(&[Capability::Instances]).with(&[Facility::Faults]).takes(takes_s)
}

/// Why a fault of look-ups met nothing: the CCM looked nothing up, which is its failure, unless it lists machines. Then
/// what is to be seen here is to be seen where lists fail.
pub fn unless_it_lists(cx: &CheckCx, stop: CheckError) -> CheckError {
    match cx.cloud().calls().of(&[Op::InstanceList]).now() {
        Ok(lists) if !lists.is_empty() => CheckError::NotObservable(
            "the CCM lists instances instead of looking one up; NODE-INIT-10.list, the lists of NODE-LIFE-03 and NODE-LIFE-11 are for it"
                .to_owned(),
        ),
        _ => stop,
    }
}
