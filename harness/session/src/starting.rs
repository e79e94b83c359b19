//! Waits for a CCM that is starting: the user sees at once when its program exits, and the wait ends early if it only
//! exits.

use super::Session;
use super::object_events::last_lines_of;
use crate::ccm::{CcmError, Form, ProgramEnd, Starts, lacks_configuration};
use harness_core::probe::{Observed, poll};
use std::time::Duration;
use tokio::time::Instant;

/// Interval between two looks at the Pods.
const EVERY: Duration = Duration::from_millis(100);
/// After so long the user reads that the CCM does not lead yet.
const PATIENCE: Duration = Duration::from_secs(15);
/// Number of its log lines that are shown.
const LINES: usize = 10;

impl Session {
    /// Waits until the CCM leads. `starts` contains ends of its programs that are already known.
    ///
    /// # Errors
    /// Those of [`Ccm::leading`](crate::ccm::Ccm::leading); [`CcmError::CrashLoops`] also as soon as one of its programs
    /// has exited several times although the API server and the cloud answered; [`CcmError::NeverRuns`] as soon as nothing
    /// of it can run, as the boot model predicts.
    pub async fn leading(&self, form: Form, starts: Starts) -> Result<(), CcmError> {
        tokio::select! {
            biased;
            outcome = self.ccm.leading(form, self.limits().start()) => outcome,
            why = self.only_ends(form, starts) => Err(CcmError::CrashLoops(why)),
            why = self.never_runs(form) => Err(CcmError::NeverRuns(why)),
        }
    }

    /// A message once a program of the CCM has exited too often. Prints each exit. Never returns if there is none.
    async fn only_ends(&self, form: Form, mut starts: Starts) -> String {
        let (began, limit) = (Instant::now(), self.limits().start());
        let mut look = async |seen: &mut String| {
            let pods = self.ccm.pods(form);
            *seen = pods.observed();
            if began.elapsed() > PATIENCE {
                let wait = limit.as_secs();
                let line =
                    format!("the CCM under test does not lead yet (limit: {wait} s); its Pods: {seen}");
                self.events.say_once("does not lead yet", line);
            }
            for why in pods.iter().filter_map(|pod| lacks_configuration(pod)) {
                self.events.say_once(&why, why.clone());
            }
            let mut hopeless = None;
            for (end, times) in starts.news(&pods) {
                let at = Instant::now();
                let lines = self.output_of(&end, form).await;
                let excuse = self.environment_watch.absence_at(at).await;
                if excuse.is_none() && starts.count(&end, times) {
                    hopeless = Some(given_up(&end, &lines));
                } else {
                    self.tell(&end, &lines, excuse.as_deref());
                }
            }
            Ok(hopeless)
        };
        let given_up = poll("the CCM's programs exit", limit, EVERY, &mut look).await;
        if let Ok(why) = given_up { why } else { std::future::pending().await }
    }

    /// The last lines that the program wrote before it exited.
    async fn output_of(&self, end: &ProgramEnd, form: Form) -> Vec<String> {
        let pods = self.ccm.pods(form);
        match pods.iter().find(|pod| pod.metadata.uid.as_deref() == Some(end.uid.as_str())) {
            Some(pod) => last_lines_of(self.ccm_site().client(), pod, &end.container, LINES).await,
            None => Vec::new(),
        }
    }

    /// Informs the user, once for replicas and lanes with the same message.
    fn tell(&self, end: &ProgramEnd, lines: &[String], excuse: Option<&str>) {
        let key = format!("{} {} {}", end.container, end.exit_code.unwrap_or(-1), end.restarts);
        let excuse = excuse.map(|excuse| format!("\n  {excuse}")).unwrap_or_default();
        let line = format!(
            "the CCM under test ended with {end}, {} (container {} of Pod {}){excuse}{}",
            end.restarted(),
            end.container,
            end.pod,
            shown(end, lines)
        );
        self.events.say_once(&key, line);
    }
}

/// Why a program that has exited several times is not waited for any longer.
pub(super) fn given_up(end: &ProgramEnd, lines: &[String]) -> String {
    format!(
        "container {} of Pod {} ended {} times, last with {end}, {}; {}{}",
        end.container,
        end.pod,
        end.ends,
        end.restarted(),
        end.doubt(),
        shown(end, lines)
    )
}

/// What is known besides the exit code.
fn shown(end: &ProgramEnd, lines: &[String]) -> String {
    let message =
        end.message.as_ref().map(|message| format!("\n  {}", message.trim_end().replace('\n', "\n  ")));
    let hint = end.hint().map(|hint| format!("\n  {hint}"));
    let wrote = match lines {
        [] => "\n  it wrote nothing".to_owned(),
        lines => format!("\n  its last lines:\n    {}", lines.join("\n    ")),
    };
    message.into_iter().chain(hint).chain([wrote]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(exit_code: i32) -> ProgramEnd {
        let (pod, container, image) = ("ccm-a".to_owned(), "ccm".to_owned(), "acme/ccm:1".to_owned());
        let exit_code = Some(exit_code);
        ProgramEnd { pod, container, image, ends: 3, restarts: 2, exit_code, ..ProgramEnd::default() }
    }

    #[test]
    fn a_ccm_that_ends_is_described_with_exit_code_restarts_and_output() {
        let lines = ["flag provided but not defined: -x".to_owned(), "usage: ccm".to_owned()];
        assert_eq!(
            given_up(&end(2), &lines),
            "container ccm of Pod ccm-a ended 3 times, last with exit code 2, restarted 2 times so far; is acme/ccm:1 the \
             CCM that the profile describes?\n  its last lines:\n    flag provided but not defined: -x\n    usage: ccm"
        );
        let image = "ccm-conformance.invalid/binary:12".to_owned();
        let of_a_program = given_up(&ProgramEnd { image, ..end(2) }, &[]);
        assert!(
            of_a_program.contains("; is the program the CCM that the profile describes?"),
            "{of_a_program}"
        );
        let silent = given_up(&end(127), &[]);
        assert!(
            silent.contains("\n  127 usually means") && silent.ends_with("\n  it wrote nothing"),
            "{silent}"
        );
        let refused = ProgramEnd { message: Some("exec format error\n".to_owned()), ..end(128) };
        assert_eq!(shown(&refused, &[]), "\n  exec format error\n  it wrote nothing");
    }
}
