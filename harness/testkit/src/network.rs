//! A check's own addresses.

use harness_clouds::Address;

/// How many checks can run on a cluster before networks are used again.
const NETWORKS: u32 = 1 << 13;

/// Networks for the machines of one check: private IPv4 (RFC 1918, because some CCMs treat only those ranges as private;
/// different from the networks of Pods and Services), public IPv4 (RFC 6598, which is not routed), and IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network(u32);

impl Network {
    /// The networks with that number.
    pub(super) fn nth(number: u32) -> Network {
        Network(number % NETWORKS)
    }

    /// The number, less than 8192, that makes them distinct from those of other checks.
    pub(super) fn number(self) -> u32 {
        self.0
    }

    /// The address of these networks that replaces one of a documentation range (RFC 5737, RFC 3849), in the same
    /// spelling; any other text is unchanged.
    pub(super) fn address(self, written: &str) -> String {
        let (high, low) = (self.0 >> 8, self.0 & 0xFF);
        for (range, net, first) in [("192.0.2.", 10, 64), ("198.51.100.", 100, 96)] {
            if let Some(host) = written.strip_prefix(range) {
                return format!("{net}.{}.{low}.{host}", first + high);
            }
        }
        for (range, rest) in [("2001:db8::", "::"), ("2001:db8:0:", ":")] {
            if let Some(host) = written.strip_prefix(range) {
                return format!("2001:db8:{:x}{rest}{host}", self.0 + 1);
            }
        }
        written.to_owned()
    }

    /// A private and a public address for a machine of the check, counted from 0.
    pub(super) fn addresses(self, machine: u8) -> Vec<Address> {
        let host = 100 + u32::from(machine) % 100;
        let own = |kind: &str, range: &str| Address {
            kind: kind.to_owned(),
            address: self.address(&format!("{range}{host}")),
        };
        vec![own("InternalIP", "192.0.2."), own("ExternalIP", "198.51.100.")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::net::IpAddr;

    #[test]
    fn addresses_of_two_checks_differ_and_keep_their_spelling() {
        let (one, other) = (Network::nth(0x0102), Network::nth(0x0103));
        assert_eq!(one.address("192.0.2.10"), "10.65.2.10");
        assert_eq!(one.address("198.51.100.10"), "100.97.2.10");
        assert_eq!(one.address("2001:db8::a"), "2001:db8:103::a");
        assert_eq!(one.address("2001:db8:0:0:0:0:0:a"), "2001:db8:103:0:0:0:0:a");
        assert_eq!(one.address("cloud-n1"), "cloud-n1");
        let parsed = |text: &str| one.address(text).parse::<IpAddr>().expect("an address");
        assert_eq!(parsed("2001:db8::a"), parsed("2001:db8:0:0:0:0:0:a"));
        for written in ["192.0.2.10", "198.51.100.10", "2001:db8::a"] {
            assert_ne!(one.address(written), other.address(written));
        }
        assert_eq!(Network::nth(NETWORKS - 1).address("198.51.100.1"), "100.127.255.1");
        let of = |machine| one.addresses(machine).into_iter().map(|a| a.address).collect::<BTreeSet<_>>();
        assert!(of(0).is_disjoint(&of(1)) && of(0).is_disjoint(&BTreeSet::from([one.address("192.0.2.10")])));
    }
}
