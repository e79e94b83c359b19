//! What a command does that only waits or prints: whether it ends, and when. Pure functions.

use crate::manifest::Node;

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum End {
    /// It succeeds after this many seconds.
    After(f64),
    /// It ends with an error.
    WithError,
    Never,
}

/// What the command of a container does; `None` if it is more than waiting and printing.
pub(super) fn of_container(container: &Node) -> Option<End> {
    let words = |field: &str| container.get(field).map(Node::texts).unwrap_or_default();
    let mut command = words("command");
    command.extend(words("args"));
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    // Without a command the image decides.
    container.get("command").filter(|command| !command.items().is_empty())?;
    match command.as_slice() {
        [shell, option, script] if is_shell(shell) && matches!(*option, "-c" | "-ec" | "-ce") => {
            of_script(script)
        }
        words => of_words(words),
    }
}

fn is_shell(word: &str) -> bool {
    matches!(last_part(word), "sh" | "bash" | "ash" | "dash")
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What a script does if its commands come one after the other.
fn of_script(script: &str) -> Option<End> {
    let mut total = 0.0;
    let endless = ["while true", "while :"].iter().any(|head| script.trim_start().starts_with(head));
    if endless && !["break", "exit", "exec", "kill"].iter().any(|word| script.contains(word)) {
        return Some(End::Never);
    }
    for command in script.split([';', '\n']).flat_map(|part| part.split("&&")) {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            [] | ["set", ..] => {}
            ["exit"] | ["exit", "0"] => return Some(End::After(total)),
            ["exit", code] => return code.parse::<u8>().ok().map(|_| End::WithError),
            words => match of_words(words)? {
                End::After(seconds) => total += seconds,
                // A script may go on after an error.
                End::WithError => return None,
                End::Never => return Some(End::Never),
            },
        }
    }
    Some(End::After(total))
}

fn of_words(words: &[&str]) -> Option<End> {
    let (program, arguments) = words.split_first()?;
    if arguments.iter().any(|word| word.contains(['$', '`', '>', '<', '|', '&', '{', '('])) {
        return None;
    }
    match (last_part(program), arguments) {
        ("sleep", ["infinity" | "inf"]) | ("tail", ["-f", "/dev/null"]) => Some(End::Never),
        ("sleep", [time]) => length(time).map(End::After),
        ("echo" | "printf" | "true" | ":", _) | ("date" | "env" | "hostname" | "id" | "uname", []) => {
            Some(End::After(0.0))
        }
        ("false", _) => Some(End::WithError),
        _ => None,
    }
}

/// The argument of `sleep`: seconds, or a number with a unit.
fn length(time: &str) -> Option<f64> {
    let (number, unit) = match time.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(number) => (number, &time[number.len()..]),
        None => (time, "s"),
    };
    let seconds = [("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];
    let (_, of_one) = seconds.iter().find(|(own, _)| *own == unit)?;
    let number: f64 = number.parse().ok()?;
    (number >= 0.0 && number.is_finite()).then_some(number * of_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_wait_and_print_are_read_and_others_are_not() {
        let after = |seconds| Some(End::After(seconds));
        for (script, end) in [
            ("sleep 10", after(10.0)),
            ("echo starting; sleep 1m && echo done", after(60.0)),
            ("set -e\nsleep 2\nsleep 3", after(5.0)),
            ("exit 3", Some(End::WithError)),
            ("sleep 5; exit 0", after(5.0)),
            ("sleep infinity", Some(End::Never)),
            ("while true; do sleep 3600; done", Some(End::Never)),
            ("while true; do test -f /x && break; sleep 1; done", None),
            ("until wget -q http://x; do sleep 1; done", None),
            ("sleep $DELAY", None),
            ("echo x > /shared/file", None),
            ("false || true", None),
        ] {
            assert_eq!(of_script(script), end, "{script}");
        }
        assert_eq!(of_words(&["/bin/sleep", "1.5h"]), after(5400.0));
        assert_eq!(of_words(&["sleep"]), None);
        assert_eq!(of_words(&["/usr/bin/env", "bash", "-c", "until nc -z db 5432; do sleep 1; done"]), None);
    }
}
