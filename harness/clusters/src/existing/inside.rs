//! A run in a Pod of the cluster that it tests: the service account for its requests to the API server, and the address
//! at which the cluster's machines reach it.

use super::super::error::ClusterError;
use super::super::record::CloudSite;
use super::kubeconfig::usual_kubeconfig;
use harness_config::{DesiredCluster, ExistingCluster};
use harness_core::files;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

/// Where kubelets mount the credential of a Pod's service account.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The variable that names another such folder, for machines on which nothing can be mounted.
const ACCOUNT_VARIABLE: &str = "SERVICE_ACCOUNT_FOLDER";

/// The Pod of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsideCluster {
    /// Host of the API server, as given to the Pod.
    host: String,
    /// Its port.
    port: u16,
    /// The folder of the service account's credential.
    account: PathBuf,
    /// The Pod's namespace.
    pub namespace: String,
}

impl InsideCluster {
    /// The Pod of this process, if the requested cluster is the one around it: no kubeconfig is named, and there is none
    /// where kubectl would look.
    pub fn of(desired: &DesiredCluster) -> Option<InsideCluster> {
        match desired {
            DesiredCluster::Existing(existing) => InsideCluster::around(existing),
            DesiredCluster::Own(_) | DesiredCluster::Absent => None,
        }
    }

    pub(super) fn around(existing: &ExistingCluster) -> Option<InsideCluster> {
        let is_named = existing.kubeconfig.is_some() || usual_kubeconfig().is_some();
        let variable = |name: &str| std::env::var(name).ok();
        let account = variable(ACCOUNT_VARIABLE).unwrap_or_else(|| ACCOUNT.to_owned());
        (!is_named).then(|| InsideCluster::from_environment(variable, Path::new(&account))).flatten()
    }

    /// Reads it from the environment and the folder of a service account.
    fn from_environment(variable: impl Fn(&str) -> Option<String>, account: &Path) -> Option<InsideCluster> {
        let host = variable("KUBERNETES_SERVICE_HOST").filter(|host| !host.is_empty())?;
        let port = variable("KUBERNETES_SERVICE_PORT")?.parse().ok()?;
        let namespace = std::fs::read_to_string(account.join("namespace")).ok()?.trim().to_owned();
        account.join("token").is_file().then(|| InsideCluster {
            host,
            port,
            account: account.to_owned(),
            namespace,
        })
    }

    /// A kubeconfig for the service account. It refers to the token by its file, as kubelets replace the token.
    pub fn kubeconfig(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let file = |name: &str| self.account.join(name);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "pod",
            "clusters": [{"name": "pod", "cluster": {
                "server": format!("https://{host}:{}", self.port), "certificate-authority": file("ca.crt")}}],
            "users": [{"name": "pod", "user": {"tokenFile": file("token")}}],
            "contexts": [{"name": "pod", "context": {"cluster": "pod", "user": "pod", "namespace": self.namespace}}],
        });
        // JSON is valid YAML.
        format!("{config:#}\n")
    }

    /// The service account's token, which is redacted from all output.
    pub(super) fn token(&self) -> Option<String> {
        std::fs::read_to_string(self.account.join("token")).ok()
    }

    /// The place for the cloud: in this process, since Pods and machines of a cluster can connect to each other.
    ///
    /// # Errors
    /// As [`InsideCluster::address`].
    pub(super) fn site(&self) -> Result<CloudSite, ClusterError> {
        Ok(CloudSite::ThisMachine { address: self.address()?, name: None })
    }

    /// The address of the Pod: its own address for connections to the API server.
    ///
    /// # Errors
    /// It has no IPv4 address, or cannot connect to the API server.
    fn address(&self) -> Result<Ipv4Addr, ClusterError> {
        let unknown = |why: String| ClusterError::Unavailable {
            what: "the address of this Pod, where the cloud listens,".to_owned(),
            why,
            way_out: "the CCM must reach it by IPv4: run the Pod in a cluster whose Pods have IPv4 addresses"
                .to_owned(),
        };
        let own = || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            // Nothing is sent: the system chooses the route.
            socket.connect((self.host.as_str(), self.port))?;
            socket.local_addr()
        };
        match own().map(|address: SocketAddr| address.ip()) {
            Ok(IpAddr::V4(address)) => Ok(address),
            Ok(IpAddr::V6(address)) => Err(unknown(format!("it is {address}"))),
            Err(error) => {
                Err(unknown(format!("cannot connect to {}:{}: {}", self.host, self.port, files::why(&error))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::config::Kubeconfig;

    fn from_environment(host: &str, port: &str, account: &Path) -> Option<InsideCluster> {
        InsideCluster::from_environment(
            |name| Some(if name == "KUBERNETES_SERVICE_HOST" { host } else { port }.to_owned()),
            account,
        )
    }

    #[test]
    fn a_pod_is_known_by_what_its_kubelet_gives_it() {
        let account = tempfile::tempdir().expect("a folder");
        assert_eq!(from_environment("127.0.0.1", "6443", account.path()), None, "no service account");
        std::fs::write(account.path().join("namespace"), "ccm-conformance\n").expect("a file");
        assert_eq!(from_environment("127.0.0.1", "6443", account.path()), None, "no token");
        std::fs::write(account.path().join("token"), "very-secret").expect("a file");
        for (host, port) in [("", "6443"), ("127.0.0.1", "")] {
            assert_eq!(from_environment(host, port, account.path()), None, "no API server");
        }
        let inside = from_environment("127.0.0.1", "6443", account.path()).expect("a Pod");
        assert_eq!(inside.namespace, "ccm-conformance");
        assert_eq!(inside.address().expect("an address"), Ipv4Addr::LOCALHOST);
        let text = inside.kubeconfig();
        assert!(!text.contains("very-secret"), "{text}");
        let config = Kubeconfig::from_yaml(&text).expect("a kubeconfig");
        let user = config.auth_infos[0].auth_info.clone().expect("a user");
        assert_eq!(user.token_file.as_deref(), account.path().join("token").to_str());
        let server = config.clusters[0].cluster.clone().expect("a cluster").server;
        assert_eq!(server.as_deref(), Some("https://127.0.0.1:6443"));
    }

    #[test]
    fn the_way_to_a_server_of_ipv6_is_written_and_the_pods_address_refused() {
        let account = tempfile::tempdir().expect("a folder");
        std::fs::write(account.path().join("namespace"), "x").expect("a file");
        std::fs::write(account.path().join("token"), "y").expect("a file");
        let inside = from_environment("::1", "6443", account.path()).expect("a Pod");
        assert!(inside.kubeconfig().contains("https://[::1]:6443"));
        let why = inside.address().expect_err("no IPv4").to_string();
        assert!(why.contains("the address of this Pod") && why.contains("IPv4"), "{why}");
    }
}
