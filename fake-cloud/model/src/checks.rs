//! Checks of names, ports, ranges and inventories.

use super::Refusal;
use fake_cloud_driver::{Inventory, ObjectKind};
use ipnet::IpNet;
use std::collections::BTreeSet;
use std::fmt::Display;

/// Longest name or owner.
const NAME_LIMIT_CHARS: usize = 255;
/// How many characters of a caller's text an error repeats.
const SHOWN_CHARS: usize = 80;

/// A caller's text for an error: truncated, and with control characters escaped.
pub(super) fn shown(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_unicode().to_string() } else { c.to_string() };
    let mut shown: String = text.chars().take(SHOWN_CHARS).map(escape).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push_str("...");
    }
    if shown.is_empty() { "\"\"".to_owned() } else { shown }
}

/// Checks a required name.
pub(super) fn check_name(name: &str) -> Result<(), Refusal> {
    if name.is_empty() {
        return Err(Refusal::Invalid("name must not be empty".to_owned()));
    }
    check_text("name", name)
}

/// Checks a name or an owner.
pub(super) fn check_text(field: &str, text: &str) -> Result<(), Refusal> {
    if text.chars().nth(NAME_LIMIT_CHARS).is_some() {
        return Err(Refusal::Invalid(format!("{field} is longer than {NAME_LIMIT_CHARS} characters")));
    }
    if text.chars().any(char::is_control) {
        return Err(Refusal::Invalid(format!("{field} holds a control character")));
    }
    Ok(())
}

/// Checks a port.
pub fn check_port(field: &str, port: u16) -> Result<(), Refusal> {
    if port == 0 { Err(Refusal::Invalid(format!("{field} must not be 0"))) } else { Ok(()) }
}

/// Checks the protocol of a port.
pub fn check_protocol(protocol: &str) -> Result<(), Refusal> {
    match protocol {
        "TCP" | "UDP" | "SCTP" => Ok(()),
        other => Err(Refusal::Invalid(format!("protocol {} is not TCP, UDP or SCTP", shown(other)))),
    }
}

/// Checks a list of client ranges.
pub fn check_source_ranges(ranges: &[String]) -> Result<(), Refusal> {
    match ranges.iter().find(|range| parse_cidr(range).is_none()) {
        None => Ok(()),
        Some(range) => Err(Refusal::Invalid(format!("source range {} is not a CIDR", shown(range)))),
    }
}

/// Parses a range `ADDRESS/LENGTH`; the address may have bits set that the prefix does not cover.
pub fn parse_cidr(text: &str) -> Option<IpNet> {
    text.parse().ok()
}

/// Whether no bit is set that the prefix does not cover.
pub(super) fn is_network(range: IpNet) -> bool {
    range == range.trunc()
}

/// Checks an id from the driver API: it has to fit in a path.
pub(super) fn check_id(kind: impl Display, id: &str) -> Result<(), Refusal> {
    match id {
        "" => Err(Refusal::Invalid(format!("{kind} without an id"))),
        "." | ".." => Err(Refusal::Invalid(format!("{kind} id {id} cannot stand in a path"))),
        _ => Ok(()),
    }
}

/// Checks ids that have to be unique.
pub(super) fn check_ids<'a>(kind: ObjectKind, ids: impl Iterator<Item = &'a str>) -> Result<(), Refusal> {
    let mut known = BTreeSet::new();
    for id in ids {
        check_id(kind, id)?;
        if !known.insert(id) {
            return Err(Refusal::Invalid(format!("{kind} {} is there twice", shown(id))));
        }
    }
    Ok(())
}

/// Checks that an inventory can be the content of the cloud.
pub(super) fn check_inventory(inventory: &Inventory) -> Result<(), Refusal> {
    check_ids(ObjectKind::Instance, inventory.instances.iter().map(|i| i.id.as_str()))?;
    check_ids(ObjectKind::LoadBalancer, inventory.load_balancers.iter().map(|lb| lb.id.as_str()))?;
    check_ids(ObjectKind::Auxiliary, inventory.auxiliaries.iter().map(|aux| aux.id.as_str()))?;
    check_ids(ObjectKind::Route, inventory.routes.iter().map(|route| route.id.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cidrs() {
        for good in ["0.0.0.0/0", "10.0.0.1/8", "192.0.2.0/24", "::/0", "2001:db8::/32", "2001:db8::1/128"] {
            assert!(parse_cidr(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "/",
            "10.0.0.0",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "::/129",
            "a/8",
            "10.0.0.0/8 ",
            "1/0008",
        ] {
            assert!(parse_cidr(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn networks_have_no_host_bits() {
        let check = |text: &str| is_network(parse_cidr(text).expect("a CIDR"));
        for network in ["0.0.0.0/0", "10.244.1.0/24", "10.0.0.1/32", "::/0", "2001:db8::/32", "::1/128"] {
            assert!(check(network), "{network}");
        }
        for host in ["10.244.1.1/24", "10.0.0.0/4", "2001:db8::1/64"] {
            assert!(!check(host), "{host}");
        }
    }

    #[test]
    fn shown_text_is_short_and_harmless() {
        assert_eq!(shown("lb-1"), "lb-1");
        assert_eq!(shown(""), "\"\"");
        assert_eq!(shown("a\nb"), "a\\u{a}b");
        assert_eq!(shown(&"ö".repeat(1000)).chars().count(), SHOWN_CHARS + 3);
    }
}
