//! The table of what the model says and what was measured. Pure.

use super::Question;
use bootstrap::Outcome;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What a cluster did with a variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measured {
    /// It was seen to the end.
    Seen {
        /// How the boot ended.
        outcome: Outcome,
        /// Whether the CCM was seen to be evicted on the way, where that was provoked.
        evicted: Option<bool>,
        /// What was missing at the end of an order that did not boot.
        missing: Option<String>,
    },
    /// This cluster cannot show it.
    NotObservable {
        /// Why.
        why: String,
    },
    /// The machinery failed: neither for nor against the model.
    Failed {
        /// Why.
        why: String,
    },
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was asked.
    pub question: Question,
    /// What was seen.
    pub measured: Measured,
}

/// How many lines ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Model and measurement are the same.
    pub agree: usize,
    /// They are not.
    pub disagree: usize,
    /// The cluster cannot show it.
    pub not_observable: usize,
    /// The machinery failed.
    pub failed: usize,
}

impl Row {
    /// Whether model and measurement are the same; `None` when nothing was measured.
    pub fn agrees(&self) -> Option<bool> {
        match &self.measured {
            Measured::Seen { outcome, evicted, .. } => {
                let eviction = evicted.is_none_or(|seen| seen == self.question.cell.eviction.is_some());
                Some(*outcome == self.question.cell.outcome && eviction)
            }
            Measured::NotObservable { .. } | Measured::Failed { .. } => None,
        }
    }

    fn name(&self) -> String {
        let cluster = &self.question.cell.cluster;
        format!("{} with CNI {}", cluster.topology, cluster.cni)
    }

    fn model(&self) -> String {
        let star = if self.question.cell.eviction.is_some() && self.question.case.evicted { " *" } else { "" };
        format!("{}{star}", self.question.cell.outcome)
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

    /// What a reader needs besides the verdict.
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

/// The whole table, then a line for each variant.
pub fn show(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut line = |columns: [&str; 5]| {
        let [variant, cell, model, measured, agrees] = columns;
        let full = format!("{variant:<36} {cell:<53} {model:<25} {measured:<25} {agrees}");
        text.push_str(full.trim_end());
        text.push('\n');
    };
    line(["variant", "cell", "model", "measured", "agrees"]);
    for row in rows {
        let agrees = match row.agrees() {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "-",
        };
        line([&row.question.case.name, &row.name(), &row.model(), &row.seen(), agrees]);
        if row.agrees() == Some(false) || matches!(row.measured, Measured::Failed { .. }) {
            let note = row.note().unwrap_or_default();
            line(["", &note, "", "", ""]);
        }
    }
    let _ = writeln!(text, "\n{:<36} {:>8} {:>8} {:>15}", "variant", "measured", "agree", "not observable");
    let mut variants: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    for row in rows {
        variants.entry(&row.question.case.name).or_default().push(row.clone());
    }
    for (name, rows) in &variants {
        let Tally { agree, disagree, not_observable, .. } = tally(rows);
        let _ = writeln!(text, "{name:<36} {:>8} {agree:>8} {not_observable:>15}", agree + disagree);
    }
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows.iter().filter(|row| matches!(row.measured, Measured::NotObservable { .. })) {
        *reasons.entry(row.note().unwrap_or_default()).or_default() += 1;
    }
    for (reason, count) in reasons {
        let _ = writeln!(text, "not observable ({count}): {reason}");
    }
    let all = tally(rows);
    let _ = writeln!(
        text,
        "{} cells: {} agree, {} disagree, {} not observable, {} failed",
        rows.len(),
        all.agree,
        all.disagree,
        all.not_observable,
        all.failed
    );
    text
}
