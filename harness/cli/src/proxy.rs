//! `proxy`: the recording proxy alone, in front of a real cloud or a simulator.

use super::arguments::ProxyOptions;
use fake_cloud_driver::Entry;
use harness_config::Routes;
use harness_core::check::chain;
use harness_core::files;
use harness_core::output;
use harness_report::exit;
use recording_proxy::{Bounds, Config, DriverConfig, Ended, Port, Running, StartError, UpstreamError};
use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use tokio::signal::unix::{SignalKind, signal};

/// The reason why it ends other than by a signal: the exit code and the message.
struct Failure(u8, String);

fn usage(why: impl ToString) -> Failure {
    Failure(exit::USAGE, why.to_string())
}

fn environment(why: impl ToString) -> Failure {
    Failure(exit::ENVIRONMENT, why.to_string())
}

pub(super) fn proxy(options: &ProxyOptions) -> ExitCode {
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(code, why)) => {
            output::err(&format!("error: {why}"));
            ExitCode::from(code)
        }
    }
}

fn run(options: &ProxyOptions) -> Result<(), Failure> {
    let config = config(options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| environment(format!("cannot start the async runtime: {}", files::why(&error))))?;
    runtime.block_on(async {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| environment(format!("cannot listen for signals: {}", files::why(&error))))
        };
        let (mut terminate, mut interrupt) =
            (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
        let running = Running::start(config).await.map_err(refused)?;
        if let (Some(file), Some(ca)) = (&options.tls_ca_out, running.ca()) {
            std::fs::write(file, ca).map_err(|error| {
                environment(format!("--tls-ca-out {}: {}", file.display(), files::why_not_written(&error)))
            })?;
        }
        let ports: Vec<_> = running
            .ports()
            .iter()
            .map(|(caller, url)| serde_json::json!({"caller": caller, "url": url}))
            .collect();
        let driver = running.driver_addr().map(|address| address.to_string());
        output::out(&format!("{}\n", serde_json::json!({"ready": true, "ports": ports, "driver": driver})));
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        running.shutdown().await;
        Ok(())
    })
}

fn refused(error: StartError) -> Failure {
    let why = chain(&error);
    match error {
        StartError::Upstream(UpstreamError::Url(_)) => usage(format!("--upstream: {why}")),
        StartError::Upstream(UpstreamError::Certificates { .. }) => usage(format!("--upstream-ca: {why}")),
        StartError::Upstream(UpstreamError::Absent { .. } | UpstreamError::Slow { .. }) => {
            environment(format!("{why}; start the cloud first, or correct '--upstream'"))
        }
        StartError::Upstream(_) | StartError::Listen { .. } | StartError::Authority(_) => environment(why),
    }
}

fn config(options: &ProxyOptions) -> Result<Config, Failure> {
    let routes = options.routes.as_deref().map(Routes::load).transpose().map_err(usage)?.unwrap_or_default();
    let driver = match (options.driver_listen, &options.driver_token_file) {
        (Some(listen), Some(file)) => {
            let token = files::read(file);
            let token =
                token.map_err(|error| usage(format!("--driver-token-file {}: {error}", file.display())))?;
            if token.trim().is_empty() {
                return Err(usage(format!("--driver-token-file {}: the file is empty", file.display())));
            }
            Some(DriverConfig { behind: None, listen, token: token.trim().to_owned() })
        }
        _ => None,
    };
    let ports: Vec<Port> = options
        .listen
        .iter()
        .map(|(caller, listen)| Port { caller: caller.clone(), listen: *listen })
        .collect();
    let own = ports.iter().map(|port| port.listen.ip().to_string()).chain(["localhost".to_owned()]);
    let tls = options.tls_ca_out.as_ref().map(|_| own.chain(options.tls_name.iter().cloned()).collect());
    Ok(Config {
        ports,
        upstream: options.upstream.clone(),
        upstream_ca: options.upstream_ca.clone(),
        table: routes.table,
        errors: routes.errors,
        rewrites: routes.rewrites,
        tls,
        driver,
        bounds: Bounds::default(),
        ended: Some(journal(options)?),
        on_message: Arc::new(|what| output::err(&what)),
    })
}

/// Writes each call to the journal as it ends.
fn journal(options: &ProxyOptions) -> Result<Ended, Failure> {
    let line = |entry: &Entry| serde_json::to_string(entry).unwrap_or_default();
    let Some(path) = &options.journal else {
        return Ok(Arc::new(move |entry| output::out(&format!("{}\n", line(entry)))));
    };
    let file = File::create(path).map_err(|error| {
        usage(format!("--journal {}: {}", path.display(), files::why_not_written(&error)))
    })?;
    let (file, path) = (Mutex::new(file), path.display().to_string());
    Ok(Arc::new(move |entry| {
        let mut file = file.lock().expect("no holder of this lock panics");
        if let Err(error) = writeln!(file, "{}", line(entry)) {
            output::err(&format!("{path}: {}", files::why_not_written(&error)));
        }
    }))
}
