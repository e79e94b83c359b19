//! Collects the data of run pages: streams and the evidence next to them, as far as they can be read.

use harness_config::contract::{Contract, Row};
use harness_core::check::{chain, row_of};
use harness_core::events::open_stream;
use harness_core::files;
use harness_core::ledger::{Entry, Ledger};
use harness_report::{Demand, Demands, Evidence, PageMaterial, to_page};
use std::collections::BTreeSet;
use std::fs::{DirEntry, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Component, Path, PathBuf};

/// How much of an evidence file goes into the page, from its end, in bytes.
const OF_A_FILE: u64 = 64 << 10;
/// How much of all evidence goes into it, in bytes.
const OF_ALL: usize = 4 << 20;

/// Makes the page of the run with this stream. Evidence is expected next to the stream.
///
/// # Errors
/// A message, if the stream cannot be read.
pub(super) fn page_of(ledger: &Ledger, stream: &Path) -> Result<String, String> {
    let material = material(ledger, stream).map_err(|error| format!("{}: {error}", stream.display()))?;
    to_page(ledger, &material, &demands(&[ledger])?).map_err(|error| chain(&error))
}

/// The data of a run apart from its ledger: its stream, packed or not, and the evidence next to it.
///
/// # Errors
/// The stream cannot be read.
pub fn material(ledger: &Ledger, stream: &Path) -> std::io::Result<PageMaterial> {
    let mut events = Vec::new();
    open_stream(stream)?.read_to_end(&mut events)?;
    Ok(PageMaterial {
        events: String::from_utf8_lossy(&events).into_owned(),
        evidence: evidence(ledger.all(), stream.parent().unwrap_or(stream)),
    })
}

/// The requirements of the rows that the checks of these runs judge.
///
/// # Errors
/// Only if the built-in contract cannot be read.
pub fn demands(ledgers: &[&Ledger]) -> Result<Demands, String> {
    let contract = Contract::built_in().map_err(|error| chain(&error))?;
    let entries = ledgers.iter().flat_map(|ledger| &ledger.entries);
    let judged: BTreeSet<&str> = entries.map(|entry| row_of(&entry.id)).collect();
    let rows = contract.rows().map(|(_, row)| row).filter(|row| judged.contains(row.id.as_str()));
    let demand = |row: &Row| Demand {
        requires: row.requires.clone(),
        why: row.why.clone(),
        provoked: row.provoked.clone(),
    };
    Ok(rows.map(|row| (row.id.clone(), demand(row))).collect())
}

/// The evidence files of these checks below a folder. For a file that cannot be read, the text is the reason.
pub(super) fn evidence<'a>(entries: impl IntoIterator<Item = &'a Entry>, folder: &Path) -> Evidence {
    let mut all = Evidence::new();
    let mut room = OF_ALL;
    for entry in entries {
        let Some(evidence) = entry.evidence.as_ref().and_then(|named| within(folder, Path::new(named)))
        else {
            continue;
        };
        let Ok(files) = std::fs::read_dir(&evidence) else { continue };
        let is_file = |file: &DirEntry| file.file_type().is_ok_and(|kind| kind.is_file());
        let mut files: Vec<_> = files.flatten().filter(is_file).collect();
        files.sort_by_key(DirEntry::file_name);
        for file in files {
            let text = end_of(&file.path())
                .unwrap_or_else(|error| format!("could not be read: {}", files::why(&error)));
            let Some(left) = room.checked_sub(text.len()) else { return all };
            room = left;
            let name = file.file_name().to_string_lossy().into_owned();
            all.entry(entry.id.clone()).or_default().push((name, text));
        }
    }
    all
}

/// An evidence folder, only if it is below the stream's folder: a foreign stream must not name a folder of the user.
fn within(folder: &Path, named: &Path) -> Option<PathBuf> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let plain = named.components().all(|part| matches!(part, Component::Normal(_)));
    let found = folder.join(named).canonicalize().ok()?;
    (plain && found.starts_with(folder.canonicalize().ok()?)).then_some(found)
}

/// The end of a file's text.
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
    use harness_core::check::Level;
    use harness_core::ledger::Outcome;

    fn failed(id: &str, evidence: &str) -> Entry {
        let outcome = Outcome::Fail { message: "no".to_owned() };
        Entry { evidence: Some(evidence.to_owned()), ..Entry::sample(id, Level::Must, outcome) }
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
        let evidence = evidence(&ledger.entries, folder.path());
        assert_eq!(evidence.keys().collect::<Vec<_>>(), ["A-01"]);
        let [(first, short), (second, long)] = evidence["A-01"].as_slice() else { panic!("{evidence:?}") };
        assert_eq!((first.as_str(), short.as_str(), second.as_str()), ("a.txt", "short", "b.log"));
        assert!(long.starts_with("[the last 64 of 100 kB]\n") && long.ends_with("END"));
        // A foreign stream must not name a folder of the user, or lead to one of the user's files.
        let output = folder.path().join("output");
        std::fs::create_dir_all(output.join("evidence/A-03")).expect("a folder");
        std::os::unix::fs::symlink(of_a.join("a.txt"), output.join("evidence/A-03/a.txt")).expect("a link");
        std::os::unix::fs::symlink(&of_a, output.join("evidence/A-04")).expect("a link");
        let outside = [of_a.to_str().expect("UTF-8"), "../evidence/A-01", "evidence/A-03", "evidence/A-04"];
        let outside = outside.map(|evidence| failed("A-01", evidence));
        assert_eq!(super::evidence(&outside, &output), Evidence::new());
        let missing = page_of(&ledger, &folder.path().join("events.jsonl")).expect_err("no stream");
        assert!(missing.contains("events.jsonl: there is no such file"), "{missing}");
    }
}
