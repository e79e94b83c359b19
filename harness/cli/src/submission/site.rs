//! `submission site`: submitted reports as a static web site.

use super::folder::{read, refused, submissions_in, written};
use crate::report_file::REPORT_FILE;
use embedded_cluster::KubernetesVersion;
use harness_core::check::chain;
use harness_core::events::PACKED_EVENTS_FILE;
use harness_core::files;
use harness_core::output;
use harness_report::{Submitted, exit, minor_folder, to_badge, to_badge_svg, to_page, to_site_index};
use harness_runner::{demands, material};
use std::fs;
use std::path::Path;

/// Writes the site. Every report is verified first; one that is refused ends it with exit code 1 and without a site.
pub(super) fn site(folder: &Path, out: &Path) -> Result<u8, String> {
    if out.exists() {
        return Err(format!("{} exists already; remove it, or name another folder", out.display()));
    }
    let mut reports = Vec::new();
    for place in submissions_in(&[folder.to_owned()])? {
        let (run, about, broken) = read(&place)?;
        if !broken.is_empty() {
            return Ok(refused(&place, &broken));
        }
        reports.push((place, Submitted { about, ledger: run.report().clone() }));
    }
    let result = reports.iter().try_for_each(|(place, report)| page(place, report, out)).and_then(|()| {
        let reports: Vec<Submitted> = reports.into_iter().map(|(_, report)| report).collect();
        let index = to_site_index(&reports, KubernetesVersion::default().minor());
        written(&out.join("index.html"), index.as_bytes())
    });
    if result.is_err() {
        // Ours since a moment ago.
        let _ = fs::remove_dir_all(out);
    }
    result?;
    output::out(&format!("{}\n", out.join("index.html").display()));
    Ok(exit::CONFORMANT)
}

/// The page of a report, its badge, and the files from which others can verify it.
fn page(place: &Path, Submitted { about, ledger }: &Submitted, out: &Path) -> Result<(), String> {
    let minor = minor_folder(ledger).ok_or_else(|| format!("{}: it names no version", place.display()))?;
    let to = out.join(minor).join(&about.vendor);
    let stream = place.join(PACKED_EVENTS_FILE);
    let material = material(ledger, &stream).map_err(|error| format!("{}: {error}", stream.display()))?;
    let page = to_page(ledger, &material, &demands(&[ledger])?).map_err(|error| chain(&error))?;
    written(&to.join("index.html"), page.as_bytes())?;
    written(&to.join("badge.svg"), to_badge_svg(ledger).as_bytes())?;
    written(&to.join("badge.json"), to_badge(ledger).as_bytes())?;
    for name in [REPORT_FILE, PACKED_EVENTS_FILE] {
        let from = place.join(name);
        let bytes = fs::read(&from).map_err(|error| format!("{}: {}", from.display(), files::why(&error)))?;
        written(&to.join(name), &bytes)?;
    }
    Ok(())
}
