//! One replica of the CCM, and the placeholders of its own.

use std::collections::BTreeMap;

/// Placeholder of the cloud token in manifests.
pub const TOKEN: &str = "CLOUD_TOKEN";
/// Placeholder of the URL of the cloud's API.
pub(super) const ENDPOINT: &str = "CLOUD_ENDPOINT";
/// Placeholders of its parts, for a CCM with separate settings for host and port.
pub(super) const HOST: &str = "CLOUD_HOST";
pub(super) const PORT: &str = "CLOUD_PORT";
/// Placeholder of the proxy's URL, for the variable `HTTP_PROXY`.
pub(super) const PROXY: &str = "CLOUD_HTTP_PROXY";
/// The host of the cloud for a CCM that has a proxy. It resolves nowhere, so no call can go past the proxy; and it is not loopback,
/// for which clients ignore the variable.
const NOWHERE: &str = "cloud.ccm-conformance.internal";
/// What is never reached through a proxy: the metadata service, which tells machines apart by their addresses.
pub(super) const NO_PROXY: &str = "169.254.169.254";

/// One replica: what sets it apart.
#[derive(Clone, Debug)]
pub struct Replica {
    /// Short name, e.g. `a`; also the name of its cloud credential.
    pub name: String,
    /// Its cloud token.
    pub token: String,
    /// Its `--secure-port`, unique per node under hostNetwork.
    pub secure_port: u16,
    /// URL of the cloud's API for it; empty where the profile says it.
    pub endpoint: String,
}

impl Replica {
    /// Its own placeholders. With `http_proxy` the CCM reaches the cloud through its endpoint as a proxy.
    pub(super) fn fill_in(&self, table: &mut BTreeMap<String, String>, http_proxy: bool) {
        table.insert(TOKEN.to_owned(), self.token.clone());
        if http_proxy {
            table.insert(PROXY.to_owned(), self.endpoint.clone());
            table.insert(ENDPOINT.to_owned(), format!("http://{NOWHERE}"));
            table.extend(
                [(HOST, NOWHERE), (PORT, "80")].map(|(name, value)| (name.to_owned(), value.to_owned())),
            );
            return;
        }
        // A driver may leave it to the profile where its cloud is.
        if !self.endpoint.is_empty() {
            table.insert(ENDPOINT.to_owned(), self.endpoint.clone());
            if let Some((host, port)) = host_and_port(&self.endpoint) {
                table.insert(HOST.to_owned(), host);
                table.insert(PORT.to_owned(), port);
            }
        }
    }
}

/// Host and port of a URL; the host without brackets.
pub(super) fn host_and_port(url: &str) -> Option<(String, String)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    let usual = if scheme == "https" { "443" } else { "80" };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (authority, usual),
    };
    Some((host.trim_start_matches('[').trim_end_matches(']').to_owned(), port.to_owned()))
}
