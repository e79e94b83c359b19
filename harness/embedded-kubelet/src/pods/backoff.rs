//! How long a failed container waits until it is restarted: the kubelet's back-off. Pure functions.

use std::time::Duration;

use tokio::time::Instant;

use embedded_runtime::settings::Pace;

/// The back-off of one container.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Backoff {
    /// The current pause and when it was set; `None`: the next restart is immediate.
    entry: Option<(Duration, Instant)>,
}

impl Backoff {
    /// The pause before a container that ended at this time is restarted; zero for a restart at once.
    ///
    /// The first restart is immediate; the following ones wait for the first pause, twice that, and so on.
    /// After a container ran for a long time, the pauses start again from the beginning.
    pub(crate) fn pause_after(&mut self, ended: Instant, pace: &Pace) -> Duration {
        match self.entry {
            Some((pause, since)) if ended.saturating_duration_since(since) <= pace.restart_forgotten => pause,
            _ => {
                self.entry = None;
                Duration::ZERO
            }
        }
    }

    /// Records that the container is started now: the next pause is longer.
    pub(crate) fn started(&mut self, now: Instant, pace: &Pace) {
        let next = self.entry.map_or(pace.restart_first, |(pause, _)| pause.saturating_mul(2));
        self.entry = Some((next.min(pace.restart_longest), now));
    }
}

/// Formats a duration as Go prints it in back-off messages: `10s`, `1m20s`, `5m0s`.
pub(crate) fn go_text(duration: Duration) -> String {
    let (seconds, milliseconds) = (duration.as_secs(), duration.subsec_millis());
    let (hours, minutes) = (seconds / 3600, seconds % 3600 / 60);
    let fraction = if milliseconds == 0 {
        String::new()
    } else {
        format!(".{milliseconds:03}").trim_end_matches('0').to_owned()
    };
    match (hours, minutes, seconds) {
        (0, 0, 0) if milliseconds > 0 => format!("{milliseconds}ms"),
        (0, 0, seconds) => format!("{seconds}{fraction}s"),
        (0, minutes, seconds) => format!("{minutes}m{}{fraction}s", seconds % 60),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{}{fraction}s", seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_the_kubelets() {
        let pace = Pace::default();
        let mut backoff = Backoff::default();
        let mut now = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            // The container is restarted because it ended, and ends again at once.
            let pause = backoff.pause_after(now, &pace);
            pauses.push(pause.as_secs());
            now += pause;
            backoff.started(now, &pace);
        }
        assert_eq!(pauses, [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(
            backoff.pause_after(now + Duration::from_secs(601), &pace),
            Duration::ZERO,
            "it ran well for long"
        );
    }

    #[test]
    fn durations_read_like_gos() {
        let cases = [
            (10_000, "10s"),
            (80_000, "1m20s"),
            (300_000, "5m0s"),
            (100, "100ms"),
            (1500, "1.5s"),
            (0, "0s"),
        ];
        for (milliseconds, text) in cases {
            assert_eq!(go_text(Duration::from_millis(milliseconds)), text);
        }
    }
}
