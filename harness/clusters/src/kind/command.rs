//! The `kind` command as a child process: with a time limit, its steps reported, and killed with all of its children when
//! its caller is gone.

use super::condense::condense;
use super::family::Family;
use super::ports;
use crate::error::ClusterError;
use crate::images::Engine;
use harness_core::bounded::Lines;
use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::process::Command;
use tokio::time::timeout;

/// Lines of kind's output that an error shows.
const LINES_SHOWN: usize = 12;
/// Lines of output kept while kind runs.
const LINES_KEPT: usize = 2000;

/// A cluster for kind to create.
#[derive(Clone, Copy, Debug)]
pub(super) struct Creation<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// The Docker network, which exists.
    pub(super) network: &'a str,
    /// File with the configuration.
    pub(super) config: &'a Path,
    /// The path of the kubeconfig.
    pub(super) kubeconfig: &'a Path,
    /// Node image; `None` lets kind choose and pull its own.
    pub(super) image: Option<&'a str>,
    /// The time limit.
    pub(super) limit: Duration,
}

/// A failure of kind.
#[derive(Debug)]
pub(super) struct Failure {
    /// Its whole output.
    pub(super) output: String,
    /// How it ended, and its last lines.
    pub(super) what: String,
}

impl Failure {
    /// Why it failed, as text, if a second attempt may succeed; otherwise `None`.
    pub(super) fn passing(&self) -> Option<&'static str> {
        if ports::is_taken(&self.output) {
            return Some("another program took the port that was chosen for its API server");
        }
        self.is_openapi_race().then_some("the API server served its OpenAPI description too late")
    }

    /// Whether the API server's OpenAPI description was not ready when kind applied the default StorageClass. Some
    /// versions of kubectl name it, others only the consequence.
    fn is_openapi_race(&self) -> bool {
        let text = self.output.to_lowercase();
        text.contains("failed to add default storage class")
            && (text.contains("openapi") || text.contains("error validating data"))
    }

    /// Why the node image could not be pulled, if that is what failed.
    pub(super) fn pull(&self) -> Option<String> {
        let line = self.output.lines().find(|line| line.contains("failed to pull image"))?;
        Some(line.trim_start_matches("ERROR: ").trim().to_owned())
    }
}

/// Creates a cluster. What a failed creation leaves stays, for its logs.
pub(super) async fn create(
    engine: &Engine,
    creation: Creation<'_>,
) -> Result<Result<(), Failure>, ClusterError> {
    let mut command = Command::new("kind");
    command.args(["create", "cluster", "--retain", "--wait", "0", "--name", creation.name]);
    command.arg("--config").arg(creation.config).arg("--kubeconfig").arg(creation.kubeconfig);
    if let Some(image) = creation.image {
        command.args(["--image", image]);
    }
    command.env("KIND_EXPERIMENTAL_DOCKER_NETWORK", creation.network);
    // The same engine as ours, whatever kind would choose.
    command
        .env("KIND_EXPERIMENTAL_PROVIDER", "docker")
        .env("DOCKER_HOST", engine.host())
        .env_remove("DOCKER_CONTEXT");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command
        .kill_on_drop(true)
        .process_group(0)
        .spawn()
        .map_err(ClusterError::file("run", Path::new("kind")))?;
    let family = Family::of(&child);

    let said = Said::default();
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let silent = |_: &str| {};
    let tell = |line: &str| {
        if let Some(step) = step(line) {
            tracing::info!(step, "cluster");
        }
    };
    let ending = async { tokio::join!(child.wait(), said.listen(out, &silent), said.listen(err, &tell)) };
    let ended = timeout(creation.limit, ending).await;
    let how = match ended {
        Ok((status, ..)) => {
            family.has_ended();
            let status = status.map_err(ClusterError::file("wait for", Path::new("kind")))?;
            if status.success() {
                return Ok(Ok(()));
            }
            format!("it ended with {}", harness_core::files::ended(status))
        }
        Err(_) => format!("it did not end within {} s", creation.limit.as_secs_f64()),
    };
    let output = said.all();
    let what = format!("{how}; its last lines:\n{}", condense(&output, LINES_SHOWN));
    Ok(Err(Failure { output, what }))
}

/// The last lines of a child's output.
#[derive(Default)]
struct Said {
    lines: Mutex<VecDeque<String>>,
}

impl Said {
    /// Reads lines until the end and reports each.
    async fn listen(&self, from: Option<impl AsyncRead + Unpin>, tell: &(dyn Fn(&str) + Sync)) {
        let Some(from) = from else { return };
        let mut lines = Lines::of(from);
        while let Ok(Some(line)) = lines.next().await {
            tracing::debug!(%line, "kind");
            tell(&line);
            let mut kept = self.lines.lock().expect("no holder of this lock panics");
            if kept.len() == LINES_KEPT {
                kept.pop_front();
            }
            kept.push_back(line);
        }
    }

    fn all(&self) -> String {
        let kept = self.lines.lock().expect("no holder of this lock panics");
        kept.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// The step that kind begins, from its line without a terminal: ` • Preparing nodes 📦  ...`.
fn step(line: &str) -> Option<&str> {
    let text = line.trim().strip_prefix('•')?.trim();
    let end = text.find(|mark: char| !mark.is_ascii()).unwrap_or(text.len());
    Some(text[..end].trim_end_matches('.').trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_reported_as_plain_text() {
        assert_eq!(step(" • Preparing nodes 📦 📦  ..."), Some("Preparing nodes"));
        assert_eq!(
            step(" • Ensuring node image (kindest/node:v1.36.1) 🖼  ..."),
            Some("Ensuring node image (kindest/node:v1.36.1)")
        );
        assert_eq!(step(" ✓ Preparing nodes 📦"), None);
        assert_eq!(step("ERROR: failed"), None);
    }

    #[test]
    fn only_what_may_not_happen_again_is_tried_again() {
        let failure = |output: &str| Failure { output: output.to_owned(), what: String::new() };
        let race = "ERROR: failed to create cluster: failed to add default storage class: command failed\n\
                    error validating data: failed to download openapi: the server is currently unable";
        assert!(failure(race).is_openapi_race());
        let unnamed = "ERROR: failed to create cluster: failed to add default storage class: command failed\n\
                       error validating data: the server is currently unable to handle the request";
        assert!(failure(unnamed).is_openapi_race());
        assert!(
            !failure("ERROR: failed to create cluster: failed to add default storage class: exit 1")
                .is_openapi_race()
        );
        assert!(failure("failed to download openapi").passing().is_none());
        let taken = "Bind for 127.0.0.1:38391 failed: port is already allocated";
        assert!(failure(taken).passing().is_some_and(|why| why.contains("port")));
        let pull =
            "ERROR: failed to create cluster: failed to pull image \"kindest/node:v1.36.1\": exit status 1";
        assert_eq!(
            failure(pull).pull().as_deref(),
            Some("failed to create cluster: failed to pull image \"kindest/node:v1.36.1\": exit status 1")
        );
    }
}
