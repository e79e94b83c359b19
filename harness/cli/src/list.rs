//! `list`: the tables of checks, for people and for programs.

use super::arguments::ListOutput;
use harness_core::check::{Level, Served};
use harness_core::output;
use harness_runner::golden;
use harness_testkit::{Check, Suite};
use serde_json::json;
use std::process::ExitCode;

pub(super) fn list(suites: &'static [Suite], output: ListOutput) -> ExitCode {
    let text = match output {
        ListOutput::Text => as_text(suites),
        ListOutput::Json => as_json(suites),
    };
    print(&text)
}

pub(super) fn print(text: &str) -> ExitCode {
    output::out(text);
    ExitCode::SUCCESS
}

fn as_text(suites: &[Suite]) -> String {
    let mut text = String::new();
    for suite in suites {
        text.push_str(&format!("{}: {}\n", suite.name, suite.proves));
        for check in suite.checks() {
            text.push_str(&format!("  {:<25} {:<6} {}\n", check.id, check.claim.level, check.claim.title));
        }
        text.push('\n');
    }
    text.push_str("profiles of conformance\n");
    for profile in &golden(suites).profiles {
        let of_it =
            || suites.iter().flat_map(Suite::checks).filter(|check| profile.includes(check.id.as_str()));
        let musts = of_it().filter(|check| check.claim.level == Level::Must).count();
        let counted = format!("{} checks, {musts} MUST", of_it().count());
        text.push_str(&format!("  {:<18} {counted:<22} {}\n", profile.profile, profile.title));
    }
    text.push('\n');
    let count: usize = suites.iter().map(|suite| suite.checks().count()).sum();
    text.push_str(&format!("{count} checks in {} suites\n", suites.len()));
    text
}

pub(super) fn needs(check: &Check) -> Vec<String> {
    let capabilities = check.needs.iter().map(ToString::to_string);
    let facilities = check.facilities.iter().map(|facility| facility.to_string());
    let served = match check.served {
        Served::Always => None,
        Served::Since { minor, what } => Some(format!("Kubernetes 1.{minor} ({what})")),
    };
    let lacks = check.lacks.iter().map(|lack| format!("no {lack}"));
    capabilities.chain(lacks).chain(facilities).chain(served).collect()
}

fn as_json(suites: &[Suite]) -> String {
    let profiles = golden(suites).profiles;
    let of = |id: &str| -> Vec<String> {
        profiles.iter().filter(|one| one.includes(id)).map(|one| one.profile.clone()).collect()
    };
    let checks: Vec<_> = suites
        .iter()
        .flat_map(|suite| suite.checks().map(move |check| (suite, check)))
        .map(|(suite, check)| {
            json!({
                "id": check.id.as_str(), "level": check.claim.level, "title": check.claim.title, "suite": suite.name,
                "source": check.claim.source, "needs": needs(check), "sharing": check.isolation,
                "frameworkOnly": check.claim.framework_only, "takesSeconds": check.takes_s,
                "since": check.since.map(|since| since.to_string()),
                "profiles": of(check.id.as_str()),
            })
        })
        .collect();
    serde_json::to_string_pretty(&checks).unwrap_or_default() + "\n"
}
