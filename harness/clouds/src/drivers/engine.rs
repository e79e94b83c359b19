//! Containers of clouds and drivers: created, watched until they are ready, and removed.

use super::spec::{Host, StartError};
use crate::tails::Tail;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, HostConfigLogConfig, PortBinding, PortMap,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, LogsOptionsBuilder, RemoveContainerOptionsBuilder,
    UploadToContainerOptionsBuilder,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt};
use harness_clusters::images::{Engine, EngineError};
use harness_core::bounded::{Beginning, Lines};
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio_util::io::StreamReader;

/// The port of the driver API in a container on a network.
pub(super) const DRIVER_PORT: u16 = 8081;
/// The path of the driver's token in a container.
pub(super) const TOKEN_FILE: &str = "/driver-token";
/// How long one call to the engine may take.
pub(super) const LIMIT: Duration = Duration::from_secs(60);
/// How long a container may take until it is ready; usually it takes 50 ms.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// How many lines of its log an error shows.
const LINES_SHOWN: &str = "20";

/// How many bytes of these lines are read at most.
const LOG_SHOWN: usize = 256 << 10;

/// A container that a run has created.
#[derive(Clone, Debug)]
pub(super) struct Container {
    pub(super) engine: Engine,
    pub(super) name: String,
    pub(super) id: String,
}

impl Host for Container {
    fn stop(self: Box<Self>) -> BoxFuture<'static, Result<(), StartError>> {
        async move { Ok(self.remove().await?) }.boxed()
    }
}

impl Container {
    /// Creates a container, without starting it.
    pub(super) async fn create(
        engine: &Engine,
        name: &str,
        body: ContainerCreateBody,
    ) -> Result<Container, EngineError> {
        let options = CreateContainerOptionsBuilder::new().name(name).build();
        let creating =
            |docker: bollard::Docker| async move { docker.create_container(Some(options), body).await };
        let created = engine.make("create container", name, LIMIT, creating).await?;
        Ok(Container { engine: engine.clone(), name: name.to_owned(), id: created.id })
    }

    /// Copies the driver's token into it, readable only for the user `uid`, or, if that is not known, for
    /// every user in the container. Environment and arguments are not used for it, because everyone with
    /// access to Docker can read those.
    pub(super) async fn put_token(&self, token: &str, uid: Option<u64>) -> Result<(), EngineError> {
        let root = UploadToContainerOptionsBuilder::new().path("/").build();
        let file = bollard::body_full(token_archive(token, uid).into());
        let putting = self.engine.docker().upload_to_container(&self.id, Some(root), file);
        self.engine.call("put a file into", &self.name, LIMIT, putting).await
    }

    /// Starts it and reads its output up to the line that `is_ready` recognises, and returns its result.
    /// Fails if the container ends before that.
    pub(super) async fn start<T>(&self, is_ready: impl Fn(&str) -> Option<T>) -> Result<T, StartError> {
        let starting = self.engine.docker().start_container(&self.id, None);
        self.engine.call("start", &self.name, LIMIT, starting).await?;
        let mut lines = Lines::of(self.log());
        let ready = async {
            while let Ok(Some(line)) = lines.next().await {
                if let Some(found) = is_ready(&line) {
                    return Some(found);
                }
            }
            None
        };
        let name = self.name.clone();
        match tokio::time::timeout(READY_LIMIT, ready).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => {
                let status = self.inspect().await?.state.and_then(|state| state.exit_code).unwrap_or(-1);
                Err(StartError::Crashed { name, status, lines: self.last_lines().await? })
            }
            Err(_) => Err(StartError::Silent { name, limit: READY_LIMIT, lines: self.last_lines().await? }),
        }
    }

    /// What it writes to both streams, from the beginning to its end.
    fn log(&self) -> impl AsyncRead + Unpin + '_ {
        let options = LogsOptionsBuilder::new().follow(true).stdout(true).stderr(true).build();
        let log = self.engine.docker().logs(&self.id, Some(options));
        StreamReader::new(
            log.map_ok(bollard::container::LogOutput::into_bytes).map_err(std::io::Error::other).boxed(),
        )
    }

    /// Keeps the last lines that it writes, until it ends.
    pub(super) async fn keep_last_lines(self, tail: Tail) {
        keep(self.log(), &tail).await;
    }

    pub(super) async fn inspect(&self) -> Result<ContainerInspectResponse, EngineError> {
        let looking = self.engine.docker().inspect_container(&self.id, None);
        self.engine.call("inspect", &self.name, LIMIT, looking).await
    }

    /// The last lines of its output.
    pub(super) async fn last_lines(&self) -> Result<String, EngineError> {
        let options = LogsOptionsBuilder::new().stdout(true).stderr(true).tail(LINES_SHOWN).build();
        let mut log = self.engine.docker().logs(&self.id, Some(options));
        let reading = async {
            let mut kept = Beginning::of(LOG_SHOWN);
            while let Some(piece) = log.next().await {
                if !kept.push(&piece?.into_bytes()) {
                    break;
                }
            }
            Ok(kept.into_text())
        };
        self.engine.call("read the log of", &self.name, LIMIT, reading).await
    }

    /// Its address on the network, and its driver port on this machine.
    pub(super) async fn addresses(&self, network: &str) -> Result<(Ipv4Addr, SocketAddr), StartError> {
        addresses(&self.inspect().await?, network)
            .map_err(|what| StartError::Unreachable { name: self.name.clone(), what })
    }

    /// Removes it, in whatever state it is.
    pub(super) async fn remove(&self) -> Result<(), EngineError> {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        let removing = self.engine.docker().remove_container(&self.id, Some(options));
        match self.engine.call("remove container", &self.name, LIMIT, removing).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes a container whose start has failed.
    pub(super) async fn give_up(&self) {
        if let Err(trouble) = self.remove().await {
            tracing::warn!(%trouble, container = self.name, "a container that failed was not removed");
        }
    }
}

/// Keeps the last lines of a log; an engine that stops answering ends it.
async fn keep(log: impl AsyncRead + Unpin, tail: &Tail) {
    let mut lines = Lines::of(log);
    while let Ok(Some(line)) = lines.next().await {
        tail.push(&line);
    }
}

/// The driver port of a container, published on this machine alone.
pub(super) fn published() -> PortMap {
    let to_this_machine =
        PortBinding { host_ip: Some("127.0.0.1".to_owned()), host_port: Some("0".to_owned()) };
    HashMap::from([(exposed(), Some(vec![to_this_machine]))])
}

/// The driver port in the engine's form.
pub(super) fn exposed() -> String {
    format!("{DRIVER_PORT}/tcp")
}

/// The configuration of a log that does not fill the disk.
pub(super) fn bounded_log() -> HostConfigLogConfig {
    let options = HashMap::from([("max-size".to_owned(), "50m".to_owned())]);
    HostConfigLogConfig { typ: Some("json-file".to_owned()), config: Some(options) }
}

fn addresses(found: &ContainerInspectResponse, network: &str) -> Result<(Ipv4Addr, SocketAddr), String> {
    let settings = found.network_settings.as_ref();
    let endpoint = settings.and_then(|settings| settings.networks.as_ref()?.get(network));
    let ip = endpoint.and_then(|endpoint| endpoint.ip_address.as_deref()?.parse().ok());
    let ip = ip.ok_or_else(|| format!("IPv4 address on network {network}"))?;
    let bindings = settings.and_then(|settings| settings.ports.as_ref()?.get(&exposed())?.as_ref());
    let bound = |binding: &PortBinding| {
        let ip = binding.host_ip.as_deref()?.parse().ok()?;
        Some(SocketAddr::new(ip, binding.host_port.as_deref()?.parse().ok()?))
    };
    let driver = bindings.and_then(|bindings| bindings.iter().find_map(bound));
    Ok((ip, driver.ok_or("published driver port")?))
}

/// A tar file with the token.
fn token_archive(token: &str, uid: Option<u64>) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.set_mode(if uid.is_some() { 0o400 } else { 0o444 });
    header.set_uid(uid.unwrap_or(0));
    header.set_gid(uid.unwrap_or(0));
    header.set_size(token.len() as u64);
    let mut archive = tar::Builder::new(Vec::new());
    let name = TOKEN_FILE.trim_start_matches('/');
    archive.append_data(&mut header, name, token.as_bytes()).expect("writing to memory cannot fail");
    archive.into_inner().expect("writing to memory cannot fail")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::{EndpointSettings, NetworkSettings};

    fn container(ip: &str, port: Option<&str>) -> ContainerInspectResponse {
        let endpoint = EndpointSettings { ip_address: Some(ip.to_owned()), ..Default::default() };
        let binding = port
            .map(|port| PortBinding { host_ip: Some("127.0.0.1".into()), host_port: Some(port.to_owned()) });
        ContainerInspectResponse {
            network_settings: Some(NetworkSettings {
                networks: Some(HashMap::from([("net".to_owned(), endpoint)])),
                ports: Some(HashMap::from([(exposed(), binding.map(|binding| vec![binding]))])),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    #[test]
    fn addresses_are_found_or_the_missing_one_is_named() {
        let found = addresses(&container("172.18.0.9", Some("40000")), "net").expect("both are there");
        assert_eq!(found, ([172, 18, 0, 9].into(), "127.0.0.1:40000".parse().expect("an address")));
        let lacks = |container| addresses(&container, "net").expect_err("one is missing");
        assert_eq!(lacks(container("", Some("40000"))), "IPv4 address on network net");
        assert_eq!(lacks(container("172.18.0.9", None)), "published driver port");
    }

    #[tokio::test]
    async fn the_last_lines_of_a_container_are_kept_while_it_writes() {
        let tail = Tail::default();
        keep(&b"ready\nTraceback (most recent call last):\nKeyError: 'zone'\n"[..], &tail).await;
        assert_eq!(tail.text(), "ready\nTraceback (most recent call last):\nKeyError: 'zone'");
    }

    #[test]
    fn a_token_is_for_one_user_where_that_one_is_known() {
        for (uid, mode) in [(Some(65_532), 0o400), (None, 0o444)] {
            let archive = token_archive("secret", uid);
            let mut archive = tar::Archive::new(archive.as_slice());
            let entry = archive.entries().expect("a tar file").next().expect("one file").expect("whole");
            let header = entry.header();
            assert_eq!(header.mode().expect("a mode"), mode);
            assert_eq!(header.uid().expect("an owner"), uid.unwrap_or(0));
        }
    }
}
