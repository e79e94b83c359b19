//! A container's output: limited in size, of the current run and the previous one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;

use embedded_runtime::cache::Key;
use embedded_runtime::tasks::Tasks;

/// How many removed Pods keep their logs, for later requests.
const GONE_KEPT: usize = 64;
/// The cost of a piece in addition to its bytes: many small pieces are not free.
const PIECE_OVERHEAD: usize = 64;

/// A line of a container's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When its first byte came.
    pub at: Timestamp,
    /// The line, including its line end if it has one.
    pub text: String,
}

/// The last bytes that were written, in pieces as they came. A flood of output is only searched for lines
/// when it is read.
#[derive(Debug, Default)]
struct Tail {
    pieces: VecDeque<(Timestamp, Vec<u8>)>,
    /// The memory cost of the pieces.
    cost: usize,
    /// How many bytes came before the oldest one that is kept.
    forgotten: u64,
    /// Whether the last discarded piece did not end a line: then the first line that is kept lacks its beginning.
    headless: bool,
    /// Whether the output is complete.
    ended: bool,
}

impl Tail {
    fn push(&mut self, now: Timestamp, bytes: &[u8], limit: usize) {
        self.cost += bytes.len() + PIECE_OVERHEAD;
        self.pieces.push_back((now, bytes.to_vec()));
        while self.cost > limit && self.pieces.len() > 1 {
            let Some((_, oldest)) = self.pieces.pop_front() else { return };
            self.cost -= oldest.len() + PIECE_OVERHEAD;
            self.forgotten += oldest.len() as u64;
            self.headless = oldest.last().is_some_and(|byte| *byte != b'\n');
        }
    }

    /// The lines from the byte with this number on, each with the time of its first byte, and the number of
    /// the byte after them. A line whose beginning was discarded is left out, unless there is no other.
    fn lines_from(&self, from: u64) -> (Vec<RawLine>, u64) {
        let mut lines: Vec<RawLine> = Vec::new();
        let mut at = self.forgotten;
        for (time, piece) in &self.pieces {
            let skipped = usize::try_from(from.saturating_sub(at)).unwrap_or(usize::MAX).min(piece.len());
            at += piece.len() as u64;
            for part in piece[skipped..].split_inclusive(|byte| *byte == b'\n') {
                match lines.last_mut().filter(|(_, line)| !line.ends_with(b"\n")) {
                    Some((_, line)) => line.extend_from_slice(part),
                    None => lines.push((*time, part.to_vec())),
                }
            }
        }
        if self.headless && from <= self.forgotten && lines.len() > 1 {
            lines.remove(0);
        }
        (lines, at)
    }
}

/// An unchanged line, with the time of its first byte.
type RawLine = (Timestamp, Vec<u8>);

fn shown((at, bytes): RawLine) -> LogLine {
    LogLine { at, text: String::from_utf8_lossy(&bytes).into_owned() }
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

    /// Appends to the log; the oldest bytes are discarded.
    pub(crate) fn write(&self, bytes: &[u8]) {
        self.tail().push(Timestamp::now(), bytes, self.0.limit);
        self.0.grown.send_replace(());
    }

    /// Marks the log as complete: the run has ended.
    pub(crate) fn end(&self) {
        self.tail().ended = true;
        self.0.grown.send_replace(());
    }

    /// Waits until the whole output of the run is here, but no longer than `limit`: processes that a program
    /// left behind may keep its output open for ever.
    pub(crate) async fn complete(&self, limit: Duration) {
        let mut grown = self.0.grown.subscribe();
        let complete = grown.wait_for(|()| self.tail().ended);
        // If the log is not complete, a reader gets the part that is here.
        let _ = tokio::time::timeout(limit, complete).await;
    }

    /// The lines that are kept.
    pub(crate) fn lines(&self) -> Vec<LogLine> {
        self.tail().lines_from(0).0.into_iter().map(shown).collect()
    }

    /// A reader of everything that is kept and of later output.
    pub(crate) fn follow(&self) -> LogReader {
        LogReader { log: self.clone(), grown: self.0.grown.subscribe(), next: 0 }
    }

    /// Reads a program's standard output and standard error into the log, in the order in which they arrive.
    /// The log ends when both end.
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

/// Marks a log as complete when its last writer is gone.
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

/// Reads the output of one run of a container as it grows. A reader that is slower than the container misses
/// the lines that are not kept.
#[derive(Debug)]
pub struct LogReader {
    log: Log,
    grown: watch::Receiver<()>,
    /// The number of the next byte to read, which begins a line.
    next: u64,
}

impl LogReader {
    /// The complete lines that were not read yet; possibly none.
    pub fn try_next(&mut self) -> Vec<LogLine> {
        self.read().0
    }

    /// Waits for lines; returns none when the run is over and all were read. May be dropped at any time
    /// without losing a line.
    pub async fn next(&mut self) -> Vec<LogLine> {
        loop {
            let (lines, ended) = self.read();
            if ended || !lines.is_empty() {
                return lines;
            }
            if self.grown.changed().await.is_err() {
                // The sender is in the log that this reader holds, so this does not happen.
                return Vec::new();
            }
        }
    }

    fn read(&mut self) -> (Vec<LogLine>, bool) {
        self.grown.mark_unchanged();
        let tail = self.log.tail();
        let (mut lines, next) = tail.lines_from(self.next);
        self.next = next;
        // A line without its end may still grow.
        if !tail.ended
            && let Some(unfinished) = lines.pop_if(|(_, line)| !line.ends_with(b"\n"))
        {
            self.next -= unfinished.1.len() as u64;
        }
        (lines.into_iter().map(shown).collect(), tail.ended)
    }
}

/// The logs of all containers, also of recently removed Pods.
#[derive(Default)]
pub(crate) struct Logs {
    kept: Mutex<StoredLogs>,
}

#[derive(Default)]
struct StoredLogs {
    logs: BTreeMap<(Key, String), (Log, Option<Log>)>,
    gone: VecDeque<Key>,
}

impl Logs {
    /// Keeps the log of a new run, and that of the previous run.
    pub(crate) fn keep(&self, pod: &Key, container: &str, current: &Log, previous: Option<Log>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.gone.retain(|gone| gone != pod);
        kept.logs.insert((pod.clone(), container.to_owned()), (current.clone(), previous));
    }

    /// Records that a Pod is gone; its logs stay until many others are gone too.
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

    #[tokio::test(start_paused = true)]
    async fn a_log_is_complete_once_its_writers_are_gone_or_the_wait_is_over() {
        let limit = Duration::from_secs(2);
        let log = Log::new(1 << 10);
        let (mut writer, output) = tokio::io::duplex(64);
        log.take(&Tasks::default(), Some(output), None::<tokio::io::Empty>);
        let began = tokio::time::Instant::now();
        log.complete(limit).await;
        assert_eq!(began.elapsed(), limit, "a writer is left");
        tokio::io::AsyncWriteExt::write_all(&mut writer, b"last words").await.expect("written");
        drop(writer);
        log.complete(limit).await;
        assert_eq!((text(&log).as_str(), began.elapsed()), ("last words", limit));
    }

    #[test]
    fn the_oldest_lines_go_first() {
        let log = Log::new(14 + 2 * PIECE_OVERHEAD);
        log.write(b"fir");
        log.write(b"st\n");
        assert_eq!(text(&log), "first\n");
        assert_eq!(log.lines().len(), 1);
        log.write(b"second\nthi");
        // The rest of the first line is not shown.
        assert_eq!(text(&log), "second\nthi");
        log.write(b"rd\n");
        assert_eq!(text(&log), "second\nthird\n");
        log.write(b"endless");
        assert_eq!(text(&log), "endless");
    }

    #[test]
    fn the_log_of_a_flood_is_bounded_for_any_lines() {
        let limit = 64 << 10;
        for (line, what) in
            [("\n", "empty lines"), ("x", "one line without end"), ("0123456789\n", "short lines")]
        {
            let log = Log::new(limit);
            let flood = line.repeat((16 << 10) / line.len());
            for _ in 0..(4 << 20) / flood.len() {
                log.write(flood.as_bytes());
            }
            let kept = text(&log).len();
            assert!(kept <= limit && kept > limit / 2, "{what}: {kept} bytes are kept");
            let tail = log.tail();
            let held: usize = tail.pieces.iter().map(|(_, bytes)| bytes.capacity() + PIECE_OVERHEAD).sum();
            assert!(held <= limit, "{what}: {held} bytes are held");
        }
    }

    #[tokio::test]
    async fn readers_get_whole_lines_once_and_the_rest_at_the_end() {
        let texts = |lines: Vec<LogLine>| lines.into_iter().map(|line| line.text).collect::<Vec<_>>();
        let log = Log::new(30 + 2 * PIECE_OVERHEAD);
        log.write(b"one\ntw");
        let mut reader = log.follow();
        assert_eq!(texts(reader.try_next()), ["one\n"]);
        assert!(reader.try_next().is_empty());
        log.write(b"o\nthree\n");
        assert_eq!(texts(reader.next().await), ["two\n", "three\n"]);
        // More than is kept: the first of these lines is discarded before it is read.
        for piece in ["forgotten\n", "kept\n", "more than ten"] {
            log.write(piece.as_bytes());
        }
        assert_eq!(texts(reader.try_next()), ["kept\n"]);
        log.end();
        assert_eq!(texts(reader.next().await), ["more than ten"]);
        assert!(reader.next().await.is_empty());
    }
}
