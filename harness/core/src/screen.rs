//! The terminal, which has one owner: all writes to standard output and standard error go through here, and so does the
//! moving line that shows progress. That line is erased before anything is written, and drawn again below it.
//!
//! It is one line, shorter than the terminal is wide, without a line end and without padding, so that it leaves no remains. An incomplete line of output is shown as part of it, and written once it is complete.

use rustix::termios::tcgetwinsize;
use std::io::{IsTerminal, Write};
use std::sync::{LazyLock, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Interval at which the moving line is drawn.
const EVERY: Duration = Duration::from_millis(120);
/// Maximum length of the moving line, in columns: few windows are narrower.
const LONGEST: usize = 79;
/// A window of at least so many columns is wide.
const WIDE: usize = 100;
/// Maximum length of a line that is held back until it is complete, in bytes.
const HELD_AT_MOST: usize = 1 << 16;
/// Moves to the beginning of the line and erases it.
const ERASE: &[u8] = b"\r\x1b[2K";
const TURNS: [char; 4] = ['|', '/', '-', '\\'];

/// The destination of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Describes the progress of many things in a line of at most so many columns. It must not write to the terminal.
pub type Status = Box<dyn Fn(usize) -> String + Send>;

/// What is on the terminal below all written output.
#[derive(Default)]
struct Line {
    /// The work in progress, and since when.
    stages: Vec<(String, Instant)>,
    /// What is shown instead of the stages.
    status: Option<Status>,
    is_drawn: bool,
    /// An incomplete line of standard output.
    held: Vec<u8>,
    /// Whether the last line on the terminal is incomplete.
    is_open: bool,
    turn: usize,
    ticks: bool,
    /// Whether the process is about to end: nothing moves any more.
    is_over: bool,
}

static LINE: LazyLock<Mutex<Line>> = LazyLock::new(Mutex::default);
/// Whether there is a terminal on which a line can move.
static MOVES: LazyLock<bool> = LazyLock::new(|| {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    std::io::stderr().is_terminal() && !dumb && width() > 0
});
/// Whether standard output is a terminal, which is assumed to be the same one.
static SHARED: LazyLock<bool> = LazyLock::new(|| *MOVES && std::io::stdout().is_terminal());

fn line() -> MutexGuard<'static, Line> {
    LINE.lock().expect("no holder of this lock panics")
}

/// The width of the terminal in columns; 0 if it is unknown.
fn width() -> usize {
    tcgetwinsize(std::io::stderr()).map_or(0, |size| size.ws_col.into())
}

/// The width of a stream's terminal in columns; 0 if it is none.
pub(crate) fn columns(stream: Stream) -> usize {
    match stream {
        Stream::Out => tcgetwinsize(std::io::stdout()).map_or(0, |size| size.ws_col.into()),
        Stream::Err => width(),
    }
}

/// Whether a line can move on this terminal.
pub fn moves() -> bool {
    *MOVES
}

/// Shows this in the moving line instead of the stages in progress, or the stages again.
pub fn show_status(status: Option<Status>) {
    let mut line = line();
    line.status = status;
    line.draw(Instant::now());
}

/// Erases the moving line for good: the process is about to end.
pub fn leave() {
    let mut line = line();
    line.erase();
    line.is_over = true;
}

/// Writes all of it.
///
/// # Errors
/// The stream is closed, or full.
pub(crate) fn write(stream: Stream, bytes: &[u8]) -> std::io::Result<()> {
    if !*MOVES || stream == Stream::Out && !*SHARED {
        return put(stream, bytes);
    }
    let mut line = line();
    let whole = line.whole(stream, bytes);
    if whole.is_empty() {
        return Ok(());
    }
    line.erase();
    let outcome = put(stream, &whole);
    line.is_open = !whole.ends_with(b"\n");
    line.draw(Instant::now());
    outcome
}

/// Writes the incomplete line that was held back.
pub(crate) fn release() -> std::io::Result<()> {
    let mut line = line();
    let held = std::mem::take(&mut line.held);
    if held.is_empty() {
        return Ok(());
    }
    line.erase();
    line.is_open = true;
    put(Stream::Out, &held)
}

/// Something begins that takes a while. Returns whether a line shows it.
pub(crate) fn begin(stage: &str) -> bool {
    if !*MOVES {
        return false;
    }
    let mut line = line();
    line.stages.push((stage.to_owned(), Instant::now()));
    line.draw(Instant::now());
    if !line.ticks {
        let named = std::thread::Builder::new().name("screen".to_owned());
        line.ticks = named.spawn(tick).is_ok();
    }
    true
}

/// It has ended.
pub(crate) fn end(stage: &str) {
    let mut line = line();
    let Some(at) = line.stages.iter().position(|(name, _)| name == stage) else { return };
    line.stages.remove(at);
    line.erase();
    if line.stages.is_empty() && !line.held.is_empty() {
        let held = std::mem::take(&mut line.held);
        line.is_open = true;
        // The next writer gets the error.
        let _ = put(Stream::Out, &held);
    }
    line.draw(Instant::now());
}

/// Draws as long as there is work in progress.
fn tick() {
    loop {
        std::thread::park_timeout(EVERY);
        let mut line = line();
        if line.stages.is_empty() {
            line.ticks = false;
            return;
        }
        line.turn += 1;
        line.draw(Instant::now());
    }
}

fn put(stream: Stream, bytes: &[u8]) -> std::io::Result<()> {
    let to = |to: &mut dyn Write| to.write_all(bytes).and_then(|()| to.flush());
    match stream {
        Stream::Out => to(&mut std::io::stdout().lock()),
        Stream::Err => to(&mut std::io::stderr().lock()),
    }
}

impl Line {
    /// What can be written now; the rest is held back.
    fn whole(&mut self, stream: Stream, bytes: &[u8]) -> Vec<u8> {
        if stream == Stream::Err {
            return bytes.to_vec();
        }
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        // A line that is already on the terminal continues there.
        if self.stages.is_empty() || self.is_open || all.len() > HELD_AT_MOST {
            return all;
        }
        let whole = all.iter().rposition(|sign| *sign == b'\n').map_or(0, |at| at + 1);
        self.held = all.split_off(whole);
        all
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            // A closed terminal is not a reason to stop.
            let _ = put(Stream::Err, ERASE);
        }
    }

    fn draw(&mut self, now: Instant) {
        if self.stages.is_empty() || self.is_open || self.is_over {
            return;
        }
        let text = self.text(now, width());
        let _ = put(Stream::Err, &[ERASE, text.as_bytes()].concat());
        self.is_drawn = true;
    }

    /// The moving line on a terminal with that width.
    fn text(&self, now: Instant, width: usize) -> String {
        let progress = |(name, since): &(String, Instant)| {
            format!("{name} {} s", now.saturating_duration_since(*since).as_secs())
        };
        let longest = if width >= WIDE { WIDE - 1 } else { LONGEST };
        let room = longest.min(width.saturating_sub(1));
        let what = match &self.status {
            Some(status) => status(room.saturating_sub(2)),
            None => self.stages.iter().map(progress).collect::<Vec<_>>().join(", "),
        };
        let held = String::from_utf8_lossy(&self.held);
        let held = without_escapes(held.trim());
        let turn = TURNS[self.turn % TURNS.len()];
        let separator = if held.is_empty() { "" } else { ": " };
        let text = format!("{turn} {what}{separator}{held}");
        text.chars().take(room).collect()
    }
}

/// A text without colours and other control characters.
fn without_escapes(text: &str) -> String {
    let (mut plain, mut escaped) = (String::new(), false);
    for sign in text.chars() {
        match (escaped, sign) {
            (false, '\x1b') => escaped = true,
            (true, sign) => escaped = !sign.is_ascii_alphabetic(),
            (false, sign) if sign.is_control() => {}
            (false, sign) => plain.push(sign),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        let now = Instant::now();
        Line { stages: vec![("checks".to_owned(), now)], ..Line::default() }
    }

    #[test]
    fn the_moving_line_is_shorter_than_the_terminal_is_wide() {
        let mut line = line();
        let now = Instant::now() + Duration::from_secs(7);
        assert_eq!(line.text(now, 80), "| checks 7 s");
        line.stages.push(("the other clusters".to_owned(), now));
        line.turn = 5;
        assert_eq!(line.text(now, 80), "/ checks 7 s, the other clusters 0 s");
        line.held = b"\x1b[1mtest\x1b[0m taint-removal::NODE-INIT-01 ... ".to_vec();
        assert_eq!(
            line.text(now, 200),
            "/ checks 7 s, the other clusters 0 s: test taint-removal::NODE-INIT-01 ... "[..74]
        );
        line.held.clear();
        line.status = Some(Box::new(|room| format!("3 of 7 in {room}")));
        assert_eq!(
            (line.text(now, 80), line.text(now, 40)),
            ("/ 3 of 7 in 77".into(), "/ 3 of 7 in 37".into())
        );
        for width in [1, 20, 40, 80] {
            assert!(line.text(now, width).chars().count() < width.max(2), "{width}");
        }
    }

    #[test]
    fn a_line_that_is_not_whole_is_held_back_only_while_something_moves() {
        let mut line = line();
        let out = |line: &mut Line, text: &str| {
            String::from_utf8(line.whole(Stream::Out, text.as_bytes())).expect("text")
        };
        assert_eq!(out(&mut line, "\nrunning 1 test\ntest a ... "), "\nrunning 1 test\n");
        assert_eq!(line.held, b"test a ... ");
        assert_eq!(line.whole(Stream::Err, b"said\n"), b"said\n", "others are not held up");
        assert_eq!(out(&mut line, "ok"), "");
        assert_eq!(out(&mut line, "\ntest b"), "test a ... ok\n");
        line.stages.clear();
        assert_eq!(out(&mut line, " ... "), "test b ... ");
        // Output on the terminal continues there, whatever moves.
        let mut open = Line { is_open: true, ..self::line() };
        assert_eq!(out(&mut open, "ok\n"), "ok\n");
        let long = "x".repeat(HELD_AT_MOST + 1);
        assert_eq!(out(&mut self::line(), &long), long);
    }
}
