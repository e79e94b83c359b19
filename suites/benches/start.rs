//! Figures, not verdicts: `cargo bench -p ccm-conformance --bench start`.
//!
//! Measures the time from the start of the process `ccm-conformance cluster embedded` to the first answer of
//! its API server. This includes certificates, the kubeconfig file, controllers, a registered Node and TLS.

#![expect(clippy::print_stdout, reason = "a benchmark is there to print its figures")]

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::error::Error;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

const STARTS: usize = 15;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        starts.push(start().await?);
    }
    println!("{:<44} {:>10} {:>10} {:>10}", format!("{STARTS} starts"), "fastest", "median", "slowest");
    let written = starts.iter().map(|(written, _)| *written).collect();
    show("process start to kubeconfig and address", written);
    let answered = starts.iter().map(|(_, answered)| *answered).collect();
    show("process start to first answer (goal 200 ms)", answered);
    Ok(())
}

fn show(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1000.0);
    let (first, middle, last) = (times.first(), times.get(times.len() / 2), times.last());
    println!("{what:<44} {:>7.1} ms {:>7.1} ms {:>7.1} ms", ms(first), ms(middle), ms(last));
}

/// Starts a cluster and sends a request. Returns the time until it printed its address and the time until it
/// answered.
async fn start() -> Result<(Duration, Duration), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("kubeconfig");
    let began = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"))
        .args(["cluster", "embedded", "--kubeconfig"])
        .arg(&file)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    lines.next_line().await?.ok_or("the cluster did not start")?;
    let written = began.elapsed();
    let kubeconfig = Kubeconfig::read_from(&file)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Client::try_from(config)?.apiserver_version().await?;
    let answered = began.elapsed();
    child.kill().await?;
    Ok((written, answered))
}
