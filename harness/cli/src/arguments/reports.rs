//! The options of commands that read the results of runs.

use super::values::ListOutput;
use clap::Args;
use harness_report::sha256_digest;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CompareOptions {
    /// Output format
    #[arg(long, value_enum, default_value_t = ListOutput::Text)]
    pub(crate) output: ListOutput,
    /// Only checks that both runs judged
    #[arg(long)]
    pub(crate) judged: bool,
    /// Also write an HTML page that compares both runs, with details if events.jsonl is next to each report
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// The earlier report.yaml
    #[arg(value_name = "OLD")]
    pub(crate) before: PathBuf,
    /// The later report.yaml
    #[arg(value_name = "NEW")]
    pub(crate) after: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct MergeOptions {
    /// Output folder of each part, in any order
    #[arg(value_name = "DIR", required = true)]
    pub(crate) shards: Vec<PathBuf>,
    /// Folder for the merged results
    #[arg(long, value_name = "DIR", default_value = "conformance-results")]
    pub(crate) out: PathBuf,
    /// Exit with 1 if the result is partial; implied if the parts were run with --certify
    #[arg(long)]
    pub(crate) require_complete: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayOptions {
    /// Event stream of the run: events.jsonl or events.jsonl.gz
    #[arg(value_name = "FILE")]
    pub(crate) events: PathBuf,
    /// Folder for report.yaml, junit.xml and report.html [default: that of the stream]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyOptions {
    /// A report.yaml
    #[arg(value_name = "REPORT", required_unless_present = "attestation")]
    pub(crate) report: Option<PathBuf>,
    /// Event stream of its run [default: events.jsonl or events.jsonl.gz next to the report]
    #[arg(long, value_name = "FILE", requires = "report")]
    pub(crate) events: Option<PathBuf>,
    /// Digest that the tested image or program must have: sha256:HEX or IMAGE@sha256:HEX
    #[arg(long, value_name = "DIGEST", value_parser = sha256_digest)]
    pub(crate) image: Option<String>,
    /// A signed attestation; with a report, it must be about that report
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) attestation: Option<PathBuf>,
    /// Public key of the attestation, in PEM
    #[arg(long, value_name = "PUBLIC", requires = "attestation")]
    pub(crate) key: Option<PathBuf>,
    /// Exit with 1 if the result is partial
    #[arg(long)]
    pub(crate) require_complete: bool,
    /// Output format; 'json' has every reason of a refusal, 'text' the first of each kind
    #[arg(long, value_enum, default_value_t = ListOutput::Text)]
    pub(crate) output: ListOutput,
}

#[derive(Debug, Args)]
pub(crate) struct AttestOptions {
    /// A report.yaml
    #[arg(value_name = "REPORT")]
    pub(crate) report: PathBuf,
    /// Event stream of its run [default: events.jsonl or events.jsonl.gz next to the report]
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Private key: PEM, PKCS#8, ECDSA P-256 or Ed25519 [default: print the unsigned statement]
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// URL of the run, such as a CI job
    #[arg(long, value_name = "URL", value_parser = web_address)]
    pub(crate) url: Option<String>,
}

/// Checks that this is the address of a page.
fn web_address(text: &str) -> Result<String, String> {
    match text.starts_with("https://") || text.starts_with("http://") {
        true => Ok(text.to_owned()),
        false => Err("expected an address that begins with https:// or http://".to_owned()),
    }
}
