//! The fake cloud in this process, for an embedded cluster, or in a Pod of the cluster. Its driver API is on
//! loopback.

use super::protocol;
use super::protocol::Access;
use super::spec::{CloudSpec, Host, Kind, Place, RunningCloud, StartError};
use fake_cloud::{Config, Running, Server};
use futures::FutureExt;
use futures::future::BoxFuture;
use harness_config::CloudSource;
use std::net::SocketAddr;

/// Its name.
const NAME: &str = "fake-cloud-in-process";

/// Its entry in the table.
pub(super) const KIND: Kind = Kind {
    name: NAME,
    suits: |spec| matches!((spec.cloud, &spec.place), (CloudSource::Dialect(_), Place::ThisProcess { .. })),
    start: |spec| bring_up(spec).boxed(),
    attach: protocol::attach,
};

#[derive(Debug)]
struct InProcess(Running);

impl Host for InProcess {
    fn stop(self: Box<Self>) -> BoxFuture<'static, Result<(), StartError>> {
        async move {
            self.0.shutdown().await;
            Ok(())
        }
        .boxed()
    }
}

/// Starts it on free ports, with a random driver token.
async fn bring_up(spec: CloudSpec<'_>) -> Result<RunningCloud, StartError> {
    let Place::ThisProcess { address, name } = spec.place else {
        return Err(StartError::NoDriver { cloud: spec.cloud.to_string(), names: NAME.to_owned() });
    };
    let local = Config::local(spec.cloud.dialect().unwrap_or_default());
    let at = SocketAddr::from((address, 0));
    let started = Server::start(Config { listen: at, metadata_listen: at, ..local }).await;
    let running =
        started.map_err(|error| StartError::InProcess { cause: harness_core::check::chain(&error) })?;
    let url = format!("http://{}", running.driver_addr());
    let access = Access::of(NAME, url, running.driver_token().to_owned()).await?;
    let endpoint = format!("http://{}", running.cloud_addr());
    let mut record = access.into_record(NAME, address, endpoint);
    record.name = name.map(str::to_owned);
    Ok(RunningCloud { record, host: Box::new(InProcess(running)) })
}
