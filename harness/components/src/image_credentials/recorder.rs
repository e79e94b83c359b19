//! The recorder between a kubelet and a plugin: `ccm-conformance image-credential-recorder`. It passes everything on
//! unchanged, and reports the execution to the registry before the kubelet gets the response.

use super::executions::PluginExecution;
use clap::Parser;
use harness_core::check::chain;
use harness_core::files;
use harness_core::{bounded, output};
use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The command.
pub const RECORDER: &str = "image-credential-recorder";
/// Time limit for the registry, which is on the same machine.
const LIMIT: Duration = Duration::from_secs(20);
/// Maximum size of a request or response that is passed on, in bytes: far more than needed, but it protects the node's
/// memory.
const MOST: usize = 16 << 20;
/// Exit code if nothing could be executed, as in a shell.
const NOT_EXECUTED: u8 = 126;

/// The arguments of the command.
#[derive(Debug, Parser)]
#[command(name = RECORDER, version, about = "Run an image credential provider and record its runs")]
struct Arguments {
    /// The address for its reports.
    #[arg(long, value_name = "URL")]
    to: String,
    /// The plugin and its arguments.
    #[arg(last = true, required = true)]
    plugin: Vec<OsString>,
}

/// The command.
pub fn recorder_main(arguments: Vec<OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let request = bounded::read_whole(Some(std::io::stdin()), MOST).unwrap_or_default();
    let began = Instant::now();
    let (code, answer) = match executed(&arguments.plugin, &request) {
        Ok(ended) => ended,
        Err(error) => {
            let program = arguments.plugin[0].to_string_lossy();
            output::err(&format!("{RECORDER}: {program}: {}", files::why(&error)));
            (None, Vec::new())
        }
    };
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    tell(&arguments.to, &PluginExecution { code, took_ms, ..PluginExecution::of(&request, &answer) });
    output::handed_on(&answer);
    code.map_or(ExitCode::from(NOT_EXECUTED), |code| ExitCode::from(code.to_le_bytes()[0]))
}

/// The plugin's exit code and its standard output.
fn executed(plugin: &[OsString], request: &[u8]) -> std::io::Result<(Option<i32>, Vec<u8>)> {
    let mut command = Command::new(&plugin[0]);
    let mut child = command.args(&plugin[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take();
    let ended = std::thread::scope(|scope| {
        // A plugin need not read its request.
        scope.spawn(move || stdin.as_mut().map(|stdin| stdin.write_all(request)));
        let stdout = bounded::read_whole(child.stdout.take(), MOST);
        if stdout.is_err() {
            let _ = child.kill();
        }
        let status = child.wait()?;
        Ok::<_, std::io::Error>((status.code(), stdout?))
    })?;
    Ok(ended)
}

/// An execution that cannot be reported is missing in the count.
fn tell(url: &str, seen: &PluginExecution) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let sent = tokio::runtime::Builder::new_current_thread().enable_all().build().map(|runtime| {
        runtime.block_on(async {
            let client = reqwest::Client::builder().timeout(LIMIT).no_proxy().build()?;
            client.post(format!("{url}/executions")).json(seen).send().await?.error_for_status()
        })
    });
    let why = match sent {
        Ok(Ok(_)) => return,
        Ok(Err(error)) => chain(&error),
        Err(error) => chain(&error),
    };
    output::err(&format!("{RECORDER}: {why}"));
}
