//! A driver that is a program of this machine: it is started with the run's cloud, gets the address to listen
//! on, and is ended with the cloud.
//!
//! Its token is in a file for this user alone, because every user can read a command line.

use super::at_url::address;
use super::protocol::{self, Access};
use super::ready::{listens_at, ready_line};
use super::spec::{CloudSpec, Host, Kind, OnMessage, Place, RunningCloud, StartError};
use crate::fresh_token;
use crate::tails::{self, LINES_SHOWN, Tail};
use futures::FutureExt;
use futures::future::BoxFuture;
use harness_config::{CloudSource, DRIVER_LISTEN, DRIVER_TOKEN_FILE};
use harness_core::bounded::Lines;
use harness_core::files;
use ipnet::Ipv4Net;
use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A driver that takes less processor time than this does not slow a run down.
const WORTH_TELLING: Duration = Duration::from_secs(2);
/// Its name in records.
const NAME: &str = "driver-command";
/// How long it may take until it is ready.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// How long it may take to end after SIGTERM; then it is killed.
const END_LIMIT: Duration = Duration::from_secs(3);

/// Its entry in the table.
pub(super) const KIND: Kind = Kind {
    name: NAME,
    suits: |spec| matches!(spec.cloud, CloudSource::DriverCommand { .. }),
    start: |spec| start(spec).boxed(),
    attach: protocol::attach_named,
};

/// A driver's process and the known facts about it.
struct Program {
    /// The program as messages show it.
    shown: String,
    on_message: OnMessage,
    group: Option<Pid>,
    /// Notified when the program is ended on purpose.
    end: Option<oneshot::Sender<()>>,
    watcher: Option<JoinHandle<()>>,
    token_file: PathBuf,
    /// Its URL, once it is ready.
    url: String,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("shown", &self.shown)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        signal(self.group, Signal::KILL);
        tails::forget(&self.url);
        let _ = std::fs::remove_file(&self.token_file);
    }
}

impl Host for Program {
    fn stop(mut self: Box<Self>) -> BoxFuture<'static, Result<(), StartError>> {
        async move {
            if let Some(end) = self.end.take() {
                let _ = end.send(());
            }
            if let Some(took) = self.group.and_then(processor_time).filter(|took| *took >= WORTH_TELLING) {
                let took = took.as_secs_f64();
                (self.on_message)(format!(
                    "  the cloud's driver '{}' took {took:.1} s of processor time",
                    self.shown
                ));
            }
            signal(self.group, Signal::TERM);
            if let Some(mut watcher) = self.watcher.take()
                && timeout(END_LIMIT, &mut watcher).await.is_err()
            {
                signal(self.group, Signal::KILL);
                let _ = timeout(END_LIMIT, watcher).await;
            }
            Ok(())
        }
        .boxed()
    }
}

/// The processor time of a process and of the children that it has waited for; `None` if the system does not
/// report it.
fn processor_time(process: Pid) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // The name of the process is in parentheses and may contain anything.
    let (_, numbers) = stat.rsplit_once(')')?;
    let ticks = numbers.split_whitespace().skip(11).take(4).filter_map(|ticks| ticks.parse::<u32>().ok());
    let ticks: f64 = ticks.map(f64::from).sum();
    #[expect(clippy::cast_precision_loss, reason = "ticks in a second are a hundred or a thousand")]
    let in_a_second = clock_ticks_per_second() as f64;
    Some(Duration::from_secs_f64(ticks / in_a_second))
}

/// Sends a signal to the process group. Ignores that it has already ended.
fn signal(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        let _ = kill_process_group(group, signal);
    }
}

async fn start(spec: CloudSpec<'_>) -> Result<RunningCloud, StartError> {
    let CloudSource::DriverCommand { line, folder } = spec.cloud else {
        return Err(StartError::NoDriver { cloud: spec.cloud.to_string(), names: NAME.to_owned() });
    };
    let token = fresh_token()?;
    let token_file = std::path::absolute(spec.folder.join("driver-token")).unwrap_or_default();
    write_token(&token_file, &token)
        .map_err(|cause| StartError::TokenFile { file: token_file.clone(), cause: cause.to_string() })?;
    let reachable = reachable(&spec.place).await?;
    let listen = format!("{reachable}:0");
    let filled: Vec<String> = line
        .iter()
        .map(|part| {
            part.replace(DRIVER_LISTEN, &listen).replace(DRIVER_TOKEN_FILE, &token_file.to_string_lossy())
        })
        .collect();
    let (filled, folder) = on_this_machine(filled, folder, spec.folder)
        .map_err(|cause| StartError::Program { line: line.join(" "), folder: folder.clone(), cause })?;
    let (shown, on_message) = (line.join(" "), spec.on_message.clone());
    let mut program = Program {
        shown: shown.clone(),
        on_message,
        group: None,
        end: None,
        watcher: None,
        token_file,
        url: String::new(),
    };
    let (at, tail) = bring_up(&mut program, &filled, &folder, spec.on_message).await?;
    let Some(at) = listens_at(&at, reachable) else {
        return Err(StartError::ForeignAddress { line: shown, at, given: reachable });
    };
    let url = format!("http://{at}");
    program.url.clone_from(&url);
    tails::remember(&url, &tail);
    let access = Access::of(&format!("'{}'", line.join(" ")), url.clone(), token)
        .await
        .map_err(|error| StartError::DriverSays { error: Box::new(error), lines: tail.text() })?;
    let endpoint = access.capabilities.endpoint.clone().unwrap_or_default();
    let ip = address(if endpoint.is_empty() { &url } else { &endpoint }).await?;
    Ok(RunningCloud { record: access.into_record(NAME, ip, endpoint), host: Box::new(program) })
}

/// The address of this machine for the clients that have to reach the cloud.
pub(super) async fn reachable(place: &Place<'_>) -> Result<Ipv4Addr, StartError> {
    let (engine, network) = match place {
        Place::ThisProcess { address, .. } => return Ok(*address),
        Place::NextToMachines { engine, network, .. } => (engine, network),
    };
    const LIMIT: Duration = Duration::from_secs(30);
    let looking = engine.docker().inspect_network(network, None);
    let found = engine.call("inspect network", network, LIMIT, looking).await?;
    let ranges = found.ipam.and_then(|ipam| ipam.config).unwrap_or_default();
    let ranges = ranges.iter().map(|range| (range.gateway.as_deref(), range.subnet.as_deref()));
    gateway(ranges).ok_or_else(|| StartError::Host {
        url: format!("driver on network {network}"),
        why: "the network has no IPv4 range".to_owned(),
    })
}

/// The address of this machine for containers of a network, from the gateways and ranges that Docker reports.
/// If no gateway is reported, a network with a configured range has its first address.
fn gateway<'a>(ranges: impl Iterator<Item = (Option<&'a str>, Option<&'a str>)>) -> Option<Ipv4Addr> {
    let mut v4 = ranges.filter_map(|(gateway, range)| {
        let named = gateway.and_then(|gateway| gateway.parse().ok());
        let range: Option<Ipv4Net> = range.and_then(|range| range.parse().ok());
        named.or_else(|| range?.hosts().next())
    });
    v4.next()
}

/// A command and its folder on this machine. If the profile is part of this program, so is its driver, which
/// is written into the run's own folder.
fn on_this_machine(
    mut line: Vec<String>,
    folder: &Path,
    own: &Path,
) -> std::io::Result<(Vec<String>, PathBuf)> {
    if !files::is_built_in(folder) {
        return Ok((line, folder.to_owned()));
    }
    let own = std::path::absolute(own)?;
    for part in &mut line {
        let file = folder.join(&*part);
        if let (true, Some(name)) = (files::is_file(&file), file.file_name()) {
            let written = own.join(name);
            std::fs::write(&written, files::read(&file)?)?;
            *part = written.to_string_lossy().into_owned();
        }
    }
    Ok((line, own))
}

fn write_token(file: &Path, token: &str) -> std::io::Result<()> {
    let mut made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    made.write_all(token.as_bytes())
}

/// Starts it and waits for the line that contains its address; returns that address and its output.
async fn bring_up(
    program: &mut Program,
    line: &[String],
    folder: &Path,
    on_message: &OnMessage,
) -> Result<(String, Tail), StartError> {
    let shown = line.join(" ");
    let mut child = Command::new(&line[0])
        .args(&line[1..])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|cause| StartError::Program { line: shown.clone(), folder: folder.to_owned(), cause })?;
    program.group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let tail = Tail::default();
    let (sender, mut lines) = mpsc::channel(LINES_SHOWN);
    let out = child.stdout.take().map(|pipe| follow(pipe, tail.clone(), Some(sender)));
    let err = child.stderr.take().map(|pipe| follow(pipe, tail.clone(), None));
    let ready = async {
        while let Some(line) = lines.recv().await {
            if let Some(address) = ready_line(&line) {
                return Some(address);
            }
        }
        None
    };
    let address = match timeout(READY_LIMIT, ready).await {
        Ok(Some(Some(address))) => address,
        Ok(Some(None)) => return Err(StartError::NoAddress { line: shown, lines: tail.text() }),
        Ok(None) => {
            let status = timeout(END_LIMIT, child.wait()).await.ok().and_then(Result::ok);
            for pump in [out, err].into_iter().flatten() {
                let _ = timeout(END_LIMIT, pump).await;
            }
            return Err(StartError::DriverEnded { line: shown, status: ended(status), lines: tail.text() });
        }
        Err(_) => {
            return Err(StartError::DriverSilent { line: shown, limit: READY_LIMIT, lines: tail.text() });
        }
    };
    let (end, ending) = oneshot::channel();
    program.end = Some(end);
    program.watcher = Some(tokio::spawn(watch(child, ending, shown, tail.clone(), on_message.clone())));
    Ok((address, tail))
}

/// Waits for its end; an unexpected end is reported.
async fn watch(
    mut child: Child,
    ending: oneshot::Receiver<()>,
    shown: String,
    tail: Tail,
    on_message: OnMessage,
) {
    tokio::select! {
        biased;
        _ = ending => drop(child.wait().await),
        status = child.wait() => on_message(format!(
            "the cloud's driver '{shown}' ended by itself with {}; its last lines:\n{}",
            ended(status.ok()),
            tail.text()
        )),
    }
}

fn ended(status: Option<ExitStatus>) -> String {
    status.map_or_else(|| "an unknown status".to_owned(), files::ended)
}

/// Keeps the last lines of output until it ends, and passes the lines on.
fn follow(
    pipe: impl AsyncRead + Unpin + Send + 'static,
    tail: Tail,
    on: Option<mpsc::Sender<String>>,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut lines = Lines::of(pipe);
        while let Ok(Some(line)) = lines.next().await {
            tail.push(&line);
            if let Some(on) = &on {
                // Once the driver is ready, nothing receives the lines any more.
                let _ = on.send(line).await;
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_see_this_machine_at_the_gateway_of_their_ipv4_range() {
        let v6 = (Some("fd00::1"), Some("fd00::/64"));
        let networks = [v6, (Some("172.18.0.9"), Some("172.18.0.0/16"))];
        assert_eq!(gateway(networks.into_iter()), Some(Ipv4Addr::new(172, 18, 0, 9)));
        let without_gateway = [(None, Some("172.19.0.0/16")), v6];
        assert_eq!(gateway(without_gateway.into_iter()), Some(Ipv4Addr::new(172, 19, 0, 1)));
        assert_eq!(gateway([v6].into_iter()), None);
    }

    #[test]
    fn a_driver_that_is_part_of_this_program_is_written_where_the_run_is() {
        let own = tempfile::tempdir().expect("a folder");
        let line = |file: &str| ["python3", file, "--listen", "127.0.0.1:0"].map(str::to_owned).to_vec();
        let (profile, driver) = (files::built_in("reference"), "../drivers/python/driver.py");
        let (filled, folder) =
            on_this_machine(line(driver), &profile, own.path()).expect("it can be written");
        assert_eq!(folder, own.path());
        let written = own.path().join("driver.py");
        assert_eq!(filled, line(&written.to_string_lossy()));
        let text = std::fs::read_to_string(written).expect("it is there");
        assert!(text.contains("/driver/v1"), "{text}");
        // A profile on this machine has its driver there.
        let there = on_this_machine(line(driver), Path::new("acme"), own.path()).expect("nothing to write");
        assert_eq!(there, (line(driver), PathBuf::from("acme")));
    }

    #[test]
    fn only_the_ready_line_says_where_it_listens() {
        assert_eq!(ready_line("starting"), None);
        assert_eq!(ready_line(r#"{"level": "info"}"#), None);
        assert_eq!(ready_line(r#"{"ready": true}"#), Some(None));
        assert_eq!(
            ready_line(r#"{"ready": true, "driver": "127.0.0.1:1"}"#),
            Some(Some("127.0.0.1:1".to_owned()))
        );
    }
}
