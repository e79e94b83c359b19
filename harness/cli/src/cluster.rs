//! `cluster embedded`: a separate cluster for kubectl, a CCM under a debugger or any other client.

use super::arguments::EmbeddedOptions;
use embedded_cluster::{Cluster, ClusterSpec};
use harness_clusters::images::RunId;
use harness_core::check::chain;
use harness_core::output;
use harness_report::exit;
use harness_runner::{Signals, start_reaper};
use harness_session::RunDir;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::Instant;

/// Starts it, writes the kubeconfig and waits for SIGINT or SIGTERM.
pub(super) fn embedded(options: &EmbeddedOptions) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(exit::ENVIRONMENT, &format!("no runtime: {error}")),
    };
    runtime.block_on(serve(options))
}

async fn serve(options: &EmbeddedOptions) -> ExitCode {
    let began = Instant::now();
    let file = &options.kubeconfig;
    // Before anything is started: a user must not lose other clusters in that file.
    if file.exists() {
        let why = format!("{} exists, and would be overwritten; name a file that does not", file.display());
        return fail(exit::USAGE, &why);
    }
    start_reaper();
    // With this folder, 'clean' finds a cluster that was killed, and its kubeconfig.
    let dir = match RunDir::create(RunId::fresh().as_str()) {
        Ok(dir) => dir,
        Err(error) => return fail(exit::ENVIRONMENT, &chain(&error)),
    };
    let code = in_folder(options, &dir, began).await;
    match dir.remove() {
        Ok(()) => ExitCode::from(code),
        Err(error) => fail(exit::ENVIRONMENT, &chain(&error)),
    }
}

async fn in_folder(options: &EmbeddedOptions, dir: &RunDir, began: Instant) -> u8 {
    let file = &options.kubeconfig;
    let mut signals = Signals::heard();
    let spec = ClusterSpec {
        kubernetes: options.kubernetes,
        folder: Some(dir.path().to_owned()),
        ..ClusterSpec::awaiting_cloud(options.nodes)
    };
    let cluster = match Cluster::start(spec).await {
        Ok(cluster) => cluster,
        Err(error) => return say(exit::ENVIRONMENT, &chain(&error)),
    };
    if let Err(error) = cluster.write_kubeconfig(file) {
        cluster.stop().await;
        return say(exit::USAGE, &format!("kubeconfig {}: {}", file.display(), chain(&error)));
    }
    if let Err(error) = dir.note_outside(file) {
        cluster.stop().await;
        let _ = std::fs::remove_file(file);
        return say(exit::ENVIRONMENT, &chain(&error));
    }
    let text = format!(
        "Kubernetes {} at {} in {:.2} s, {} nodes\nexport KUBECONFIG={}\nCtrl-C ends it\n",
        options.kubernetes,
        cluster.url(),
        began.elapsed().as_secs_f64(),
        options.nodes,
        file.display(),
    );
    output::out(&text);
    signals.next().await;
    cluster.stop().await;
    // It refers to a cluster that does not exist any more.
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            say(exit::ENVIRONMENT, &format!("{} could not be removed: {error}", file.display()))
        }
        _ => exit::CONFORMANT,
    }
}

fn fail(code: u8, why: &str) -> ExitCode {
    ExitCode::from(say(code, why))
}

fn say(code: u8, why: &str) -> u8 {
    output::err(&format!("error: {why}"));
    code
}
