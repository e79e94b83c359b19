//! `list` and `explain`: the tables of checks, for people and for programs.

use super::arguments::ListOutput;
use crate::check::{Served, Sharing};
use crate::cx::{Check, Suite};
use crate::output;
use crate::report::exit;
use serde_json::json;
use std::process::ExitCode;

pub(super) fn list(suites: &'static [Suite], output: ListOutput) -> ExitCode {
    let text = match output {
        ListOutput::Text => as_text(suites),
        ListOutput::Json => as_json(suites),
    };
    print(&text)
}

pub(super) fn explain(suites: &'static [Suite], id: &str) -> ExitCode {
    let found = suites.iter().find_map(|suite| {
        suite.checks().find(|c| c.id.as_str().eq_ignore_ascii_case(id)).map(|c| (suite, c))
    });
    let Some((suite, check)) = found else {
        let ids: Vec<&str> = suites.iter().flat_map(|suite| suite.checks().map(|c| c.id.as_str())).collect();
        let near = crate::config::did_you_mean(id, &ids);
        output::err(&format!("no check has the id {id}{near}; 'ccm-conformance list' shows all"));
        return ExitCode::from(exit::USAGE);
    };
    print(&explanation(suite, check))
}

fn print(text: &str) -> ExitCode {
    output::out(text);
    ExitCode::SUCCESS
}

fn as_text(suites: &[Suite]) -> String {
    let mut text = String::new();
    for suite in suites {
        text.push_str(&format!("{}: {}\n", suite.name, suite.proves));
        for check in suite.checks() {
            text.push_str(&format!("  {:<25} {:<6} {}\n", check.id, check.level, check.title));
        }
        text.push('\n');
    }
    let count: usize = suites.iter().map(|suite| suite.checks().count()).sum();
    text.push_str(&format!("{count} checks in {} suites\n", suites.len()));
    text
}

fn needs(check: &Check) -> Vec<String> {
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
    let checks: Vec<_> = suites
        .iter()
        .flat_map(|suite| suite.checks().map(move |check| (suite, check)))
        .map(|(suite, check)| {
            json!({
                "id": check.id.as_str(), "level": check.level, "title": check.title, "suite": suite.name,
                "source": check.source, "needs": needs(check), "sharing": check.sharing,
                "frameworkOnly": check.framework_only, "takesSeconds": check.takes_s,
                "since": check.since.map(|since| since.to_string()),
            })
        })
        .collect();
    serde_json::to_string_pretty(&checks).unwrap_or_default() + "\n"
}

fn explanation(suite: &Suite, check: &Check) -> String {
    let sharing = match check.sharing {
        Sharing::Shared if check.holds_up => {
            "with the claims of its row alone: it holds up a loop of the CCM"
        }
        Sharing::Shared if check.disturbs() => {
            "beside others where the CCM has workers for all, else with the claims of its row alone"
        }
        Sharing::Shared => "beside others, on objects of its own",
        Sharing::Joint => "beside others until the leader crashes, then with those that watch the same crash",
        Sharing::Calm => "beside others that wait for what a busy CCM puts off, and nobody else",
        Sharing::Exclusive => "alone: it disturbs the CCM or the whole cloud",
        Sharing::Cold => "alone, on a cluster no CCM has touched yet",
        Sharing::Standing => "when all others have ended: it judges what the whole run showed",
    };
    let level = if check.framework_only {
        "MUST for CCMs of the framework profile, SHOULD for others".to_owned()
    } else {
        check.level.to_string()
    };
    let least = if check.takes_s == 0 {
        "a moment".to_owned()
    } else {
        format!("about {} s when it passes", check.takes_s)
    };
    let since = check.since.map(|since| format!("  since:   {since}\n")).unwrap_or_default();
    format!(
        "{}  {level}\n\n  claim:   {}\n  suite:   {} ({})\n  source:  {}\n  needs:   {}\n{since}  runs:    {sharing}\n  takes:   {least}\n\n  run it:  ccm-conformance run --only {}\n",
        check.id,
        check.title,
        suite.name,
        suite.proves,
        check.source,
        needs(check).join(", "),
        check.id,
    )
}
