//! Controllers that act only in periodic rounds, not when something happens.

use std::time::Duration;

use tokio::time::Instant;

/// The moments of the rounds: always one period apart, the first one somewhere in the first period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    first: Instant,
    period: Duration,
}

impl Rounds {
    /// Rounds that begin now. The same seed gives a controller the same moments.
    pub(crate) fn new(controller: &str, period: Duration, seed: u64) -> Rounds {
        Rounds { first: Instant::now() + share(period, hash(controller, seed)), period }
    }

    /// The first round at `due` or after it.
    pub(crate) fn next(&self, due: Instant) -> Instant {
        if self.period.is_zero() {
            return due;
        }
        let since = due.saturating_duration_since(self.first).as_nanos();
        let rounds = since.div_ceil(self.period.as_nanos());
        self.first + self.period * u32::try_from(rounds).unwrap_or(u32::MAX)
    }

    /// How long it is until the round that handles what is due at `due`; `None` if that is now or in the past.
    pub(crate) fn wait(&self, due: Instant) -> Option<Duration> {
        let left = self.next(due).saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}

/// The share of a period that a number stands for, as a part of all numbers.
fn share(period: Duration, of: u64) -> Duration {
    period.mul_f64(of as f64 / u64::MAX as f64)
}

/// FNV-1a over the name and the seed, with mixed bits: similar seeds give very different values.
fn hash(name: &str, seed: u64) -> u64 {
    let bytes = name.bytes().chain(seed.to_le_bytes());
    let sum = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (sum ^ (sum >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ (mixed >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn work_due_between_two_rounds_waits_for_the_second() {
        let rounds = Rounds::new("node-lifecycle", PERIOD, 7);
        let first = rounds.first;
        assert!(first >= Instant::now() && first <= Instant::now() + PERIOD);
        assert_eq!(rounds.next(Instant::now()), first);
        assert_eq!(rounds.next(first), first);
        assert_eq!(rounds.next(first + Duration::from_millis(1)), first + PERIOD);
        assert_eq!(rounds.next(first + PERIOD * 3), first + PERIOD * 3);
        tokio::time::advance(PERIOD * 2).await;
        assert_eq!(rounds.wait(first), None);
        assert!(rounds.wait(Instant::now()).is_none_or(|left| left <= PERIOD));
    }

    #[tokio::test(start_paused = true)]
    async fn a_seed_gives_the_same_moments_again_and_others_spread_over_the_period() {
        let phase = |name: &str, seed: u64| Rounds::new(name, PERIOD, seed).first - Instant::now();
        assert_eq!(phase("a", 1), phase("a", 1));
        assert_ne!(phase("a", 1), phase("b", 1));
        let early = (0..1000).filter(|seed| phase("a", *seed) < PERIOD / 4).count();
        assert!((200..300).contains(&early), "{early} of 1000 in the first quarter");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_period_nothing_waits() {
        let rounds = Rounds::new("a", Duration::ZERO, 3);
        assert_eq!(rounds.wait(Instant::now()), None);
    }
}
