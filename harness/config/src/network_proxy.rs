//! `networkProxy` of a profile: the API server's network proxy and its agents, as keys and as their meaning.

use super::formats::{Name, Variable};
use super::schema::{Keyed, ordered};
use harness_core::files;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// `networkProxy` of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>, extend("required" = ["egress"]))]
pub(crate) struct NetworkProxyKeys {
    /// The API server configuration of the proxy (`--egress-selector-config-file`). The files that it uses are in
    /// `/etc/kubernetes/network-proxy` on the machine: `ca.crt`, `client.crt`, `client.key`.
    #[schemars(example = &"egress-selector-configuration.yaml")]
    #[schemars(extend("x-missing" = "name the API server's EgressSelectorConfiguration"))]
    pub(crate) egress: String,
    /// Manifests of server and agents, files or folders. `${IMAGE}` is the image of the profile, and `${SERVER}` the
    /// name of the server's machine. A control-plane machine has `ca.crt`, `server.crt` and `server.key` in
    /// `/etc/kubernetes/network-proxy`, any other machine `ca.crt`, `agent.crt` and `agent.key`.
    #[schemars(example = ["manifests"])]
    pub(crate) manifests: Vec<String>,
    /// The name of the server's workload in the manifests.
    #[schemars(with = "Name", example = &"acme-proxy-server", extend("x-default" = "`network-proxy-server`"))]
    pub(crate) server_workload: Option<String>,
    /// The name of the agents' workload in the manifests.
    #[schemars(with = "Name", example = &"acme-proxy-agent", extend("x-default" = "`network-proxy-agent`"))]
    pub(crate) agent_workload: Option<String>,
    /// Program and first arguments of both, to run them as processes on this machine. `${PROGRAM}` is this program.
    #[schemars(example = ["./acme-proxy"])]
    pub(crate) program: Vec<String>,
    /// Further arguments of the server. `${CALLERS}` is the address and port for connections of API servers,
    /// `${AGENTS}` that for agents, and `${CERTIFICATES}` a folder with all files listed above, for the name
    /// `localhost`.
    #[schemars(example = ["server", "--listen=${CALLERS}"])]
    pub(crate) server: Vec<String>,
    /// Further arguments of an agent. `${NAME}` is a unique name.
    #[schemars(example = ["agent", "--server=${AGENTS}", "--name=${NAME}"])]
    pub(crate) agent: Vec<String>,
    /// Environment variables of both, also in containers.
    #[schemars(with = "Keyed<Variable, String>")]
    #[schemars(example = BTreeMap::from([("ACME_LOG", "debug")]))]
    pub(crate) environment: BTreeMap<String, String>,
}

/// A network proxy under test.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkProxy {
    /// The API server's configuration for it.
    pub egress: PathBuf,
    /// Files with the manifests of server and agents.
    pub manifests: Vec<PathBuf>,
    /// The name of the server's workload.
    pub server_workload: String,
    /// The name of the agents' workload.
    pub agent_workload: String,
    /// Program and first arguments of both; empty if they do not run as processes.
    pub program: Vec<String>,
    /// Further arguments of the server.
    pub server: Vec<String>,
    /// Further arguments of an agent.
    pub agent: Vec<String>,
    /// Environment variables of both.
    pub environment: BTreeMap<String, String>,
}

impl fmt::Display for NetworkProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.program.is_empty() {
            true => write!(f, "by {}", self.egress.display()),
            false => write!(f, "'{}' by {}", self.program.join(" "), self.egress.display()),
        }
    }
}

/// Converts the keys of a network proxy, in the profile in this folder, to their meaning; `None` if too much
/// is invalid. `manifests` are the files with manifests; faults are reported to `problem`, by key.
pub(super) fn read(
    written: NetworkProxyKeys,
    manifests: Vec<PathBuf>,
    folder: &Path,
    mut problem: impl FnMut(&str, String),
) -> Option<NetworkProxy> {
    // A missing key was already reported.
    if written.egress.is_empty() {
        return None;
    }
    let egress = folder.join(&written.egress);
    if !files::is_file(&egress) {
        problem("networkProxy.egress", format!("there is no file {}", egress.display()));
    }
    for (key, given) in [("server", &written.server), ("agent", &written.agent)] {
        if !given.is_empty() && written.program.is_empty() {
            problem(&format!("networkProxy.{key}"), "has no meaning without 'program'".to_owned());
        }
    }
    if written.program.is_empty() && manifests.is_empty() {
        problem("networkProxy", "names neither 'manifests' nor a 'program'; write one of them".to_owned());
    }
    Some(NetworkProxy {
        egress,
        manifests,
        server_workload: written.server_workload.unwrap_or_else(|| "network-proxy-server".to_owned()),
        agent_workload: written.agent_workload.unwrap_or_else(|| "network-proxy-agent".to_owned()),
        program: written.program,
        server: written.server,
        agent: written.agent,
        environment: written.environment,
    })
}
