//! `events.jsonl`: written line by line, read back as far as it is whole.

use super::event::{Event, Payload, SCHEMA};
use crate::files;
use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Name of the stream's file in the output folder.
pub const EVENTS_FILE: &str = "events.jsonl";

/// Name of the stream's file where it is packed (gzip), as submitted reports have it.
pub const PACKED_EVENTS_FILE: &str = "events.jsonl.gz";

/// The largest stream that is read, bytes; of a packed one what comes out of it.
pub const LARGEST_STREAM: u64 = 1 << 30;

/// The largest line a reader takes, bytes; far above what any event needs.
const LONGEST_LINE: u64 = 4 << 20;

/// A file that is no stream of events of this version.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// It cannot be read.
    #[error("{path}: {cause}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// It does not begin as a stream does.
    #[error("{path}: not a stream of events: {why}; it is the events.jsonl of a run's output folder")]
    NotAStream {
        /// The file.
        path: PathBuf,
        /// What stands there.
        why: String,
    },
    /// Another version of the form.
    #[error("{path}: events of the form '{found}'; this version reads '{SCHEMA}'")]
    Version {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: String,
    },
    /// A line in the middle is no event: the file was changed.
    #[error("{path}:{line}: not an event: {why}; a stream is never edited")]
    Broken {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why it is none.
        why: String,
    },
}

/// Every event of a file, in its order. A last line that is not whole is left out: whoever wrote it was cut short, and the
/// stream then lacks its end, too.
///
/// # Errors
/// The file cannot be read, is no stream of this version, or a line before the last is no event.
pub fn read(path: &Path) -> Result<Vec<Event>, StreamError> {
    let unreadable = |cause| StreamError::Unreadable { path: path.to_owned(), cause };
    parse(open_stream(path).map_err(unreadable)?, path)
}

/// The lines of a stream, unpacked where the file is packed, whatever its name.
///
/// # Errors
/// It is not there, is no file, or is too large. What comes out of a packed one beyond [`LARGEST_STREAM`] is cut, and no stream then.
pub fn open_stream(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(files::open(path, LARGEST_STREAM)?);
    if file.fill_buf()?.starts_with(&GZIP) {
        return Ok(Box::new(BufReader::new(MultiGzDecoder::new(file).take(LARGEST_STREAM))));
    }
    Ok(Box::new(file))
}

/// How packed files begin (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];

fn parse(mut stream: impl BufRead, path: &Path) -> Result<Vec<Event>, StreamError> {
    let not_a_stream = |why: String| StreamError::NotAStream { path: path.to_owned(), why };
    let mut events = Vec::new();
    let mut line = Vec::new();
    for at in 1.. {
        line.clear();
        // One line at a time, so that what is no stream takes no memory.
        let length = stream.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
        if length.map_err(|cause| StreamError::Unreadable { path: path.to_owned(), cause })? == 0 {
            break;
        }
        match serde_json::from_slice::<Event>(&line) {
            Ok(event) => events.push(event),
            Err(error) if at == 1 => return Err(head(&line, path).unwrap_or(not_a_stream(error.to_string()))),
            Err(_) if !line.ends_with(b"\n") && (line.len() as u64) < LONGEST_LINE => break,
            Err(error) => {
                return Err(StreamError::Broken { path: path.to_owned(), line: at, why: error.to_string() });
            }
        }
    }
    match events.first().map(|event| &event.event) {
        Some(Payload::RunBegan(head)) if head.schema == SCHEMA => Ok(events),
        Some(Payload::RunBegan(head)) => {
            Err(StreamError::Version { path: path.to_owned(), found: head.schema.clone() })
        }
        Some(_) => Err(not_a_stream("its first event is not the beginning of a run".to_owned())),
        None => Err(not_a_stream("it is empty".to_owned())),
    }
}

/// What a first line says that is no event of this version: perhaps one of another.
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
        line(Payload::Said { text: text.to_owned() })
    }

    fn parsed(text: &str) -> Result<usize, String> {
        let events = parse(text.as_bytes(), Path::new("e.jsonl"));
        events.map(|events| events.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_stream_is_read_to_its_last_whole_line() {
        let whole = begin(SCHEMA) + &said("one") + &said("two");
        assert_eq!(parsed(&whole), Ok(3));
        for cut in whole.len() - said("two").len() + 1..whole.len() - 1 {
            assert_eq!(parsed(&whole[..cut]), Ok(2), "{}", &whole[..cut]);
        }
    }

    #[test]
    fn what_is_no_stream_is_refused_by_name() {
        let refused = |text: &str| parsed(text).expect_err("no stream");
        assert!(refused("").contains("e.jsonl: not a stream of events: it is empty"), "{}", refused(""));
        let other = refused(&begin("ccm-conformance/events/v9"));
        assert!(other.contains("'ccm-conformance/events/v9'"), "{other}");
        let headless = refused(&said("hello"));
        assert!(headless.contains("its first event is not the beginning"), "{headless}");
        assert!(refused("{\"a\":1}\n").contains("not a stream"));
        let edited = refused(&(begin(SCHEMA) + "{\"at_ms\":1}\n" + &said("two")));
        assert!(edited.contains("e.jsonl:2: not an event"), "{edited}");
        let longest = usize::try_from(LONGEST_LINE).expect("a length");
        let endless = refused(&(begin(SCHEMA) + &"x".repeat(longest + 1) + "\n" + &said("two")));
        assert!(endless.contains("e.jsonl:2: not an event"), "{endless}");
    }
}
