//! Judges through libtest-mimic, with the names, filters and output of ordinary Rust tests.

use super::evidence_path::with_openable_path;
use super::planned::Planned;
use super::ready_environment::{Judging, Stand};
use super::run_check::{Hold, run_one};
use harness_config::Choice;
use harness_core::check::Level;
use harness_core::ledger::{Entry, INTERRUPTED, Outcome, SkipReason};
use harness_core::output::{self, Broken, plain};
use harness_session::Session;
use harness_session::ccm::Form;
use libtest_mimic::{Arguments, ColorSetting, Completion, Conclusion, Failed, Trial};
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Judges in this process, as many checks at the same time as the arguments say, and shows each check as a test.
#[derive(Debug)]
pub struct Libtest {
    /// The arguments for libtest.
    pub arguments: Arguments,
}

impl Judging for Libtest {
    fn leaves_out(&self, name: &str) -> bool {
        let arguments = &self.arguments;
        let fits = |pattern: &String| {
            if arguments.exact { name == pattern } else { name.contains(pattern.as_str()) }
        };
        arguments.filter.as_ref().is_some_and(|filter| !fits(filter)) || arguments.skip.iter().any(fits)
    }

    fn judge(&mut self, stand: &Stand<'_>) {
        let at_once = self.arguments.test_threads.unwrap_or(1);
        let (work, turns) = stand.work(at_once);
        let turns = Arc::new(turns);
        let threads = work.len().max(1);
        let lanes: Arc<[Arc<Session>]> = stand.lanes.into();
        let mut trials: Vec<Trial> = work
            .into_iter()
            .map(|(one, step)| {
                let (turns, handle, lanes) = (turns.clone(), stand.handle.clone(), lanes.clone());
                Trial::ignorable_test(one.name(), move || {
                    let turn = turns.wait_for(step);
                    let session = lanes[turn.lane()].clone();
                    let hold = Hold::in_order(one.check.isolation);
                    let entry = handle.block_on(run_one(&lanes, session.clone(), &one, hold));
                    if session.gone().is_some() {
                        turn.loses_its_lane();
                    }
                    if turn.ends_the_work_of_its_lane() {
                        // Checks of the whole run expect the CCM there. If it does not start, that is reported then.
                        let returns = session.unless_interrupted(session.ensure_ccm(Form::Replicas));
                        let _ = handle.block_on(returns);
                    }
                    in_a_whole_run(&with_openable_path(&entry, &session.plan().output))
                })
            })
            .collect();
        trials.extend(skipped_trials(stand.planned));
        // Tests that libtest-mimic itself filters out by the same rule were left out before.
        // A check that waits for its turn also occupies a thread; the turns limit how many work at the same time.
        let arguments = Arguments { test_threads: Some(threads), ..self.arguments.clone() };
        let _ = shown(arguments, trials, |broken| {
            stand.session().events().say(format!("error: {}: the run is aborted", broken.why));
            stand.session().interrupt();
        });
    }
}

/// Runs tests and shows them on standard output as libtest-mimic does. If standard output cannot be written,
/// libtest-mimic would panic; instead `failed` is called, and the tests run to their end.
pub fn shown(arguments: Arguments, trials: Vec<Trial>, failed: impl FnOnce(&Broken) + Send) -> Conclusion {
    let (Ok((from, to)), None) = (std::io::pipe(), &arguments.logfile) else {
        return libtest_mimic::run(&arguments, trials);
    };
    let colour = match arguments.color.unwrap_or(ColorSetting::Auto) {
        ColorSetting::Auto if output::out_takes_colours() => ColorSetting::Always,
        ColorSetting::Auto => ColorSetting::Never,
        chosen => chosen,
    };
    // libtest-mimic opens a file by name; this is the name of our pipe.
    let logfile = Some(format!("/proc/self/fd/{}", to.as_raw_fd()));
    let arguments = Arguments { color: Some(colour), logfile, ..arguments };
    std::thread::scope(|scope| {
        let passing = scope.spawn(move || output::pass_on(from, failed));
        let conclusion = libtest_mimic::run(&arguments, trials);
        // All writers are closed.
        drop(to);
        let _ = passing.join();
        conclusion
    })
}

/// Tests for checks that the profile does not declare or the backend cannot show: listed as ignored.
pub fn skipped_trials(planned: &[Planned]) -> Vec<Trial> {
    planned
        .iter()
        .filter_map(|one| match &one.choice {
            Choice::Skip(SkipReason::Deselected, _) | Choice::Selected => None,
            Choice::Skip(SkipReason::NotDeclared | SkipReason::NotObservable, detail) => {
                let detail = detail.clone();
                let trial = Trial::ignorable_test(one.name(), move || Ok(Completion::ignored_with(detail)));
                Some(trial.with_ignored_flag(true))
            }
        })
        .collect()
}

/// Like [`completion`], for a run whose exit code already shows that it was interrupted: checks that were not judged
/// because of that do not count as failed.
fn in_a_whole_run(entry: &Entry) -> Result<Completion, Failed> {
    match &entry.outcome {
        Outcome::Error { message } if message == INTERRUPTED => Ok(Completion::ignored_with(INTERRUPTED)),
        _ => completion(entry),
    }
}

/// The part of a failure's text that says what was observed; the first line if there is none.
fn first_of(message: &str) -> &str {
    let seen = message.lines().find_map(|line| line.strip_prefix("last seen: "));
    seen.or_else(|| message.lines().next()).unwrap_or_default()
}

/// The result of an entry for libtest.
///
/// # Errors
/// The text of a check that failed, or of a MUST that was blocked.
pub fn completion(entry: &Entry) -> Result<Completion, Failed> {
    match (&entry.outcome, trouble_text(entry)) {
        (Outcome::Fail { .. }, Some(text)) => {
            Err(format!("{} {}: {}\n{text}", entry.id, entry.level, plain(&entry.title)).into())
        }
        (_, Some(text)) => Err(format!("{} {text}", entry.id).into()),
        (Outcome::Skip { detail, .. }, None) => Ok(Completion::ignored_with(detail)),
        (Outcome::Blocked { by, message }, None) => Ok(Completion::ignored_with(blocked(by, message))),
        (Outcome::Pass | Outcome::Fail { .. } | Outcome::Error { .. }, None) => Ok(Completion::Completed),
    }
}

/// Everything about a check that failed, a MUST that was blocked, or a check that met an error of the environment. It
/// begins with what was expected and what was seen.
pub(super) fn trouble_text(entry: &Entry) -> Option<String> {
    let text = match &entry.outcome {
        Outcome::Pass | Outcome::Skip { .. } => return None,
        Outcome::Fail { message } => {
            let evidence = entry.evidence.as_ref().map(|e| format!("\nevidence:  {e}")).unwrap_or_default();
            format!("{message}{evidence}\nexplain:   ccm-conformance explain {}", entry.id)
        }
        Outcome::Blocked { by, message } => {
            if entry.level != Level::Must {
                return None;
            }
            format!("{}\nexplain:   ccm-conformance explain {by}", blocked(by, message))
        }
        Outcome::Error { message } => format!("environment error\n{message}"),
    };
    Some(plain(&text).into_owned())
}

fn blocked(by: &str, message: &str) -> String {
    let log: String = log_in(message).iter().map(|line| format!("\n{line}")).collect();
    format!("blocked by {by}: {}{log}", first_of(message))
}

/// The log of a program in a failure's text: the indented lines after what was seen.
fn log_in(message: &str) -> Vec<&str> {
    let after = message.lines().skip_while(|line| !line.starts_with("last seen: ")).skip(1);
    after.take_while(|line| line.starts_with(' ') || line.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Blocker;

    #[test]
    fn a_blocked_check_shows_what_was_seen_rather_than_what_was_promised() {
        let message = Blocker::StaysUp
            .broken("container ccm of Pod ccm-a ended 3 times\n  its last lines:")
            .to_string();
        assert_eq!(first_of(&message), "container ccm of Pod ccm-a ended 3 times");
        let hangs = Blocker::Elects.broken("no Lease\n  ccm-a now:\n    starting up").to_string();
        let shown = blocked("HA-01.elected", &hangs);
        assert!(shown.contains(": no Lease\n") && shown.ends_with("starting up"), "{shown}");
        assert_eq!(first_of("no such thing\nat all"), "no such thing");
        assert_eq!(first_of(""), "");
    }
}
