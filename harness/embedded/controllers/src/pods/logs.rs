//! A container's output: bounded, of the current run and the one before.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::cache::Key;
use crate::tasks::Tasks;

/// How many Pods that are gone keep their logs, for whoever asks afterwards.
const GONE_KEPT: usize = 64;

/// The last so many bytes of what was written.
#[derive(Debug, Default)]
struct Tail {
    bytes: VecDeque<u8>,
    dropped: u64,
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
        tail.bytes.extend(bytes);
        let excess = tail.bytes.len().saturating_sub(self.limit);
        tail.bytes.drain(..excess);
        tail.dropped = tail.dropped.saturating_add(u64::try_from(excess).unwrap_or(u64::MAX));
    }

    /// What is kept, as text. When something had to go, what is left begins with a whole line.
    pub(crate) fn text(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = tail.bytes.iter().copied().collect();
        let start = if tail.dropped > 0 {
            bytes.iter().position(|byte| *byte == b'\n').map_or(0, |newline| newline + 1)
        } else {
            0
        };
        String::from_utf8_lossy(&bytes[start..]).into_owned()
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
    pub(crate) fn current(&self, pod: &Key, container: &str) -> Option<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.logs.get(&(pod.clone(), container.to_owned())).map(|(current, _)| current.text())
    }

    /// The log of a container's run before the current one.
    pub(crate) fn previous(&self, pod: &Key, container: &str) -> Option<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.logs.get(&(pod.clone(), container.to_owned()))?.1.as_ref().map(Log::text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_lines_go_first() {
        let log = Log::new(10);
        log.write(b"first\n");
        assert_eq!(log.text(), "first\n");
        log.write(b"second\n");
        assert_eq!(log.text(), "second\n");
        log.write(&[b'x'; 40]);
        assert_eq!(log.text().len(), 10);
    }
}
