//! The URLs at which a CCM may look for its cloud.

use crate::manifest::Place;
use crate::workload::{Container, Workload};

/// Parts of the names of variables and flags whose URLs a boot does not need: those of telemetry, logs and reports.
const NEEDLESS: [&str; 19] = [
    "alert",
    "audit",
    "collector",
    "datadog",
    "fluent",
    "grafana",
    "jaeger",
    "logging",
    "loki",
    "metric",
    "newrelic",
    "otel",
    "otlp",
    "prometheus",
    "sentry",
    "statsd",
    "syslog",
    "trac",
    "zipkin",
];

/// Flags with the address of the API server.
const OF_API_SERVER: [&str; 4] =
    ["master", "kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"];

/// Values of variables and flags of the CCM's container that may contain the address of its cloud.
pub(crate) fn cloud_texts(workload: &Workload) -> Vec<(String, Place)> {
    let main = || workload.containers.iter().filter(|container| !container.init);
    let runs_it = |container: &Container| {
        ["cloud-provider", "leader-elect"].iter().any(|flag| container.flag(flag).is_some())
    };
    let named = main().any(runs_it);
    let of_container = |container: &Container| {
        let variables = container.env.iter().cloned();
        variables.chain(container.values()).collect::<Vec<_>>()
    };
    let containers = main().filter(|container| !named || runs_it(container));
    let all = containers.flat_map(of_container).filter(|(name, ..)| !is_needless(name));
    all.map(|(_, value, place)| (value, place)).collect()
}

fn is_needless(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NEEDLESS.iter().any(|part| name.contains(part))
        || name.starts_with("kubernetes_service")
        || OF_API_SERVER.contains(&name.as_str())
}

/// The hosts of all URLs in a text.
pub(crate) fn hosts_in(text: &str) -> Vec<String> {
    let mut hosts = Vec::new();
    for part in text.split("://").skip(1) {
        let end = part.find(|c: char| matches!(c, '/' | '"' | '\'' | ',' | '?' | '#') || c.is_whitespace());
        let authority = &part[..end.unwrap_or(part.len())];
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host = match host.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        if !host.is_empty() && !host.contains(['$', '{', '(']) {
            hosts.push(host.to_owned());
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::hosts_in;

    #[test]
    fn hosts_of_urls() {
        assert_eq!(hosts_in("--url=https://api.example.com:443/v1"), ["api.example.com"]);
        assert_eq!(hosts_in("auth-url: \"http://172.18.0.1:5000/v3\""), ["172.18.0.1"]);
        assert_eq!(hosts_in("https://[fd00::1]:8080"), ["fd00::1"]);
        assert!(hosts_in("no url, ${CLOUD_ENDPOINT}, https://${HOST}/").is_empty());
    }
}
