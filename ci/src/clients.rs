//! Runs the vendors' own clients against the fake cloud, and through the recording proxy against a separate
//! simulator. Each folder of `fake-cloud/tests/clients` has a dialect's name, each of
//! `harness/proxy/tests/clients` that of a routes file, and contains a Python test program with its
//! requirements.

use crate::process::{program, root, run, say};
use crate::python::environment;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Only the cloud of one run accepts this token, and it listens on the loopback address only.
const DRIVER_TOKEN: &str = "driver-token-of-the-clients-tests";
const TOKEN: &str = "token-of-the-clients-tests";

/// Runs the programs with these names, or all of them. A failure does not stop the others.
pub(crate) fn check(names: &[String]) -> Result<()> {
    let (dialects, routes) =
        (root().join("fake-cloud/tests/clients"), root().join("harness/proxy/tests/clients"));
    let (of_dialects, of_routes) = (programs(&dialects)?, programs(&routes)?);
    let all: Vec<&String> = of_dialects.iter().chain(&of_routes).collect();
    if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
        let all: Vec<&str> = all.into_iter().map(String::as_str).collect();
        bail!("there is no client's test for {unknown}; there are: {}", all.join(", "));
    }
    let is_wanted = |name: &&String| names.is_empty() || names.contains(name);
    let mut failed = Vec::new();
    let mut ended = |name: &str, result: Result<()>| {
        if let Err(error) = result {
            say(&format!("the client's test for {name}: {error:#}"));
            failed.push(name.to_owned());
        }
    };
    let mut wanted = of_dialects.iter().filter(is_wanted).peekable();
    if wanted.peek().is_some() {
        let fake_cloud = program("fake-cloud")?;
        for name in wanted {
            ended(name, one(&fake_cloud, &dialects, name));
        }
    }
    for name in of_routes.iter().filter(is_wanted) {
        ended(name, through_proxy(&routes, name));
    }
    ensure!(failed.is_empty(), "failed clients' tests: {}", failed.join(", "));
    Ok(())
}

/// Runs a program that itself starts a simulator with a proxy in front of it.
fn through_proxy(folder: &Path, name: &str) -> Result<()> {
    let python = environment(&format!("clients/{name}"), &folder.join(name).join("requirements.txt"))?;
    let program = format!("'{}'", program("ccm-conformance")?.display());
    let routes = root().join("fixtures/routes").join(name).with_extension("yaml").display().to_string();
    let variables = [
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("CCM_CONFORMANCE", program.as_str()),
        ("ROUTES", routes.as_str()),
        ("NO_PROXY", "127.0.0.1"),
    ];
    let path = folder.join(name).display().to_string();
    run(&python, &["-m", "unittest", "discover", "--start-directory", &path], &variables)
}

/// The names of folders with requirements.
fn programs(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("requirements.txt").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

fn one(fake_cloud: &Path, folder: &Path, name: &str) -> Result<()> {
    let python = environment(&format!("clients/{name}"), &folder.join(name).join("requirements.txt"))?;
    let cloud = Cloud::start(fake_cloud, name)?;
    let path = folder.join(name).display().to_string();
    let shared = folder.display().to_string();
    let variables = [
        ("PYTHONPATH", shared.as_str()),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("FAKE_CLOUD_URL", cloud.url.as_str()),
        ("FAKE_CLOUD_TOKEN", TOKEN),
        ("FAKE_CLOUD_DRIVER_URL", cloud.driver_url.as_str()),
        ("FAKE_CLOUD_DRIVER_TOKEN", DRIVER_TOKEN),
        ("NO_PROXY", "127.0.0.1"),
    ];
    run(&python, &["-m", "unittest", "discover", "--start-directory", &path], &variables)
}

/// A running fake cloud; stopped when dropped.
struct Cloud {
    child: Child,
    url: String,
    driver_url: String,
}

impl Cloud {
    fn start(program: &Path, dialect: &str) -> Result<Cloud> {
        let any = "127.0.0.1:0";
        let mut child = Command::new(program)
            .args(["serve", "--dialect", dialect, "--listen", any, "--driver-listen", any])
            .env("FAKE_CLOUD_DRIVER_TOKEN", DRIVER_TOKEN)
            .env("FAKE_CLOUD_CREDENTIALS", format!("client={TOKEN}"))
            .env("FAKE_CLOUD_LOG", "error")
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the fake cloud")?;
        let mut line = String::new();
        let read = child.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
        // From here on it is stopped in any case.
        let mut cloud = Cloud { child, url: String::new(), driver_url: String::new() };
        read.context("its output is not ours")?.context("reading where it listens")?;
        let ready: Value =
            serde_json::from_str(&line).with_context(|| format!("{dialect}: it did not start"))?;
        let url = |key: &str| ready[key].as_str().map(|address| format!("http://{address}"));
        cloud.url = url("cloud").context("no address of the cloud API")?;
        cloud.driver_url = url("driver").context("no address of the driver API")?;
        say(&format!("fake cloud: {dialect} on {}", cloud.url));
        Ok(cloud)
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
