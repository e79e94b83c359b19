//! The ways in which a cloud can fail to answer a look-up (contract NODE-INIT-10, NODE-LIFE-03).

use harness_testkit::prelude::*;
use std::time::Duration;

/// How long a look-up gets no answer before its connection is closed. A client with a shorter deadline times
/// out by itself. The time is short because a CCM with one worker does nothing else until then, which would
/// hold up other checks as well.
const SILENCE_MS: u64 = 3_000;

/// How many times a look-up is answered and the next one fails.
const HALVES: usize = 20;

/// Answers every other call; the others fail with this status. After `HALVES` pairs, all calls fail.
pub fn every_other_fails(with: u16) -> Vec<Effect> {
    [Effect::Latency { ms: 0 }, status(with)].into_iter().cycle().take(2 * HALVES).collect()
}

/// One way to fail.
pub struct Failure {
    /// The name of the failure, in ids and texts.
    pub name: &'static str,
    /// The effects that calls meet, one after the other; the last one stays.
    pub effects: &'static [Effect],
}

const fn status(status: u16) -> Effect {
    Effect::Status { status, retry_after_s: None }
}

/// How long a look-up gets no answer in the longest case: longer than any client waits.
pub const PATIENCE: Duration = Duration::from_secs(35);

/// Answers no call for `PATIENCE`.
pub fn no_answer() -> [Effect; 1] {
    [Effect::Hang { ms: Some(u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX)) }]
}

/// No answer at first, and then a gateway error.
pub const SILENCE: &[Effect] = &[Effect::Hang { ms: Some(SILENCE_MS) }, status(504)];

/// Every way in which a look-up can fail, except that the machine is gone.
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

/// Makes one check for each failure. All are claims of one contract row; `run` gets the index of the failure.
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

/// Marks the checks of [`for_each_failure`] that make a loop of the CCM wait for look-ups before it continues
/// with other objects.
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

/// Explains why a fault of look-ups was met by no call: the CCM looked nothing up, which is its failure,
/// unless it lists machines. In that case the checks with failing lists show what this check cannot show.
pub fn unless_it_lists(cx: &CheckCx, stop: CheckError) -> CheckError {
    match cx.cloud().calls().of(&[Op::InstanceList]).now() {
        Ok(lists) if !lists.is_empty() => CheckError::NotObservable(
            "the CCM lists instances instead of looking one up; NODE-INIT-10.list, the lists of NODE-LIFE-03 and NODE-LIFE-11 are for it"
                .to_owned(),
        ),
        _ => stop,
    }
}
