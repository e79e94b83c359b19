//! Creates the output for people and machines from a [`Ledger`](harness_core::ledger::Ledger): `report.yaml`, `junit.xml`,
//! `report.html`, the summary on the terminal, the exit code, and the difference between two runs.
//!
//! Pure functions: no clock, no files, no network. The same ledger always gives the same text.

mod badge;
mod common_causes;
mod compare;
mod envelope;
pub mod exit;
mod export;
mod failure_text;
mod file;
mod github;
mod golden;
mod junit;
mod manifest_findings;
mod page;
mod profile_result;
mod site;
mod sonobuoy;
mod statement;
mod submission;
mod summary;
#[cfg(test)]
mod tests;
mod trend;
mod verify;
mod versions;
mod wording;

pub use badge::to_badge;
pub use common_causes::{CommonCause, alike, common_causes};
pub use compare::{Change, Difference, Flake, compare, flakes};
pub use envelope::{EnvelopeError, PublicKey, SigningKey, open_envelope, sealed};
pub use exit::exit_code;
pub use export::{ProwFile, to_otlp, to_prow, to_sarif};
pub use failure_text::expected_and_seen;
pub use file::{ParseError, Written, parse, read, schema, to_yaml};
pub use github::{Job as GithubJob, annotations, step_summary};
pub use golden::{Golden, GoldenCheck};
pub use junit::to_junit;
pub use page::{
    Demand, Demands, Evidence, Material as PageMaterial, Side, live_head, live_page, to_comparison, to_page,
};
pub use site::{Submitted, to_badge_svg, to_site_index};
pub use sonobuoy::{SONOBUOY_RESULTS, to_sonobuoy};
pub use statement::{Digests, statement};
pub use submission::{ABOUT_FILE, About, MadeBy, Row, broken_rules, minor_folder, table};
pub use summary::{CHECKS_STAGE, summary, summary_without_verdict, verdict_line};
pub use trend::{Trend, TrendChange, TrendCheck, TrendRun, trend};
pub use verify::{Finding, Material, ShownFindings, StreamFacts, sha256_digest, shown, verify};
pub use versions::{VersionCheck, VersionRun, Versions, to_versions_page, versions};
pub use wording::{because, outcome_word, verdict_word};
