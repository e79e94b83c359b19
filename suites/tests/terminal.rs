//! The output of a run on a terminal: rendered as terminals do, in windows of 80 and 120 columns, and while
//! the window is resized.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ccm-conformance");
/// More rows than any run here writes, so that nothing scrolls away.
const ROWS: u16 = 400;
/// Lines of this many columns fit into each window.
const SHORT: usize = 76;
/// The characters with which the progress line begins.
const TURNS: [&str; 4] = ["| ", "/ ", "- ", "\\ "];
/// The control sequence that erases the current line of a terminal.
const ERASE: &str = "\r\u{1b}[2K";

/// The output of a run on a terminal.
struct Seen {
    code: Option<i32>,
    /// The bytes that were written to the terminal.
    raw: String,
    /// The final content of the terminal; wrapped lines are joined.
    lines: Vec<String>,
    /// Standard output, if it is not a terminal.
    piped: String,
    /// Whether the window was resized: this terminal truncates lines that are wider than the new window.
    was_resized: bool,
}

/// The terminal of a run.
#[derive(Clone, Copy, Default)]
struct Look<'a> {
    columns: u16,
    /// The later widths of the window, again and again. Each is wider than the progress line ever is (99 columns):
    /// what the program wrote for a wider window just before would be broken here, as on every terminal, and its
    /// first row would stay.
    resized: &'a [u16],
    variables: &'a [(&'a str, &'a str)],
    /// Whether standard output is redirected.
    is_piped: bool,
    binary: Option<&'a Path>,
    /// Further arguments.
    arguments: &'a [&'a str],
}

fn command(folder: &Path, binary: Option<&Path>) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args([
        "run",
        "--cluster",
        "embedded",
        "--profile",
        "reference",
        "--only",
        "NODE-INIT-01",
        "--out",
    ]);
    command.arg(folder.join("out"));
    if let Some(binary) = binary {
        command.arg("--binary").arg(binary);
    }
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "GITHUB_ACTIONS"] {
        command.env_remove(variable);
    }
    command.env("TERM", "xterm-256color").stdin(Stdio::null());
    command
}

fn cells(number: u16) -> NonZero<u16> {
    NonZero::new(number).expect("a window has some")
}

fn size(columns: u16) -> Winsize {
    Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// What a command prints on a terminal with so many columns, without its colours.
fn printed(arguments: &[&str], columns: u16) -> Vec<String> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("it is ours");
    tcsetwinsize(&master, size(columns)).expect("its size");
    let name = ptsname(&master, Vec::new()).expect("its name");
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let slave = || OpenOptions::new().read(true).write(true).open(path).expect("its other side");
    let mut command = Command::new(PROGRAM);
    command.args(arguments).env("NO_COLOR", "1").env("TERM", "xterm-256color").env_remove("COLUMNS");
    let mut child = command.stdin(Stdio::null()).stdout(slave()).stderr(slave()).spawn().expect("it starts");
    drop(command);
    let (mut text, mut part, mut reader) = (Vec::new(), [0; 4096], File::from(master));
    while let Ok(length @ 1..) = reader.read(&mut part) {
        text.extend_from_slice(&part[..length]);
    }
    child.wait().expect("it can be waited for");
    String::from_utf8(text).expect("text").lines().map(|line| line.trim_end().to_owned()).collect()
}

fn seen(look: Look<'_>) -> Seen {
    let folder = tempfile::tempdir().expect("a folder");
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("it is ours");
    tcsetwinsize(&master, size(look.columns)).expect("its size");
    let name = ptsname(&master, Vec::new()).expect("its name");
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let slave = || OpenOptions::new().read(true).write(true).open(path).expect("its other side");
    let mut command = command(folder.path(), look.binary);
    command.args(look.arguments).stderr(slave()).envs(look.variables.iter().copied());
    command.stdout(if look.is_piped { Stdio::piped() } else { slave().into() });
    let mut child = command.spawn().expect("the program starts");
    // The reader sees the end of file once no process has the other side open.
    drop(command);
    let piped = child.stdout.take().map(|mut pipe| {
        std::thread::spawn(move || {
            let mut text = String::new();
            pipe.read_to_string(&mut text).map(|_| text).expect("text")
        })
    });
    let mut terminal = vt100::Parser::new(cells(ROWS), cells(look.columns), 0);
    let (mut raw, mut part, mut reader) = (Vec::new(), [0; 1024], File::from(master));
    let (mut widths, mut resized) = (look.resized.iter().cycle(), Instant::now());
    while let Ok(length @ 1..) = reader.read(&mut part) {
        raw.extend_from_slice(&part[..length]);
        terminal.process(&part[..length]);
        if resized.elapsed() > Duration::from_millis(400)
            && let Some(width) = widths.next()
        {
            tcsetwinsize(&reader, size(*width)).expect("its size");
            terminal.screen_mut().set_size(cells(ROWS), cells(*width));
            resized = Instant::now();
        }
    }
    let code = child.wait().expect("it can be waited for").code();
    let lines = terminal.screen().contents().lines().map(str::to_owned).collect();
    let piped = piped.map(|thread| thread.join().expect("it was read")).unwrap_or_default();
    let was_resized = !look.resized.is_empty();
    Seen { code, raw: String::from_utf8(raw).expect("text"), lines, piped, was_resized }
}

/// Checks that nothing of the progress line is left, that no line is overwritten, and that none is padded.
fn is_tidy(seen: &Seen, case: &str) {
    let (raw, text) = (&seen.raw, seen.lines.join("\n"));
    for line in &seen.lines {
        let moved = TURNS.iter().any(|turn| line.starts_with(turn)) && line.ends_with(" s");
        assert!(!moved, "{case}: '{line}' is left:\n{text}");
        let overdrawn = line.contains(" running ") && line.contains(" passed ");
        assert!(!overdrawn, "{case}: '{line}':\n{text}");
    }
    assert!(!raw.contains(&" ".repeat(60)), "{case}: padded: {raw:?}");
    assert!(raw.ends_with("\r\n"), "{case}: the next prompt would stand behind it: {raw:?}");
    if !seen.was_resized {
        // Each line ends with its own line end, not at the edge of the window.
        assert!(raw.matches('\n').count() >= seen.lines.len(), "{case}: {raw:?}");
        assert!(seen.lines.iter().all(|line| line.trim_end() == line), "{case}: padded:\n{text}");
    }
}

/// The lines that are the same in every run: checks without their times, and what the summary has.
fn of_every_run(lines: impl Iterator<Item = String>) -> BTreeSet<String> {
    const FIRST: [&str; 3] = ["running ", "PARTIAL", "relaxed, "];
    let lines = lines.filter_map(|line| match passed(&line) {
        Some(id) => Some(format!("PASS {id}")),
        None => FIRST.iter().any(|first| line.starts_with(first)).then_some(line),
    });
    lines.map(|line| line.trim_end().to_owned()).collect()
}

/// The check that has passed, by its line: `PASS  1.2 s  ID  title`.
fn passed(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    (words.next() == Some("PASS")).then(|| words.nth(2)).flatten()
}

fn has_colours(raw: &str) -> bool {
    raw.split("\u{1b}[")
        .skip(1)
        .any(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m'))
}

#[test]
fn a_run_on_a_terminal_reads_like_one_in_a_file_whatever_the_windows_width() {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = command(folder.path(), None).output().expect("the program starts");
    let texts = [&plain.stdout, &plain.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!(plain.status.code(), Some(0), "{texts:?}");
    assert!(texts.iter().all(|text| !text.contains('\u{1b}') && !text.contains('\r')), "{texts:?}");
    let expected = of_every_run(texts.iter().flat_map(|text| text.lines()).map(str::to_owned));
    assert!(expected.len() == 4 && expected.contains("PASS NODE-INIT-01"), "{expected:?}");
    for (columns, resized) in [(80, [].as_slice()), (120, &[]), (120, &[100, 120]), (80, &[120, 100])] {
        let case = format!("{columns} columns, then {resized:?}");
        let seen = seen(Look { columns, resized, ..Look::default() });
        assert_eq!(seen.code, Some(0), "{case}: {:?}", seen.lines);
        is_tidy(&seen, &case);
        let text = seen.lines.join("\n");
        let found = of_every_run(seen.lines.iter().cloned());
        // Longer lines are broken where the window ends.
        let lacks = expected.difference(&found).filter(|line| line.len() < SHORT);
        assert_eq!(lacks.collect::<Vec<_>>(), [""; 0], "{case}:\n{text}");
        assert_eq!(seen.lines.iter().filter(|line| passed(line).is_some()).count(), 1, "{case}:\n{text}");
        if !seen.was_resized {
            let fits =
                |line: &&String| line.chars().count() <= usize::from(columns) || !line.trim().contains(' ');
            assert_eq!(seen.lines.iter().find(|line| !fits(line)), None, "{case}:\n{text}");
        }
        let verdict = text.rfind("\nPARTIAL: ").map_or("", |at| &text[at..]);
        let words = verdict.split_whitespace().collect::<Vec<_>>().join(" ");
        // A window that becomes narrower cuts a line that was written before.
        let is_cut =
            seen.was_resized && words.starts_with("PARTIAL: reference, ") && !verdict[1..].contains('\n');
        let is_last = words.ends_with(" on embedded, topology single") || is_cut;
        assert!(is_last, "{case}: the verdict is last:\n{text}");
        assert!(seen.raw.contains(&format!("{ERASE}| ")), "{case}: nothing moved: {:?}", seen.raw);
        assert!(seen.raw.contains("0/1 1 running 0 passed 0 failed, "), "{case}: {:?}", seen.raw);
        assert!(
            seen.raw.contains(" left, NODE-INIT-01 "),
            "{case}: which check is still running: {:?}",
            seen.raw
        );
        assert!(has_colours(&seen.raw), "{case}: {:?}", seen.raw);
    }
}

#[test]
fn what_commands_print_fits_the_window() {
    for line in [
        "list",
        "plan --cluster embedded",
        "coverage",
        "explore --list",
        "controls --list",
        "doctor --cluster embedded",
        "driver check --profile reference",
        "driver check --help",
        "run --help",
        "explain B-WATCH",
    ] {
        let arguments: Vec<&str> = line.split(' ').collect();
        for columns in [80, 120] {
            let printed = printed(&arguments, columns);
            assert!(printed.len() > 5, "{line}: {printed:?}");
            // What has no blank is not broken: it may be a path.
            let breaks = |text: &&String| text.trim_start().contains(' ');
            let wide = printed.iter().filter(breaks).find(|text| text.chars().count() > columns.into());
            assert_eq!(wide, None, "{line}, {columns} columns");
        }
    }
}

#[test]
fn output_is_as_it_was_asked_for() {
    let look = |variables| Look { columns: 80, variables, ..Look::default() };
    let no_colour = seen(look(&[("NO_COLOR", "1")]));
    is_tidy(&no_colour, "NO_COLOR");
    assert!(!has_colours(&no_colour.raw) && no_colour.raw.contains(ERASE), "{:?}", no_colour.raw);

    let dumb = seen(Look { arguments: &["--quiet"], ..look(&[("TERM", "dumb")]) });
    is_tidy(&dumb, "TERM=dumb, quiet");
    assert!(!dumb.raw.contains('\u{1b}'), "{:?}", dumb.raw);
    assert!(dumb.lines.len() <= 2 && dumb.lines[0].starts_with("PARTIAL: "), "{:?}", dumb.lines);

    let json = ["--output", "json", "--color", "always"];
    let piped = seen(Look { is_piped: true, arguments: &json, ..look(&[]) });
    is_tidy(&piped, "standard output elsewhere");
    let lines = piped.piped.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let lines: Vec<serde_json::Value> = lines.collect();
    let types: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!(types, ["run-began", "check-began", "check-ended", "run-ended"], "{}", piped.piped);
    assert_eq!((&lines[2]["id"], &lines[2]["outcome"]), (&"NODE-INIT-01".into(), &"pass".into()));
    assert_eq!((&lines[3]["verdict"], &lines[3]["exitCode"]), (&"partial".into(), &0.into()));
    assert!(!piped.lines.iter().any(|line| passed(line).is_some()), "{:?}", piped.lines);
    assert!(has_colours(&piped.raw), "{:?}", piped.raw);
}

#[test]
fn messages_during_a_check_are_above_the_progress_line() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let binary = folder.path().join("ccm");
    std::fs::write(&binary, "#!/bin/sh\necho 'error: no such flag' >&2\nexit 3\n").expect("written");
    std::fs::set_permissions(&binary, PermissionsExt::from_mode(0o755)).expect("its mode");
    let seen = seen(Look { columns: 80, resized: &[120, 100], binary: Some(&binary), ..Look::default() });
    is_tidy(&seen, "a CCM that ends");
    let text = seen.lines.join("\n");
    assert_eq!(seen.code, Some(1), "{text}");
    assert!(seen.lines.contains(&"    error: no such flag".to_owned()), "{text}");
    assert!(text.contains("the CCM under test ended with exit code 3"), "{text}");
    let blocked = seen.lines.iter().any(|line| line.starts_with("BLOCKED ") && line.contains("NODE-INIT-01"));
    assert!(blocked && text.contains("\nblocked by OBS-10: "), "{text}");
}
