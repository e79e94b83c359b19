//! A recording proxy in this process in front of a cloud that was started, with a port for each replica of the CCM.
//!
//! Its driver API is that of the cloud's driver plus journal, faults and barriers, so a run uses it like any
//! other driver.

use super::command::reachable;
use super::protocol::{Access, reached};
use super::spec::{CloudSpec, Host, RunningCloud, StartError};
use crate::fresh_token;
use crate::tails;
use futures::FutureExt;
use futures::future::BoxFuture;
use harness_config::Proxying;
use recording_proxy::{Bounds, Config, DriverConfig, Port, Running};
use std::net::{Ipv4Addr, SocketAddr};

/// Its name in records.
pub(super) const NAME: &str = "recording-proxy";

/// The proxy and the cloud behind it.
#[derive(Debug)]
struct Before {
    proxy: Running,
    cloud: RunningCloud,
}

impl Host for Before {
    fn stop(self: Box<Self>) -> BoxFuture<'static, Result<(), StartError>> {
        async move {
            self.proxy.shutdown().await;
            self.cloud.stop().await
        }
        .boxed()
    }
}

/// Starts a proxy in front of a cloud; stops the cloud if that fails.
pub(super) async fn before(
    cloud: RunningCloud,
    proxying: &Proxying,
    spec: CloudSpec<'_>,
) -> Result<RunningCloud, StartError> {
    match put(&cloud, proxying, spec).await {
        Ok((proxy, access, ip)) => {
            let ports = proxy.ports().iter();
            let endpoints = ports.filter_map(|(caller, url)| Some((caller.clone()?, url.clone()))).collect();
            let endpoint = proxy.ports().first().map(|(_, url)| url.clone()).unwrap_or_default();
            let mut record = access.into_record(NAME, ip, endpoint);
            record.endpoints = endpoints;
            record.http_proxy = proxying.http_proxy;
            record.ca = proxy.ca().map(str::to_owned);
            record.secrets.extend(cloud.record().secrets.clone());
            Ok(RunningCloud { record, host: Box::new(Before { proxy, cloud }) })
        }
        Err(error) => {
            if let Err(trouble) = cloud.stop().await {
                tracing::warn!(%trouble, "a cloud whose proxy failed was not stopped");
            }
            Err(error)
        }
    }
}

async fn put(
    cloud: &RunningCloud,
    proxying: &Proxying,
    spec: CloudSpec<'_>,
) -> Result<(Running, Access, Ipv4Addr), StartError> {
    let ip = reachable(&spec.place).await?;
    let upstream = proxying.upstream.clone().unwrap_or_else(|| cloud.record().endpoint.clone());
    if upstream.is_empty() {
        return Err(StartError::NoUpstream { cloud: spec.cloud.to_string() });
    }
    let token = fresh_token()?;
    let port = |caller| Port { caller, listen: SocketAddr::from((ip, 0)) };
    let mut ports: Vec<Port> = spec.replicas.iter().cloned().map(Some).map(port).collect();
    if ports.is_empty() {
        ports.push(port(None));
    }
    let running = Running::start(Config {
        ports,
        upstream,
        upstream_ca: proxying.upstream_ca.clone(),
        table: proxying.routes.table.clone(),
        errors: proxying.routes.errors.clone(),
        rewrites: proxying.routes.rewrites.clone(),
        tls: proxying.tls.then(|| vec![ip.to_string(), "localhost".to_owned()]),
        driver: Some(DriverConfig {
            behind: Some(reached(cloud.record())?),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            token: token.clone(),
        }),
        bounds: Bounds::default(),
        ended: None,
        on_message: spec.on_message.clone(),
    });
    let running =
        running.await.map_err(|error| StartError::Proxy { cause: harness_core::check::chain(&error) })?;
    let url = running.driver_addr().map(|address| format!("http://{address}")).unwrap_or_default();
    let (behind, _) = reached(cloud.record())?;
    tails::also_at(&behind, &url);
    let access = Access::of(NAME, url, token).await?;
    Ok((running, access, ip))
}
