//! What the page of a run is made of: its stream and the evidence beside it, as far as they can be read.

use crate::check::{chain, row_of};
use crate::contract::{Contract, Row};
use crate::ledger::Ledger;
use crate::report::{Demand, Evidence, PageMaterial, to_page};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// What of a file of evidence goes into the page, its end, bytes.
const OF_A_FILE: u64 = 64 << 10;
/// What of all evidence goes into it, bytes.
const OF_ALL: usize = 4 << 20;

/// The page of the run whose stream this is. Evidence is looked for beside it.
///
/// # Errors
/// In words, when the stream cannot be read.
pub(super) fn page_of(ledger: &Ledger, stream: &Path) -> Result<String, String> {
    let events = std::fs::read(stream).map_err(|error| format!("{}: {error}", stream.display()))?;
    let material = PageMaterial {
        events: String::from_utf8_lossy(&events).into_owned(),
        evidence: evidence(ledger, stream.parent().unwrap_or(Path::new("."))),
        demands: demands(ledger)?,
    };
    to_page(ledger, &material).map_err(|error| chain(&error))
}

/// What the rows of these checks demand.
fn demands(ledger: &Ledger) -> Result<BTreeMap<String, Demand>, String> {
    let contract = Contract::built_in().map_err(|error| chain(&error))?;
    let judged: BTreeSet<&str> = ledger.entries.iter().map(|entry| row_of(&entry.id)).collect();
    let rows = contract.rows().map(|(_, row)| row).filter(|row| judged.contains(row.id.as_str()));
    let demand = |row: &Row| Demand {
        requires: row.requires.clone(),
        why: row.why.clone(),
        provoked: row.provoked.clone(),
    };
    Ok(rows.map(|row| (row.id.clone(), demand(row))).collect())
}

/// The files of evidence below a folder. One that cannot be read says so in place of it.
fn evidence(ledger: &Ledger, folder: &Path) -> Evidence {
    let mut all = Evidence::new();
    let mut room = OF_ALL;
    for entry in &ledger.entries {
        let Some(folder) = entry.evidence.as_ref().map(|relative| folder.join(relative)) else { continue };
        let Ok(files) = std::fs::read_dir(&folder) else { continue };
        let mut files: Vec<_> = files.flatten().collect();
        files.sort_by_key(std::fs::DirEntry::file_name);
        for file in files {
            let text = end_of(&file.path()).unwrap_or_else(|error| format!("could not be read: {error}"));
            let Some(left) = room.checked_sub(text.len()) else { return all };
            room = left;
            let name = file.file_name().to_string_lossy().into_owned();
            all.entry(entry.id.clone()).or_default().push((name, text));
        }
    }
    all
}

/// The last of a file's text.
fn end_of(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let cut = length.saturating_sub(OF_A_FILE);
    file.seek(SeekFrom::Start(cut))?;
    let mut bytes = Vec::new();
    file.take(OF_A_FILE).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(match cut {
        0 => text.into_owned(),
        _ => format!("[the last {} of {} kB]\n{text}", OF_A_FILE >> 10, length >> 10),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Level, Sharing};
    use crate::ledger::{Entry, Outcome};

    fn failed(id: &str, evidence: &str) -> Entry {
        Entry {
            id: id.to_owned(),
            suite: "suite".to_owned(),
            title: "claim".to_owned(),
            level: Level::Must,
            sharing: Sharing::Shared,
            outcome: Outcome::Fail { message: "no".to_owned() },
            duration_ms: 1,
            budget_used_percent: None,
            evidence: Some(evidence.to_owned()),
            started: String::new(),
            facts: BTreeMap::new(),
        }
    }

    #[test]
    fn evidence_is_read_to_its_limits_and_what_is_not_there_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let of_a = folder.path().join("evidence/A-01");
        std::fs::create_dir_all(&of_a).expect("a folder");
        std::fs::write(of_a.join("b.log"), format!("{}END", "x".repeat(100 << 10))).expect("a file");
        std::fs::write(of_a.join("a.txt"), "short").expect("a file");
        let entries = vec![failed("A-01", "evidence/A-01"), failed("A-02", "evidence/A-02")];
        let ledger = Ledger { entries, ..Ledger::default() };
        let evidence = evidence(&ledger, folder.path());
        assert_eq!(evidence.keys().collect::<Vec<_>>(), ["A-01"]);
        let [(first, short), (second, long)] = evidence["A-01"].as_slice() else { panic!("{evidence:?}") };
        assert_eq!((first.as_str(), short.as_str(), second.as_str()), ("a.txt", "short", "b.log"));
        assert!(long.starts_with("[the last 64 of 100 kB]\n") && long.ends_with("END"));
        let missing = page_of(&ledger, &folder.path().join("events.jsonl")).expect_err("no stream");
        assert!(missing.contains("events.jsonl: No such file"), "{missing}");
    }
}
