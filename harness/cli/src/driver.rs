//! `driver`: the driver protocol and its conformance test.

use super::arguments::{DriverCommand, DriverOptions};
use super::judgeable::{in_words, offer, with_cloud};
use super::planning::planned;
use fake_cloud_driver::{DriverFacility, document};
use harness_clouds::{Found, check_running, facility_of};
use harness_config::{
    CloudSource, Proxying, Routes, RunFile, RunPlan, Source, WantedCluster, usual_arguments,
};
use harness_core::check::Facility;
use harness_core::files;
use harness_core::output;
use harness_report::exit;
use harness_runner::{plan_checks, refuse};
use harness_testkit::Suite;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) fn driver(suites: &'static [Suite], command: &DriverCommand) -> ExitCode {
    match command {
        DriverCommand::Openapi => {
            output::out(&format!("{:#}\n", document()));
            ExitCode::SUCCESS
        }
        DriverCommand::Check(options) => check(suites, options),
    }
}

fn check(suites: &'static [Suite], options: &DriverOptions) -> ExitCode {
    let (cloud, plan) = match asked(options) {
        Ok(asked) => asked,
        Err(code) => return code,
    };
    let tried = with_cloud(&cloud, async |running| Ok((check_running(running).await?, running.attach()?)));
    let (found, attached) = match tried {
        Ok(tried) => tried,
        Err(why) => {
            output::err(&format!("error: {why}"));
            return ExitCode::from(exit::ENVIRONMENT);
        }
    };
    let mut text = as_text(suites, &found);
    match plan.map(|plan| plan_checks(suites, &plan, &offer(&plan.profile, &attached))) {
        None => text.push_str(&of_all(suites, &found)),
        Some(Err(problems)) => return refuse(&problems),
        Some(Ok(checks)) => {
            let _ = writeln!(text, "{}", in_words(&checks, attached.driver()));
        }
    }
    output::out_wrapped(&text);
    let broken = found.tried.iter().any(|one| one.broken.is_some());
    if broken { ExitCode::from(exit::NOT_CONFORMANT) } else { ExitCode::SUCCESS }
}

/// The cloud to test, and the plan of its profile, if there is one.
fn asked(options: &DriverOptions) -> Result<(CloudSource, Option<RunPlan<WantedCluster>>), ExitCode> {
    if let Some(profile) = &options.profile {
        let typed = RunFile { profile: Some(profile.clone()), ..RunFile::default() };
        let plan = planned(&Source::Defaults, typed)?;
        return Ok((plan.profile.cloud.clone(), Some(plan)));
    }
    let usage = |why: &str| {
        output::err(&format!("error: {why}"));
        ExitCode::from(exit::USAGE)
    };
    let cloud = match (&options.url, &options.token_file, &options.image) {
        (Some(url), Some(file), _) => {
            address(url).and_then(|()| token(file)).map_err(|why| usage(&why))?;
            CloudSource::DriverAt { url: url.clone(), token_file: file.clone() }
        }
        (_, _, Some(image)) => {
            let given = options.arguments.clone();
            let arguments = if given.is_empty() { usual_arguments() } else { given };
            CloudSource::DriverImage { image: image.clone(), arguments }
        }
        _ => CloudSource::DriverCommand { line: options.command.clone(), folder: PathBuf::from(".") },
    };
    let Some(file) = &options.routes else { return Ok((cloud, None)) };
    let routes = Routes::load(file).map_err(|problems| refuse(&problems))?;
    let (upstream, upstream_ca) = (options.upstream.clone(), None);
    let proxy = Proxying { routes, upstream, upstream_ca, tls: false, http_proxy: false };
    Ok((CloudSource::Proxied { behind: Box::new(cloud), proxy }, None))
}

/// Checks the form of a driver's URL.
fn address(url: &str) -> Result<(), String> {
    let sound = url.parse::<http::Uri>().is_ok_and(|uri| uri.scheme().is_some() && uri.host().is_some());
    if sound { Ok(()) } else { Err(format!("invalid URL '{url}': expected http://HOST:PORT")) }
}

/// Checks that a file holds a token.
fn token(file: &Path) -> Result<(), String> {
    let wrong = |why: String| format!("--token-file {}: {why}", file.display());
    let text = files::read(file).map_err(|error| wrong(error.to_string()))?;
    match text.trim() {
        "" => Err(wrong("the file is empty".to_owned())),
        token if token.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(()),
        _ => Err(wrong("not a token: expected one line of visible ASCII characters".to_owned())),
    }
}

/// The tested requirements, and for each facility the checks that need it.
fn as_text(suites: &[Suite], found: &Found) -> String {
    let mut text = format!("driver {}\n", found.capabilities.name);
    for one in &found.tried {
        let _ = writeln!(text, "{one}");
    }
    let broken = found.tried.iter().filter(|one| one.broken.is_some()).count();
    let _ = writeln!(text, "{} of {} promises kept\n", found.tried.len() - broken, found.tried.len());
    let checks: Vec<_> = suites.iter().flat_map(Suite::checks).collect();
    let _ = writeln!(text, "{:<12}  there", "facility");
    for (facility, has) in facilities(found) {
        let needs = checks.iter().filter(|check| check.facilities.contains(facility));
        let need: Vec<String> = needs.map(|check| check.id.to_string()).collect();
        let name = facility.to_string();
        let _ = match has {
            true => writeln!(text, "{name:<12}  yes, for {}", counted(need.len())),
            false => {
                let _ = writeln!(text, "{name:<12}  no; not observable without it, {}:", counted(need.len()));
                wrapped(&need, list_width(output::columns()))
                    .into_iter()
                    .try_for_each(|line| writeln!(text, "{:<12}    {line}", ""))
            }
        };
    }
    text
}

/// A number of checks, in words.
fn counted(checks: usize) -> String {
    if checks == 1 { "1 check".to_owned() } else { format!("{checks} checks") }
}

/// Each facility of the harness that a driver can have, and whether this one has it.
fn facilities(found: &Found) -> Vec<(Facility, bool)> {
    let has = |one: &DriverFacility| found.capabilities.facilities.contains(one);
    let own = [(Facility::Machines, found.capabilities.machines), (Facility::Inventory, true)];
    let all = DriverFacility::ALL.iter().filter_map(|one| Some((facility_of(*one)?, has(one))));
    own.into_iter().chain(all).collect()
}

/// How many of all checks can be judged, whatever the CCM declares.
fn of_all(suites: &[Suite], found: &Found) -> String {
    let lacks: Vec<Facility> =
        facilities(found).into_iter().filter(|(_, has)| !has).map(|(facility, _)| facility).collect();
    let checks: Vec<_> = suites.iter().flat_map(Suite::checks).collect();
    let judged =
        checks.iter().filter(|check| !lacks.iter().any(|one| check.facilities.contains(*one))).count();
    format!(
        "with this driver {judged} of {} checks can be judged, as far as the cloud goes; with --profile, of those that apply to \
         a CCM\n",
        checks.len()
    )
}

/// The longest line of a list of checks on a terminal with this many columns; 0 columns: the output is not a terminal.
fn list_width(columns: usize) -> usize {
    const WIDEST: usize = 84;
    const INDENT: usize = 16;
    const NARROWEST: usize = 24;
    if columns == 0 { WIDEST } else { columns.saturating_sub(INDENT).clamp(NARROWEST, WIDEST) }
}

/// Wraps a list into lines of at most this width.
fn wrapped(ids: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (at, id) in ids.iter().enumerate() {
        let comma = if at + 1 < ids.len() { "," } else { "" };
        match lines.last_mut() {
            Some(line) if line.len() + id.len() + 2 <= width => line.push_str(&format!(" {id}{comma}")),
            _ => lines.push(format!("{id}{comma}")),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_and_token_of_a_driver_are_refused_by_name() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        for (text, why) in
            [("", "the file is empty"), ("two\nlines", "not a token: "), ("a b", "not a token: ")]
        {
            std::fs::write(file.path(), text).expect("written");
            let said = token(file.path()).expect_err("not a token");
            assert!(said.starts_with("--token-file ") && said.contains(why), "{said}");
        }
        std::fs::write(file.path(), "s3cr3t\n").expect("written");
        assert_eq!(token(file.path()), Ok(()));
        assert_eq!(address("http://127.0.0.1:1"), Ok(()));
        for url in ["foo", "127.0.0.1:80", "/x"] {
            assert!(address(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_long_list_of_checks_wraps() {
        let ids: Vec<String> = (0..40).map(|n| format!("SVC-CREATE-{n:02}")).collect();
        for (columns, widest) in [(0, 84), (80, 64), (200, 84), (10, 24)] {
            let lines = wrapped(&ids, list_width(columns));
            assert!(lines.len() > 5 && lines.iter().all(|line| line.len() <= widest), "{lines:?}");
            assert_eq!(lines.join(" "), ids.join(", "));
        }
        assert_eq!(wrapped(&[], 84), [""; 0]);
    }
}
