//! Changes over many runs: outcomes that changed permanently, outcomes that alternate, and checks that became slower.

use super::wording::shown_word;
use harness_core::ledger::{Entry, Ledger, Outcome};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A check is slower if the last run took this many times as long as the median of the runs before it.
const SLOWER_BY: u64 = 2;
/// It must also be at least this much longer, in milliseconds: the duration of a short check can double by chance.
const SLOWER_AT_LEAST_MS: u64 = 1_000;
/// How many earlier runs a median needs.
const FOR_A_MEDIAN: usize = 2;

/// The runs of one CCM, from the oldest to the newest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trend {
    /// The runs.
    pub runs: Vec<TrendRun>,
    /// The checks whose outcome differs between runs, or that became slower, by id.
    pub checks: Vec<TrendCheck>,
    /// Reports of a run of which there was another one already: they do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repeated: Vec<Repeated>,
}

/// Two reports of the same run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repeated {
    /// The report that counts.
    pub report: String,
    /// The other one.
    pub again: String,
}

impl fmt::Display for Repeated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Repeated { report, again } = self;
        match report == again {
            true => write!(f, "{report} was named twice, and counts once"),
            false => write!(f, "{again} is a report of the same run as {report}, and does not count"),
        }
    }
}

/// One of the runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrendRun {
    /// The file of its report.
    pub report: String,
    /// Its start time (RFC 3339).
    pub started: String,
    /// The profile of the CCM.
    pub profile: String,
    /// The CCM's image, or its program.
    pub image: String,
    /// The version of Kubernetes.
    pub kubernetes: String,
    /// The version of the harness.
    pub harness: String,
    /// Its duration in milliseconds.
    pub took_ms: u64,
}

/// How a check changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrendChange {
    /// It passed at first, and no longer passes.
    Worse,
    /// It passed and did not pass, and changed more than once.
    Flaky,
    /// It did not pass at first, and now passes.
    Better,
    /// It always passed, and now takes much longer.
    Slower,
}

/// A check that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrendCheck {
    /// The check.
    pub id: String,
    /// How it changed.
    pub change: TrendChange,
    /// Its outcome in each run, in one word; `unknown` if the run did not have the check.
    pub outcomes: Vec<&'static str>,
    /// Its duration in each run, in milliseconds; `None` if it did not run.
    pub took_ms: Vec<Option<u64>>,
}

/// The trend of these runs, each with the file of its report. They are sorted by their start times.
///
/// # Errors
/// There are fewer than two runs, or they are of different CCMs.
pub fn trend(runs: Vec<(String, Ledger)>) -> Result<Trend, String> {
    let (mut runs, repeated) = each_once(runs);
    if runs.len() < 2 {
        let repeated: String = repeated.iter().map(|one| format!("; {one}")).collect();
        return Err(format!("a trend needs at least two runs, and there is {}{repeated}", runs.len()));
    }
    let profiles: BTreeSet<&str> = runs.iter().map(|(_, run)| run.subject.profile.as_str()).collect();
    if profiles.len() > 1 {
        let all: Vec<&str> = profiles.into_iter().collect();
        return Err(format!("the reports are of different CCMs ({}): select those of one", all.join(", ")));
    }
    runs.sort_by(|(_, a), (_, b)| a.started.cmp(&b.started));
    let ids: BTreeSet<&str> =
        runs.iter().flat_map(|(_, run)| run.all()).map(|entry| entry.id.as_str()).collect();
    let by_run: Vec<BTreeMap<&str, &Entry>> =
        runs.iter().map(|(_, run)| run.all().map(|entry| (entry.id.as_str(), entry)).collect()).collect();
    let checks = ids.into_iter().filter_map(|id| {
        let entries: Vec<Option<&Entry>> = by_run.iter().map(|run| run.get(id).copied()).collect();
        check(id, &entries)
    });
    let mut checks: Vec<TrendCheck> = checks.collect();
    checks.sort_by(|a, b| (a.change, &a.id).cmp(&(b.change, &b.id)));
    let about = |(report, run): &(String, Ledger)| TrendRun {
        report: report.clone(),
        started: run.started.clone(),
        profile: run.subject.profile.clone(),
        image: run.subject.image.clone(),
        kubernetes: run.subject.kubernetes_version.clone(),
        harness: run.subject.harness_version.clone(),
        took_ms: run.duration_ms,
    };
    Ok(Trend { runs: runs.iter().map(about).collect(), checks, repeated })
}

/// The reports without those of a run that is already there.
fn each_once(runs: Vec<(String, Ledger)>) -> (Vec<(String, Ledger)>, Vec<Repeated>) {
    let (mut kept, mut repeated): (Vec<(String, Ledger)>, Vec<Repeated>) = Default::default();
    for (again, run) in runs {
        match kept.iter().find(|(_, known)| is_same_run(known, &run)) {
            Some((report, _)) => repeated.push(Repeated { report: report.clone(), again }),
            None => kept.push((again, run)),
        }
    }
    (kept, repeated)
}

/// Whether two reports are of the same run: they began at the same time and have the same stream of events, or, without
/// streams, the same results.
fn is_same_run(one: &Ledger, other: &Ledger) -> bool {
    one.started == other.started
        && match (&one.stream, &other.stream) {
            (Some(one), Some(other)) => one == other,
            (None, None) => one.entries == other.entries,
            _ => false,
        }
}

fn check(id: &str, entries: &[Option<&Entry>]) -> Option<TrendCheck> {
    let outcomes: Vec<&'static str> =
        entries.iter().map(|entry| entry.map_or("unknown", |entry| shown_word(&entry.outcome))).collect();
    let took_ms: Vec<Option<u64>> = entries.iter().map(|entry| entry.and_then(ran_for)).collect();
    // A run that did not judge the check does not count.
    let judged: Vec<&Outcome> =
        entries.iter().flatten().map(|entry| &entry.outcome).filter(|outcome| is_judged(outcome)).collect();
    let change = change(&judged).or_else(|| is_slower(&took_ms, &judged).then_some(TrendChange::Slower))?;
    Some(TrendCheck { id: id.to_owned(), change, outcomes, took_ms })
}

/// Whether the outcome says something about the CCM: it passed, failed, or did something elsewhere that blocked the check.
fn is_judged(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Pass | Outcome::Fail { .. } | Outcome::Blocked { .. })
}

fn ran_for(entry: &Entry) -> Option<u64> {
    (is_judged(&entry.outcome) && entry.duration_ms > 0).then_some(entry.duration_ms)
}

fn change(judged: &[&Outcome]) -> Option<TrendChange> {
    let passed = |outcome: &Outcome| *outcome == Outcome::Pass;
    let changes = judged.windows(2).filter(|pair| passed(pair[0]) != passed(pair[1])).count();
    let first = judged.first()?;
    match (changes, **first == Outcome::Pass) {
        (0, _) => None,
        (1, true) => Some(TrendChange::Worse),
        (1, false) => Some(TrendChange::Better),
        _ => Some(TrendChange::Flaky),
    }
}

fn is_slower(took_ms: &[Option<u64>], judged: &[&Outcome]) -> bool {
    let Some((Some(last), before)) = took_ms.split_last() else { return false };
    let before: Vec<u64> = before.iter().copied().flatten().collect();
    judged.iter().all(|outcome| **outcome == Outcome::Pass)
        && median(before)
            .is_some_and(|usual| *last >= usual * SLOWER_BY && last - usual >= SLOWER_AT_LEAST_MS)
}

/// The median; `None` for too few values.
fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    (values.len() >= FOR_A_MEDIAN).then(|| values[values.len() / 2])
}

impl fmt::Display for Trend {
    /// A line for each run and one for each check, with one mark for each run in order.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, run) in self.runs.iter().enumerate() {
            let image = if run.image.is_empty() { String::new() } else { format!(" ({})", run.image) };
            let TrendRun { report, started, profile, kubernetes, .. } = run;
            let minute = started.get(..16).unwrap_or(started).replace('T', " ");
            writeln!(f, "{:>3}  {minute}  {profile}{image}, Kubernetes {kubernetes}  {report}", at + 1)?;
        }
        for repeated in &self.repeated {
            writeln!(f, "note: {repeated}")?;
        }
        writeln!(f)?;
        if !self.checks.is_empty() {
            writeln!(f, "marks: . pass, F fail, B blocked; not judged: E environment error, - other")?;
        }
        let width = self.checks.iter().map(|check| check.id.len()).max().unwrap_or(0);
        for check in &self.checks {
            let change = match check.change {
                TrendChange::Worse => "worse",
                TrendChange::Flaky => "flaky",
                TrendChange::Better => "better",
                TrendChange::Slower => "slower",
            };
            let marks: String = check.outcomes.iter().map(|outcome| mark(outcome)).collect();
            write!(f, "{change:<6}  {:<width$}  {marks}", check.id)?;
            if check.change == TrendChange::Slower {
                let before = &check.took_ms[..check.took_ms.len() - 1];
                let usual = median(before.iter().copied().flatten().collect()).unwrap_or(0);
                let last = check.took_ms.last().copied().flatten().unwrap_or(0);
                write!(f, "  {:.1} s, before {:.1} s", seconds(last), seconds(usual))?;
            }
            writeln!(f)?;
        }
        let of = |change: TrendChange| self.checks.iter().filter(|check| check.change == change).count();
        writeln!(
            f,
            "{} runs: {} worse, {} flaky, {} better, {} slower",
            self.runs.len(),
            of(TrendChange::Worse),
            of(TrendChange::Flaky),
            of(TrendChange::Better),
            of(TrendChange::Slower)
        )
    }
}

fn mark(outcome: &str) -> char {
    match outcome {
        "pass" => '.',
        "fail" => 'F',
        "blocked" => 'B',
        "error" => 'E',
        _ => '-',
    }
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Level;
    use harness_core::ledger::{SkipReason, Subject};

    const MARKS: [(char, fn() -> Outcome); 5] = [
        ('.', || Outcome::Pass),
        ('F', || Outcome::Fail { message: String::new() }),
        ('B', || Outcome::Blocked { by: "OBS-10".to_owned(), message: String::new() }),
        ('E', || Outcome::Error { message: String::new() }),
        ('-', || Outcome::Skip { reason: SkipReason::Deselected, detail: String::new() }),
    ];

    /// Runs in which a check had the outcomes of these marks, and took that many seconds.
    fn runs(marks: &str, seconds: &[u64]) -> Vec<(String, Ledger)> {
        let run = |(at, mark): (usize, char)| {
            let (_, outcome) = MARKS.iter().find(|(known, _)| *known == mark).expect("a mark");
            let mut entry = Entry::sample("A-01", Level::Must, outcome());
            entry.duration_ms = seconds.get(at).copied().unwrap_or(1) * 1_000;
            let subject = Subject { profile: "acme".to_owned(), ..Subject::default() };
            let started = format!("2026-03-{:02}T12:00:00Z", at + 1);
            (
                format!("{at}/report.yaml"),
                Ledger { subject, entries: vec![entry], started, ..Ledger::default() },
            )
        };
        marks.chars().enumerate().map(run).collect()
    }

    #[test]
    fn a_change_is_named_by_how_often_the_outcome_changed() {
        for (marks, change) in [
            ("....", None),
            ("..FF", Some(TrendChange::Worse)),
            (".F", Some(TrendChange::Worse)),
            ("FF..", Some(TrendChange::Better)),
            ("FE", None),
            (".E.", None),
            (".F.F", Some(TrendChange::Flaky)),
            ("..F.", Some(TrendChange::Flaky)),
            (".-.-", None),
            ("-.", None),
            (".B", Some(TrendChange::Worse)),
            ("BBB.", Some(TrendChange::Better)),
            ("FBF", None),
        ] {
            let trend = trend(runs(marks, &[])).expect("runs");
            assert_eq!(trend.checks.first().map(|check| check.change), change, "{marks}");
        }
    }

    #[test]
    fn a_check_is_slower_than_the_median_of_earlier_runs() {
        for (seconds, slower) in
            [(&[4, 4, 9][..], true), (&[4, 4, 7], false), (&[4, 9], false), (&[4, 20, 4, 9], true)]
        {
            let trend = trend(runs(&".".repeat(seconds.len()), seconds)).expect("runs");
            assert_eq!(!trend.checks.is_empty(), slower, "{seconds:?}");
        }
    }

    #[test]
    fn runs_are_in_order_of_their_start_whatever_the_order_of_files() {
        let mut all = runs("..F", &[]);
        all.reverse();
        let text = trend(all).expect("runs").to_string();
        assert!(text.contains("\nworse   A-01  ..F\n"), "{text}");
        assert!(text.ends_with("3 runs: 1 worse, 0 flaky, 0 better, 0 slower\n"), "{text}");
    }

    #[test]
    fn a_run_counts_once_and_its_second_report_is_named() {
        let mut all = runs(".F", &[]);
        all.push(("copy/report.yaml".to_owned(), all[1].1.clone()));
        all.push(all[0].clone());
        let trend = trend(all).expect("two runs");
        assert_eq!((trend.runs.len(), trend.repeated.len(), trend.checks[0].outcomes.len()), (2, 2, 2));
        let text = trend.to_string();
        assert!(
            text.contains("\nnote: copy/report.yaml is a report of the same run as 1/report.yaml, and"),
            "{text}"
        );
        assert!(text.contains("\nnote: 0/report.yaml was named twice, and counts once\n"), "{text}");
        let once = runs(".", &[]);
        let refused = super::trend([once.clone(), once].concat()).expect_err("one run");
        assert_eq!(
            refused,
            "a trend needs at least two runs, and there is 1; 0/report.yaml was named twice, and counts once"
        );
    }

    #[test]
    fn reports_of_different_ccms_are_refused() {
        let mut all = runs("..", &[]);
        all[1].1.subject.profile = "other".to_owned();
        assert!(trend(all).expect_err("two CCMs").contains("different CCMs (acme, other)"));
        assert!(trend(runs(".", &[])).expect_err("one run").contains("at least two runs"));
    }
}
