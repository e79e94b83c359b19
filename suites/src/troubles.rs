//! What a cloud may do instead of answering a look-up (contract NODE-INIT-10, NODE-LIFE-03).

use harness::check::Stop;
use harness::cloud::{ActiveFault, Effect, Fault, Match, Op};
use harness::cx::CheckCx;
use harness::probe::ReadError;

/// How long a look-up meets silence before its connection is closed. A client with a shorter deadline times out by
/// itself. It is short because a CCM with one worker does nothing else meanwhile, for no other check either.
const SILENCE_MS: u64 = 3_000;

/// One kind of trouble: what the calls meet, one effect after the other; the last one stays.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    /// What failures call it.
    pub name: &'static str,
    effects: Vec<Effect>,
}

const fn status(status: u16) -> Effect {
    Effect::Status { status, retry_after_s: None }
}

/// Everything that can go wrong with a look-up but that the machine is gone.
pub(crate) fn all() -> Vec<Trouble> {
    let one = |name, effect| Trouble { name, effects: vec![effect] };
    vec![
        one("401", status(401)),
        one("403", status(403)),
        one("429", Effect::Status { status: 429, retry_after_s: Some(1) }),
        one("500", status(500)),
        one("503", status(503)),
        one("refused", Effect::Refuse),
        one("malformed", Effect::Malformed),
        Trouble { name: "silence", effects: vec![Effect::Hang { ms: Some(SILENCE_MS) }, status(504)] },
    ]
}

/// A trouble in force on some objects.
#[derive(Debug)]
pub(crate) struct InForce {
    /// What failures call it.
    pub name: &'static str,
    faults: Vec<ActiveFault>,
}

impl Trouble {
    /// Puts it in force for these operations on an object that goes by these keys.
    pub(crate) async fn inject(self, cx: &CheckCx, ops: &[Op], keys: &[&str]) -> Result<InForce, Stop> {
        let mut faults = Vec::new();
        for key in keys {
            let matching = Match { ops: ops.to_vec(), resource: Some((*key).to_owned()), ..Match::default() };
            let last = self.effects.len() - 1;
            for (position, effect) in self.effects.iter().enumerate() {
                let calls = (position < last).then_some(1);
                let fault = Fault { matching: matching.clone(), effect: effect.clone(), calls, for_ms: None };
                faults.push(cx.inject(fault).await?);
            }
        }
        Ok(InForce { name: self.name, faults })
    }
}

impl InForce {
    /// How many calls have met it.
    pub(crate) async fn hits(&self, cx: &CheckCx) -> Result<u64, ReadError> {
        let mut hits = 0;
        for fault in &self.faults {
            hits += cx.hits(fault).await?;
        }
        Ok(hits)
    }

    /// Ends it.
    pub(crate) async fn clear(&self, cx: &CheckCx) -> Result<(), Stop> {
        for fault in &self.faults {
            cx.clear(fault).await?;
        }
        Ok(())
    }
}
