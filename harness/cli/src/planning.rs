//! The settings of a run outside of any file, and the resulting plan.

use harness_clusters::images::{Program, unknown_part};
use harness_clusters::{planned_machines, usual_kubeconfig};
pub use harness_config::CLUSTER_VARIABLE;
use harness_config::{
    BackendChoice, DesiredCluster, Given, Image, RunFile, RunPlan, Source, WantedCluster, plan,
};
use harness_core::check::chain;
use harness_core::files;
use harness_core::output;
use harness_report::exit;
use harness_runner::refuse;
use kube::config::{Kubeconfig, KubeconfigError};
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;

/// Environment variable naming the run file for `cargo test --test e2e`.
pub const CONFIG_VARIABLE: &str = "CCM_CONFORMANCE_CONFIG";

/// What the environment says of a run, and what was typed.
///
/// # Errors
/// A variable has an invalid value.
fn given(typed: RunFile) -> Result<Given, String> {
    let mut environment = RunFile::default();
    if let Some(word) = std::env::var_os(CLUSTER_VARIABLE) {
        if word.is_empty() {
            return Err(format!(
                "the value of the variable {CLUSTER_VARIABLE} is empty; unset it, or name a cluster"
            ));
        }
        let chosen = BackendChoice::from_str(&word.to_string_lossy());
        environment.cluster.backend = Some(chosen.map_err(|why| format!("{CLUSTER_VARIABLE}: {why}"))?);
    }
    Ok(Given { environment, typed, ..Given::default() })
}

/// The plan for the given options; prints the reason if there is none.
pub(super) fn planned(source: &Source, typed: RunFile) -> Result<RunPlan<WantedCluster>, ExitCode> {
    let given = given(typed).map_err(|why| {
        output::err(&format!("error: {why}"));
        ExitCode::from(exit::USAGE)
    })?;
    let plan = plan(source, given).map_err(|problems| refuse(&problems))?;
    check_cluster(&plan).and_then(|()| check_build(&plan)).map_err(|why| {
        output::err(&format!("error: {why}"));
        ExitCode::from(exit::USAGE)
    })?;
    Ok(plan)
}

/// Checks the files that describe the cluster before anything is started.
fn check_cluster(plan: &RunPlan<WantedCluster>) -> Result<(), String> {
    match plan.cluster.desired() {
        DesiredCluster::Own(own) => planned_machines(&own.topology).map(drop).map_err(|error| chain(&error)),
        DesiredCluster::Absent => Ok(()),
        DesiredCluster::Existing(existing) => {
            let chosen = existing.kubeconfig.clone().or_else(usual_kubeconfig);
            chosen.as_deref().map_or(Ok(()), check_kubeconfig)
        }
    }
}

/// Checks the code that would be compiled before anything is started.
fn check_build(plan: &RunPlan<WantedCluster>) -> Result<(), String> {
    let (Some(Image::Build(build)), None) = (&plan.profile.image, &plan.binary) else { return Ok(()) };
    let features = (!build.features.is_empty()).then(|| build.features.iter().cloned().collect());
    let program = Program { package: build.package.clone(), bin: build.binary.clone(), features };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot ask cargo: {}", files::why(&error)))?;
    match runtime.block_on(unknown_part(plan.profile.folder(), &program)) {
        None => Ok(()),
        Some((key, what)) => Err(format!("{}: image.build.{key}: {what}", plan.profile.file.display())),
    }
}

/// Checks that a kubeconfig leads to a cluster.
fn check_kubeconfig(file: &Path) -> Result<(), String> {
    let wrong = |why: String| format!("kubeconfig {}: {why}", file.display());
    let text = files::read(file).map_err(|error| wrong(error.to_string()))?;
    let config = Kubeconfig::from_yaml(&text).map_err(|error| wrong(not_a_kubeconfig(&error)))?;
    if config.contexts.is_empty() {
        return Err(wrong("it has no contexts, so it is not a kubeconfig of a cluster".to_owned()));
    }
    let name = config.current_context.unwrap_or_default();
    let context = config.contexts.iter().find(|context| context.name == name);
    let Some(context) = context.and_then(|context| context.context.as_ref()) else {
        let known: Vec<&str> = config.contexts.iter().map(|context| context.name.as_str()).collect();
        let known = known.join(", ");
        return Err(wrong(format!("current-context '{name}' is not a context of it; it has {known}")));
    };
    let cluster = config.clusters.iter().find(|cluster| cluster.name == context.cluster);
    let server =
        cluster.and_then(|cluster| cluster.cluster.as_ref()).and_then(|cluster| cluster.server.as_deref());
    let Some(server) = server else {
        return Err(wrong(format!("its cluster '{}' names no server", context.cluster)));
    };
    let sound = server.parse::<http::Uri>().is_ok_and(|uri| uri.host().is_some() && uri.scheme().is_some());
    if sound { Ok(()) } else { Err(wrong(format!("its server '{server}' is not a URL"))) }
}

/// What keeps a file from being a kubeconfig, without the excerpt that the parser appends: it may contain a key.
fn not_a_kubeconfig(error: &KubeconfigError) -> String {
    let all = chain(error);
    let first = all.lines().next().unwrap_or_default();
    let why = first.rsplit("error: ").next().unwrap_or(first);
    format!("it is not a kubeconfig: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_that_leads_nowhere_is_refused_by_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("kc");
        let of = |text: &str| {
            std::fs::write(&file, text).expect("a file");
            check_kubeconfig(&file)
        };
        let config = |context: &str, server: &str| {
            format!(
                "current-context: {context}\nclusters: [{{name: c, cluster: {{server: \"{server}\"}}}}]\n\
                 contexts: [{{name: a, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {{}}}}]\n"
            )
        };
        assert_eq!(of(&config("a", "https://127.0.0.1:6443")), Ok(()));
        for (text, why) in [
            (config("b", "https://h"), "current-context 'b' is not a context of it; it has a"),
            (config("a", "not a url"), "its server 'not a url' is not a URL"),
            ("[1, 2]".to_owned(), "it is not a kubeconfig: line 1 column 1: "),
            (
                "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n".to_owned(),
                "it is not a kubeconfig: line 1 column 1: expected mapping start",
            ),
            (String::new(), "it has no contexts"),
        ] {
            let said = of(&text).expect_err("it leads nowhere");
            assert!(said.contains(why) && said.contains("/kc: ") && said.lines().count() == 1, "{said}");
        }
    }
}
