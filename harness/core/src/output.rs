//! All text that leaves the process: standard output, standard error, and files for others. It never contains a secret of
//! the run, or anything that a terminal or a workflow runner would execute.

mod harmless;
mod lists;
mod tones;

use crate::files;
use crate::screen::{self, Stream};
use crate::secrets;
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use std::fs::Permissions;
use std::io::{IsTerminal, PipeReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

pub use harmless::is_obeyed;
pub use harmless::plain;
use harmless::{is_in_a_workflow, with_colours, without_commands};
pub use lists::first_of;
pub use tones::{Tone, unstyled};
use tones::{styled, wrapped};

/// A line is passed on before its end once it has more than this many bytes.
const LONGEST_LINE: usize = 1 << 20;
/// The first error of writing to standard output.
static BROKEN: Mutex<Option<Broken>> = Mutex::new(None);
/// Whether there was one.
static IS_BROKEN: AtomicBool = AtomicBool::new(false);

/// Why standard output cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The reason as text.
    pub why: String,
    /// Whether its reader has closed it (`| head`), which is not an error for commands that only print.
    pub unread: bool,
}

/// Writes to standard output. Errors are reported by [`broken`]; later output is lost.
pub fn out(text: &str) {
    to_stdout(shown(text).as_bytes());
}

/// Writes a text for people to standard output: lines that are too long for the terminal are wrapped. Not for text that
/// programs read or users paste.
pub fn out_wrapped(text: &str) {
    to_stdout(wrapped(&shown(text), screen::columns(Stream::Out)).as_bytes());
}

/// Writes a text with colours to standard output, which gets them if it takes them.
pub fn out_styled(text: &str) {
    let text = wrapped(&styled(text, out_takes_colours()), screen::columns(Stream::Out));
    to_stdout(guarded(text).as_bytes());
}

/// Writes a line with colours to standard error, which gets them if it takes them.
pub fn err_styled(line: &str) {
    let takes = takes_colours(&std::io::stderr());
    let line = wrapped(&styled(line, takes), screen::columns(Stream::Err));
    let _ = screen::write(Stream::Err, format!("{}\n", guarded(line)).as_bytes());
}

/// Writes another program's output to standard output unchanged, secrets included: for programs that stand between two
/// others.
pub fn handed_on(bytes: &[u8]) {
    to_stdout(bytes);
}

/// Writes a line to standard error. It is not an error if that is closed.
pub fn err(line: &str) {
    let line = plain(line);
    for (word, tone) in [("error:", Tone::Bad), ("warning:", Tone::Odd)] {
        if let Some(rest) = line.strip_prefix(word) {
            return err_styled(&format!("{}{rest}", tone.paint(word)));
        }
    }
    err_styled(&line);
}

/// Writes workflow commands, one per line, to standard output, where the checks are. Their contents may be foreign text.
pub fn workflow_commands(commands: &str) {
    for command in commands.lines() {
        let line = secrets::redact(plain(command).into_owned());
        let _ = screen::write(Stream::Out, format!("{line}\n").as_bytes());
    }
}

/// A line that is safe to show, for code that draws on the terminal itself.
pub fn shown(line: &str) -> String {
    guarded(plain(line).into_owned())
}

/// A text without secrets, and without what the runner of a workflow would execute.
fn guarded(text: String) -> String {
    let redacted = secrets::redact(text);
    if is_in_a_workflow() { without_commands(&redacted).into_owned() } else { redacted }
}

/// Writes a file completely or not at all, with the user's default permissions.
///
/// # Errors
/// It cannot be written.
pub fn file(path: &Path, text: String) -> std::io::Result<()> {
    if path.is_dir() {
        return Err(std::io::Error::new(std::io::ErrorKind::IsADirectory, "is a folder; name a file"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    let file = builder.permissions(Permissions::from_mode(0o644)).tempfile_in(folder);
    let mut file = file.map_err(files::not_written)?;
    file.write_all(secrets::redact(text).as_bytes())?;
    file.persist(path).map(drop).map_err(|error| files::not_written(error.error))
}

/// Copies a pipe to standard output, to its end, and keeps colours. Calls `failed` as soon as that is not possible, but
/// continues to read the pipe.
pub fn pass_on(mut from: PipeReader, failed: impl FnOnce(&Broken)) {
    let (mut text, mut part, mut failed) = (Vec::new(), [0; 4096], Some(failed));
    loop {
        let length = from.read(&mut part).unwrap_or(0);
        text.extend_from_slice(&part[..length]);
        // An incomplete line is shown too, as it says which test is running. Not if more of it is already available, and
        // not in a workflow, where its beginning determines whether it is a command.
        let waits = length == part.len() || (length > 0 && is_in_a_workflow());
        let shown = if waits && text.len() < LONGEST_LINE {
            text.iter().rposition(|sign| *sign == b'\n').map_or(0, |at| at + 1)
        } else {
            text.len()
        };
        let plain = with_colours(&String::from_utf8_lossy(&text[..shown])).into_owned();
        let mut safe = secrets::redact(plain);
        if is_in_a_workflow() {
            safe = without_commands(&safe).into_owned();
        }
        to_stdout(safe.as_bytes());
        text.drain(..shown);
        if IS_BROKEN.load(Ordering::Relaxed)
            && let Some(broken) = broken()
            && let Some(failed) = failed.take()
        {
            failed(&broken);
        }
        if length == 0 {
            note(screen::release());
            return;
        }
    }
}

fn to_stdout(bytes: &[u8]) {
    if IS_BROKEN.load(Ordering::Relaxed) {
        return;
    }
    note(screen::write(Stream::Out, bytes));
}

/// Records why standard output could not be written.
fn note(written: std::io::Result<()>) {
    if let Err(error) = written {
        IS_BROKEN.store(true, Ordering::Relaxed);
        let why = format!("standard output cannot be written: {}", files::why(&error));
        let unread = error.kind() == std::io::ErrorKind::BrokenPipe;
        *BROKEN.lock().expect("no holder of this lock panics") = Some(Broken { why, unread });
    }
}

/// Why standard output could not be written, if so.
pub fn broken() -> Option<Broken> {
    BROKEN.lock().expect("no holder of this lock panics").clone()
}

/// The width of the terminal that standard output is, in columns; 0 if it is not a terminal.
pub fn columns() -> usize {
    screen::columns(Stream::Out)
}

/// Whether standard error is a terminal.
pub fn err_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Whether standard output takes colours: if the user wants them (`--color`), and otherwise if it is a terminal with
/// colours and they are not disabled (`NO_COLOR`, `TERM=dumb`, `CLICOLOR=0`).
pub fn out_takes_colours() -> bool {
    takes_colours(&std::io::stdout())
}

fn takes_colours(stream: &impl RawStream) -> bool {
    match ColorChoice::global() {
        ColorChoice::Always | ColorChoice::AlwaysAnsi => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => stream.is_terminal() && AutoStream::choice(stream) != ColorChoice::Never,
    }
}

/// Sets whether output has colours, for the whole process; `None` leaves it to the terminal and the environment.
pub fn use_colours(wanted: Option<bool>) {
    match wanted {
        Some(true) => ColorChoice::Always.write_global(),
        Some(false) => ColorChoice::Never.write_global(),
        None => ColorChoice::Auto.write_global(),
    }
}

/// Standard output, for code that writes to a given writer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Out;

impl Write for Out {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        out(&String::from_utf8_lossy(text));
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes text for people to standard output ([`out_wrapped`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct WrappedOut;

impl Write for WrappedOut {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        out_wrapped(&String::from_utf8_lossy(text));
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes a logger's output, one entry at a time, to standard error.
#[derive(Clone, Copy, Debug, Default)]
pub struct Log;

impl Write for Log {
    fn write(&mut self, entry: &[u8]) -> std::io::Result<usize> {
        err(String::from_utf8_lossy(entry).trim_end_matches('\n'));
        Ok(entry.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_whole_and_without_secrets() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f.yaml");
        secrets::know("Jd83kLs02mNvQp56");
        file(&path, "token: Jd83kLs02mNvQp56\n".to_owned()).expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "token: <redacted>\n");
        assert!(file(&folder.path().join("absent/f"), String::new()).is_err());
    }
}
