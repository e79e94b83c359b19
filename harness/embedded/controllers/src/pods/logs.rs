//! A container's output: bounded, of the current run and the one before.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::cache::Key;
use crate::tasks::Tasks;

/// How many Pods that are gone keep their logs, for whoever asks afterwards.
const GONE_KEPT: usize = 64;

/// A line of a container's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When its first byte came.
    pub at: Timestamp,
    /// The line, with its end where it has one.
    pub text: String,
}

/// The last so many bytes of what was written, in whole lines.
#[derive(Debug, Default)]
struct Tail {
    lines: VecDeque<(Timestamp, Vec<u8>)>,
    bytes: usize,
}

impl Tail {
    fn push(&mut self, now: Timestamp, bytes: &[u8], limit: usize) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.bytes = self.bytes.saturating_add(piece.len());
            match self.lines.back_mut().filter(|(_, line)| !line.ends_with(b"\n")) {
                Some((_, line)) => line.extend_from_slice(piece),
                None => self.lines.push_back((now, piece.to_vec())),
            }
        }
        while self.bytes > limit {
            let Some((at, mut oldest)) = self.lines.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(oldest.len());
            // One line longer than everything that is kept: its end is.
            if self.lines.is_empty() {
                let rest = oldest.split_off(oldest.len().saturating_sub(limit));
                self.bytes = rest.len();
                self.lines.push_back((at, rest));
                return;
            }
        }
    }
}

/// The output of one run of a container.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    tail: Arc<Mutex<Tail>>,
    limit: usize,
}

impl Log {
    /// An empty log that keeps at most this many bytes.
    pub(crate) fn new(limit: usize) -> Log {
        Log { tail: Arc::default(), limit }
    }

    /// Adds to the log; the oldest bytes make room.
    pub(crate) fn write(&self, bytes: &[u8]) {
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.push(Timestamp::now(), bytes, self.limit);
    }

    /// What is kept, line by line.
    pub(crate) fn lines(&self) -> Vec<LogLine> {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let line = |(at, bytes): &(Timestamp, Vec<u8>)| LogLine {
            at: *at,
            text: String::from_utf8_lossy(bytes).into_owned(),
        };
        tail.lines.iter().map(line).collect()
    }

    /// Reads this stream into the log until it ends.
    pub(crate) fn follow(&self, tasks: &Tasks, mut stream: impl AsyncRead + Unpin + Send + 'static) {
        let log = self.clone();
        tasks.spawn(async move {
            let mut buffer = vec![0_u8; 16 << 10];
            while let Ok(count) = stream.read(&mut buffer).await
                && count > 0
            {
                log.write(&buffer[..count]);
            }
        });
    }
}

/// The logs of all containers, also of Pods that have gone lately.
#[derive(Default)]
pub(crate) struct Logs {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    logs: BTreeMap<(Key, String), (Log, Option<Log>)>,
    gone: VecDeque<Key>,
}

impl Logs {
    /// A run begins with this log; the one of the run before is kept too.
    pub(crate) fn keep(&self, pod: &Key, container: &str, current: &Log, previous: Option<Log>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.gone.retain(|gone| gone != pod);
        kept.logs.insert((pod.clone(), container.to_owned()), (current.clone(), previous));
    }

    /// A Pod is gone; its logs stay until many others have gone too.
    pub(crate) fn gone(&self, pod: &Key) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.gone.push_back(pod.clone());
        if kept.gone.len() > GONE_KEPT
            && let Some(oldest) = kept.gone.pop_front()
        {
            kept.logs.retain(|(key, _), _| *key != oldest);
        }
    }

    /// The log of a container's current run.
    pub(crate) fn current(&self, pod: &Key, container: &str) -> Option<Vec<LogLine>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.logs.get(&(pod.clone(), container.to_owned())).map(|(current, _)| current.lines())
    }

    /// The log of a container's run before the current one.
    pub(crate) fn previous(&self, pod: &Key, container: &str) -> Option<Vec<LogLine>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.logs.get(&(pod.clone(), container.to_owned()))?.1.as_ref().map(Log::lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(log: &Log) -> String {
        log.lines().into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn the_oldest_lines_go_first() {
        let log = Log::new(10);
        log.write(b"fir");
        log.write(b"st\n");
        assert_eq!(text(&log), "first\n");
        assert_eq!(log.lines().len(), 1);
        log.write(b"second\n");
        assert_eq!(text(&log), "second\n");
        log.write(&[b'x'; 40]);
        assert_eq!(text(&log), "xxxxxxxxxx");
    }
}
