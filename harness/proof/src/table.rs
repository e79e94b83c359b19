//! The table of the model's results and the measurements. Pure functions.

use super::question::Question;
use bootstrap::Outcome;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The result of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measured {
    /// It was observed to the end.
    Seen {
        /// How the boot ended.
        outcome: Outcome,
        /// Whether the CCM was evicted during the boot, if that was provoked.
        evicted: Option<bool>,
        /// What was missing at the end of an order that did not boot.
        missing: Option<String>,
    },
    /// This cluster cannot show it.
    NotObservable {
        /// The reason.
        why: String,
    },
    /// The measurement failed: no evidence for or against the model.
    Failed {
        /// The reason.
        why: String,
    },
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// The cell.
    pub question: Question,
    /// The measurement.
    pub measured: Measured,
}

/// The number of lines with each result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Model and measurement agree.
    pub agree: usize,
    /// They disagree.
    pub disagree: usize,
    /// The cluster cannot show it.
    pub not_observable: usize,
    /// The measurement failed.
    pub failed: usize,
}

/// Why a cell was not measured if the user interrupted the proof.
pub(crate) const INTERRUPTED: &str = "interrupted";

impl Row {
    /// Whether the user interrupted the proof before it was measured.
    pub fn is_interrupted(&self) -> bool {
        matches!(&self.measured, Measured::Failed { why } if why == INTERRUPTED)
    }

    /// Whether model and measurement agree; `None` if nothing was measured.
    pub fn agrees(&self) -> Option<bool> {
        match &self.measured {
            Measured::Seen { outcome, evicted, .. } => {
                let eviction = evicted.is_none_or(|seen| seen == self.question.cell.eviction.is_some());
                let expected = match (self.question.cell.outcome, &self.question.case.unmet) {
                    (Outcome::BootsIf, None) => Outcome::Boots,
                    (Outcome::BootsIf, Some(_)) => Outcome::Deadlock,
                    (outcome, _) => outcome,
                };
                Some(*outcome == expected && eviction)
            }
            Measured::NotObservable { .. } | Measured::Failed { .. } => None,
        }
    }

    fn name(&self) -> String {
        let cluster = &self.question.cell.cluster;
        format!("{} with CNI {}", cluster.topology, cluster.cni)
    }

    fn model(&self) -> String {
        let star =
            if self.question.cell.eviction.is_some() && self.question.case.evicted { " *" } else { "" };
        let unmet = match (self.question.cell.outcome, &self.question.case.unmet) {
            (Outcome::BootsIf, Some(why)) => format!(" (here {why})"),
            (Outcome::BootsIf, None) => " (true on this cluster)".to_owned(),
            _ => String::new(),
        };
        format!("{}{unmet}{star}", self.question.cell.outcome)
    }

    fn seen(&self) -> String {
        match &self.measured {
            Measured::Seen { outcome, evicted, .. } => {
                format!("{outcome}{}", if *evicted == Some(true) { " *" } else { "" })
            }
            Measured::NotObservable { .. } => "not observable".to_owned(),
            Measured::Failed { .. } => "failed".to_owned(),
        }
    }

    /// A remark for the reader, in addition to the verdict.
    fn note(&self) -> Option<String> {
        match &self.measured {
            Measured::NotObservable { why } | Measured::Failed { why } => Some(why.clone()),
            Measured::Seen { missing, .. } if self.agrees() == Some(false) => {
                let missing = missing.clone().unwrap_or_else(|| "nothing was missing".to_owned());
                Some(format!("on the cluster: {missing}"))
            }
            Measured::Seen { .. } => None,
        }
    }
}

/// Counts lines.
pub fn tally(rows: &[Row]) -> Tally {
    let mut tally = Tally::default();
    for row in rows {
        *match (&row.measured, row.agrees()) {
            (Measured::NotObservable { .. }, _) => &mut tally.not_observable,
            (_, Some(true)) => &mut tally.agree,
            (_, Some(false)) => &mut tally.disagree,
            (_, None) => &mut tally.failed,
        } += 1;
    }
    tally
}

/// The whole table, then a line for each variant, then the reasons of cells that cannot be shown.
pub fn show(rows: &[Row]) -> String {
    let mut lines = vec![["variant", "cell", "model", "measured", "agrees"].map(str::to_owned)];
    for row in rows {
        let agrees = match row.agrees() {
            Some(true) => "yes".to_owned(),
            Some(false) => format!("NO: {}", row.note().unwrap_or_default()),
            None if matches!(row.measured, Measured::Failed { .. }) => row.note().unwrap_or_default(),
            None => "-".to_owned(),
        };
        lines.push([row.question.case.name.clone(), row.name(), row.model(), row.seen(), agrees]);
    }
    let mut text = aligned(&lines);
    let mut lines = vec![["variant", "measured", "agree", "not observable"].map(str::to_owned)];
    let mut variants: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    for row in rows {
        variants.entry(&row.question.case.name).or_default().push(row.clone());
    }
    for (name, rows) in &variants {
        let Tally { agree, disagree, not_observable, .. } = tally(rows);
        let numbers = [agree + disagree, agree, not_observable].map(|number| number.to_string());
        let [measured, agree, not_observable] = numbers;
        lines.push([(*name).to_owned(), measured, agree, not_observable]);
    }
    text.push('\n');
    text.push_str(&aligned(&lines));
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows.iter().filter(|row| matches!(row.measured, Measured::NotObservable { .. })) {
        *reasons.entry(row.note().unwrap_or_default()).or_default() += 1;
    }
    text.push('\n');
    for (reason, count) in reasons {
        let _ = writeln!(text, "not observable ({count}): {reason}");
    }
    let Tally { agree, disagree, not_observable, failed } = tally(rows);
    let _ = writeln!(
        text,
        "{} cells: {agree} agree, {disagree} disagree, {not_observable} not observable, {failed} failed",
        rows.len()
    );
    text
}

/// Lines with aligned columns; the last one takes the rest of the line.
fn aligned<const N: usize>(lines: &[[String; N]]) -> String {
    let mut text = String::new();
    for line in lines {
        for (column, cell) in line.iter().enumerate() {
            let widest = lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
            let width = if column + 1 == N { 0 } else { widest };
            let _ = write!(text, "{}{cell:<width$}", if column == 0 { "" } else { "  " });
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::questions;
    use super::*;

    fn row(case: &str, measured: Measured) -> Row {
        let all = questions(&[case.to_owned()]).expect("a variant of ours");
        Row { question: all.into_iter().next().expect("it has cells"), measured }
    }

    fn seen(outcome: Outcome, evicted: Option<bool>) -> Measured {
        Measured::Seen { outcome, evicted, missing: Some("no Node".to_owned()) }
    }

    #[test]
    fn only_what_was_seen_agrees_or_not() {
        let name = "good-deployment";
        assert_eq!(row(name, seen(Outcome::Boots, None)).agrees(), Some(true));
        assert_eq!(row(name, seen(Outcome::Deadlock, None)).agrees(), Some(false));
        assert_eq!(row(name, seen(Outcome::SomeOrders, None)).agrees(), Some(false));
        assert_eq!(row(name, Measured::NotObservable { why: "x".to_owned() }).agrees(), None);
        assert_eq!(row(name, Measured::Failed { why: "x".to_owned() }).agrees(), None);
        let evicted = "short-toleration";
        assert_eq!(row(evicted, seen(Outcome::Boots, Some(true))).agrees(), Some(true));
        assert_eq!(row(evicted, seen(Outcome::Boots, Some(false))).agrees(), Some(false));
    }

    #[test]
    fn a_disagreement_says_what_was_missing_and_everything_is_counted() {
        let name = "good-deployment";
        let rows = [
            row(name, seen(Outcome::Boots, None)),
            row(name, seen(Outcome::Deadlock, None)),
            row(name, Measured::NotObservable { why: "no such machine".to_owned() }),
            row(name, Measured::Failed { why: "no port".to_owned() }),
        ];
        let text = show(&rows);
        assert!(text.contains("NO: on the cluster: no Node"), "{text}");
        assert!(text.contains("not observable (1): no such machine"), "{text}");
        assert!(text.ends_with("4 cells: 1 agree, 1 disagree, 1 not observable, 1 failed\n"), "{text}");
    }
}
