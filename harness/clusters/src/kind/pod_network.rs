//! The harness's own pod network: one file per machine and static routes, so that it can be set up and removed at once.
//!
//! Each machine assigns addresses of its Node's pod CIDRs; machines reach each other's Pods by static routes.

use super::access::KindMachines;
use super::exec::{Stdin, exec_ok};
use crate::error::ClusterError;
use crate::operation::PodNetwork;
use crate::record::Machine;
use futures::future::try_join_all;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// Time limit for a change on one machine.
const LIMIT: Duration = Duration::from_secs(60);

impl KindMachines {
    pub(super) async fn set_pod_network(&self, wanted: &PodNetwork) -> Result<(), ClusterError> {
        let changes = self.machines.iter().map(|machine| async move {
            match wanted {
                PodNetwork::Absent => {
                    exec_ok(&self.engine, machine, &["sh", "-ec", ABSENT], Stdin::Empty, LIMIT).await
                }
                PodNetwork::Present(cidrs) => {
                    let own = cidrs.get(&machine.name).map(Vec::as_slice).unwrap_or_default();
                    if own.is_empty() {
                        return Err(ClusterError::NotObservable {
                            what: format!("a pod network on machine {}", machine.name),
                            why: "its Node has no pod CIDR; does the controller manager run with --allocate-node-cidrs?"
                                .to_owned(),
                        });
                    }
                    let portmap = self.kind.cni_plugins.contains("portmap");
                    let file = conflist(own, portmap.then_some(Plugin::Portmap), self.kind.mtu).to_string();
                    let script = present(&routes(&self.machines, machine, cidrs));
                    exec_ok(&self.engine, machine, &["sh", "-ec", &script], Stdin::Text(&file), LIMIT).await
                }
            }
        });
        try_join_all(changes).await.map(drop)
    }
}

/// Removes the file and all routes.
const ABSENT: &str = "
rm -f /etc/cni/net.d/10-ccm-conformance.conflist
ip -4 route flush proto 186
ip -6 route flush proto 186 2> /dev/null || true
";

/// Adds routes and the file. The file is renamed within its folder, so that containerd sees it complete.
fn present(routes: &str) -> String {
    format!(
        "{ABSENT}{routes}mkdir -p /etc/cni/net.d\ncat > /etc/cni/net.d/.ccm-conformance\n\
         mv /etc/cni/net.d/.ccm-conformance /etc/cni/net.d/10-ccm-conformance.conflist\n"
    )
}

/// Commands for the routes from one machine to the Pods of all others. The protocol number identifies them as ours.
fn routes(machines: &[Machine], from: &Machine, cidrs: &BTreeMap<String, Vec<String>>) -> String {
    let mut commands = String::new();
    for to in machines.iter().filter(|to| to.name != from.name) {
        for cidr in cidrs.get(&to.name).into_iter().flatten() {
            let via = if cidr.contains(':') {
                to.ipv6.map(|ip| ip.to_string())
            } else {
                to.ipv4.map(|ip| ip.to_string())
            };
            if let Some(via) = via {
                writeln!(commands, "ip route replace {cidr} via {via} proto 186")
                    .expect("writing to memory cannot fail");
            }
        }
    }
    commands
}

/// A plugin that some node images do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plugin {
    /// Implements `hostPort`.
    Portmap,
}

/// The configuration of a machine's pod network: <https://www.cni.dev/plugins/current/main/ptp/>.
fn conflist(cidrs: &[String], portmap: Option<Plugin>, mtu: u32) -> Value {
    let ranges: Vec<Value> = cidrs.iter().map(|cidr| json!([{ "subnet": cidr }])).collect();
    let everywhere = |cidr: &String| {
        if cidr.contains(':') { json!({ "dst": "::/0" }) } else { json!({ "dst": "0.0.0.0/0" }) }
    };
    let routes: Vec<Value> = cidrs.iter().map(everywhere).collect();
    let mut ptp = json!({
        "type": "ptp",
        "ipMasq": true,
        "ipam": { "type": "host-local", "dataDir": "/run/ccm-conformance-ipam", "ranges": ranges, "routes": routes },
    });
    if mtu > 0 {
        ptp["mtu"] = json!(mtu);
    }
    let mut plugins = vec![ptp];
    if let Some(Plugin::Portmap) = portmap {
        plugins.push(json!({ "type": "portmap", "capabilities": { "portMappings": true } }));
    }
    json!({ "cniVersion": "0.3.1", "name": "ccm-conformance", "plugins": plugins })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Role;

    fn machine(name: &str, last: u8) -> Machine {
        Machine {
            name: name.into(),
            role: Role::Worker,
            ipv4: Some([172, 18, 0, last].into()),
            ipv6: format!("fd00::{last}").parse().ok(),
            container_id: String::new(),
            reached_at: None,
        }
    }

    #[test]
    fn each_family_has_a_range_and_a_default_route() {
        let file = conflist(&["10.244.1.0/24".into(), "fd10::/64".into()], Some(Plugin::Portmap), 1450);
        let ptp = &file["plugins"][0];
        assert_eq!(
            ptp["ipam"]["ranges"],
            json!([[{ "subnet": "10.244.1.0/24" }], [{ "subnet": "fd10::/64" }]])
        );
        assert_eq!(ptp["ipam"]["routes"], json!([{ "dst": "0.0.0.0/0" }, { "dst": "::/0" }]));
        assert_eq!((&ptp["mtu"], &file["plugins"][1]["type"]), (&json!(1450), &json!("portmap")));
        let bare = conflist(&["10.244.1.0/24".into()], None, 0);
        assert_eq!(
            (bare["plugins"].as_array().map(Vec::len), &bare["plugins"][0]["mtu"]),
            (Some(1), &Value::Null)
        );
    }

    #[test]
    fn a_machine_has_routes_to_the_others_pods_and_none_to_its_own() {
        let machines = [machine("a", 2), machine("b", 3), machine("c", 4)];
        let cidrs = BTreeMap::from([
            ("a".to_owned(), vec!["10.244.0.0/24".to_owned()]),
            ("b".to_owned(), vec!["10.244.1.0/24".to_owned(), "fd10:1::/64".to_owned()]),
        ]);
        assert_eq!(
            routes(&machines, &machines[0], &cidrs),
            "ip route replace 10.244.1.0/24 via 172.18.0.3 proto 186\nip route replace fd10:1::/64 via fd00::3 proto 186\n"
        );
    }
}
