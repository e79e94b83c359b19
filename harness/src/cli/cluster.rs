//! `cluster embedded`: a cluster of its own, for kubectl, a CCM under a debugger or any other client.

use super::arguments::EmbeddedOptions;
use crate::check::chain;
use crate::report::exit;
use crate::run::interrupted;
use embedded_cluster::{Cluster, ClusterSpec};
use std::io::{ErrorKind, Write};
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
    // Before anything is started: whoever has clusters in that file must not lose them.
    if file.exists() {
        let why = format!("{} exists, and would be overwritten; name a file that does not", file.display());
        return fail(exit::USAGE, &why);
    }
    let spec = ClusterSpec { kubernetes: options.kubernetes, ..ClusterSpec::awaiting_cloud(options.nodes) };
    let cluster = match Cluster::start(spec).await {
        Ok(cluster) => cluster,
        Err(error) => return fail(exit::ENVIRONMENT, &chain(&error)),
    };
    if let Err(error) = cluster.write_kubeconfig(file) {
        cluster.stop().await;
        return fail(exit::USAGE, &format!("kubeconfig {}: {}", file.display(), chain(&error)));
    }
    let text = format!(
        "Kubernetes {} at {} in {:.2} s, {} nodes\nexport KUBECONFIG={}\nCtrl-C ends it\n",
        options.kubernetes,
        cluster.url(),
        began.elapsed().as_secs_f64(),
        options.nodes,
        file.display(),
    );
    let _ = std::io::stdout().write_all(text.as_bytes());
    interrupted().await;
    cluster.stop().await;
    // It leads nowhere any more.
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            fail(exit::ENVIRONMENT, &format!("{} could not be removed: {error}", file.display()))
        }
        _ => ExitCode::from(exit::CONFORMANT),
    }
}

fn fail(code: u8, why: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "error: {why}");
    ExitCode::from(code)
}
