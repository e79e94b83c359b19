//! A container's output: bounded, of the current run and the one before.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;

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
    /// How many lines were there before the oldest that is kept.
    forgotten: u64,
    /// Whether nothing will come any more.
    ended: bool,
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
            self.forgotten = self.forgotten.saturating_add(1);
        }
    }

    fn lines(&self) -> impl Iterator<Item = LogLine> {
        let line = |(at, bytes): &(Timestamp, Vec<u8>)| LogLine {
            at: *at,
            text: String::from_utf8_lossy(bytes).into_owned(),
        };
        self.lines.iter().map(line)
    }
}

/// The output of one run of a container.
#[derive(Debug, Clone)]
pub(crate) struct Log(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    tail: Mutex<Tail>,
    limit: usize,
    grown: watch::Sender<()>,
}

impl Log {
    /// An empty log that keeps at most this many bytes.
    pub(crate) fn new(limit: usize) -> Log {
        Log(Arc::new(Inner { tail: Mutex::default(), limit, grown: watch::Sender::new(()) }))
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.0.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to the log; the oldest bytes make room.
    pub(crate) fn write(&self, bytes: &[u8]) {
        self.tail().push(Timestamp::now(), bytes, self.0.limit);
        self.0.grown.send_replace(());
    }

    /// The run is over, and everything it wrote is here.
    pub(crate) fn end(&self) {
        self.tail().ended = true;
        self.0.grown.send_replace(());
    }

    /// What is kept, line by line.
    pub(crate) fn lines(&self) -> Vec<LogLine> {
        self.tail().lines().collect()
    }

    /// A reader of everything that is kept and that comes.
    pub(crate) fn follow(&self) -> LogReader {
        LogReader { log: self.clone(), grown: self.0.grown.subscribe(), next: 0 }
    }

    /// Reads a program's output and errors into the log, in the order in which they come. The log ends with both.
    pub(crate) fn take<O, E>(&self, tasks: &Tasks, output: Option<O>, errors: Option<E>)
    where
        O: AsyncRead + Unpin + Send + 'static,
        E: AsyncRead + Unpin + Send + 'static,
    {
        let ending = Arc::new(Ending(self.clone()));
        if let Some(output) = output {
            tasks.spawn(ending.clone().read(output));
        }
        if let Some(errors) = errors {
            tasks.spawn(ending.read(errors));
        }
    }
}

/// Ends a log when the last who writes to it is gone.
struct Ending(Log);

impl Ending {
    async fn read(self: Arc<Self>, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = vec![0_u8; 16 << 10];
        while let Ok(count) = stream.read(&mut buffer).await
            && count > 0
        {
            self.0.write(&buffer[..count]);
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Reads the output of one run of a container as it grows. One that is slower than the container misses the lines that
/// are not kept.
#[derive(Debug)]
pub struct LogReader {
    log: Log,
    grown: watch::Receiver<()>,
    /// The number of the next line to read.
    next: u64,
}

impl LogReader {
    /// The whole lines that are kept and were not read yet; perhaps none.
    pub fn try_next(&mut self) -> Vec<LogLine> {
        self.read().0
    }

    /// Waits for lines; none when the run is over and all were read. May be dropped at any time without losing one.
    pub async fn next(&mut self) -> Vec<LogLine> {
        loop {
            let (lines, ended) = self.read();
            if ended || !lines.is_empty() {
                return lines;
            }
            if self.grown.changed().await.is_err() {
                // The sender lives in the log we hold, so this does not happen.
                return Vec::new();
            }
        }
    }

    fn read(&mut self) -> (Vec<LogLine>, bool) {
        self.grown.mark_unchanged();
        let tail = self.log.tail();
        let first = usize::try_from(self.next.saturating_sub(tail.forgotten)).unwrap_or(usize::MAX);
        let mut lines: Vec<_> = tail.lines().skip(first).collect();
        // A line without its end may still grow.
        if !tail.ended && lines.last().is_some_and(|line| !line.text.ends_with('\n')) {
            lines.pop();
        }
        self.next = self.next.max(tail.forgotten) + lines.len() as u64;
        (lines, tail.ended)
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

    /// A reader of the log of a container's current run.
    pub(crate) fn follow(&self, pod: &Key, container: &str) -> Option<LogReader> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.logs.get(&(pod.clone(), container.to_owned())).map(|(current, _)| current.follow())
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

    #[tokio::test]
    async fn readers_get_whole_lines_once_and_the_rest_at_the_end() {
        let texts = |lines: Vec<LogLine>| lines.into_iter().map(|line| line.text).collect::<Vec<_>>();
        let log = Log::new(20);
        log.write(b"one\ntw");
        let mut reader = log.follow();
        assert_eq!(texts(reader.try_next()), ["one\n"]);
        assert!(reader.try_next().is_empty());
        log.write(b"o\nthree\n");
        assert_eq!(texts(reader.next().await), ["two\n", "three\n"]);
        // More than is kept: the first of these lines is gone before it is read.
        log.write(b"forgotten\nkept\nmore than ten");
        assert_eq!(texts(reader.try_next()), ["kept\n"]);
        log.end();
        assert_eq!(texts(reader.next().await), ["more than ten"]);
        assert!(reader.next().await.is_empty());
    }
}
