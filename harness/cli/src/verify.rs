//! `verify` and `attest`: whether a report is genuine, and a statement about it for others.

use super::arguments::{AttestOptions, ListOutput, VerifyOptions};
use super::report_file::{not_a_report, report_at, report_next_to};
use harness_config::Completeness;
use harness_core::check::chain;
use harness_core::events::{open_stream, read_whole, stream_in};
use harness_core::files;
use harness_core::ledger::Ledger;
use harness_core::output;
use harness_report::{
    Digests, Finding, Golden, Material, PublicKey, SigningKey, StreamFacts, Written, exit, exit_code,
    open_envelope, read, sealed, shown, statement, verdict_word, verify as findings_of,
};
use harness_runner::INTERRUPTED;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::BufRead;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A report and the files that belong to it.
pub(super) struct Run {
    written: Written,
    stream_facts: Result<StreamFacts, Finding>,
    golden: Option<Golden>,
    digests: Digests,
}

impl Run {
    /// Reads a report and its stream, which is next to it unless named.
    ///
    /// # Errors
    /// As text, when one of them cannot be read, or is something else. A truncated or edited stream is a finding.
    pub(super) fn read(report: &Path, events: Option<&Path>) -> Result<Run, String> {
        let report = &report_at(report);
        let text = files::read(report).map_err(|error| format!("{}: {error}", report.display()))?;
        let written = read(&text, report).map_err(|error| match report_next_to(report) {
            Some(own) => not_a_report(report, &own),
            None => chain(&error),
        })?;
        let default_stream = || stream_in(report.parent().unwrap_or(Path::new("")));
        let stream = events.map_or_else(default_stream, PathBuf::from);
        let stream_facts = match read_whole(&stream) {
            Ok(events) => Ok(StreamFacts::by(&events)),
            Err(error) if error.is_of_its_lines() => Err(Finding::NotAsWritten(chain(&error))),
            Err(error) if events.is_some() => return Err(chain(&error)),
            Err(error) => {
                let why = chain(&error);
                return Err(format!("{why}; name the stream of the report's run with '--events FILE'"));
            }
        };
        let digests = Digests { report: sha256(text.as_bytes()), events: sha256_of(&stream)? };
        let golden = Golden::of(&written.ledger.subject.harness_version).map_err(|error| chain(&error))?;
        Ok(Run { written, stream_facts, golden, digests })
    }

    /// The content of the report.
    pub(super) fn report(&self) -> &Ledger {
        &self.written.ledger
    }

    /// Everything that is wrong with it.
    pub(super) fn findings(&self, image: Option<&str>) -> Vec<Finding> {
        let Run { written, stream_facts, golden, .. } = self;
        match stream_facts {
            Ok(stream_facts) => {
                findings_of(&Material { report: written, stream_facts, golden: golden.as_ref(), image })
            }
            Err(finding) => vec![finding.clone()],
        }
    }
}

/// `ccm-conformance verify`. Exit codes are those of the run, and 1 if there are findings.
pub(super) fn verify(options: &VerifyOptions) -> ExitCode {
    match verified(options) {
        Ok(code) => ExitCode::from(code),
        Err(why) => usage(&why),
    }
}

fn verified(options: &VerifyOptions) -> Result<u8, String> {
    let run = match &options.report {
        Some(report) => Some(Run::read(report, options.events.as_deref())?),
        None => None,
    };
    let mut wrong: Vec<String> = Vec::new();
    let mut stated = None;
    if let (Some(attestation), Some(key)) = (&options.attestation, &options.key) {
        let key =
            PublicKey::from_pem(&bytes_of(key)?).map_err(|error| format!("{}: {error}", key.display()))?;
        let text = files::read(attestation).map_err(|error| format!("{}: {error}", attestation.display()))?;
        match open_envelope(&text, &key) {
            Ok(statement) => stated = Some(statement),
            Err(error) => wrong.push(format!("{}: {error}", attestation.display())),
        }
    }
    if let Some(stated) = &stated {
        let attested = &stated["subject"][0]["digest"]["sha256"];
        if let Some(asked) = options.image.as_deref()
            && !attested.as_str().is_some_and(|is| format!("sha256:{is}").eq_ignore_ascii_case(asked))
        {
            wrong.push(format!("the attestation is about the image {attested}, not {asked}"));
        }
        if let Some(run) = &run {
            let url = stated["predicate"]["url"].as_str();
            match statement(run.report(), &run.digests, url) {
                Ok(made) if made == *stated => {}
                Ok(_) => wrong.push("the attestation is of another report or stream".to_owned()),
                Err(why) => wrong.push(why),
            }
        }
    }
    let findings = run.as_ref().map(|run| run.findings(options.image.as_deref())).unwrap_or_default();
    if !wrong.is_empty() || !findings.is_empty() {
        say(&refusal(&wrong, &findings, options.output));
        return Ok(exit::NOT_CONFORMANT);
    }
    let need = if options.require_complete { Completeness::Required } else { Completeness::Optional };
    Ok(match (&run, &stated) {
        (Some(run), _) => {
            let subject = &run.report().subject;
            let verdict = verdict_word(run.report().conformance());
            say(&verified_text(verdict, &subject.image, &subject.image_digest, options.output));
            let code =
                if run.report().is_interrupted() { INTERRUPTED } else { exit_code(run.report(), need) };
            if code == exit::NOT_CONFORMANT && exit_code(run.report(), Completeness::Optional) != code {
                output::err("--require-complete: the report is genuine, but not every MUST check was judged");
            }
            code
        }
        (None, Some(stated)) => {
            let (subject, result) = (&stated["subject"][0], &stated["predicate"]["result"]);
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let digest = text(&subject["digest"]["sha256"]);
            let (result, digest) = (text(result), format!("sha256:{digest}"));
            let verdict = match (result.as_str(), options.output) {
                ("PASSED" | "WARNED" | "FAILED", ListOutput::Text) => format!("the result {result}"),
                _ => result.clone(),
            };
            say(&verified_text(&verdict, &text(&subject["name"]), &digest, options.output));
            match (result.as_str(), need) {
                ("PASSED", _) | ("WARNED", Completeness::Optional) => exit::CONFORMANT,
                _ => exit::NOT_CONFORMANT,
            }
        }
        (None, None) => exit::USAGE,
    })
}

/// Why a report is refused: what is wrong with its attestation, then with the report.
fn refusal(of_attestation: &[String], findings: &[Finding], output: ListOutput) -> String {
    if output == ListOutput::Json {
        let of_attestation = of_attestation.iter().map(|text| json!({"kind": "attestation", "text": text}));
        let of_report = findings.iter().map(|one| json!({"kind": one.kind(), "text": one.to_string()}));
        let reasons: Vec<Value> = of_attestation.chain(of_report).collect();
        return format!("{}\n", json!({"verified": false, "reasons": reasons}));
    }
    let shown = shown(findings);
    let lines = [of_attestation, &shown.lines].concat();
    let is_setting = |one: &Finding| matches!(one, Finding::Relaxed(_));
    let genuine = match of_attestation.is_empty() && findings.iter().all(is_setting) {
        true => "the report is as the run has written it; it is refused because of the settings of the run\n",
        false => "",
    };
    let count = reasons(of_attestation.len() + shown.reasons);
    format!("REFUSED, {count}:\n  {}\n{genuine}", lines.join("\n  "))
}

/// How many reasons there are, in words.
pub(super) fn reasons(count: usize) -> String {
    if count == 1 { "1 reason".to_owned() } else { format!("{count} reasons") }
}

fn verified_text(verdict: &str, subject: &str, digest: &str, output: ListOutput) -> String {
    match output {
        ListOutput::Text => format!("VERIFIED: {verdict}: {subject} {digest}\n"),
        ListOutput::Json => {
            let verified =
                json!({"verified": true, "verdict": verdict, "subject": subject, "digest": digest});
            format!("{verified}\n")
        }
    }
}

/// `ccm-conformance attest`. Prints the statement, in a signed envelope if there is a key. Exit code 1 if
/// `verify` refuses the report.
pub(super) fn attest(options: &AttestOptions) -> ExitCode {
    let key = options.key.as_deref().map(signing_key).transpose();
    let run = Run::read(&options.report, options.events.as_deref());
    let (key, run) = match (key, run) {
        (Ok(key), Ok(run)) => (key, run),
        (key, run) => {
            let all: Vec<String> = [key.err(), run.err()].into_iter().flatten().collect();
            return usage(&all.join("\nerror: "));
        }
    };
    let wrong = shown(&run.findings(None)).lines;
    if !wrong.is_empty() {
        output::err(&format!("error: not attested, as the report is refused:\n  {}", wrong.join("\n  ")));
        return ExitCode::from(exit::NOT_CONFORMANT);
    }
    let made = statement(run.report(), &run.digests, options.url.as_deref());
    let printed = made.and_then(|statement| match &key {
        None => Ok(statement),
        Some(key) => sealed(&statement, key).map_err(|error| error.to_string()),
    });
    match printed {
        Ok(printed) => {
            say(&format!("{printed}\n"));
            ExitCode::from(exit::CONFORMANT)
        }
        Err(why) => usage(&why),
    }
}

/// Reads the key in a file; warns if other users can read it.
fn signing_key(file: &Path) -> Result<SigningKey, String> {
    let bytes = bytes_of(file).map_err(|why| format!("--key {why}"))?;
    let key = SigningKey::from_pem(&bytes).map_err(|error| format!("--key {}: {error}", file.display()))?;
    let mode = std::fs::metadata(file).map(|meta| meta.permissions().mode()).unwrap_or_default();
    if mode & 0o077 != 0 {
        output::err(&format!(
            "warning: {} can be read by others (mode {:03o}); 'chmod 600' keeps it yours",
            file.display(),
            mode & 0o777
        ));
    }
    Ok(key)
}

fn bytes_of(file: &Path) -> Result<Vec<u8>, String> {
    files::bytes(file, 1 << 20).map_err(|error| format!("{}: {error}", file.display()))
}

fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// The SHA-256 of a stream of any length.
fn sha256_of(stream: &Path) -> Result<String, String> {
    let named = |error| format!("{}: {}", stream.display(), files::why(&error));
    let mut hasher = Sha256::new();
    let mut file = open_stream(stream).map_err(named)?;
    loop {
        let piece = file.fill_buf().map_err(named)?;
        if piece.is_empty() {
            return Ok(hexadecimal(&hasher.finalize()));
        }
        hasher.update(piece);
        let length = piece.len();
        file.consume(length);
    }
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn usage(why: &str) -> ExitCode {
    output::err(&format!("error: {why}"));
    ExitCode::from(exit::USAGE)
}

fn say(text: &str) {
    output::out_wrapped(text);
}
