//! The container of the fake cloud.
//!
//! Its cloud API is reached at the container's address on the run's network; its driver API only from this
//! machine. The driver token is put into the container as a file.

use super::engine::{Container, DRIVER_PORT, TOKEN_FILE, bounded_log, exposed, published};
use super::protocol::{self, Access};
use super::ready::ready_line;
use super::spec::{CloudSpec, Kind, Place, RunningCloud, StartError};
use crate::{CloudRecord, fresh_token};
use bollard::models::{ContainerCreateBody, EndpointSettings, HostConfig, NetworkingConfig};
use futures::FutureExt;
use harness_clusters::images::{Engine, PreparedImage, RunId, load_into_engine};
use harness_config::CloudSource;
use std::collections::HashMap;

/// The port of the cloud's API in the container.
const CLOUD_PORT: u16 = 8080;
/// Port of the metadata service in the container.
const METADATA_PORT: u16 = 8082;
/// The user that the cloud runs as; not a special one.
const USER: u64 = 65532;

/// Its name.
const NAME: &str = "fake-cloud-container";

/// Its entry in the table.
pub(super) const KIND: Kind = Kind {
    name: NAME,
    suits: |spec| {
        matches!((spec.cloud, &spec.place), (CloudSource::Dialect(_), Place::NextToMachines { .. }))
    },
    start: |spec| start(spec).boxed(),
    attach: protocol::attach,
};

/// The configuration of the container.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    run: &'a RunId,
    network: &'a str,
    dialect: &'a str,
    image: &'a PreparedImage,
}

async fn start(spec: CloudSpec<'_>) -> Result<RunningCloud, StartError> {
    let Place::NextToMachines { engine, network, image } = spec.place else {
        return Err(StartError::NoDriver { cloud: spec.cloud.to_string(), names: NAME.to_owned() });
    };
    let dialect = spec.cloud.dialect().unwrap_or_default();
    let wanted = Wanted { run: spec.run, network, dialect, image };
    let container = create(engine, wanted).await?;
    match bring_up(&container, wanted).await {
        Ok(record) => Ok(RunningCloud { record, host: Box::new(container) }),
        Err(error) => {
            container.give_up().await;
            Err(error)
        }
    }
}

async fn create(engine: &Engine, spec: Wanted<'_>) -> Result<Container, StartError> {
    // Another run that ends may remove the image between the check and its use.
    for last_try in [false, true] {
        load_into_engine(engine, spec.image).await?;
        match Container::create(engine, &spec.run.name_of("cloud"), body(spec)).await {
            Ok(created) => return Ok(created),
            Err(error) if error.is_not_found() && !last_try => {}
            Err(error) => return Err(error.into()),
        }
    }
    unreachable!("the last try returns")
}

fn body(spec: Wanted<'_>) -> ContainerCreateBody {
    let listen = format!("0.0.0.0:{CLOUD_PORT}");
    let driver_listen = format!("0.0.0.0:{DRIVER_PORT}");
    let metadata_listen = format!("0.0.0.0:{METADATA_PORT}");
    let command =
        ["serve", "--dialect", spec.dialect, "--listen", &listen, "--driver-listen", &driver_listen];
    let command = command.into_iter().chain(["--metadata-listen", &metadata_listen]);
    let command = command.chain(["--driver-token-file", TOKEN_FILE]);
    ContainerCreateBody {
        image: Some(spec.image.reference.clone()),
        cmd: Some(command.map(str::to_owned).collect()),
        user: Some(format!("{USER}:{USER}")),
        labels: Some(spec.run.labels("cloud")),
        exposed_ports: Some(vec![exposed()]),
        host_config: Some(HostConfig {
            port_bindings: Some(published()),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            log_config: Some(bounded_log()),
            ..Default::default()
        }),
        networking_config: Some(NetworkingConfig {
            endpoints_config: Some(HashMap::from([(spec.network.to_owned(), EndpointSettings::default())])),
        }),
        ..Default::default()
    }
}

async fn bring_up(container: &Container, spec: Wanted<'_>) -> Result<CloudRecord, StartError> {
    let driver_token = fresh_token()?;
    container.put_token(&driver_token, Some(USER)).await?;
    container.start(ready_line).await?;
    let (ip, driver) = container.addresses(spec.network).await?;
    let access = Access::of(NAME, format!("http://{driver}"), driver_token).await?;
    let mut record = access.into_record(NAME, ip, format!("http://{ip}:{CLOUD_PORT}"));
    // The addresses that it reports are the container's own.
    record.metadata = record.metadata.map(|_| format!("http://{ip}:{METADATA_PORT}"));
    // Containers in a network know each other by name: the resolver of a kind node asks Docker.
    record.name = Some(container.name.clone());
    Ok(record)
}
