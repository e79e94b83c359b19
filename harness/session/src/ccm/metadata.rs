//! How a CCM reaches the metadata service of its cloud. Pure functions.
//!
//! If the machines themselves route the service's address, nothing is changed. Otherwise the service is the CCM's HTTP
//! proxy: a library that honours `HTTP_PROXY`, as Go's does, reaches it when it calls `169.254.169.254`. The user in the
//! proxy's URL is the name of the CCM's Node, so the service knows which Node the request is from. API server and cloud
//! are reached without the proxy.

use super::manifests::{array_at, pod_spec_mut};
use harness_clusters::METADATA_ADDRESS;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddrV4;

/// Placeholder of the service's URL.
const PLACEHOLDER: &str = "METADATA";
/// Placeholder of the same without its scheme, for clients whose variable is a host.
const HOST_PLACEHOLDER: &str = "METADATA_HOST";
/// The variable that contains the name of the CCM's Node.
const NODE: &str = "CCM_CONFORMANCE_NODE";

/// How the metadata service is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metadata {
    /// At its own address, which the machines route.
    AtItsAddress,
    /// By variables of the CCM's container.
    ByVariables {
        /// Its address.
        at: SocketAddrV4,
        /// Destinations that bypass it, in addition to this machine: the cloud, by address and name.
        direct: Vec<String>,
    },
}

/// Configures a workload's container for it, and fills in its placeholder; returns what was changed, if anything.
pub(super) fn reach(
    workload: &mut Value,
    container: usize,
    metadata: &Metadata,
    table: &mut BTreeMap<String, String>,
) -> Option<String> {
    let Metadata::ByVariables { at, direct } = metadata else {
        insert(table, &METADATA_ADDRESS.to_string());
        return None;
    };
    let host = format!("$({NODE})@{at}");
    insert(table, &host);
    let url = format!("http://{host}");
    let direct = ["localhost", "127.0.0.0/8"].into_iter().chain(direct.iter().map(String::as_str));
    let direct = Vec::from_iter(direct).join(",");
    let env = array_at(&mut pod_spec_mut(workload)["containers"][container], "env");
    // Those of the manifests take precedence; a variable that others refer to is placed before them.
    let own = [("HTTP_PROXY", url), ("NO_PROXY", direct)];
    let own = own.map(|(name, value)| json!({"name": name, "value": value}));
    let own = own.into_iter().filter(|own| env.iter().all(|entry| entry["name"] != own["name"]));
    let own = Vec::from_iter(own);
    env.extend(own);
    env.insert(0, json!({"name": NODE, "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}));
    Some(format!(
        "variables HTTP_PROXY and NO_PROXY, so that calls of {METADATA_ADDRESS} reach the run's metadata service"
    ))
}

fn insert(table: &mut BTreeMap<String, String>, host: &str) {
    table.insert(PLACEHOLDER.to_owned(), format!("http://{host}"));
    table.insert(HOST_PLACEHOLDER.to_owned(), host.to_owned());
}
