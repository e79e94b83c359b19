//! `run --kubernetes A,B`: the same run on several versions of Kubernetes, and a page with a column for each.

use super::arguments::RunOptions;
use super::command_line::reproduce;
use super::planning::planned;
use super::series::{OneOf, series};
use harness_config::{API_VERSION, BackendKind, RunFile, yaml};
use harness_core::check::chain;
use harness_core::files;
use harness_core::output;
use harness_report::{Versions, exit, to_versions_page};
use harness_session::settle;
use harness_session::up::startable;
use harness_testkit::Suite;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The files of the summary.
const SUMMARY: &str = "versions.yaml";
const PAGE: &str = "versions.html";

/// The summary as a file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    versions: &'a Versions,
}

/// Runs on each of these versions. All of them are checked before the first run begins.
pub(super) fn on_each(
    suites: &'static [Suite],
    options: &RunOptions,
    typed: &RunFile,
    command: &[String],
) -> ExitCode {
    let asked = options.shared.kubernetes();
    let folders = match folders(asked) {
        Ok(folders) => folders,
        Err(why) => {
            output::err(&format!("error: {why}"));
            return ExitCode::from(exit::USAGE);
        }
    };
    let mut runs: Vec<OneOf> = Vec::new();
    for (at, (version, folder)) in asked.iter().zip(&folders).enumerate() {
        let mut typed = typed.clone();
        typed.cluster.kubernetes = Some(version.clone());
        match planned(&options.shared.source(), typed) {
            Err(code) => return code,
            Ok(plan) => runs.push(OneOf {
                heading: format!("Kubernetes {version}: run {} of {}", at + 1, asked.len()),
                folder: folder.clone(),
                reproduce: reproduce(&with_version(command, version)),
                plan,
            }),
        }
    }
    match all_can_start(&runs) {
        Err(code) => return code,
        Ok(clusters) => {
            if let Some(why) = mixed(asked, &clusters) {
                output::err(&format!("warning: {why}"));
            }
        }
    }
    let Some(output) = runs.first().map(|run| run.plan.output.clone()) else {
        return ExitCode::from(exit::USAGE);
    };
    let names: Vec<(String, String)> = asked.iter().cloned().zip(folders).collect();
    let shown = options.shown(runs[0].plan.jobs);
    let mut ended = series(suites, runs, shown);
    let ledgers = std::mem::take(&mut ended.ledgers).into_iter();
    let ended_runs: Vec<_> = ledgers
        .filter_map(|(at, ledger)| {
            names.get(at).map(|(asked, folder)| (asked.clone(), folder.clone(), ledger))
        })
        .collect();
    if ended_runs.is_empty() {
        return ExitCode::from(ended.code());
    }
    let versions = harness_report::versions(&ended_runs);
    match write(&output, &versions) {
        Ok(page) => output::err(&format!("\n{versions}\npage:     {}", page.display())),
        Err(why) => ended.went_wrong(&why),
    }
    ExitCode::from(ended.code())
}

/// Why several versions cannot be combined with the first of these options that is used.
pub(super) fn needs_one(options: &[(bool, &str)]) -> Option<String> {
    let (_, option) = options.iter().find(|(is_used, _)| *is_used)?;
    Some(format!("{option}: it needs a single version; --kubernetes names several"))
}

/// Why the runs on these versions cannot be compared: they use different kinds of clusters.
pub(super) fn mixed(asked: &[String], clusters: &[BackendKind]) -> Option<String> {
    let (first, other) =
        (clusters.first()?, clusters.iter().position(|kind| Some(kind) != clusters.first())?);
    let (one, two) = (asked.first()?, asked.get(other)?);
    Some(format!(
        "Kubernetes {one} runs on the cluster '{first}' and {two} on '{}', so that a difference need not come from the \
         version; choose one for all with --cluster",
        clusters[other]
    ))
}

/// Checks what can be known of each run before anything starts, and returns the kind of cluster of each.
fn all_can_start(runs: &[OneOf]) -> Result<Vec<BackendKind>, ExitCode> {
    let failed = |why: String, code: u8| {
        output::err(&format!("error: {why}"));
        ExitCode::from(code)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        failed(format!("cannot start the async runtime: {}", files::why(&error)), exit::ENVIRONMENT)
    })?;
    let mut clusters = Vec::new();
    for run in runs {
        let (plan, _) = runtime.block_on(settle(run.plan.clone()));
        startable(&plan).map_err(|error| {
            let code = if error.is_usage() { exit::USAGE } else { exit::ENVIRONMENT };
            failed(chain(&error), code)
        })?;
        clusters.push(plan.cluster.backend());
    }
    Ok(clusters)
}

/// The folders of the runs on these versions.
///
/// # Errors
/// A version is named twice, possibly once without its patch version.
pub(super) fn folders(asked: &[String]) -> Result<Vec<String>, String> {
    let mut all: Vec<String> = Vec::new();
    for (at, version) in asked.iter().enumerate() {
        let folder = folder(version);
        if all.contains(&folder) {
            return Err(format!("--kubernetes: '{version}' is named twice"));
        }
        if let Some(other) = asked[..at].iter().find(|other| is_patch_of(other, version)) {
            return Err(format!(
                "--kubernetes: '{other}' and '{version}' can be the same version; leave one out, or name the patch version \
                 of both"
            ));
        }
        all.push(folder);
    }
    Ok(all)
}

/// Whether one of two versions is the other without its patch version.
fn is_patch_of(one: &str, other: &str) -> bool {
    let parts =
        |version: &str| version.trim_start_matches('v').split('.').map(str::to_owned).collect::<Vec<_>>();
    let (one, other) = (parts(one), parts(other));
    one.starts_with(&other) || other.starts_with(&one)
}

/// The folder of a run: the version, or the name of its node image without what a path cannot have.
fn folder(version: &str) -> String {
    version.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect()
}

/// The command line with one version in place of all.
fn with_version(command: &[String], version: &str) -> Vec<String> {
    const OPTION: &str = "--kubernetes";
    let mut is_value = false;
    let word = |word: &String| {
        let mine = std::mem::replace(&mut is_value, word == OPTION);
        match word.strip_prefix(OPTION) {
            _ if mine => version.to_owned(),
            Some(value) if value.starts_with('=') => format!("{OPTION}={version}"),
            _ => word.clone(),
        }
    };
    command.iter().map(word).collect()
}

/// Writes the summary and the page, and returns the path of the page.
fn write(output: &Path, versions: &Versions) -> Result<PathBuf, String> {
    let (summary, page) = (output.join(SUMMARY), output.join(PAGE));
    let file = File { api_version: API_VERSION, kind: "Versions", versions };
    let text = yaml::to_string(&file).map_err(|error| error.to_string())?;
    for (path, text) in [(&summary, text), (&page, to_versions_page(versions))] {
        output::file(path, text).map_err(|error| format!("{}: {}", path.display(), files::why(&error)))?;
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::{folder, folders, mixed, with_version};
    use harness_config::BackendKind::{Embedded, Kind};

    #[test]
    fn a_version_is_named_once() {
        let of = |versions: &str| folders(&versions.split(',').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of("1.35,1.36.1,1.36.2").expect("three versions").len(), 3);
        for twice in ["1.36,1.36", "1.36.2,1.36", "1.36,v1.36.2", "1.36.2,v1.36.2"] {
            let why = of(twice).expect_err(twice);
            assert!(why.starts_with("--kubernetes: '"), "{twice}: {why}");
        }
    }

    #[test]
    fn a_run_is_repeated_on_its_own_version() {
        let all = ["run", "--kubernetes", "1.35,1.36", "--kubernetes=1.34", "--jobs", "2"].map(str::to_owned);
        let one = with_version(&all, "1.35").join(" ");
        assert_eq!(one, "run --kubernetes 1.35 --kubernetes=1.35 --jobs 2");
    }

    #[test]
    fn versions_on_different_clusters_are_named() {
        let asked = ["1.34", "1.35", "1.36"].map(str::to_owned);
        assert_eq!(mixed(&asked, &[Kind, Kind, Kind]), None);
        let why = mixed(&asked, &[Embedded, Embedded, Kind]).expect("two kinds");
        assert!(
            why.starts_with("Kubernetes 1.34 runs on the cluster 'embedded' and 1.36 on 'kind'"),
            "{why}"
        );
    }

    #[test]
    fn an_image_becomes_one_folder() {
        assert_eq!(folder("1.36"), "1.36");
        assert_eq!(folder("kindest/node:v1.36.1"), "kindest-node-v1.36.1");
    }
}
