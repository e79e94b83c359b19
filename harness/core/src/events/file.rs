//! `events.jsonl`: written line by line, and read as far as it is complete.
//!
//! A stream has exactly one form: each line is what [`Event::line`] returns for its event. A line in any other form, such
//! as with other spaces, unknown or repeated keys, or another line end, was not written by a run and is refused. So the
//! digest of the events is the digest of the bytes in the file.

use super::event::{Event, Payload, SCHEMA};
use super::packed::{GZIP, Packed};
use crate::files;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Name of the stream's file in the output folder.
pub const EVENTS_FILE: &str = "events.jsonl";

/// Name of the stream's file when it is packed (gzip), as in submitted reports.
pub const PACKED_EVENTS_FILE: &str = "events.jsonl.gz";

/// Maximum size of a stream, in bytes; for a packed one the unpacked size.
pub const LARGEST_STREAM: u64 = 1 << 30;

/// Maximum length of a line, in bytes; far more than any event needs.
const LONGEST_LINE: u64 = 4 << 20;

/// A file that is not a stream of events of this version.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// It cannot be read.
    #[error("{path}: {}", files::why(cause))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// It does not begin like a stream.
    #[error(
        "{path}: not a stream of events: {why}; the stream of a run is the file events.jsonl in its output folder"
    )]
    NotAStream {
        /// The file.
        path: PathBuf,
        /// Its beginning.
        why: String,
    },
    /// Another version of the form.
    #[error("{path}: the events have schema '{found}', but this version reads '{SCHEMA}'")]
    Version {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: String,
    },
    /// A line in the middle is not an event: the file was changed.
    #[error("{path}:{line}: not an event: {why}; a stream must not be edited")]
    Broken {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The cause.
        why: String,
    },
    /// A line is an event in another form than a run writes.
    #[error(
        "{path}:{line}: the event is not in the form in which a run writes it; a stream must not be edited"
    )]
    Form {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The event that ends the run is followed by an event that is not a message.
    #[error(
        "{path}:{line}: '{kind}' after the end of the run, where only messages are allowed; a stream must not be \
         edited"
    )]
    AfterEnd {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The type of the event.
        kind: String,
    },
    /// The last line is not complete.
    #[error("{path}:{line}: the last line is cut")]
    Torn {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
}

impl StreamError {
    /// Whether the file is a stream of events of this version that a run did not leave in this state: it was cut or
    /// edited.
    pub fn is_of_its_lines(&self) -> bool {
        match self {
            StreamError::Broken { .. }
            | StreamError::Form { .. }
            | StreamError::AfterEnd { .. }
            | StreamError::Torn { .. } => true,
            StreamError::Unreadable { .. } | StreamError::NotAStream { .. } | StreamError::Version { .. } => {
                false
            }
        }
    }
}

/// All events of a file, in order. An incomplete last line is ignored: its writer was interrupted, and the stream then
/// also lacks its end.
///
/// # Errors
/// The file cannot be read, is not a stream of this version, a line before the last is not an event in the form in which
/// a run writes it, or the end of the run is followed by an event that is not a message.
pub fn read(path: &Path) -> Result<Vec<Event>, StreamError> {
    read_lines(path).map(|lines| lines.events)
}

/// All events of a file whose last line is complete.
///
/// # Errors
/// Those of [`read`], and if the last line is cut.
pub fn read_whole(path: &Path) -> Result<Vec<Event>, StreamError> {
    let Lines { events, torn } = read_lines(path)?;
    torn.map_or(Ok(events), |line| Err(StreamError::Torn { path: path.to_owned(), line }))
}

/// The stream in a folder: `events.jsonl`, or `events.jsonl.gz` if only that exists.
pub fn stream_in(folder: &Path) -> PathBuf {
    let (plain, packed) = (folder.join(EVENTS_FILE), folder.join(PACKED_EVENTS_FILE));
    if !plain.exists() && packed.exists() { packed } else { plain }
}

fn read_lines(path: &Path) -> Result<Lines, StreamError> {
    let unreadable = |cause| StreamError::Unreadable { path: path.to_owned(), cause };
    parse(open_stream(path).map_err(unreadable)?, path)
}

/// The lines of a stream, unpacked if the file is packed, whatever its name.
///
/// # Errors
/// It does not exist, is not a file, or is too large. Reading fails if a packed stream has more than [`LARGEST_STREAM`]
/// unpacked bytes, or is followed by other data.
pub fn open_stream(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(files::open(path, LARGEST_STREAM)?);
    if file.fill_buf()?.starts_with(&GZIP) {
        return Ok(Box::new(BufReader::new(Packed::new(file, LARGEST_STREAM))));
    }
    Ok(Box::new(file))
}

/// The contents of a file of events.
struct Lines {
    events: Vec<Event>,
    /// The last line, if it is not complete.
    torn: Option<usize>,
}

fn parse(mut stream: impl BufRead, path: &Path) -> Result<Lines, StreamError> {
    let not_a_stream = |why: String| StreamError::NotAStream { path: path.to_owned(), why };
    let (mut events, mut torn, mut is_over) = (Vec::new(), None, false);
    let mut line = Vec::new();
    for at in 1.. {
        line.clear();
        // One line at a time, so that a file that is not a stream needs no memory.
        let length = stream.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
        if length.map_err(|cause| StreamError::Unreadable { path: path.to_owned(), cause })? == 0 {
            break;
        }
        let path = || path.to_owned();
        let event = match serde_json::from_slice::<Event>(&line) {
            Ok(event) if line == event.line().as_bytes() => event,
            Err(error) if at == 1 => {
                return Err(head(&line, &path()).unwrap_or(not_a_stream(error.to_string())));
            }
            _ if !line.ends_with(b"\n") && (line.len() as u64) < LONGEST_LINE => {
                torn = Some(at);
                break;
            }
            Ok(_) => return Err(StreamError::Form { path: path(), line: at }),
            Err(error) => return Err(StreamError::Broken { path: path(), line: at, why: error.to_string() }),
        };
        if is_over && !event.is_message() {
            return Err(StreamError::AfterEnd { path: path(), line: at, kind: event.kind() });
        }
        is_over |= matches!(event.event, Payload::RunEnded { .. });
        events.push(event);
    }
    match events.first().map(|event| &event.event) {
        Some(Payload::RunBegan(head)) if head.schema == SCHEMA => Ok(Lines { events, torn }),
        Some(Payload::RunBegan(head)) => {
            Err(StreamError::Version { path: path.to_owned(), found: head.schema.clone() })
        }
        Some(_) => Err(not_a_stream("its first event is not the start of a run".to_owned())),
        None => Err(not_a_stream("it is empty".to_owned())),
    }
}

/// The version in a first line that is not an event of this version: perhaps another one.
fn head(line: &[u8], path: &Path) -> Option<StreamError> {
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    let found = value.pointer("/event/schema")?.as_str()?.to_owned();
    (found != SCHEMA).then(|| StreamError::Version { path: path.to_owned(), found })
}

#[cfg(test)]
mod tests {
    use super::super::event::RunBegan;
    use super::*;

    fn line(payload: Payload) -> String {
        let event = Event { at_ms: 1, lane: None, check: None, event: payload };
        serde_json::to_string(&event).expect("plain data") + "\n"
    }

    fn begin(schema: &str) -> String {
        let (started, harness_version) = (String::from("2026-03-01T12:00:00Z"), String::from("0.0.0"));
        line(Payload::RunBegan(RunBegan { schema: schema.to_owned(), started, harness_version }))
    }

    fn said(text: &str) -> String {
        line(Payload::Said { text: text.to_owned(), detail: false })
    }

    fn ended() -> String {
        line(Payload::RunEnded { duration_ms: 1 })
    }

    fn parsed(text: &str) -> Result<usize, String> {
        let lines = parse(text.as_bytes(), Path::new("e.jsonl"));
        lines.map(|lines| lines.events.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_stream_is_read_to_its_last_whole_line() {
        let whole = begin(SCHEMA) + &said("one") + &said("two");
        assert_eq!(parsed(&whole), Ok(3));
        for cut in whole.len() - said("two").len() + 1..whole.len() {
            assert_eq!(parsed(&whole[..cut]), Ok(2), "{}", &whole[..cut]);
        }
    }

    #[test]
    fn a_cut_last_line_is_an_error_for_readers_of_a_whole_stream() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, whole) = (folder.path().join(EVENTS_FILE), begin(SCHEMA) + &ended());
        std::fs::write(&file, &whole).expect("written");
        assert_eq!(read_whole(&file).expect("a whole stream").len(), 2);
        for more in ["{", "{\"at_ms\":1,\"event\":{\"type\":\"said\",\"text\":\"cut\"}}"] {
            std::fs::write(&file, whole.clone() + more).expect("written");
            assert_eq!(read(&file).expect("as far as it is whole").len(), 2);
            let why = read_whole(&file).expect_err("it is cut");
            assert!(why.is_of_its_lines() && why.to_string().contains(":3: the last line is cut"), "{why}");
        }
    }

    #[test]
    fn a_line_in_another_form_than_a_run_writes_it_is_refused() {
        let form = |text: &str| {
            let why = parsed(&(begin(SCHEMA) + text + &said("two"))).expect_err("not written by a run");
            assert!(why.contains("e.jsonl:2: the event is not in the form"), "{text}: {why}");
        };
        let one = said("one");
        form(&one.replace("\":", "\": "));
        form(&one.replace("\n", "\r\n"));
        form(&one.replace("{\"at_ms\"", " {\"at_ms\""));
        form(&one.replace("\"text\"", "\"more\":1,\"text\""));
        form(&one.replace("one", "\\u006fne"));
        form("{\"event\":{\"type\":\"said\",\"text\":\"one\"},\"at_ms\":1}\n");
        form("{\"at_ms\":1,\"event\":{\"text\":\"one\",\"type\":\"said\"}}\n");
        form("{\"at_ms\":1,\"check\":null,\"event\":{\"type\":\"said\",\"text\":\"one\"}}\n");
        let twice = one.replace("\"text\"", "\"text\":\"none\",\"text\"");
        let why = parsed(&(begin(SCHEMA) + &twice)).expect_err("a key is repeated");
        assert!(why.contains("e.jsonl:2: not an event: duplicate field `text`"), "{why}");
    }

    #[test]
    fn only_messages_follow_the_end_of_the_run() {
        let whole = begin(SCHEMA) + &ended() + &said("wrote report.yaml") + &said("wrote report.html");
        assert_eq!(parsed(&whole), Ok(4));
        for (payload, kind) in [
            (Payload::SubjectKnown(Box::default()), "subject-known"),
            (Payload::RunEnded { duration_ms: 2 }, "run-ended"),
            (Payload::ChecksPlanned { checks: Vec::new() }, "checks-planned"),
            (Payload::CcmLeads, "ccm-leads"),
        ] {
            let why = parsed(&(whole.clone() + &line(payload))).expect_err("not a message");
            assert!(why.contains(&format!("e.jsonl:5: '{kind}' after the end of the run")), "{why}");
        }
    }

    #[test]
    fn files_that_are_not_streams_are_refused_by_name() {
        let refused = |text: &str| parsed(text).expect_err("no stream");
        assert!(refused("").contains("e.jsonl: not a stream of events: it is empty"), "{}", refused(""));
        let other = refused(&begin("ccm-conformance/events/v9"));
        assert!(other.contains("'ccm-conformance/events/v9'"), "{other}");
        let headless = refused(&said("hello"));
        assert!(headless.contains("its first event is not the start"), "{headless}");
        assert!(refused("{\"a\":1}\n").contains("not a stream"));
        let edited = refused(&(begin(SCHEMA) + "{\"at_ms\":1}\n" + &said("two")));
        assert!(edited.contains("e.jsonl:2: not an event"), "{edited}");
        let longest = usize::try_from(LONGEST_LINE).expect("a length");
        let endless = refused(&(begin(SCHEMA) + &"x".repeat(longest + 1) + "\n" + &said("two")));
        assert!(endless.contains("e.jsonl:2: not an event"), "{endless}");
    }
}
