//! `list`: the tables of checks, for people and for programs.

use super::arguments::{ListChecksOptions, ListOutput, ListedLevel};
use harness_config::contract::ConformanceProfile;
use harness_config::{Candidate, Origin, Selection, did_you_mean, is_asked_for, known};
use harness_core::check::{Level, Served};
use harness_core::output;
use harness_report::exit;
use harness_runner::golden;
use harness_testkit::{Check, Suite};
use serde_json::json;
use std::process::ExitCode;

/// Prints the checks that the options choose, by id.
pub(super) fn list(suites: &'static [Suite], options: &ListChecksOptions) -> ExitCode {
    let listed = match Listed::of(suites, options) {
        Ok(listed) => listed,
        Err(why) => {
            output::err(&format!("error: {why}"));
            return ExitCode::from(exit::USAGE);
        }
    };
    match options.output {
        ListOutput::Text => output::out_wrapped(&listed.as_text()),
        ListOutput::Json => output::out(&listed.as_json()),
    }
    ExitCode::from(if listed.checks.is_empty() { exit::NOTHING_SELECTED } else { exit::CONFORMANT })
}

/// A name that was perhaps meant, or all of them.
fn near_or_all(unknown: &str, names: &[&str]) -> String {
    let near = did_you_mean(unknown, names);
    if near.is_empty() { format!("; there are {}", names.join(", ")) } else { near }
}

/// The checks to list, by id.
struct Listed {
    suites: &'static [Suite],
    checks: Vec<(&'static Suite, &'static Check)>,
    profiles: Vec<ConformanceProfile>,
    /// Whether these are all checks.
    is_whole: bool,
}

impl Listed {
    fn of(suites: &'static [Suite], options: &ListChecksOptions) -> Result<Listed, String> {
        let asked = Selection {
            suites: options.suite.clone(),
            only: options.only.clone(),
            origins: [("select.suites", Origin::CommandLine), ("select.only", Origin::CommandLine)].into(),
            ..Selection::default()
        };
        let all: Vec<_> = suites
            .iter()
            .flat_map(|suite| suite.checks().map(move |check| (suite, check, Candidate::of(suite, check))))
            .collect();
        let candidates: Vec<Candidate> = all.iter().map(|(.., candidate)| *candidate).collect();
        known(&asked, &candidates).map_err(|problems| problems.to_string())?;
        let profiles = golden(suites).profiles;
        let profile = match &options.profile {
            None => None,
            Some(name) => Some(profiles.iter().find(|one| one.profile == *name).ok_or_else(|| {
                let names: Vec<&str> = profiles.iter().map(|one| one.profile.as_str()).collect();
                let hint = near_or_all(name, &names);
                format!(
                    "--profile: unknown profile of conformance '{name}'{hint} ('plan --profile {name}' lists the checks for a \
                     CCM's own profile)"
                )
            })?),
        };
        let wanted = |(_, check, candidate): &(&'static Suite, &'static Check, Candidate)| {
            (options.level.is_empty() || options.level.iter().any(|one| level(*one) == check.claim.level))
                && profile.is_none_or(|profile| profile.includes(check.id.as_str()))
                && is_asked_for(candidate, &asked)
        };
        let is_whole = all.iter().all(wanted);
        let mut checks: Vec<_> =
            all.into_iter().filter(wanted).map(|(suite, check, _)| (suite, check)).collect();
        checks.sort_by_key(|(_, check)| check.id.as_str());
        Ok(Listed { suites, checks, profiles, is_whole })
    }

    fn of_suite(&self, name: &str) -> impl Iterator<Item = &'static Check> {
        self.checks.iter().filter(move |(suite, _)| suite.name == name).map(|(_, check)| *check)
    }

    fn as_text(&self) -> String {
        let mut text = String::new();
        let mut count = 0;
        let width = self.checks.iter().map(|(_, check)| check.id.as_str().len()).max().unwrap_or_default();
        for suite in self.suites {
            if self.of_suite(suite.name).next().is_none() {
                continue;
            }
            count += 1;
            text.push_str(&format!("{}: {}\n", suite.name, suite.proves));
            for check in self.of_suite(suite.name) {
                text.push_str(&format!(
                    "  {:<width$}  {:<6}  {}\n",
                    check.id, check.claim.level, check.claim.title
                ));
            }
            text.push('\n');
        }
        if self.is_whole {
            text.push_str("profiles of conformance\n");
            for profile in &self.profiles {
                let of_it = || self.checks.iter().filter(|(_, check)| profile.includes(check.id.as_str()));
                let musts = of_it().filter(|(_, check)| check.claim.level == Level::Must).count();
                let counted = format!("{} checks, {musts} MUST", of_it().count());
                text.push_str(&format!("  {:<18} {counted:<22} {}\n", profile.profile, profile.title));
            }
            text.push('\n');
        }
        let some = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        text.push_str(&format!("{} in {}\n", some(self.checks.len(), "check"), some(count, "suite")));
        if self.checks.is_empty() {
            text.push_str("no check fits all of the options\n");
        }
        text
    }

    fn as_json(&self) -> String {
        let of = |id: &str| -> Vec<String> {
            self.profiles.iter().filter(|one| one.includes(id)).map(|one| one.profile.clone()).collect()
        };
        let checks: Vec<_> = self
            .checks
            .iter()
            .map(|(suite, check)| {
                json!({
                    "id": check.id.as_str(), "level": check.claim.level, "title": check.claim.title, "suite": suite.name,
                    "source": check.claim.source, "needs": needs(check), "sharing": check.isolation,
                    "frameworkOnly": check.claim.framework_only, "takesSeconds": check.takes_s,
                    "since": check.claim.since.map(|since| since.to_string()),
                    "profiles": of(check.id.as_str()),
                })
            })
            .collect();
        serde_json::to_string_pretty(&checks).unwrap_or_default() + "\n"
    }
}

fn level(listed: ListedLevel) -> Level {
    match listed {
        ListedLevel::Must => Level::Must,
        ListedLevel::Should => Level::Should,
        ListedLevel::Info => Level::Info,
    }
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
