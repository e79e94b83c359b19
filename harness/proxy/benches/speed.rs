//! Measures figures without asserting them: `cargo bench -p recording-proxy`.
//!
//! How much time the proxy adds to a call, and how many calls per second it can handle. Fake cloud, proxy and clients are
//! separate processes on loopback; the proxy matches each call with its rules and adds it to its journal. A second of its
//! processor time is a second of one core.

#![expect(clippy::print_stdout, reason = "a benchmark is there to print its figures")]

use fake_cloud::{Config as CloudConfig, Server};
use fake_cloud_driver::{Credential, Op};
use recording_proxy::{Bounds, Config, ErrorForms, Rule, Running, Source, SourceText, Table, any_port};
use std::error::Error;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TOKEN: &str = "token-of-the-benchmark";
/// Calls of each side of a comparison, in turns.
const TURNS: usize = 4000;
const CALLERS: usize = 16;
const RUN: Duration = Duration::from_secs(4);

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match words.as_slice() {
        ["cloud"] => runtime.block_on(cloud()),
        ["proxy", upstream] => runtime.block_on(proxy(upstream, None)),
        ["proxy", upstream, ca] => runtime.block_on(proxy(upstream, Some(Path::new(ca)))),
        words if words.contains(&"--bench") => runtime.block_on(measure()),
        // `cargo test --all-targets` runs this as well, without the flag.
        _ => Ok(()),
    }
}

async fn cloud() -> Outcome<()> {
    let credentials = vec![Credential { name: "bench".to_owned(), token: TOKEN.to_owned() }];
    let running = Server::start(CloudConfig { credentials, ..CloudConfig::local("native") }).await?;
    println!("http://{}", running.cloud_addr());
    std::future::pending().await
}

async fn proxy(upstream: &str, ca: Option<&Path>) -> Outcome<()> {
    let running = Running::start(Config {
        ports: vec![any_port(Some("bench".to_owned()))],
        upstream: upstream.to_owned(),
        upstream_ca: None,
        table: table()?,
        errors: ErrorForms::default(),
        rewrites: Default::default(),
        tls: ca.map(|_| vec!["127.0.0.1".to_owned()]),
        driver: None,
        bounds: Bounds::default(),
        ended: None,
        on_message: Arc::new(|_| ()),
    })
    .await?;
    if let (Some(file), Some(ca)) = (ca, running.ca()) {
        std::fs::write(file, ca)?;
    }
    println!("{}", running.ports()[0].1);
    std::future::pending().await
}

/// As many rules as a cloud's API needs for a CCM; only the last one matches.
fn table() -> Outcome<Table> {
    let query = |name: &str| SourceText { query: Some(name.to_owned()), ..SourceText::default() };
    let mut rules = Vec::new();
    for number in 0..30 {
        let path = SourceText { path: Some("id".to_owned()), ..SourceText::default() };
        let rule = Rule::new(&format!("GET /v1/kind-{number}/{{id}}"), Op::LbGet)?;
        rules.push(rule.naming(Source::parse(path)?)?);
    }
    rules.push(Rule::new("GET /v1/instances", Op::InstanceList)?);
    let by_name = Rule::new("GET /v1/instances", Op::InstanceGet)?;
    rules
        .push(by_name.when(Source::parse(query("name"))?, Some("*"))?.naming(Source::parse(query("name"))?)?);
    Ok(Table::new(rules).map_err(|overlaps| format!("{overlaps:?}"))?)
}

async fn measure() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let cloud = Program::start(&["cloud"])?;
    println!(
        "{:<8} {:>12} {:>14} {:>12} {:>10} {:>13}",
        "proxy", "direct", "through it", "added", "calls/s", "calls/CPU s"
    );
    for tls in [None, Some(folder.path().join("ca.pem"))] {
        let ca = tls.as_ref().map(|file: &PathBuf| file.display().to_string());
        let mut line = vec!["proxy", cloud.url.as_str()];
        line.extend(ca.as_deref());
        let proxy = Program::start(&line)?;
        let client = client(tls.as_deref())?;
        let [direct, through] = latencies(&client, &cloud.url, &proxy.url).await?;
        let (calls, cpu) = load(&client, &proxy).await?;
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!(
            "{:<8} {:>9.3} ms {:>11.3} ms {:>9.3} ms {:>10.0} {:>13.0}",
            if tls.is_some() { "TLS" } else { "HTTP" },
            ms(direct),
            ms(through),
            ms(through.saturating_sub(direct)),
            calls as f64 / RUN.as_secs_f64(),
            calls as f64 / cpu.as_secs_f64(),
        );
    }
    println!(
        "medians of {TURNS} calls in turns; then {CALLERS} callers for {RUN:?} (goals: 0.2 ms, 10000 calls/CPU s)"
    );
    Ok(())
}

fn client(ca: Option<&Path>) -> Outcome<reqwest::Client> {
    let mut builder = reqwest::Client::builder().no_proxy().http1_only();
    if let Some(ca) = ca {
        builder = builder.tls_certs_only([reqwest::Certificate::from_pem(&std::fs::read(ca)?)?]);
    }
    Ok(builder.build()?)
}

async fn call(client: &reqwest::Client, base: &str) -> reqwest::Result<()> {
    let answer = client.get(format!("{base}/v1/instances?name=n")).bearer_auth(TOKEN).send().await?;
    answer.error_for_status()?.bytes().await.map(drop)
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

/// How many calls the proxy handles, and the processor time that they take.
async fn load(client: &reqwest::Client, proxy: &Program) -> Outcome<(usize, Duration)> {
    let (before, until) = (proxy.cpu()?, Instant::now() + RUN);
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        let (client, base) = (client.clone(), proxy.url.clone());
        callers.push(tokio::spawn(async move {
            let mut calls = 0;
            while Instant::now() < until {
                call(&client, &base).await?;
                calls += 1;
            }
            Ok::<usize, reqwest::Error>(calls)
        }));
    }
    let mut calls = 0;
    for caller in callers {
        calls += caller.await??;
    }
    Ok((calls, proxy.cpu()?.saturating_sub(before)))
}

/// This program in another role, once it has printed its address; ended when dropped.
struct Program {
    child: Child,
    url: String,
}

impl Program {
    fn start(line: &[&str]) -> Outcome<Program> {
        let mut child = Command::new(std::env::current_exe()?).args(line).stdout(Stdio::piped()).spawn()?;
        let mut said = String::new();
        let read = child.stdout.take().map(|output| BufReader::new(output).read_line(&mut said));
        // From here on it is always ended.
        let program = Program { child, url: said.trim().to_owned() };
        read.ok_or("no output")??;
        Ok(program)
    }

    /// Processor time used so far, in steps of 10 ms.
    fn cpu(&self) -> Outcome<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, fields) = stat.rsplit_once(") ").ok_or("no fields")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        Ok(Duration::from_millis((fields[11].parse::<u64>()? + fields[12].parse::<u64>()?) * 10))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have exited by itself; either way it is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
