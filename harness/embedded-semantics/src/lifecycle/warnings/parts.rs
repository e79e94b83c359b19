//! Checks for objects of several kinds.

use std::net::IpAddr;

use serde_json::Value;

use embedded_objects::rules::net;
use embedded_objects::value::PathAccess as _;

/// The fault in the form of the address at `path`, if any. Source: `k8s.io/apimachinery/pkg/util/validation/ip.go`.
pub(super) fn ip(path: &str, text: &str) -> Option<String> {
    let read = net::parse_ip(text)?;
    match text.parse::<IpAddr>() {
        Err(_) => Some(format!("{path}: non-standard IP address {text:?} is invalid: use \"{read}\"")),
        Ok(IpAddr::V6(six)) if six.to_ipv4_mapped().is_some() => {
            Some(format!("{path}: non-standard IP address {text:?} is invalid: use \"{read}\""))
        }
        Ok(IpAddr::V6(six)) if six.to_string() != text => {
            Some(format!("{path}: IPv6 address {text:?} should be in RFC 5952 canonical format (\"{six}\")"))
        }
        Ok(_) => None,
    }
}

/// All containers of a Pod's spec, each with its path.
pub(super) fn containers<'a>(spec: &'a Value, path: &str) -> Vec<(&'a Value, String)> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let of_list = |list: &'static str| {
        let items = spec.list(list).iter().enumerate();
        items.map(move |(at, container)| (container, format!("{path}.{list}[{at}]")))
    };
    lists.into_iter().flat_map(of_list).collect()
}
