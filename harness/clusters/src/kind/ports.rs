//! The port at which this machine reaches a cluster's API server.
//!
//! By default kind looks for a free port and releases it before Docker uses it, so that two clusters that are created at
//! the same time can get the same one. Here a process never chooses a port twice.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// All ports that this process has chosen. None is released: a machine that is switched off and on needs its port again.
static CHOSEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
/// How many free ports in a row may already have been chosen.
const TRIES: usize = 1000;

/// A free port of the loopback address that this process has not chosen before. Another program may still take it before
/// the cluster's container does; then Docker refuses, see [`is_taken`].
///
/// # Errors
/// There is no such loopback address, or it has no free port.
pub(super) fn choose(ipv6: bool) -> io::Result<u16> {
    let address: IpAddr = if ipv6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
    for _ in 0..TRIES {
        let port = TcpListener::bind((address, 0))?.local_addr()?.port();
        if CHOSEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port) {
            return Ok(port);
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, format!("{address} has no free port")))
}

/// Whether kind or Docker failed because another program had taken the port.
pub(super) fn is_taken(output: &str) -> bool {
    ["port is already allocated", "address already in use"].iter().any(|words| output.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_chosen_twice() {
        let ports: Vec<u16> = (0..200).map(|_| choose(false).expect("a free port")).collect();
        let different: BTreeSet<u16> = ports.iter().copied().collect();
        assert_eq!(different.len(), ports.len());
    }

    #[test]
    fn a_port_that_another_program_has_taken_is_recognised() {
        let docker = "driver failed programming external connectivity on endpoint x: Bind for 127.0.0.1:38391 failed: port is \
                      already allocated";
        let proxy =
            "Error starting userland proxy: listen tcp4 127.0.0.1:38391: bind: address already in use";
        assert!(is_taken(docker) && is_taken(proxy));
        assert!(!is_taken("failed to pull image"));
    }
}
