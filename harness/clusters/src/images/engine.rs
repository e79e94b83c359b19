//! The Docker engine, one call at a time: every call has a time limit, and every error names operation, subject and
//! cause.
//!
//! It is independent of clusters and clouds, and the only code that decides which engine is used.

use super::pending::begin;
use bollard::errors::Error as BollardError;
use bollard::{ClientVersion, Docker};
use harness_core::bounded;
use harness_core::files;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// The default address of an engine.
const DEFAULT_HOST: &str = "unix:///var/run/docker.sock";
/// How long an engine may take for its first answer.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Minimum time limit of the client library for a request; our own limits, one per call, are always shorter.
const LIBRARY_LIMIT: Duration = Duration::from_secs(1800);

/// A Docker engine that answered.
#[derive(Clone, Debug)]
pub struct Engine {
    docker: Docker,
    host: String,
}

/// What another process needs to use the same engine.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct EngineRecord {
    /// Its address in the format of `DOCKER_HOST`.
    pub host: String,
    /// The negotiated API version, major and minor.
    pub api_version: (usize, usize),
}

/// Errors of the Docker engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The socket does not exist.
    #[error(
        "no Docker engine: the socket {} does not exist; install and start Docker (on Debian, ci/docker/setup does \
         both) or set DOCKER_HOST to its address", path.display()
    )]
    NoSocket {
        /// The missing socket.
        path: PathBuf,
    },
    /// Nothing listens at the address.
    #[error(
        "no Docker engine answers at {host} ({}); start it (on Debian, ci/docker/setup does), or set DOCKER_HOST to its \
         address",
        files::why(cause)
    )]
    NotRunning {
        /// The address tried.
        host: String,
        /// Why connecting failed.
        cause: std::io::Error,
    },
    /// This user has no permission for the socket.
    #[error(
        "this user has no permission to use the Docker engine's socket {}; add the user to the group that owns it \
         (often 'docker') and log in again, or run as root", path.display()
    )]
    PermissionDenied {
        /// The socket.
        path: PathBuf,
    },
    /// `DOCKER_HOST` or the Docker context has an invalid address.
    #[error(
        "the Docker engine's address '{host}' cannot be used: {why}; correct DOCKER_HOST or the Docker context"
    )]
    BadHost {
        /// The address as it was given.
        host: String,
        /// What is wrong with it.
        why: String,
    },
    /// The engine refused a call, or the connection broke.
    #[error("the Docker engine could not {operation} {subject}")]
    Call {
        /// The operation, a verb.
        operation: &'static str,
        /// Container, network or image concerned.
        subject: String,
        /// The engine's message.
        #[source]
        source: Box<BollardError>,
    },
    /// The engine did not answer in time.
    #[error(
        "the Docker engine did not {operation} {subject} within {} s; 'docker info' shows whether it is alive",
        .limit.as_secs_f64()
    )]
    TimedOut {
        /// The operation, a verb.
        operation: &'static str,
        /// Container, network or image concerned.
        subject: String,
        /// The time limit.
        limit: Duration,
    },
}

impl EngineError {
    /// Whether the subject does not exist.
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }

    /// Whether the subject is in use, or in a state that forbids the call.
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(409)
    }

    /// The engine's own message, if it answered.
    pub fn message(&self) -> Option<&str> {
        match self {
            EngineError::Call { source, .. } => match source.as_ref() {
                BollardError::DockerResponseServerError { message, .. } => Some(message),
                BollardError::DockerStreamError { error } => Some(error),
                _ => None,
            },
            _ => None,
        }
    }

    fn status(&self) -> Option<u16> {
        match self {
            EngineError::Call { source, .. } => match source.as_ref() {
                BollardError::DockerResponseServerError { status_code, .. } => Some(*status_code),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Engine {
    /// Finds the engine as the `docker` command does (`DOCKER_HOST`, the Docker context, the default socket), connects
    /// and negotiates an API version.
    ///
    /// # Errors
    /// There is no engine, this user has no permission, or the address is not an engine's.
    pub async fn connect() -> Result<Engine, EngineError> {
        Engine::connect_to(&chosen_host().await).await
    }

    /// Connects to the engine at `host`, an address in the format of `DOCKER_HOST`.
    ///
    /// # Errors
    /// Those of [`Engine::connect`].
    pub async fn connect_to(host: &str) -> Result<Engine, EngineError> {
        knock(host).await?;
        let client = Docker::connect_with_host(host)
            .map_err(|e| bad_host(host, e.to_string()))?
            .with_timeout(LIBRARY_LIMIT);
        let host = host.to_owned();
        match timeout(CONNECT_LIMIT, client.negotiate_version()).await {
            Ok(Ok(docker)) => Ok(Engine { docker, host }),
            Ok(Err(source)) => Err(EngineError::Call {
                operation: "tell",
                subject: "its version".into(),
                source: Box::new(source),
            }),
            Err(_) => Err(EngineError::TimedOut {
                operation: "tell",
                subject: "its version".into(),
                limit: CONNECT_LIMIT,
            }),
        }
    }

    /// Uses an engine to which another process of the run has connected. Makes no requests; the first call shows whether
    /// it still exists.
    ///
    /// # Errors
    /// The address is invalid, or its socket is gone.
    pub fn attach(record: &EngineRecord) -> Result<Engine, EngineError> {
        let EngineRecord { host, api_version: (major_version, minor_version) } = record;
        let version = ClientVersion { major_version: *major_version, minor_version: *minor_version };
        let limit = LIBRARY_LIMIT.as_secs();
        let docker = match host.strip_prefix("unix://") {
            Some(_) => Docker::connect_with_unix(host, limit, &version),
            None => Docker::connect_with_http(host, limit, &version),
        };
        match docker {
            Ok(docker) => Ok(Engine { docker, host: host.clone() }),
            Err(BollardError::SocketNotFoundError(path)) => Err(EngineError::NoSocket { path: path.into() }),
            Err(error) => Err(bad_host(host, error.to_string())),
        }
    }

    /// What another process needs to use the same engine.
    pub fn record(&self) -> EngineRecord {
        let version = self.docker.client_version();
        EngineRecord { host: self.host.clone(), api_version: (version.major_version, version.minor_version) }
    }

    /// Its address in the format of `DOCKER_HOST`, for child processes that must use the same engine.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether the engine runs on this machine, so that its folders and published ports are on this machine too.
    pub fn is_local(&self) -> bool {
        self.host.starts_with("unix://")
    }

    /// The client for calls to the engine.
    pub fn docker(&self) -> &Docker {
        &self.docker
    }

    /// Like [`Engine::call`], for a call that creates something: it continues to its end even if the caller is gone, and
    /// [`super::settled`] waits for it.
    pub async fn make<T, F>(
        &self,
        operation: &'static str,
        subject: &str,
        limit: Duration,
        call: impl FnOnce(Docker) -> F,
    ) -> Result<T, EngineError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, BollardError>> + Send + 'static,
    {
        let (engine, subject, call) = (self.clone(), subject.to_owned(), call(self.docker.clone()));
        begin(async move { engine.call(operation, &subject, limit, call).await }).await
    }

    /// Makes one call; an error names the request and its subject.
    pub async fn call<T>(
        &self,
        operation: &'static str,
        subject: &str,
        limit: Duration,
        call: impl Future<Output = Result<T, BollardError>>,
    ) -> Result<T, EngineError> {
        match timeout(limit, call).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(source)) => {
                Err(EngineError::Call { operation, subject: subject.to_owned(), source: Box::new(source) })
            }
            Err(_) => Err(EngineError::TimedOut { operation, subject: subject.to_owned(), limit }),
        }
    }
}

/// The engine that the `docker` command would use.
async fn chosen_host() -> String {
    if let Some(host) = std::env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty()) {
        return host;
    }
    let Some(context) = chosen_context() else { return DEFAULT_HOST.to_owned() };
    let mut asked = tokio::process::Command::new("docker");
    asked
        .args(["context", "inspect", "--format", "{{.Endpoints.docker.Host}}", &context])
        .stdin(Stdio::null());
    match timeout(CONNECT_LIMIT, bounded::output(&mut asked)).await {
        Ok(Ok(output)) if output.status.success() && !output.stdout.is_empty() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => DEFAULT_HOST.to_owned(),
    }
}

/// The current Docker context, if it is not the default one.
fn chosen_context() -> Option<String> {
    let named = std::env::var("DOCKER_CONTEXT").ok().filter(|name| !name.is_empty());
    let context = named.or_else(|| {
        let folder = std::env::var_os("DOCKER_CONFIG")
            .map(PathBuf::from)
            .or_else(|| std::env::home_dir().map(|home| home.join(".docker")))?;
        let text = std::fs::read_to_string(folder.join("config.json")).ok()?;
        let config: serde_json::Value = serde_json::from_str(&text).ok()?;
        config.get("currentContext")?.as_str().map(str::to_owned)
    })?;
    (context != "default" && !context.is_empty()).then_some(context)
}

/// Opens and closes a connection, as the operating system gives the best reason if that fails.
async fn knock(host: &str) -> Result<(), EngineError> {
    if let Some(path) = host.strip_prefix("unix://") {
        let path = Path::new(path);
        return match UnixStream::connect(path).await {
            Ok(_) => Ok(()),
            Err(error) => Err(match error.kind() {
                std::io::ErrorKind::NotFound => EngineError::NoSocket { path: path.to_owned() },
                std::io::ErrorKind::PermissionDenied => {
                    EngineError::PermissionDenied { path: path.to_owned() }
                }
                _ => EngineError::NotRunning { host: host.to_owned(), cause: error },
            }),
        };
    }
    let Some(address) = host.strip_prefix("tcp://").or_else(|| host.strip_prefix("http://")) else {
        return Err(bad_host(host, "only unix:// and plain tcp:// are supported".into()));
    };
    if std::env::var_os("DOCKER_TLS_VERIFY").is_some_and(|set| !set.is_empty()) {
        return Err(bad_host(
            host,
            "TLS (DOCKER_TLS_VERIFY) is not supported; use a tunnel to its unix socket".into(),
        ));
    }
    let refused = |cause| EngineError::NotRunning { host: host.to_owned(), cause };
    match timeout(CONNECT_LIMIT, TcpStream::connect(address.trim_end_matches('/'))).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::InvalidInput => {
            Err(bad_host(host, error.to_string()))
        }
        Ok(Err(error)) => Err(refused(error)),
        Err(_) => Err(refused(std::io::ErrorKind::TimedOut.into())),
    }
}

fn bad_host(host: &str, why: String) -> EngineError {
    EngineError::BadHost { host: host.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refusal(host: &str) -> String {
        Engine::connect_to(host).await.expect_err("nothing listens there").to_string()
    }

    #[tokio::test]
    async fn each_way_of_not_reaching_an_engine_has_its_own_words() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let missing = format!("unix://{}/docker.sock", folder.path().display());
        assert!(refusal(&missing).await.contains("docker.sock does not exist; install and start Docker"));
        // A file that is not a listening socket refuses connections like a socket whose engine has died.
        let dead = folder.path().join("dead.sock");
        drop(std::os::unix::net::UnixListener::bind(&dead).expect("a socket"));
        assert!(
            refusal(&format!("unix://{}", dead.display()))
                .await
                .contains("no Docker engine answers at unix://")
        );
        assert!(refusal("ssh://somewhere").await.contains("'ssh://somewhere' cannot be used: only unix://"));
        assert!(refusal("tcp://127.0.0.1:1").await.contains("no Docker engine answers at tcp://127.0.0.1:1"));
    }

    #[tokio::test]
    async fn a_server_that_is_not_an_engine_is_rejected() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                drop(stream)
            }
        });
        let text = refusal(&format!("tcp://{address}")).await;
        assert_eq!(text, "the Docker engine could not tell its version");
        server.abort();
    }
}
