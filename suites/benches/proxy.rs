//! Figures, not verdicts: `cargo bench -p suites --bench proxy`.
//!
//! What the recording proxy adds to a call, and how many calls it carries. Fake cloud, proxy and caller are processes of their
//! own on loopback; the proxy reads each call by the routes of the API `native` and writes it into its journal. A second
//! of its processor time is a second of one core.

#![expect(clippy::print_stdout, reason = "a benchmark is there to print its figures")]

use serde_json::Value;
use std::error::Error;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ccm-conformance");
const ROUTES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/routes/native.yaml");
const TOKEN: &str = "token-of-the-benchmark";
/// Calls of each side of a comparison, one after the other in turns.
const TURNS: usize = 4000;
const CONNECTIONS: usize = 16;
const RUN: Duration = Duration::from_secs(4);

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    // `cargo test --all-targets` runs this as well, without the flag.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir()?;
    let cloud = Program::start(&[
        "fake-cloud",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--driver-listen",
        "127.0.0.1:0",
    ])?;
    let upstream = format!("http://{}", cloud.ready["cloud"].as_str().ok_or("no cloud")?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!(
        "{:<12} {:>14} {:>14} {:>14} {:>12} {:>16}",
        "proxy", "direct", "through it", "added", "calls/s", "calls/CPU s"
    );
    for scheme in ["http", "https"] {
        let ca = folder.path().join("ca.pem");
        let proxy = proxy(&upstream, (scheme == "https").then_some(ca.as_path()))?;
        let url = proxy.ready["ports"][0]["url"].as_str().ok_or("no port")?.to_owned();
        let client = client((scheme == "https").then_some(ca.as_path()))?;
        let [direct, through] = runtime.block_on(latencies(&client, &upstream, &url))?;
        let (calls, cpu) = runtime.block_on(load(&client, &url, &proxy))?;
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!(
            "{scheme:<12} {:>11.3} ms {:>11.3} ms {:>11.3} ms {:>12.0} {:>16.0}",
            ms(direct),
            ms(through),
            ms(through.saturating_sub(direct)),
            calls as f64 / RUN.as_secs_f64(),
            calls as f64 / cpu.as_secs_f64(),
        );
    }
    println!(
        "medians of {TURNS} calls in turns; then {CONNECTIONS} callers for {RUN:?} (goals: 0.2 ms, 10000 calls per CPU s)"
    );
    Ok(())
}

fn proxy(upstream: &str, ca: Option<&Path>) -> Outcome<Program> {
    let mut line = vec!["proxy", "--listen", "bench=127.0.0.1:0", "--upstream", upstream, "--routes", ROUTES];
    line.extend(["--journal", "/dev/null"]);
    let ca = ca.map(|ca| ca.display().to_string());
    if let Some(ca) = &ca {
        line.extend(["--tls-ca-out", ca]);
    }
    Program::start(&line)
}

fn client(ca: Option<&Path>) -> Outcome<reqwest::Client> {
    let mut builder = reqwest::Client::builder().no_proxy().http1_only();
    if let Some(ca) = ca {
        builder = builder.tls_certs_only([reqwest::Certificate::from_pem(&std::fs::read(ca)?)?]);
    }
    Ok(builder.build()?)
}

async fn call(client: &reqwest::Client, base: &str) -> Outcome<()> {
    let answer = client.get(format!("{base}/v1/instances?name=n")).bearer_auth(TOKEN).send().await?;
    answer.error_for_status()?.bytes().await?;
    Ok(())
}

/// Medians of calls straight to the cloud, and through the proxy.
async fn latencies(client: &reqwest::Client, direct: &str, through: &str) -> Outcome<[Duration; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (side, base) in [direct, through].into_iter().enumerate() {
            let began = Instant::now();
            call(client, base).await?;
            times[side].push(began.elapsed());
        }
    }
    Ok(times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    }))
}

/// How many calls the proxy carries, and the processor time that it takes for them.
async fn load(client: &reqwest::Client, base: &str, proxy: &Program) -> Outcome<(usize, Duration)> {
    let before = proxy.cpu()?;
    let until = Instant::now() + RUN;
    let callers = (0..CONNECTIONS).map(|_| {
        let (client, base) = (client.clone(), base.to_owned());
        tokio::spawn(async move {
            let mut calls = 0;
            while Instant::now() < until {
                call(&client, &base).await.map_err(|error| error.to_string())?;
                calls += 1;
            }
            Ok::<usize, String>(calls)
        })
    });
    let mut calls = 0;
    for caller in callers.collect::<Vec<_>>() {
        calls += caller.await??;
    }
    Ok((calls, proxy.cpu()?.saturating_sub(before)))
}

/// A program that has said that it is ready; ended when dropped.
struct Program {
    child: Child,
    ready: Value,
}

impl Program {
    fn start(line: &[&str]) -> Outcome<Program> {
        let mut child = Command::new(PROGRAM)
            .args(line)
            .env("FAKE_CLOUD_DRIVER_TOKEN", TOKEN)
            .env("FAKE_CLOUD_CREDENTIALS", format!("bench={TOKEN}"))
            .stdout(Stdio::piped())
            .spawn()?;
        let mut said = String::new();
        let read = child.stdout.take().map(|output| BufReader::new(output).read_line(&mut said));
        // From here on it is stopped whatever happens.
        let mut program = Program { child, ready: Value::Null };
        read.ok_or("no output")??;
        program.ready = serde_json::from_str(&said)?;
        Ok(program)
    }

    /// Processor time used so far, in steps of 10 ms.
    fn cpu(&self) -> Outcome<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, fields) = stat.rsplit_once(") ").ok_or("fields")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        Ok(Duration::from_millis(ticks * 10))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
