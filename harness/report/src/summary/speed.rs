//! Where the time of a run went.

use super::{is_blocked, seconds};
use harness_core::ledger::{Entry, Ledger, StageTime};
use std::fmt::Write as _;

/// The name of the stage in which the checks run. Earlier stages create the environment, later ones remove it.
pub const CHECKS_STAGE: &str = "checks";

/// The stages, and the slowest checks.
pub(super) fn speed(ledger: &Ledger, text: &mut String) {
    put!(text, "\nSpeed");
    let at = ledger.stages.iter().position(|s| s.stage == CHECKS_STAGE).unwrap_or(ledger.stages.len());
    let (up, rest) = ledger.stages.split_at(at);
    let (checks, down) = rest.split_at(rest.len().min(1));
    // What blocks a check says how long it waited, not how slow it is.
    let ran: Vec<&Entry> = ledger.all().filter(|e| e.duration_ms > 0 && !is_blocked(e)).collect();
    let one_by_one: u64 = ran.iter().map(|e| e.duration_ms).sum();
    let sum = |stages: &[StageTime]| stages.iter().map(|s| s.took_ms).sum::<u64>();
    // Stages overlap.
    let all_up = sum(up).min(ledger.duration_ms.saturating_sub(sum(rest)));
    let mut rows = vec![(String::from("environment up"), all_up, String::new())];
    rows.extend(up.iter().map(|s| (format!("  {}", s.stage), s.took_ms, String::new())));
    if !ran.is_empty() {
        // An interrupted run has not ended this stage.
        let took = checks.first().map_or(ledger.duration_ms.saturating_sub(all_up), |s| s.took_ms);
        let note =
            format!("  ({} ran; their times add up to {}; the slowest:)", ran.len(), seconds(one_by_one));
        rows.push((String::from("checks"), took, note));
        let mut slowest = ran;
        slowest.sort_by_key(|e| (std::cmp::Reverse(e.duration_ms), e.id.clone()));
        rows.extend(slowest.into_iter().take(5).map(|e| {
            let used = e.budget_used_percent.map(|p| format!("  ({p} % of its budget)")).unwrap_or_default();
            (format!("  {}", e.id), e.duration_ms, used)
        }));
    }
    rows.extend(down.iter().map(|s| (s.stage.clone(), s.took_ms, String::new())));
    rows.push((String::from("whole run"), ledger.duration_ms, String::new()));
    let width = rows.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
    for (name, took, note) in rows {
        put!(text, "  {name:<width$}  {:>8}{note}", seconds(took));
    }
}
