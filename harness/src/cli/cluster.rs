//! `cluster embedded`: a cluster of its own, for kubectl, a CCM under a debugger or any other client.

use super::arguments::EmbeddedOptions;
use crate::check::chain;
use crate::cluster::{EmbeddedCluster, EmbeddedSpec};
use crate::report::exit;
use crate::run::interrupted;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
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
    let spec = EmbeddedSpec::of_nodes(options.nodes, options.kubernetes);
    let cluster = match EmbeddedCluster::start(spec).await {
        Ok(cluster) => cluster,
        Err(error) => return fail(exit::ENVIRONMENT, &chain(&error)),
    };
    let written = cluster.kubeconfig().map_err(|error| chain(&error)).and_then(|text| write(file, &text));
    if let Err(why) = written {
        cluster.stop().await;
        return fail(exit::USAGE, &format!("kubeconfig {}: {why}", file.display()));
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

/// Writes a new file for its owner alone.
fn write(file: &Path, text: &str) -> Result<(), String> {
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| error.to_string())
}

fn fail(code: u8, why: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "error: {why}");
    ExitCode::from(code)
}
