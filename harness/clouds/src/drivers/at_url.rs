//! A driver that is already running: its capabilities are read, and it keeps running when the run ends.

use super::protocol::{self, Access};
use super::spec::{CloudSpec, Host, Kind, RunningCloud, StartError};
use futures::FutureExt;
use futures::future::BoxFuture;
use harness_config::CloudSource;
use std::net::{IpAddr, Ipv4Addr};

/// Its name in records.
const NAME: &str = "driver-at-url";

/// Its entry in the table.
pub(super) const KIND: Kind = Kind {
    name: NAME,
    suits: |spec| matches!(spec.cloud, CloudSource::DriverAt { .. }),
    start: |spec| start(spec).boxed(),
    attach: protocol::attach_named,
};

#[derive(Debug)]
struct Elsewhere;

impl Host for Elsewhere {
    fn stop(self: Box<Self>) -> BoxFuture<'static, Result<(), StartError>> {
        futures::future::ready(Ok(())).boxed()
    }
}

async fn start(spec: CloudSpec<'_>) -> Result<RunningCloud, StartError> {
    let CloudSource::DriverAt { url, token_file } = spec.cloud else {
        return Err(StartError::NoDriver { cloud: spec.cloud.to_string(), names: NAME.to_owned() });
    };
    let token = harness_core::files::read(token_file)
        .map_err(|cause| StartError::TokenFile { file: token_file.clone(), cause: cause.to_string() })?;
    let access = Access::of(&format!("at {url}"), url.clone(), token.trim().to_owned()).await?;
    let endpoint = access.capabilities.endpoint.clone().unwrap_or_default();
    let ip = address(if endpoint.is_empty() { url } else { &endpoint }).await?;
    Ok(RunningCloud { record: access.into_record(NAME, ip, endpoint), host: Box::new(Elsewhere) })
}

/// The IPv4 address of a URL's host.
pub(super) async fn address(url: &str) -> Result<Ipv4Addr, StartError> {
    let uri = url.parse::<http::Uri>().ok();
    let host = uri.as_ref().and_then(http::Uri::host).unwrap_or_default().to_owned();
    let failed = |why: String| StartError::Host { url: url.to_owned(), why };
    let found =
        tokio::net::lookup_host((host.as_str(), 0)).await.map_err(|error| failed(error.to_string()))?;
    let v4 = |ip: IpAddr| match ip.to_canonical() {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    };
    found.map(|address| address.ip()).find_map(v4).ok_or_else(|| failed("it has no IPv4 address".to_owned()))
}
