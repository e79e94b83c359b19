//! Probes: startup, readiness, liveness, with Kubernetes' thresholds.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, ExecAction, HTTPGetAction, Probe, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::time::Instant;

use super::mount::Mount;
use super::sandbox::{self, Isolation, Wanted};

/// The purpose of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Startup,
    Readiness,
    Liveness,
}

impl Purpose {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Purpose::Startup => "Startup",
            Purpose::Readiness => "Readiness",
            Purpose::Liveness => "Liveness",
        }
    }
}

/// Consecutive results and the verdict from them. Pure.
#[derive(Debug)]
pub(crate) struct Tally {
    success_threshold: u32,
    failure_threshold: u32,
    run: u32,
    last: Option<bool>,
    verdict: Option<bool>,
}

impl Tally {
    pub(crate) fn new(probe: &Probe) -> Tally {
        let positive = |number: Option<i32>, default: u32| {
            number
                .and_then(|number| u32::try_from(number).ok())
                .filter(|number| *number > 0)
                .unwrap_or(default)
        };
        Tally {
            success_threshold: positive(probe.success_threshold, 1),
            failure_threshold: positive(probe.failure_threshold, 3),
            run: 0,
            last: None,
            verdict: None,
        }
    }

    /// Counts a result; returns the verdict when it is reached or changes.
    pub(crate) fn count(&mut self, success: bool) -> Option<bool> {
        self.run = if self.last == Some(success) { self.run.saturating_add(1) } else { 1 };
        self.last = Some(success);
        let threshold = if success { self.success_threshold } else { self.failure_threshold };
        if self.run < threshold || self.verdict == Some(success) {
            return None;
        }
        self.verdict = Some(success);
        Some(success)
    }
}

/// The facts that a probe needs to reach a container.
#[derive(Clone)]
pub(crate) struct ProbeContext {
    /// The address of the Pod on this computer.
    pub(crate) address: IpAddr,
    pub(crate) isolation: Isolation,
    pub(crate) scratch: PathBuf,
    pub(crate) shown: Vec<Mount>,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) client: reqwest::Client,
}

/// The time of the first probe, and the interval after it.
pub(crate) fn schedule(probe: &Probe, started: Instant) -> (Instant, Duration, Duration) {
    let seconds = |number: Option<i32>, default: u64| {
        Duration::from_secs(number.and_then(|number| u64::try_from(number).ok()).unwrap_or(default))
    };
    let at_least_one = |duration: Duration| duration.max(Duration::from_secs(1));
    let first = started + seconds(probe.initial_delay_seconds, 0);
    let period = at_least_one(seconds(probe.period_seconds.filter(|period| *period > 0), 10));
    (first, period, at_least_one(seconds(probe.timeout_seconds.filter(|timeout| *timeout > 0), 1)))
}

/// The address to probe. A machine's own `localhost` is its loopback address here, so that replicas on
/// several machines can listen at the same time. A program that listens on 127.0.0.1 is still probed there.
async fn host(written: Option<&str>, around: &ProbeContext, port: u16) -> String {
    match written {
        None | Some("") => around.address.to_string(),
        Some("127.0.0.1" | "localhost") => {
            let answers = tokio::net::TcpStream::connect((around.address, port)).await.is_ok();
            if answers { around.address.to_string() } else { "127.0.0.1".to_owned() }
        }
        Some(other) => other.to_owned(),
    }
}

/// Probes once; an error has the reason in the kubelet's words.
pub(crate) async fn ask(
    probe: &Probe,
    container: &Container,
    around: &ProbeContext,
    timeout: Duration,
) -> Result<(), String> {
    if let Some(http) = &probe.http_get {
        return get(http, container, around, timeout).await;
    }
    if let Some(tcp) = &probe.tcp_socket {
        return connect(tcp, container, around, timeout).await;
    }
    if let Some(exec) = &probe.exec {
        return execute(exec, around, timeout).await;
    }
    Err("this kind of probe is not modelled by the embedded cluster".to_owned())
}

/// Probes with an HTTP request.
async fn get(
    http: &HTTPGetAction,
    container: &Container,
    around: &ProbeContext,
    timeout: Duration,
) -> Result<(), String> {
    let port = port(&http.port, container)?;
    let host = host(http.host.as_deref(), around, port).await;
    let scheme = http.scheme.as_deref().unwrap_or("HTTP").to_lowercase();
    let path = http.path.as_deref().unwrap_or("/");
    let slash = if path.starts_with('/') { "" } else { "/" };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let mut request = around.client.get(format!("{scheme}://{host}:{port}{slash}{path}")).timeout(timeout);
    for header in http.http_headers.iter().flatten() {
        request = request.header(&header.name, &header.value);
    }
    let response = request.send().await.map_err(|error| {
        let mut text = error.to_string();
        let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(&error);
        while let Some(inner) = cause {
            text.push_str(&format!(": {inner}"));
            cause = inner.source();
        }
        text
    })?;
    let code = response.status().as_u16();
    if (200..400).contains(&code) {
        Ok(())
    } else {
        Err(format!("HTTP probe failed with statuscode: {code}"))
    }
}

/// Probes with a TCP connection.
async fn connect(
    tcp: &TCPSocketAction,
    container: &Container,
    around: &ProbeContext,
    timeout: Duration,
) -> Result<(), String> {
    let port = port(&tcp.port, container)?;
    let host = host(tcp.host.as_deref(), around, port).await;
    match tokio::time::timeout(timeout, tokio::net::TcpStream::connect((host.as_str(), port))).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(format!("dial tcp {host}:{port}: {error}")),
        Err(_) => Err(format!("dial tcp {host}:{port}: i/o timeout")),
    }
}

/// Probes with a command.
async fn execute(exec: &ExecAction, around: &ProbeContext, timeout: Duration) -> Result<(), String> {
    let line = exec.command.clone().unwrap_or_default();
    let run = async {
        let wanted = Wanted {
            scratch: &around.scratch,
            shown: &around.shown,
            mounts: &around.mounts,
            line,
            environment: around.environment.clone(),
            folder: "/".as_ref(),
        };
        let prepared = sandbox::prepare(around.isolation, wanted)?;
        let Some((program, arguments)) = prepared.line.split_first() else {
            return Err(std::io::Error::other("no command"));
        };
        tokio::process::Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(&prepared.environment)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
    };
    match tokio::time::timeout(timeout, run).await {
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => {
            let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.push_str(&String::from_utf8_lossy(&output.stderr));
            Err(text.chars().take(1024).collect())
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("command timed out after {timeout:?}")),
    }
}

fn port(port: &IntOrString, container: &Container) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => container
            .ports
            .iter()
            .flatten()
            .find(|port| port.name.as_deref() == Some(name))
            .map(|port| port.container_port)
            .or_else(|| name.parse().ok()),
    };
    number
        .and_then(|number| u16::try_from(number).ok())
        .ok_or_else(|| format!("couldn't find port: {port:?}"))
}

/// The HTTP client of probes. Like a kubelet's, it follows no redirect to another host and verifies no certificate.
pub(crate) fn client() -> Result<reqwest::Client, Box<dyn std::error::Error + Send + Sync>> {
    // Without this, TLS does not work if more than one provider is compiled in. Any provider that is already
    // installed is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(reqwest::Client::builder()
        .tls_danger_accept_invalid_certs(true)
        .user_agent("kube-probe/1.36")
        .pool_max_idle_per_host(0)
        .no_proxy()
        .build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_count_results_in_a_row() {
        let probe = Probe { success_threshold: Some(2), failure_threshold: Some(3), ..Probe::default() };
        let mut tally = Tally::new(&probe);
        let verdicts: Vec<_> = [true, true, true, false, false, true, false, false, false, false]
            .iter()
            .map(|one| tally.count(*one))
            .collect();
        let mut expected = vec![None; 10];
        expected[1] = Some(true);
        expected[8] = Some(false);
        assert_eq!(verdicts, expected);
    }

    #[test]
    fn defaults_are_kubernetes() {
        let started = Instant::now();
        let (first, period, timeout) = schedule(&Probe::default(), started);
        assert_eq!((first, period.as_secs(), timeout.as_secs()), (started, 10, 1));
        let mut tally = Tally::new(&Probe::default());
        assert_eq!([tally.count(false), tally.count(false), tally.count(false)], [None, None, Some(false)]);
    }
}
