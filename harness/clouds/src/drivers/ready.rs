//! The line with which a started driver reports that it is ready.

use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The address in a line that reports readiness; `Some(None)` if it reports readiness without an address.
pub(super) fn ready_line(line: &str) -> Option<Option<String>> {
    let said: Value = serde_json::from_str(line.trim()).ok()?;
    (said["ready"] == true).then(|| said["driver"].as_str().map(str::to_owned))
}

/// The address that a driver on this machine reports: an IP address and a port, on loopback or on the address
/// that it was given. Other addresses are never called, because the program there would get the driver's
/// token.
pub(super) fn listens_at(said: &str, given: Ipv4Addr) -> Option<SocketAddr> {
    let address: SocketAddr = said.parse().ok()?;
    let ip = address.ip().to_canonical();
    (address.port() != 0 && (ip.is_loopback() || ip == IpAddr::V4(given))).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_or_the_assigned_address_is_probed() {
        let given = Ipv4Addr::new(172, 18, 0, 1);
        for fine in ["127.0.0.1:1", "172.18.0.1:65535", "[::1]:80", "127.9.0.1:5"] {
            assert_eq!(listens_at(fine, given).map(|at| at.to_string()).as_deref(), Some(fine));
        }
        for foreign in [
            "user:pw@host:1/x?y#",
            "user:pw@127.0.0.1:1",
            "127.0.0.1:1/x",
            "127.0.0.1:1#",
            " 127.0.0.1:1",
            "127.0.0.1",
            "127.0.0.1:0",
            "localhost:1",
            "example.org:80",
            "8.8.8.8:80",
            "0.0.0.0:80",
            "172.18.0.2:80",
            "[fd00::1]:80",
            "[::ffff:8.8.8.8]:80",
            "http://127.0.0.1:1",
            "",
        ] {
            assert_eq!(listens_at(foreign, given), None, "{foreign}");
        }
    }
}
