//! Addresses and networks in older fields of the API. Forms that only older parsers accepted are
//! distinguished from texts that are not an address.
//!
//! Source: `k8s.io/apimachinery/pkg/util/validation/ip.go` with the strict checks on, as in Kubernetes 1.36.

use std::net::{IpAddr, Ipv4Addr};

use crate::cause::Cause;

/// Parses an address; the parts of an IPv4 address may have leading zeros.
pub fn parse_ip(text: &str) -> Option<IpAddr> {
    if let Ok(ip) = text.parse() {
        return Some(match ip {
            IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(ip, IpAddr::V4),
            v4 => v4,
        });
    }
    let parts: Vec<&str> = text.split('.').collect();
    let [a, b, c, d] = parts.as_slice() else { return None };
    let part = |text: &str| {
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if plain { text.parse::<u8>().ok() } else { None }
    };
    Some(IpAddr::V4(Ipv4Addr::new(part(a)?, part(b)?, part(c)?, part(d)?)))
}

/// Parses a network such as `10.0.0.0/8`: its address and the length of its prefix in bits.
pub fn parse_cidr(text: &str) -> Option<(IpAddr, u8)> {
    let (ip, bits) = text.split_once('/')?;
    let ip = parse_ip(ip)?;
    let plain = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    let bits: u8 = if plain { bits.parse().ok()? } else { return None };
    let most = if text.contains(':') { 128 } else { 32 };
    (bits <= most).then_some((ip, bits))
}

/// The causes for a text that is not an address, or that parsers interpret in different ways.
pub fn ip_causes(path: &str, text: &str) -> Vec<Cause> {
    if parse_ip(text).is_none() {
        let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        return vec![Cause::invalid(path, text, why)];
    }
    match text.parse() {
        Err(_) => vec![Cause::invalid(path, text, "must not have leading 0s")],
        Ok(IpAddr::V6(ip)) if ip.to_ipv4_mapped().is_some() => {
            vec![Cause::invalid(path, text, "must not be an IPv4-mapped IPv6 address")]
        }
        Ok(_) => Vec::new(),
    }
}

/// The causes for a text that is not a network, or that parsers interpret in different ways.
pub fn cidr_causes(path: &str, text: &str) -> Vec<Cause> {
    let Some((_, bits)) = parse_cidr(text) else {
        let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        return vec![Cause::invalid(path, text, why)];
    };
    let (ip, prefix) = text.split_once('/').unwrap_or((text, ""));
    let why = match ip.parse::<IpAddr>() {
        Ok(_) if prefix.len() > 1 && prefix.starts_with('0') => {
            "must not have leading 0s in IP or prefix length"
        }
        Err(_) => "must not have leading 0s in IP or prefix length",
        Ok(IpAddr::V6(ip)) if ip.to_ipv4_mapped().is_some() => "must not have an IPv4-mapped IPv6 address",
        Ok(IpAddr::V4(ip)) if u32::from(ip).checked_shl(bits.into()).unwrap_or(0) != 0 => {
            "must not have bits set beyond the prefix length"
        }
        Ok(IpAddr::V6(ip)) if u128::from(ip).checked_shl(bits.into()).unwrap_or(0) != 0 => {
            "must not have bits set beyond the prefix length"
        }
        Ok(_) => return Vec::new(),
    };
    vec![Cause::invalid(path, text, why)]
}

/// The causes for an address that an endpoint cannot have.
pub fn endpoint_ip_causes(path: &str, text: &str) -> Vec<Cause> {
    let Some(ip) = parse_ip(text) else {
        return vec![Cause::invalid(path, text, "must be a valid IP address")];
    };
    let mut causes = Vec::new();
    if ip.is_unspecified() {
        causes.push(Cause::invalid(path, text, format!("may not be unspecified ({text})")));
    }
    if ip.is_loopback() {
        causes.push(Cause::invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"));
    }
    let (link_local, multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    if link_local {
        causes.push(Cause::invalid(
            path,
            text,
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
        ));
    }
    if multicast {
        causes.push(Cause::invalid(
            path,
            text,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        ));
    }
    causes
}

/// The message about an invalid port number; `None` for a valid one.
pub fn port_fault(port: i64) -> Option<&'static str> {
    (!(1..=65535).contains(&port)).then_some("must be between 1 and 65535, inclusive")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks_are_read_loosely() {
        assert_eq!(parse_ip("010.0.0.1"), parse_ip("10.0.0.1"));
        assert_eq!(parse_ip("::ffff:10.0.0.1"), parse_ip("10.0.0.1"));
        assert_eq!(parse_ip("10.0.0"), None);
        assert_eq!(parse_ip("10.0.0.+1"), None);
        assert!(parse_cidr("10.0.0.0/8").is_some());
        assert_eq!(parse_cidr("10.0.0.0/33"), None);
        assert_eq!(parse_cidr("10.0.0.0"), None);
        assert!(parse_cidr("fd00::/64").is_some());
    }

    #[test]
    fn forms_that_readers_disagree_about_are_refused() {
        assert!(ip_causes("f", "010.0.0.1")[0].message.ends_with("must not have leading 0s"));
        assert!(ip_causes("f", "::ffff:1.2.3.4")[0].message.ends_with("IPv4-mapped IPv6 address"));
        assert!(ip_causes("f", "x")[0].message.contains("must be a valid IP address"));
        assert!(cidr_causes("f", "10.0.0.1/8")[0].message.ends_with("beyond the prefix length"));
        assert_eq!(cidr_causes("f", "0.0.0.0/0"), Vec::new());
        assert_eq!(cidr_causes("f", "10.0.0.1/32"), Vec::new());
    }

    #[test]
    fn endpoints_have_no_special_addresses() {
        assert!(endpoint_ip_causes("f", "127.0.0.1")[0].message.contains("loopback"));
        assert!(endpoint_ip_causes("f", "169.254.0.1")[0].message.contains("link-local range"));
        assert!(endpoint_ip_causes("f", "0.0.0.0")[0].message.contains("unspecified"));
        assert_eq!(endpoint_ip_causes("f", "10.0.0.1"), Vec::new());
        assert_eq!(port_fault(0), Some("must be between 1 and 65535, inclusive"));
    }
}
