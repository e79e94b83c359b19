//! The limits of what an API can show: which addresses of an instance, and whether a load balancer is being
//! deleted.

use super::types::Address;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// How many addresses of each sort an instance can have in a vendor's API, and what else the API shows. The
/// API leaves out everything else, so the harness cannot see whether the CCM would handle it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Shown {
    /// Private IPv4; absent: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal_v4: Option<u32>,
    /// Private IPv6; absent: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal_v6: Option<u32>,
    /// Public IPv4; absent: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_v4: Option<u32>,
    /// Public IPv6; absent: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_v6: Option<u32>,
    /// Host and DNS names in addition to the instance's own name; absent: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<u32>,
    /// Whether a load balancer that is being deleted is shown until it is gone.
    pub deletions: bool,
    /// Whether an answer that tells the caller to come back later says when (`Retry-After`).
    pub retry_after: bool,
    /// Whether it shows each instance's providerID, which may then be missing; otherwise it is made from the
    /// instance's id.
    pub provider_ids: bool,
    /// Whether a load balancer is shown before it has an address; otherwise the call that creates it is
    /// answered only then.
    pub provisioning: bool,
    /// Whether routes may overlap; otherwise no route can be created to a network that overlaps with that of
    /// another.
    pub nested_routes: bool,
    /// Whether several routes may lead to the same network, which then share its traffic; otherwise the second is
    /// refused.
    pub shared_routes: bool,
    /// Whether the name of an instance may have dots.
    pub dotted_names: bool,
    /// Whether a call may be accepted and its work fail later, as the API then reports.
    pub actions: bool,
    /// Whether the pages of a list have numbers, so that a deletion moves other items to pages that were perhaps read already.
    pub page_numbers: bool,
}

impl Default for Shown {
    fn default() -> Shown {
        Shown::PLAIN
    }
}

impl Shown {
    /// Everything is shown.
    pub const ALL: Shown = Shown {
        internal_v4: None,
        internal_v6: None,
        external_v4: None,
        external_v6: None,
        names: None,
        deletions: true,
        retry_after: true,
        provider_ids: true,
        provisioning: true,
        nested_routes: true,
        shared_routes: false,
        dotted_names: true,
        actions: true,
        page_numbers: true,
    };

    /// Any number of addresses, and the defaults for everything else.
    pub const PLAIN: Shown = Shown {
        deletions: false,
        retry_after: false,
        provider_ids: false,
        actions: false,
        page_numbers: false,
        ..Shown::ALL
    };

    /// The addresses of a machine that the API shows, in their order.
    pub fn part_of(&self, addresses: impl IntoIterator<Item = Address>) -> Vec<Address> {
        let mut part = Vec::new();
        for address in addresses {
            part.push(address);
            if self.lacks(&part).is_some() {
                part.pop();
            }
        }
        part
    }

    /// The first kind of address that exceeds what the API shows, as text; `None` if it shows them all.
    pub fn lacks(&self, addresses: &[Address]) -> Option<String> {
        let count = |wanted: fn(&str, Option<IpAddr>) -> bool| {
            addresses.iter().filter(|a| wanted(&a.kind, a.address.parse().ok())).count()
        };
        let sorts: [(&str, Option<u32>, usize); 5] = [
            ("private IPv4 addresses", self.internal_v4, count(|kind, ip| kind == INTERNAL && is_v4(ip))),
            ("private IPv6 addresses", self.internal_v6, count(|kind, ip| kind == INTERNAL && is_v6(ip))),
            ("public IPv4 addresses", self.external_v4, count(|kind, ip| kind == EXTERNAL && is_v4(ip))),
            ("public IPv6 addresses", self.external_v6, count(|kind, ip| kind == EXTERNAL && is_v6(ip))),
            ("names of their own", self.names, count(|kind, _| kind != INTERNAL && kind != EXTERNAL)),
        ];
        let (sort, most) = sorts.into_iter().find_map(|(sort, most, wanted)| {
            most.filter(|most| wanted > usize::try_from(*most).unwrap_or(usize::MAX)).map(|most| (sort, most))
        })?;
        Some(if most == 0 {
            format!("its instances have no {sort}")
        } else {
            format!("its instances have at most {most} {}", sort.replace("addresses", "address"))
        })
    }
}

const INTERNAL: &str = "InternalIP";
const EXTERNAL: &str = "ExternalIP";

fn is_v4(ip: Option<IpAddr>) -> bool {
    ip.is_some_and(|ip| ip.is_ipv4())
}

fn is_v6(ip: Option<IpAddr>) -> bool {
    ip.is_some_and(|ip| ip.is_ipv6())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exceeded_property_is_named() {
        let addresses = |list: &[(&str, &str)]| -> Vec<Address> {
            let address = |(kind, address): &(&str, &str)| Address {
                kind: (*kind).to_owned(),
                address: (*address).to_owned(),
            };
            list.iter().map(address).collect()
        };
        let droplet = Shown {
            internal_v4: Some(1),
            internal_v6: Some(0),
            external_v4: Some(1),
            external_v6: Some(1),
            names: Some(0),
            deletions: false,
            retry_after: true,
            provider_ids: false,
            nested_routes: true,
            shared_routes: false,
            dotted_names: true,
            provisioning: true,
            actions: false,
            page_numbers: true,
        };
        let usual =
            addresses(&[(INTERNAL, "192.0.2.10"), (EXTERNAL, "198.51.100.10"), (EXTERNAL, "2001:db8::1")]);
        assert_eq!(droplet.lacks(&usual), None);
        for (list, why) in [
            (&[(INTERNAL, "192.0.2.10"), (INTERNAL, "192.0.2.11")][..], "at most 1 private IPv4 address"),
            (&[(INTERNAL, "2001:db8::a")], "have no private IPv6 addresses"),
            (&[("Hostname", "n1")], "have no names of their own"),
        ] {
            let lack = droplet.lacks(&addresses(list)).expect("too much");
            assert!(lack.ends_with(why), "{lack}");
            assert_eq!(Shown::ALL.lacks(&addresses(list)), None);
        }
        // The addresses of a node of a kind cluster.
        let node =
            addresses(&[(INTERNAL, "192.0.2.10"), (INTERNAL, "2001:db8::a"), (EXTERNAL, "198.51.100.10")]);
        assert_eq!(
            droplet.part_of(node.clone()),
            addresses(&[(INTERNAL, "192.0.2.10"), (EXTERNAL, "198.51.100.10")])
        );
        assert_eq!(Shown::ALL.part_of(node.clone()), node);
    }
}
