//! An `EgressSelectorConfiguration`, validated as strictly as an API server does.

use harness_config::yaml;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;

/// The folder of a network proxy's files on a machine.
pub const FOLDER: &str = "/etc/kubernetes/network-proxy";
/// The files for an API server.
const FILES: &[&str] = &["ca.crt", "client.crt", "client.key"];
/// The version that API servers accept (contract ANP-01).
const VERSION: &str = "apiserver.k8s.io/v1beta1";
const KIND: &str = "EgressSelectorConfiguration";
/// The valid selections.
const NAMES: &[&str] = &["cluster", "controlplane", "etcd"];

/// Why an API server does not start with a configuration, or cannot connect with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressFault {
    /// The contract's row.
    pub row: &'static str,
    /// What is wrong.
    pub what: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Configuration {
    api_version: Option<String>,
    kind: Option<String>,
    #[serde(default)]
    egress_selections: Vec<Selection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Selection {
    #[serde(default)]
    name: String,
    #[serde(default)]
    connection: Connection,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Connection {
    #[serde(default)]
    proxy_protocol: String,
    transport: Option<Transport>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Transport {
    tcp: Option<Tcp>,
    uds: Option<Uds>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Tcp {
    #[serde(default)]
    url: String,
    tls_config: Option<Tls>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Tls {
    #[serde(default)]
    ca_bundle: String,
    #[serde(default)]
    client_cert: String,
    #[serde(default)]
    client_key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Uds {
    #[serde(default)]
    uds_name: String,
}

/// The errors of a configuration; empty if an API server starts with it and can use it.
pub fn faults(text: &str, file: &Path) -> Vec<EgressFault> {
    let decoded: Configuration = match yaml::from_str(text, file) {
        Ok(decoded) => decoded,
        Err(error) => {
            return vec![EgressFault { row: "ANP-01", what: format!("it cannot be decoded: {error}") }];
        }
    };
    let mut all = Faults(Vec::new());
    for (key, found, expected) in
        [("apiVersion", &decoded.api_version, VERSION), ("kind", &decoded.kind, KIND)]
    {
        if found.as_deref() != Some(expected) {
            all.decoding(format!("{key} is {}, expected {expected}", found.as_deref().unwrap_or("absent")));
        }
    }
    if decoded.egress_selections.is_empty() {
        all.decoding("it selects nothing".to_owned());
    }
    let mut seen = BTreeSet::new();
    for one in &decoded.egress_selections {
        let name = one.name.to_lowercase();
        if name == "master" {
            all.decoding("selection 'master' is called 'controlplane' in v1beta1".to_owned());
        } else if !NAMES.contains(&name.as_str()) {
            all.decoding(format!("selection '{}' is not one of {}", one.name, NAMES.join(", ")));
        }
        if !seen.insert(name) {
            all.decoding(format!("duplicate selection '{}'", one.name));
        }
        all.connection(&one.name, &one.connection);
    }
    all.0
}

struct Faults(Vec<EgressFault>);

impl Faults {
    fn decoding(&mut self, what: String) {
        self.0.push(EgressFault { row: "ANP-01", what });
    }

    fn transport(&mut self, name: &str, what: &str) {
        self.0.push(EgressFault { row: "ANP-02", what: format!("selection '{name}': {what}") });
    }

    fn connection(&mut self, name: &str, connection: &Connection) {
        let transport = connection.transport.as_ref();
        let (tcp, uds) = (transport.and_then(|it| it.tcp.as_ref()), transport.and_then(|it| it.uds.as_ref()));
        match (connection.proxy_protocol.as_str(), tcp, uds) {
            ("Direct", ..) if transport.is_some() => self.transport(name, "Direct must not have a transport"),
            ("Direct", ..) => {}
            ("GRPC", None, Some(uds)) => self.socket(name, uds),
            ("GRPC", ..) => self.transport(name, "GRPC supports only uds"),
            ("HTTPConnect", None, Some(uds)) => self.socket(name, uds),
            ("HTTPConnect", Some(tcp), None) => self.tcp(name, tcp),
            ("HTTPConnect", ..) => self.transport(name, "HTTPConnect needs either uds or tcp"),
            (other, ..) => {
                let what = format!("proxyProtocol '{other}' is not one of Direct, GRPC, HTTPConnect");
                self.transport(name, &what);
            }
        }
    }

    fn socket(&mut self, name: &str, uds: &Uds) {
        if uds.uds_name.is_empty() {
            self.transport(name, "uds.udsName is empty");
        }
    }

    fn tcp(&mut self, name: &str, tcp: &Tcp) {
        if tcp.url.starts_with("http://") {
            let what = match tcp.tls_config {
                Some(_) => "an http:// URL must not have a tlsConfig",
                None => "an http:// URL does not work: the API server uses TLS anyway",
            };
            return self.transport(name, what);
        }
        if !tcp.url.starts_with("https://") {
            return self
                .transport(name, &format!("tcp.url '{}' must begin with https:// or http://", tcp.url));
        }
        let Some(tls) = &tcp.tls_config else {
            return self.transport(name, "an https:// URL needs a tlsConfig");
        };
        let files =
            [("caBundle", &tls.ca_bundle), ("clientCert", &tls.client_cert), ("clientKey", &tls.client_key)];
        for (key, file) in files {
            // Without a bundle the API server trusts the machine's own CAs.
            if file.is_empty() && key != "caBundle" {
                self.transport(name, &format!("tlsConfig.{key} is empty"));
            }
            let ours = file.strip_prefix(FOLDER).and_then(|rest| rest.strip_prefix('/'));
            if let Some(unknown) = ours.filter(|inside| !FILES.contains(inside)) {
                let what =
                    format!("tlsConfig.{key}: {FOLDER} does not contain {unknown}, but {}", FILES.join(", "));
                self.transport(name, &what);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\n";

    fn said(rest: &str) -> Vec<String> {
        let all = faults(&format!("{HEAD}{rest}"), Path::new("egress.yaml"));
        all.into_iter().map(|fault| format!("{} {}", fault.row, fault.what)).collect()
    }

    fn of_cluster(connection: &str) -> Vec<String> {
        said(&format!("egressSelections: [{{name: cluster, connection: {connection}}}]"))
    }

    const TLS: &str = "{caBundle: /etc/kubernetes/network-proxy/ca.crt, clientCert: /etc/kubernetes/network-proxy/client.crt, clientKey: /etc/kubernetes/network-proxy/client.key}";

    #[test]
    fn configurations_that_an_api_server_accepts_have_no_fault() {
        let none = [""; 0];
        assert_eq!(of_cluster("{proxyProtocol: Direct}"), none);
        assert_eq!(of_cluster("{proxyProtocol: GRPC, transport: {uds: {udsName: /run/s}}}"), none);
        assert_eq!(of_cluster("{proxyProtocol: HTTPConnect, transport: {uds: {udsName: /run/s}}}"), none);
        let tcp = format!(
            "{{proxyProtocol: HTTPConnect, transport: {{tcp: {{url: \"https://127.0.0.1:1\", tlsConfig: {TLS}}}}}}}"
        );
        assert_eq!(of_cluster(&tcp), none);
        let both = "egressSelections: [{name: Cluster, connection: {proxyProtocol: Direct}}, {name: etcd, connection: {proxyProtocol: Direct}}]";
        assert_eq!(said(both), none);
    }

    #[test]
    fn undecodable_configurations_violate_anp_01() {
        let all = [
            ("egressSelection: []", "cannot be decoded"),
            ("egressSelections: []", "selects nothing"),
            (
                "egressSelections: [{name: master, connection: {proxyProtocol: Direct}}]",
                "called 'controlplane' in v1beta1",
            ),
            ("egressSelections: [{name: nodes, connection: {proxyProtocol: Direct}}]", "is not one of"),
            (
                "egressSelections: [{name: etcd, connection: {proxyProtocol: Direct}}, {name: Etcd, connection: {proxyProtocol: Direct}}]",
                "duplicate selection",
            ),
        ];
        for (rest, expected) in all {
            let said = said(rest);
            assert!(
                said.len() == 1 && said[0].starts_with("ANP-01") && said[0].contains(expected),
                "{said:?}"
            );
        }
        let old = faults(&HEAD.replace("v1beta1", "v1alpha1"), Path::new("egress.yaml"));
        assert!(old[0].what.contains("apiVersion is apiserver.k8s.io/v1alpha1"), "{old:?}");
    }

    #[test]
    fn a_pair_that_does_not_go_is_anp_02() {
        let all = [
            (
                "{proxyProtocol: Direct, transport: {uds: {udsName: /run/s}}}",
                "Direct must not have a transport",
            ),
            ("{proxyProtocol: GRPC, transport: {tcp: {url: \"https://h:1\"}}}", "GRPC supports only uds"),
            ("{proxyProtocol: GRPC, transport: {uds: {}}}", "udsName is empty"),
            ("{proxyProtocol: HTTPConnect}", "either uds or tcp"),
            ("{proxyProtocol: HTTPConnect, transport: {tcp: {url: \"http://h:1\"}}}", "does not work"),
            ("{proxyProtocol: HTTPConnect, transport: {tcp: {url: \"https://h:1\"}}}", "needs a tlsConfig"),
            ("{proxyProtocol: HTTPConnect, transport: {tcp: {url: \"h:1\"}}}", "must begin with"),
            ("{proxyProtocol: SOCKS}", "is not one of Direct"),
            (
                "{proxyProtocol: HTTPConnect, transport: {tcp: {url: \"https://h:1\", tlsConfig: {clientCert: /etc/kubernetes/network-proxy/c.crt, clientKey: /k}}}}",
                "does not contain c.crt",
            ),
        ];
        for (connection, expected) in all {
            let said = of_cluster(connection);
            assert!(
                said.len() == 1 && said[0].starts_with("ANP-02") && said[0].contains(expected),
                "{said:?}"
            );
        }
    }
}
