//! Requests to the API server that go through a proxy because of the environment (`net/http`, `ProxyFromEnvironment`).

use super::host::{Host, SERVICE, host_of, host_variable, is_loopback, port_variable};
use super::kubeconfig::{Kubeconfig, find as kubeconfig};
use crate::manifest::{Objects, Place};
use crate::workload::{Condition, Workload};
use ipnet::IpNet;
use std::net::IpAddr;

/// What a program depends on whose requests to the API server go through a proxy.
pub(super) fn of_api_server(objects: &Objects, workload: &Workload) -> Option<Condition> {
    let (proxy, place) = variable(workload, ["HTTPS_PROXY", "https_proxy"])?;
    let (exempt, _) =
        variable(workload, ["NO_PROXY", "no_proxy"]).unwrap_or_else(|| (String::new(), place.clone()));
    let (host, port) = api_server(objects, workload)?;
    let known = !proxy.contains('$') && !exempt.contains('$') && !host.contains('$');
    let words = format!(
        "the proxy {proxy} passes on requests to the API server at {host}, which NO_PROXY does not contain"
    );
    (known && !is_exempt(&exempt, &host, &port)).then_some(Condition { words, place })
}

/// The value of one of these variables, the first that is set.
fn variable(workload: &Workload, names: [&str; 2]) -> Option<(String, Place)> {
    let all =
        workload.containers.iter().filter(|container| !container.init).flat_map(|container| &container.env);
    let all: Vec<_> = all.collect();
    let set = |name: &str| {
        let found = all.iter().rev().find(|(own, value, _)| own == name && !value.is_empty());
        found.map(|(_, value, place)| (value.clone(), place.clone()))
    };
    names.into_iter().find_map(set)
}

/// Host and port at which it looks for the API server, if the manifests show them.
fn api_server(objects: &Objects, workload: &Workload) -> Option<(String, String)> {
    let of_url = |url: &str| {
        let port = url.trim_end_matches('/').rsplit_once(':').map_or("443", |(_, port)| port);
        let port = if port.parse::<u16>().is_ok() { port } else { "443" };
        Some((host_of(url).to_owned(), port.to_owned()))
    };
    let flag = |name: &str| workload.flag(name).filter(|(value, _)| !value.is_empty());
    if let Some((url, _)) = flag("master") {
        return of_url(&url);
    }
    if flag("kubeconfig").is_some() {
        return match kubeconfig(objects, workload)? {
            Kubeconfig::Text { server: Some(server), .. } => of_url(&server),
            _ => None,
        };
    }
    match host_variable(objects, workload) {
        Some((Host::Known(host), _)) => Some((host, port_variable(workload).unwrap_or("443").to_owned())),
        Some(_) => None,
        None => Some((SERVICE.to_owned(), "443".to_owned())),
    }
}

/// Whether a list of hosts, domains, addresses and networks exempts a host from its proxy.
fn is_exempt(list: &str, host: &str, port: &str) -> bool {
    let (host, address) = (host.to_ascii_lowercase(), host.parse::<IpAddr>().ok());
    let exempts = |entry: &str| {
        let entry = entry.trim().to_ascii_lowercase();
        // An address with more than one colon has no port.
        let with_port = |(name, port): &(&str, &str)| !name.contains(':') && port.parse::<u16>().is_ok();
        let (name, of_port) = entry.rsplit_once(':').filter(with_port).unwrap_or((entry.as_str(), port));
        if of_port != port {
            return false;
        }
        if let (Some(address), Ok(network)) = (address, name.parse::<IpNet>()) {
            return network.contains(&address);
        }
        let domain = name.trim_start_matches('*');
        let bare = domain.trim_start_matches('.');
        name == "*"
            || (!domain.starts_with('.') && host == name)
            || (!bare.is_empty() && host.strip_suffix(bare).is_some_and(|rest| rest.ends_with('.')))
    };
    is_loopback(&host) || list.split(',').any(exempts)
}

#[cfg(test)]
mod tests {
    use super::is_exempt;

    #[test]
    fn hosts_domains_addresses_and_networks_are_exempt() {
        for list in ["*", "10.96.0.1", "10.96.0.0/12", "localhost, 10.0.0.0/8", "10.96.0.1:443"] {
            assert!(is_exempt(list, "10.96.0.1", "443"), "{list}");
        }
        for list in
            ["", "10.96.*", "10.96.", ".svc,.cluster.local", "10.97.0.0/16", "10.96.0.10", "10.96.0.1:6443"]
        {
            assert!(!is_exempt(list, "10.96.0.1", "443"), "{list}");
        }
        for list in ["example.com", ".example.com", "*.example.com", "API.example.com"] {
            assert!(is_exempt(list, "api.example.com", "443"), "{list}");
        }
        assert!(
            !is_exempt(".example.com", "example.com", "443") && !is_exempt("ample.com", "example.com", "443")
        );
        assert!(is_exempt("", "localhost", "443") && is_exempt("", "127.0.0.1", "443"));
    }
}
