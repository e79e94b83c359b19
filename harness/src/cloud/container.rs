//! The container the fake cloud runs in.
//!
//! Its cloud API is reached by the container's address on the run's network; its admin API only from this machine. The
//! admin token is put into the container as a file: environment and arguments can be read by anybody who may ask
//! Docker.

use super::record::CloudRecord;
use crate::images::{Engine, EngineError, ImageError, PreparedImage, RunId, load_into_engine};
use bollard::Docker;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, EndpointSettings, HostConfig, HostConfigLogConfig,
    NetworkingConfig, PortBinding,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, LogsOptionsBuilder, RemoveContainerOptionsBuilder,
    StopContainerOptionsBuilder, UploadToContainerOptionsBuilder,
};
use futures::StreamExt;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Port of the cloud's API in the container.
const CLOUD_PORT: u16 = 8080;
/// Port of the admin API in the container.
const ADMIN_PORT: &str = "8081/tcp";
/// User the cloud runs as; nobody in particular.
const USER: u64 = 65532;
/// Where the admin token is in the container.
const TOKEN_FILE: &str = "admin-token";
/// What is in the line the fake cloud writes once it answers.
const READY: &str = r#""ready":true"#;
/// How long one call to the engine may take.
const LIMIT: Duration = Duration::from_secs(60);
/// How long the cloud may take until it answers; usual are 50 ms.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// Lines of its log that an error shows.
const LINES_SHOWN: &str = "20";

/// A fake cloud to start.
#[derive(Clone, Copy, Debug)]
pub struct CloudSpec<'a> {
    /// The run it is for.
    pub run: &'a RunId,
    /// Name of the network of the run's machines, which exists.
    pub network: &'a str,
    /// The provider's API it speaks, e.g. `native`.
    pub dialect: &'a str,
    /// Its image; loaded into the engine where necessary.
    pub image: &'a PreparedImage,
}

/// The fake cloud did not start, or could not be reached or removed.
#[derive(Debug, thiserror::Error)]
pub enum CloudError {
    /// Docker.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Its image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The one in this process did not start.
    #[error("the fake cloud did not start: {cause}")]
    Local {
        /// Why.
        cause: String,
    },
    /// It ended instead of answering.
    #[error("the fake cloud {name} ended with status {status} before it answered; its last lines:\n{lines}")]
    Crashed {
        /// The container.
        name: String,
        /// Its exit status.
        status: i64,
        /// The end of its log.
        lines: String,
    },
    /// It did not answer.
    #[error("the fake cloud {name} did not say within {limit:?} that it is ready; its last lines:\n{lines}")]
    Silent {
        /// The container.
        name: String,
        /// How long it had.
        limit: Duration,
        /// The end of its log.
        lines: String,
    },
    /// Docker gave it no address or port.
    #[error("the fake cloud {name} has no {what}; is the network there and the port free?")]
    Unreachable {
        /// The container.
        name: String,
        /// What is missing.
        what: String,
    },
    /// No token could be made.
    #[error("cannot read /dev/urandom")]
    Random(#[source] std::io::Error),
}

/// A fake cloud in its container.
#[derive(Clone, Debug)]
pub struct Cloud {
    engine: Engine,
    name: String,
    container: String,
    record: CloudRecord,
}

impl Cloud {
    /// Starts the fake cloud and waits until it answers. What a failed start has made is removed.
    ///
    /// # Errors
    /// The image is not there, the container crashed (with its last lines), or it stayed silent.
    pub async fn start(engine: &Engine, spec: CloudSpec<'_>) -> Result<Cloud, CloudError> {
        let name = spec.run.name_of("cloud");
        let container = create(engine, &name, spec).await?;
        match bring_up(engine, &name, &container, spec).await {
            Ok(record) => Ok(Cloud { engine: engine.clone(), name, container, record }),
            Err(error) => {
                if let Err(trouble) = remove(engine, &container, &name).await {
                    tracing::warn!(%trouble, container = name, "a failed fake cloud was not removed");
                }
                Err(error)
            }
        }
    }

    /// All another process of the run needs to use it.
    pub fn record(&self) -> &CloudRecord {
        &self.record
    }

    /// Its log, or the last lines of it, for evidence.
    ///
    /// # Errors
    /// Docker does not answer, or the container is gone.
    pub async fn logs(&self, lines: Option<u32>) -> Result<String, CloudError> {
        let tail = lines.map_or_else(|| "all".to_owned(), |lines| lines.to_string());
        Ok(logs(&self.engine, &self.container, &self.name, &tail).await?)
    }

    /// Stops it: every connection breaks and everything it knew is lost.
    ///
    /// # Errors
    /// Docker does not answer, or the container is gone.
    pub async fn stop(&self) -> Result<(), CloudError> {
        let options = StopContainerOptionsBuilder::new().t(1).build();
        let stopping = self.engine.docker().stop_container(&self.container, Some(options));
        Ok(self.engine.call("stop", &self.name, LIMIT, stopping).await?)
    }

    /// Removes its container; one that is gone already is fine.
    ///
    /// # Errors
    /// Docker does not answer or refuses.
    pub async fn remove(&self) -> Result<(), CloudError> {
        Ok(remove(&self.engine, &self.container, &self.name).await?)
    }
}

async fn create(engine: &Engine, name: &str, spec: CloudSpec<'_>) -> Result<String, CloudError> {
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

fn body(spec: CloudSpec<'_>) -> ContainerCreateBody {
    let listen = format!("0.0.0.0:{CLOUD_PORT}");
    let admin_listen = format!("0.0.0.0:{}", ADMIN_PORT.trim_end_matches("/tcp"));
    let token_file = format!("/{TOKEN_FILE}");
    let command = ["serve", "--dialect", spec.dialect, "--listen", &listen, "--admin-listen", &admin_listen];
    let command = command.into_iter().chain(["--admin-token-file", &token_file]);
    let to_this_machine =
        PortBinding { host_ip: Some("127.0.0.1".to_owned()), host_port: Some("0".to_owned()) };
    let log_options = HashMap::from([("max-size".to_owned(), "50m".to_owned())]);
    ContainerCreateBody {
        image: Some(spec.image.reference.clone()),
        cmd: Some(command.map(str::to_owned).collect()),
        user: Some(format!("{USER}:{USER}")),
        labels: Some(spec.run.labels("cloud")),
        exposed_ports: Some(vec![ADMIN_PORT.to_owned()]),
        host_config: Some(HostConfig {
            port_bindings: Some(HashMap::from([(ADMIN_PORT.to_owned(), Some(vec![to_this_machine]))])),
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
    spec: CloudSpec<'_>,
) -> Result<CloudRecord, CloudError> {
    let docker = engine.docker();
    let admin_token = fresh_token()?;
    let root = UploadToContainerOptionsBuilder::new().path("/").build();
    let file = bollard::body_full(token_archive(&admin_token).into());
    engine
        .call("put a file into", name, LIMIT, docker.upload_to_container(container, Some(root), file))
        .await?;
    engine.call("start", name, LIMIT, docker.start_container(container, None)).await?;
    wait_until_ready(engine, name, container).await?;
    let found = engine.call("inspect", name, LIMIT, docker.inspect_container(container, None)).await?;
    let (ip, admin) = addresses(&found, spec.network)
        .map_err(|what| CloudError::Unreachable { name: name.to_owned(), what })?;
    Ok(CloudRecord {
        ip,
        endpoint: format!("http://{ip}:{CLOUD_PORT}"),
        admin_url: format!("http://{admin}"),
        admin_token,
    })
}

/// Follows the log until the line that says so. Its end before that is the container's end.
async fn wait_until_ready(engine: &Engine, name: &str, container: &str) -> Result<(), CloudError> {
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
        return Err(CloudError::Silent { name, limit: READY_LIMIT, lines });
    }
    let found =
        engine.call("inspect", &name, LIMIT, engine.docker().inspect_container(container, None)).await?;
    let status = found.state.and_then(|state| state.exit_code).unwrap_or(-1);
    Err(CloudError::Crashed { name, status, lines })
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

/// The container's address on the network, and where its admin port is on this machine.
fn addresses(found: &ContainerInspectResponse, network: &str) -> Result<(Ipv4Addr, SocketAddr), String> {
    let settings = found.network_settings.as_ref();
    let endpoint = settings.and_then(|settings| settings.networks.as_ref()?.get(network));
    let ip = endpoint.and_then(|endpoint| endpoint.ip_address.as_deref()?.parse().ok());
    let ip = ip.ok_or_else(|| format!("IPv4 address on network {network}"))?;
    let bindings = settings.and_then(|settings| settings.ports.as_ref()?.get(ADMIN_PORT)?.as_ref());
    let bound = |binding: &PortBinding| {
        let ip = binding.host_ip.as_deref()?.parse().ok()?;
        Some(SocketAddr::new(ip, binding.host_port.as_deref()?.parse().ok()?))
    };
    let admin = bindings.and_then(|bindings| bindings.iter().find_map(bound));
    Ok((ip, admin.ok_or("published admin port")?))
}

/// A token nobody can guess: 256 random bits in hexadecimal digits.
///
/// # Errors
/// The system gives no random bits.
pub fn fresh_token() -> Result<String, CloudError> {
    let mut bits = [0_u8; 32];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bits));
    read.map_err(CloudError::Random)?;
    Ok(bits.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to memory cannot fail");
        text
    }))
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
                ports: Some(HashMap::from([(ADMIN_PORT.to_owned(), binding.map(|binding| vec![binding]))])),
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
        assert_eq!(lacks(container("172.18.0.9", None)), "published admin port");
    }

    #[test]
    fn tokens_are_long_and_never_the_same() {
        let (one, two) = (fresh_token().expect("random"), fresh_token().expect("random"));
        assert_eq!((one.len(), one == two), (64, false));
    }
}
