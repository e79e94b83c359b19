//! A driver in a container with an image of the user: created with the run's cloud, and removed with it.
//!
//! For machines in containers, it is on their network, and its driver API is published only on this machine.
//! For an embedded cluster it is on this machine's own network, like a program.

use super::at_url::address;
use super::engine::{Container, DRIVER_PORT, LIMIT, TOKEN_FILE, bounded_log, exposed, published};
use super::protocol::{self, Access};
use super::ready::{listens_at, ready_line};
use super::spec::{CloudSpec, Host, Kind, OnMessage, Place, RunningCloud, StartError};
use crate::tails::{self, Tail};
use crate::{CloudRecord, fresh_token};
use bollard::models::{ContainerCreateBody, EndpointSettings, HostConfig, NetworkingConfig};
use bollard::query_parameters::StopContainerOptionsBuilder;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use harness_clusters::images::{Engine, find_digest, pull};
use harness_config::{CloudSource, DRIVER_LISTEN, DRIVER_TOKEN_FILE};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tokio::task::JoinHandle;

/// Its name in records.
const NAME: &str = "driver-image";
/// How many seconds it may take to end after SIGTERM; then it is killed.
const END_LIMIT_S: i32 = 3;

/// Its entry in the table.
pub(super) const KIND: Kind = Kind {
    name: NAME,
    suits: |spec| matches!(spec.cloud, CloudSource::DriverImage { .. }),
    start: |spec| start(spec).boxed(),
    attach: protocol::attach_named,
};

/// The network of the container.
#[derive(Clone, Copy, Debug)]
enum Site<'a> {
    /// On this network of the engine.
    Network(&'a str),
    /// On this machine's own network, to listen on this address.
    ThisMachine(Ipv4Addr),
}

impl Site<'_> {
    fn listen(self) -> SocketAddr {
        match self {
            Site::Network(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, DRIVER_PORT)),
            Site::ThisMachine(address) => SocketAddr::from((address, 0)),
        }
    }
}

#[derive(Debug)]
struct Watched {
    container: Container,
    watcher: JoinHandle<()>,
    /// Keeps what it writes, for errors of calls to it.
    reader: JoinHandle<()>,
    /// Where it is called.
    url: String,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watcher.abort();
        self.reader.abort();
        tails::forget(&self.url);
    }
}

impl Host for Watched {
    fn stop(self: Box<Self>) -> BoxFuture<'static, Result<(), StartError>> {
        async move {
            self.watcher.abort();
            let container = &self.container;
            let options = StopContainerOptionsBuilder::new().t(END_LIMIT_S).build();
            let stopping = container.engine.docker().stop_container(&container.id, Some(options));
            // If it has already ended, it is still removed; if it does not end, it is killed.
            let _ = container.engine.call("stop", &container.name, LIMIT, stopping).await;
            Ok(container.remove().await?)
        }
        .boxed()
    }
}

async fn start(spec: CloudSpec<'_>) -> Result<RunningCloud, StartError> {
    let CloudSource::DriverImage { image, arguments } = spec.cloud else {
        return Err(StartError::NoDriver { cloud: spec.cloud.to_string(), names: NAME.to_owned() });
    };
    let (engine, site) = match spec.place {
        Place::NextToMachines { engine, network, .. } => (engine.clone(), Site::Network(network)),
        Place::ThisProcess { address, .. } => (Engine::connect().await?, Site::ThisMachine(address)),
    };
    if find_digest(&engine, image).await?.is_none() {
        pull(&engine, image).await?;
    }
    let listen = site.listen().to_string();
    let fill = |part: &String| part.replace(DRIVER_LISTEN, &listen).replace(DRIVER_TOKEN_FILE, TOKEN_FILE);
    let body = ContainerCreateBody {
        image: Some(image.clone()),
        cmd: Some(arguments.iter().map(fill).collect()),
        labels: Some(spec.run.labels("cloud")),
        ..placed(site)
    };
    let container = Container::create(&engine, &spec.run.name_of("cloud"), body).await?;
    match bring_up(&container, image, site).await {
        Ok((record, url)) => {
            let watcher = tokio::spawn(watch(container.clone(), image.clone(), spec.on_message.clone()));
            let tail = Tail::default();
            tails::remember(&url, &tail);
            let reader = tokio::spawn(container.clone().keep_last_lines(tail));
            Ok(RunningCloud { record, host: Box::new(Watched { container, watcher, reader, url }) })
        }
        Err(error) => {
            container.give_up().await;
            Err(error)
        }
    }
}

/// The parts of the configuration that depend on its network.
fn placed(site: Site<'_>) -> ContainerCreateBody {
    let host = HostConfig {
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        log_config: Some(bounded_log()),
        ..Default::default()
    };
    match site {
        Site::Network(network) => ContainerCreateBody {
            exposed_ports: Some(vec![exposed()]),
            host_config: Some(HostConfig { port_bindings: Some(published()), ..host }),
            networking_config: Some(NetworkingConfig {
                endpoints_config: Some(HashMap::from([(network.to_owned(), EndpointSettings::default())])),
            }),
            ..Default::default()
        },
        Site::ThisMachine(_) => ContainerCreateBody {
            host_config: Some(HostConfig { network_mode: Some("host".to_owned()), ..host }),
            ..Default::default()
        },
    }
}

/// Starts it; yields its record, and where its driver is called.
async fn bring_up(
    container: &Container,
    image: &str,
    site: Site<'_>,
) -> Result<(CloudRecord, String), StartError> {
    let token = fresh_token()?;
    // Only the image itself knows which user it runs as.
    container.put_token(&token, None).await?;
    let said = container.start(ready_line).await?;
    let shown = format!("image {image}");
    let lines = container.last_lines().await?;
    let Some(at) = said else { return Err(StartError::NoAddress { line: shown, lines }) };
    let says = |error| StartError::DriverSays { error: Box::new(error), lines: lines.clone() };
    let (own, driver) = match site {
        Site::ThisMachine(given) => match listens_at(&at, given) {
            Some(at) => (None, at.to_string()),
            None => return Err(StartError::ForeignAddress { line: shown, at, given }),
        },
        Site::Network(_) if !at.ends_with(&format!(":{DRIVER_PORT}")) => {
            return Err(StartError::OtherPort { line: shown, at, given: site.listen().to_string() });
        }
        Site::Network(network) => {
            let (ip, driver) = container.addresses(network).await?;
            (Some(ip), driver.to_string())
        }
    };
    let url = format!("http://{driver}");
    let access = Access::of(&format!("in {shown}"), url.clone(), token).await.map_err(says)?;
    let endpoint = access.capabilities.endpoint.clone().unwrap_or_default();
    let Some(ip) = own else {
        let ip = address(if endpoint.is_empty() { &url } else { &endpoint }).await?;
        return Ok((access.into_record(NAME, ip, endpoint), url));
    };
    let mut record = access.into_record(NAME, ip, from_outside(&endpoint, ip));
    record.metadata = record.metadata.map(|url| from_outside(&url, ip));
    // Containers in a network know each other by name: the resolver of a kind node asks Docker.
    record.name = Some(container.name.clone());
    Ok((record, url))
}

/// Converts a URL from the container's point of view to that of others: every address in it, including
/// loopback, is the container's own.
fn from_outside(url: &str, ip: Ipv4Addr) -> String {
    let uri = url.parse::<http::Uri>().ok();
    let Some(authority) = uri.as_ref().and_then(http::Uri::authority) else { return url.to_owned() };
    let host = authority.host();
    let is_own = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => address.is_unspecified() || address.is_loopback(),
        Err(_) => host == "localhost",
    };
    if is_own { url.replacen(host, &ip.to_string(), 1) } else { url.to_owned() }
}

/// Waits for an unexpected end.
async fn watch(container: Container, image: String, on_message: OnMessage) {
    let mut ended = std::pin::pin!(container.engine.docker().wait_container(&container.id, None));
    let status = match ended.next().await {
        Some(Ok(answer)) => answer.status_code,
        Some(Err(bollard::errors::Error::DockerContainerWaitError { code, .. })) => code,
        // Docker does not know it any more; its next call reports that.
        Some(Err(_)) | None => return,
    };
    let lines = container.last_lines().await.unwrap_or_default();
    on_message(format!(
        "the cloud's driver in image {image} ended by itself with status {status}; its last lines:\n{lines}"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_a_container_are_rewritten_to_its_network_address() {
        let ip = Ipv4Addr::new(172, 18, 0, 9);
        for (listens, seen) in [
            ("http://0.0.0.0:8081/v1", "http://172.18.0.9:8081/v1"),
            ("https://[::]:443", "https://172.18.0.9:443"),
            ("http://localhost:5000", "http://172.18.0.9:5000"),
            ("http://127.0.0.1:5000/127.0.0.1", "http://172.18.0.9:5000/127.0.0.1"),
            ("https://api.example/v1", "https://api.example/v1"),
            ("", ""),
        ] {
            assert_eq!(from_outside(listens, ip), seen);
        }
    }

    #[test]
    fn on_a_network_its_port_is_published_and_on_this_machines_own_it_takes_any() {
        let on_network = placed(Site::Network("net"));
        assert!(
            on_network.networking_config.is_some()
                && on_network.exposed_ports == Some(vec!["8081/tcp".into()])
        );
        assert_eq!(Site::Network("net").listen().to_string(), "0.0.0.0:8081");
        let here = Site::ThisMachine(Ipv4Addr::LOCALHOST);
        assert_eq!(placed(here).host_config.and_then(|host| host.network_mode).as_deref(), Some("host"));
        assert_eq!(here.listen().to_string(), "127.0.0.1:0");
    }
}
