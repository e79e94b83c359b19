//! The container the fake cloud runs in.
//!
//! Its cloud API is reached by the container's address on the run's network; its driver API only from this machine. The
//! driver token is put into the container as a file: environment and arguments can be read by anybody who may ask
//! Docker.

use super::protocol;
use super::protocol::Access;
use super::spec::{CloudSpec, Host, Kind, Place, RunningCloud, StartError};
use crate::cloud::{CloudRecord, fresh_token};
use crate::config::CloudSource;
use crate::images::{Engine, EngineError, PreparedImage, RunId, load_into_engine};
use bollard::Docker;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, EndpointSettings, HostConfig, HostConfigLogConfig,
    NetworkingConfig, PortBinding,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, LogsOptionsBuilder, RemoveContainerOptionsBuilder,
    UploadToContainerOptionsBuilder,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Port of the cloud's API in the container.
const CLOUD_PORT: u16 = 8080;
/// Port of the driver API in the container.
const DRIVER_PORT: &str = "8081/tcp";
/// Port of the metadata service in the container.
const METADATA_PORT: u16 = 8082;
/// User the cloud runs as; nobody in particular.
const USER: u64 = 65532;
/// Where the driver token is in the container.
const TOKEN_FILE: &str = "driver-token";
/// What is in the line the fake cloud writes once it answers.
const READY: &str = r#""ready":true"#;
/// How long one call to the engine may take.
const LIMIT: Duration = Duration::from_secs(60);
/// How long the cloud may take until it answers; usual are 50 ms.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// Lines of its log that an error shows.
const LINES_SHOWN: &str = "20";

/// Its name.
const NAME: &str = "fake-cloud-container";

/// Its line of the table.
pub(super) const KIND: Kind = Kind {
    name: NAME,
    suits: |spec| {
        matches!((spec.cloud, &spec.place), (CloudSource::Dialect(_), Place::BesideMachines { .. }))
    },
    start: |spec| start(spec).boxed(),
    attach: protocol::attach,
};

/// What the container is made of.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    run: &'a RunId,
    network: &'a str,
    dialect: &'a str,
    image: &'a PreparedImage,
}

/// The container of a fake cloud.
#[derive(Debug)]
struct Container {
    engine: Engine,
    name: String,
    id: String,
}

impl Host for Container {
    fn stop(self: Box<Self>) -> BoxFuture<'static, Result<(), StartError>> {
        async move { Ok(remove(&self.engine, &self.id, &self.name).await?) }.boxed()
    }
}

async fn start(spec: CloudSpec<'_>) -> Result<RunningCloud, StartError> {
    let Place::BesideMachines { run, engine, network, image } = spec.place else {
        return Err(StartError::NoDriver { cloud: spec.cloud.to_string(), names: NAME.to_owned() });
    };
    let dialect = spec.cloud.dialect().unwrap_or_default();
    let name = run.name_of("cloud");
    let wanted = Wanted { run, network, dialect, image };
    let id = create(engine, &name, wanted).await?;
    match bring_up(engine, &name, &id, wanted).await {
        Ok(record) => {
            Ok(RunningCloud { record, host: Box::new(Container { engine: engine.clone(), name, id }) })
        }
        Err(error) => {
            if let Err(trouble) = remove(engine, &id, &name).await {
                tracing::warn!(%trouble, container = name, "a failed fake cloud was not removed");
            }
            Err(error)
        }
    }
}

async fn create(engine: &Engine, name: &str, spec: Wanted<'_>) -> Result<String, StartError> {
    // Another run that ends may remove the image between our look and our use of it.
    for last_try in [false, true] {
        load_into_engine(engine, spec.image).await?;
        let options = CreateContainerOptionsBuilder::new().name(name).build();
        let body = body(spec);
        let creating = |docker: Docker| async move { docker.create_container(Some(options), body).await };
        match engine.make("create container", name, LIMIT, creating).await {
            Ok(created) => return Ok(created.id),
            Err(error) if error.is_not_found() && !last_try => {}
            Err(error) => return Err(error.into()),
        }
    }
    unreachable!("the last try returns")
}

fn body(spec: Wanted<'_>) -> ContainerCreateBody {
    let listen = format!("0.0.0.0:{CLOUD_PORT}");
    let driver_listen = format!("0.0.0.0:{}", DRIVER_PORT.trim_end_matches("/tcp"));
    let metadata_listen = format!("0.0.0.0:{METADATA_PORT}");
    let token_file = format!("/{TOKEN_FILE}");
    let command =
        ["serve", "--dialect", spec.dialect, "--listen", &listen, "--driver-listen", &driver_listen];
    let command = command.into_iter().chain(["--metadata-listen", &metadata_listen]);
    let command = command.chain(["--driver-token-file", &token_file]);
    let to_this_machine =
        PortBinding { host_ip: Some("127.0.0.1".to_owned()), host_port: Some("0".to_owned()) };
    let log_options = HashMap::from([("max-size".to_owned(), "50m".to_owned())]);
    ContainerCreateBody {
        image: Some(spec.image.reference.clone()),
        cmd: Some(command.map(str::to_owned).collect()),
        user: Some(format!("{USER}:{USER}")),
        labels: Some(spec.run.labels("cloud")),
        exposed_ports: Some(vec![DRIVER_PORT.to_owned()]),
        host_config: Some(HostConfig {
            port_bindings: Some(HashMap::from([(DRIVER_PORT.to_owned(), Some(vec![to_this_machine]))])),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            log_config: Some(HostConfigLogConfig {
                typ: Some("json-file".to_owned()),
                config: Some(log_options),
            }),
            ..Default::default()
        }),
        networking_config: Some(NetworkingConfig {
            endpoints_config: Some(HashMap::from([(spec.network.to_owned(), EndpointSettings::default())])),
        }),
        ..Default::default()
    }
}

async fn bring_up(
    engine: &Engine,
    name: &str,
    container: &str,
    spec: Wanted<'_>,
) -> Result<CloudRecord, StartError> {
    let docker = engine.docker();
    let driver_token = fresh_token()?;
    let root = UploadToContainerOptionsBuilder::new().path("/").build();
    let file = bollard::body_full(token_archive(&driver_token).into());
    engine
        .call("put a file into", name, LIMIT, docker.upload_to_container(container, Some(root), file))
        .await?;
    engine.call("start", name, LIMIT, docker.start_container(container, None)).await?;
    wait_until_ready(engine, name, container).await?;
    let found = engine.call("inspect", name, LIMIT, docker.inspect_container(container, None)).await?;
    let (ip, driver) = addresses(&found, spec.network)
        .map_err(|what| StartError::Unreachable { name: name.to_owned(), what })?;
    let access = Access::of(NAME, format!("http://{driver}"), driver_token).await?;
    let mut record = access.into_record(NAME, ip, format!("http://{ip}:{CLOUD_PORT}"));
    // What it says of itself are the container's own addresses.
    record.metadata = record.metadata.map(|_| format!("http://{ip}:{METADATA_PORT}"));
    // Containers of a network know one another by name: the resolver of a kind node asks Docker.
    record.name = Some(name.to_owned());
    Ok(record)
}

/// Follows the log until the line that says so. Its end before that is the container's end.
async fn wait_until_ready(engine: &Engine, name: &str, container: &str) -> Result<(), StartError> {
    let options = LogsOptionsBuilder::new().follow(true).stdout(true).stderr(true).build();
    let mut log = engine.docker().logs(container, Some(options));
    let ready = async {
        while let Some(Ok(piece)) = log.next().await {
            if String::from_utf8_lossy(&piece.into_bytes()).contains(READY) {
                return true;
            }
        }
        false
    };
    let ended = match tokio::time::timeout(READY_LIMIT, ready).await {
        Ok(true) => return Ok(()),
        Ok(false) => true,
        Err(_) => false,
    };
    let (name, lines) = (name.to_owned(), logs(engine, container, name, LINES_SHOWN).await?);
    if !ended {
        return Err(StartError::Silent { name, limit: READY_LIMIT, lines });
    }
    let found =
        engine.call("inspect", &name, LIMIT, engine.docker().inspect_container(container, None)).await?;
    let status = found.state.and_then(|state| state.exit_code).unwrap_or(-1);
    Err(StartError::Crashed { name, status, lines })
}

async fn logs(engine: &Engine, container: &str, name: &str, tail: &str) -> Result<String, EngineError> {
    let options = LogsOptionsBuilder::new().stdout(true).stderr(true).tail(tail).build();
    let mut log = engine.docker().logs(container, Some(options));
    let reading = async {
        let mut text = String::new();
        while let Some(piece) = log.next().await {
            text.push_str(&String::from_utf8_lossy(&piece?.into_bytes()));
        }
        Ok(text)
    };
    engine.call("read the log of", name, LIMIT, reading).await
}

async fn remove(engine: &Engine, container: &str, name: &str) -> Result<(), EngineError> {
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    match engine
        .call("remove container", name, LIMIT, engine.docker().remove_container(container, Some(options)))
        .await
    {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// The container's address on the network, and where its driver port is on this machine.
fn addresses(found: &ContainerInspectResponse, network: &str) -> Result<(Ipv4Addr, SocketAddr), String> {
    let settings = found.network_settings.as_ref();
    let endpoint = settings.and_then(|settings| settings.networks.as_ref()?.get(network));
    let ip = endpoint.and_then(|endpoint| endpoint.ip_address.as_deref()?.parse().ok());
    let ip = ip.ok_or_else(|| format!("IPv4 address on network {network}"))?;
    let bindings = settings.and_then(|settings| settings.ports.as_ref()?.get(DRIVER_PORT)?.as_ref());
    let bound = |binding: &PortBinding| {
        let ip = binding.host_ip.as_deref()?.parse().ok()?;
        Some(SocketAddr::new(ip, binding.host_port.as_deref()?.parse().ok()?))
    };
    let driver = bindings.and_then(|bindings| bindings.iter().find_map(bound));
    Ok((ip, driver.ok_or("published driver port")?))
}

/// A tar file that holds the token, readable for the cloud's user alone.
fn token_archive(token: &str) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.set_mode(0o400);
    header.set_uid(USER);
    header.set_gid(USER);
    header.set_size(token.len() as u64);
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_data(&mut header, TOKEN_FILE, token.as_bytes()).expect("writing to memory cannot fail");
    archive.into_inner().expect("writing to memory cannot fail")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::NetworkSettings;

    fn container(ip: &str, port: Option<&str>) -> ContainerInspectResponse {
        let endpoint = EndpointSettings { ip_address: Some(ip.to_owned()), ..Default::default() };
        let binding = port
            .map(|port| PortBinding { host_ip: Some("127.0.0.1".into()), host_port: Some(port.to_owned()) });
        ContainerInspectResponse {
            network_settings: Some(NetworkSettings {
                networks: Some(HashMap::from([("net".to_owned(), endpoint)])),
                ports: Some(HashMap::from([(DRIVER_PORT.to_owned(), binding.map(|binding| vec![binding]))])),
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
}
