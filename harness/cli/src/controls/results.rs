//! The results of `controls`, as a line and as `controls.yaml`.

use super::outcome::{Became, Judged};
use harness_core::files;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file in the output folder.
const RESULTS_FILE: &str = "controls.yaml";

/// The results of all subjects.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    /// Version of the harness.
    harness: &'static str,
    /// The cluster that was used.
    cluster: String,
    /// How many mutants were noticed by the checks named for them.
    noticed: usize,
    /// How many mutants this cluster can show.
    mutants: usize,
    /// How many conforming variants failed no check.
    passed: usize,
    /// How many conforming variants there are.
    variants: usize,
    /// How many adversaries had no other effect than what they break.
    endured: usize,
    /// How many adversaries there are.
    adversaries: usize,
    /// How many seconds it took in total.
    seconds: u64,
    /// The result of each subject, by name.
    judged: Vec<Judged>,
}

impl Results {
    /// Summarises these results and the total time.
    pub(super) fn of(cluster: String, judged: Vec<Judged>, took: Duration) -> Results {
        let mut subjects: BTreeMap<String, Judged> = BTreeMap::new();
        for one in judged {
            let whole = match subjects.remove(&one.subject) {
                Some(before) => before.and(one),
                None => one,
            };
            subjects.insert(whole.subject.clone(), whole);
        }
        let judged: Vec<Judged> = subjects.into_values().collect();
        let count = |outcomes: &[Became]| judged.iter().filter(|one| outcomes.contains(&one.result)).count();
        Results {
            harness: env!("CARGO_PKG_VERSION"),
            cluster,
            noticed: count(&[Became::Noticed]),
            mutants: count(&[Became::Noticed, Became::Missed]),
            passed: count(&[Became::Passed]),
            variants: count(&[Became::Passed, Became::FalseAlarm]),
            endured: count(&[Became::Endured]),
            adversaries: count(&[Became::Endured, Became::Harmed]),
            seconds: took.as_secs(),
            judged,
        }
    }

    /// Whether every mutant was noticed, every conforming variant passed and every adversary was endured.
    pub(super) fn are_good(&self) -> bool {
        !self.judged.iter().any(|one| one.result.is_amiss())
    }

    /// The subjects with unexpected results, a few lines each: the messages from when they were judged are
    /// far above.
    pub(super) fn amiss(&self) -> Vec<String> {
        let amiss = self.judged.iter().filter(|one| one.result.is_amiss());
        amiss.map(ToString::to_string).collect()
    }

    /// Writes them into a folder.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn write(&self, folder: &Path) -> Result<PathBuf, String> {
        let file = folder.join(RESULTS_FILE);
        let text = harness_config::yaml::to_string(self).map_err(|error| error.to_string())?;
        std::fs::create_dir_all(folder)
            .and_then(|()| harness_core::output::file(&file, text))
            .map_err(|error| format!("{}: {}", file.display(), files::why(&error)))?;
        Ok(file)
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Results { noticed, mutants, passed, variants, endured, adversaries, seconds, .. } = self;
        let kinds = [
            (*noticed, *mutants, "mutants noticed"),
            (*passed, *variants, "conforming variants passed"),
            (*endured, *adversaries, "adversaries endured"),
        ];
        let judged = kinds.iter().filter(|(_, all, _)| *all > 0);
        let judged: Vec<String> = judged.map(|(good, all, what)| format!("{good} of {all} {what}")).collect();
        match judged.as_slice() {
            [] => write!(f, "nothing was judged in {seconds} s"),
            judged => write!(f, "{} in {seconds} s", judged.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(subject: &str, result: Became) -> Judged {
        Judged {
            subject: subject.to_owned(),
            part: None,
            result,
            checks: 1,
            objections: Vec::new(),
            seconds: 1.0,
            hindered: false,
        }
    }

    #[test]
    fn only_what_could_be_shown_counts_and_one_slip_is_enough() {
        let all = vec![
            one("S-A", Became::Passed),
            one("M-B", Became::Noticed),
            one("M-A", Became::NotShown),
            one("A-A", Became::Endured),
        ];
        let good = Results::of("embedded".to_owned(), all.clone(), Duration::from_secs(5));
        assert_eq!(
            good.to_string(),
            "1 of 1 mutants noticed, 1 of 1 conforming variants passed, 1 of 1 adversaries endured in 5 s"
        );
        let of = |judged| Results::of("embedded".to_owned(), judged, Duration::from_secs(5)).to_string();
        assert_eq!(
            of(vec![one("M-A", Became::Missed)]),
            "0 of 1 mutants noticed in 5 s",
            "only what was judged"
        );
        assert_eq!(of(vec![one("M-A", Became::NotShown)]), "nothing was judged in 5 s");
        assert!(good.are_good());
        assert!(good.amiss().is_empty());
        let twice = [all.clone(), vec![one("S-A", Became::Passed)]].concat();
        assert_eq!(
            Results::of("embedded".to_owned(), twice, Duration::from_secs(5)).to_string(),
            good.to_string()
        );
        for slip in [Became::Missed, Became::FalseAlarm, Became::Harmed] {
            let all = [all.clone(), vec![one("X", slip)]].concat();
            let results = Results::of("embedded".to_owned(), all, Duration::ZERO);
            assert!(!results.are_good());
            let [amiss] = &results.amiss()[..] else { panic!("{:?}", results.amiss()) };
            assert!(amiss.contains(" X"), "{amiss}");
        }
    }

    #[test]
    fn the_file_names_each_with_its_result() {
        let folder = tempfile::tempdir().expect("a folder");
        let results = Results::of("kind".to_owned(), vec![one("M-A", Became::Missed)], Duration::ZERO);
        let file = results.write(folder.path()).expect("a file");
        let text = std::fs::read_to_string(file).expect("its text");
        assert!(text.contains("subject: M-A") && text.contains("result: missed"), "{text}");
    }
}
