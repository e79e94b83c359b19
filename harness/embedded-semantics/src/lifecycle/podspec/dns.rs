//! Validation of how a Pod resolves names.
//!
//! Source: `validatePodDNSConfig` and `ValidateHostAliases` in `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use super::checks::faulty;
use embedded_objects::cause::Cause;
use embedded_objects::rules::names::{self, Faults};
use embedded_objects::rules::net;
use embedded_objects::value::PathAccess as _;

/// How many servers, and how many domains to search, there may be.
const SERVERS: usize = 3;
const SEARCHES: usize = 32;
/// How many bytes all domains to search may have, with a space between two of them.
const SEARCHES_LENGTH: usize = 2048;

/// Adds the causes for the DNS settings of a Pod spec at a path.
pub(super) fn config(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let config = spec.at("dnsConfig");
    let path = format!("{path}.dnsConfig");
    let servers = config.list("nameservers");
    if spec.text("dnsPolicy") == "None" {
        if config.is_null() {
            let why = "must provide `dnsConfig` when `dnsPolicy` is None";
            causes.push(Cause::required(path, why));
            return;
        }
        if servers.is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            causes.push(Cause::required(format!("{path}.nameservers"), why));
            return;
        }
    }
    if servers.len() > SERVERS {
        let why = format!("must not have more than {SERVERS} nameservers");
        causes.push(Cause::invalid(format!("{path}.nameservers"), servers.to_vec(), why));
    }
    for (at, server) in servers.iter().enumerate() {
        causes.extend(net::ip_causes(
            &format!("{path}.nameservers[{at}]"),
            server.as_str().unwrap_or_default(),
        ));
    }
    searches(config.list("searches"), &format!("{path}.searches"), causes);
    for (at, option) in config.list("options").iter().enumerate() {
        if option.text("name").is_empty() {
            causes.push(Cause::required(format!("{path}.options[{at}]"), "must not be empty"));
        }
    }
}

fn searches(domains: &[Value], path: &str, causes: &mut Vec<Cause>) {
    if domains.len() > SEARCHES {
        let why = format!("must not have more than {SEARCHES} search paths");
        causes.push(Cause::invalid(path, domains.to_vec(), why));
    }
    let texts: Vec<&str> = domains.iter().map(|domain| domain.as_str().unwrap_or_default()).collect();
    if texts.join(" ").len() > SEARCHES_LENGTH {
        let why = format!(
            "must not have more than {SEARCHES_LENGTH} characters (including spaces) in the search list"
        );
        causes.push(Cause::invalid(path, domains.to_vec(), why));
    }
    for (at, text) in texts.into_iter().enumerate().filter(|(_, text)| *text != ".") {
        let domain = text.strip_suffix('.').unwrap_or(text);
        faulty(causes, format!("{path}[{at}]"), domain, search_domain(domain));
    }
}

/// Checks a domain to search: labels may begin with an underscore.
fn search_domain(text: &str) -> Faults {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |label: &str| {
        let bytes = label.strip_prefix('_').unwrap_or(label).as_bytes();
        bytes.first().is_some_and(plain)
            && bytes.last().is_some_and(plain)
            && bytes.iter().all(|byte| plain(byte) || b"-_".contains(byte))
    };
    let mut faults = Faults::new();
    if text.len() > 253 {
        faults.push("must be no more than 253 characters".to_owned());
    }
    if !text.split('.').all(label) {
        let part = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
        let sentence = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character";
        faults.push(names::pattern(sentence, &format!("{part}(\\.{part})*"), &["example.com"]));
    }
    faults
}

/// Adds the causes for names that the Pod gives to addresses.
pub(super) fn aliases(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (at, alias) in spec.list("hostAliases").iter().enumerate() {
        let path = format!("{path}.hostAliases[{at}]");
        causes.extend(net::ip_causes(&format!("{path}.ip"), alias.text("ip")));
        for (index, name) in alias.list("hostnames").iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            faulty(causes, format!("{path}.hostnames[{index}]"), name, names::subdomain(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::says;
    use super::*;
    use serde_json::json;

    #[test]
    fn servers_are_few_addresses() {
        let of = |policy: &str, servers: &[&str]| json!({"dnsPolicy": policy, "dnsConfig": {"nameservers": servers}});
        says(config, of("None", &["1.1.1.1", "2.2.2.2", "fd00::3"]), &[]);
        says(
            config,
            of("Default", &["1.1.1.1", "2.2.2.2", "3.3.3.3", "dns"]),
            &[
                "spec.dnsConfig.nameservers: Invalid value: [\"1.1.1.1\",\"2.2.2.2\",\"3.3.3.3\",\"dns\"]: must not have \
             more than 3 nameservers",
                "spec.dnsConfig.nameservers[3]: Invalid value: \"dns\": must be a valid IP address, (e.g. 10.9.8.7 or \
             2001:db8::ffff)",
            ],
        );
        says(
            config,
            json!({"dnsPolicy": "None"}),
            &["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
        );
        says(
            config,
            of("None", &[]),
            &[
                "spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is \
             None",
            ],
        );
    }

    #[test]
    fn searches_and_options_have_names() {
        let of = |searches: Value, options: Value| json!({"dnsConfig": {"searches": searches, "options": options}});
        says(config, of(json!([".", "a.b.", "_tcp.a_b.c"]), json!([{"name": "ndots", "value": "5"}])), &[]);
        says(
            config,
            of(json!(["A"]), json!([{"value": "5"}])),
            &[
                "spec.dnsConfig.searches[0]: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower \
             case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character \
             (e.g. 'example.com', regex used for validation is \
             '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')",
                "spec.dnsConfig.options[0]: Required value: must not be empty",
            ],
        );
        says(config, of(json!(vec!["a"; 32]), json!([])), &[]);
        let mut causes = Vec::new();
        config(&of(json!(vec!["a".repeat(70); 33]), json!([])), "spec", &mut causes);
        let ends: Vec<&str> = causes.iter().filter_map(|cause| cause.message.rsplit(": ").next()).collect();
        assert_eq!(
            ends,
            [
                "must not have more than 32 search paths",
                "must not have more than 2048 characters (including spaces) in the search list",
            ]
        );
    }

    #[test]
    fn aliases_give_names_to_addresses() {
        let of = |ip: &str, name: &str| json!({"hostAliases": [{"ip": ip, "hostnames": [name]}]});
        says(aliases, of("172.18.0.2", "api.internal"), &[]);
        says(
            aliases,
            of("api", "API.internal"),
            &[
                "spec.hostAliases[0].ip: Invalid value: \"api\": must be a valid IP address, (e.g. 10.9.8.7 or \
             2001:db8::ffff)",
                "spec.hostAliases[0].hostnames[0]: Invalid value: \"API.internal\": a lowercase RFC 1123 subdomain must \
             consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric \
             character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ],
        );
    }
}
