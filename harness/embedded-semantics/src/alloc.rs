//! The allocation of cluster IPs, node ports and health check node ports.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IP family of the cluster's service network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The name in a Service's ipFamilies.
    pub fn name(self) -> &'static str {
        match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }

    /// The family of an address.
    pub fn of(ip: IpAddr) -> Family {
        if ip.is_ipv4() { Family::V4 } else { Family::V6 }
    }
}

/// The reason why an address or port is not available, in the allocators' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The address is in use.
    #[error("provided IP is already allocated")]
    IpTaken,
    /// The address belongs to another network.
    #[error("the provided network does not match the current range")]
    OtherNetwork,
    /// No address or port is free.
    #[error("range is full")]
    Full,
    /// The port is in use.
    #[error("provided port is already allocated")]
    PortTaken,
}

/// One service network and the addresses that are in use.
#[derive(Clone, Debug)]
struct Range {
    family: Family,
    /// The network's own address, which is never allocated.
    base: u128,
    /// How many addresses after it can be allocated.
    size: u128,
    text: String,
    taken: BTreeSet<u128>,
    next: u128,
}

impl Range {
    fn parse(cidr: &str) -> Option<Range> {
        let (ip, bits) = cidr.split_once('/')?;
        let (ip, bits): (IpAddr, u32) = (ip.parse().ok()?, bits.parse().ok()?);
        let (value, width) = numeric(ip);
        let host_bits = width.checked_sub(bits).filter(|host_bits| *host_bits > 1)?;
        let span = 1u128.checked_shl(host_bits).unwrap_or(0);
        // The last address of an IPv4 network is its broadcast address.
        let size = span.wrapping_sub(if width == 32 { 2 } else { 1 });
        let base = value & !span.wrapping_sub(1);
        Some(Range {
            family: Family::of(ip),
            base,
            size,
            text: cidr.to_owned(),
            taken: BTreeSet::new(),
            next: 1,
        })
    }

    fn offset(&self, ip: IpAddr) -> Option<u128> {
        let offset = numeric(ip).0.checked_sub(self.base)?;
        (Family::of(ip) == self.family && (1..=self.size).contains(&offset)).then_some(offset)
    }

    fn take(&mut self, ip: IpAddr) -> Result<(), Refusal> {
        let offset = self.offset(ip).ok_or(Refusal::OtherNetwork)?;
        if self.taken.insert(offset) { Ok(()) } else { Err(Refusal::IpTaken) }
    }

    fn take_any(&mut self) -> Result<IpAddr, Refusal> {
        if u128::try_from(self.taken.len()).unwrap_or(u128::MAX) >= self.size {
            return Err(Refusal::Full);
        }
        let mut offset = self.next;
        while !self.taken.insert(offset) {
            offset = offset % self.size + 1;
        }
        self.next = offset % self.size + 1;
        let value = self.base + offset;
        Ok(match self.family {
            Family::V4 => IpAddr::V4(Ipv4Addr::from(u32::try_from(value).unwrap_or(u32::MAX))),
            Family::V6 => IpAddr::V6(Ipv6Addr::from(value)),
        })
    }
}

fn numeric(ip: IpAddr) -> (u128, u32) {
    match ip {
        IpAddr::V4(ip) => (u128::from(u32::from(ip)), 32),
        IpAddr::V6(ip) => (u128::from(ip), 128),
    }
}

/// An address or port that one write has allocated or will release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Ip(IpAddr),
    Port(u16),
}

/// The addresses and ports of one cluster.
///
/// A write begins with [`Allocator::begin`], allocates and releases, and ends with [`Allocator::commit`] or
/// [`Allocator::rollback`]. What it releases is free only after the commit; what it has allocated is free
/// after a rollback.
#[derive(Clone, Debug)]
pub struct Allocator {
    ranges: Vec<Range>,
    ports: BTreeSet<u16>,
    first_port: u16,
    last_port: u16,
    next_port: u16,
    taken_now: Vec<Held>,
    released_later: Vec<Held>,
}

impl Allocator {
    /// An allocator over one service network, or two of different families, the default one first.
    ///
    /// # Errors
    /// The network that is not valid.
    pub fn new(networks: &[&str]) -> Result<Allocator, String> {
        let ranges: Vec<Range> = networks
            .iter()
            .map(|cidr| {
                Range::parse(cidr).ok_or_else(|| format!("{cidr:?} is not a network such as 10.96.0.0/16"))
            })
            .collect::<Result<_, _>>()?;
        match ranges.as_slice() {
            [_] => {}
            [one, two] if one.family != two.family => {}
            _ => return Err("a cluster has one service network, or two of different families".to_owned()),
        }
        Ok(Allocator {
            ranges,
            ports: BTreeSet::new(),
            first_port: 30_000,
            last_port: 32_767,
            next_port: 30_000,
            taken_now: Vec::new(),
            released_later: Vec::new(),
        })
    }

    /// The cluster's families, the default one first.
    pub fn families(&self) -> Vec<Family> {
        self.ranges.iter().map(|range| range.family).collect()
    }

    /// The network of a family, as text.
    pub fn network(&self, family: Family) -> Option<&str> {
        self.ranges.iter().find(|range| range.family == family).map(|range| range.text.as_str())
    }

    /// The range of node ports, as text.
    pub fn port_range(&self) -> String {
        format!("{}-{}", self.first_port, self.last_port)
    }

    /// Whether a port is in the range of node ports.
    pub fn is_node_port(&self, port: i64) -> bool {
        (i64::from(self.first_port)..=i64::from(self.last_port)).contains(&port)
    }

    /// Begins a write.
    pub fn begin(&mut self) {
        self.taken_now.clear();
        self.released_later.clear();
    }

    /// Ends a write that was stored.
    pub fn commit(&mut self) {
        self.taken_now.clear();
        for held in std::mem::take(&mut self.released_later) {
            self.free(held);
        }
    }

    /// Ends a write that was not stored.
    pub fn rollback(&mut self) {
        self.released_later.clear();
        for held in std::mem::take(&mut self.taken_now) {
            self.free(held);
        }
    }

    fn free(&mut self, held: Held) {
        match held {
            Held::Ip(ip) => {
                for range in &mut self.ranges {
                    if let Some(offset) = range.offset(ip) {
                        range.taken.remove(&offset);
                    }
                }
            }
            Held::Port(port) => {
                self.ports.remove(&port);
            }
        }
    }

    /// Allocates this address.
    ///
    /// # Errors
    /// When it is in use or belongs to another network.
    pub fn take_ip(&mut self, ip: IpAddr) -> Result<(), Refusal> {
        let family = Family::of(ip);
        let range = self.ranges.iter_mut().find(|range| range.family == family);
        range.ok_or(Refusal::OtherNetwork)?.take(ip)?;
        self.taken_now.push(Held::Ip(ip));
        Ok(())
    }

    /// Allocates any free address of a family.
    ///
    /// # Errors
    /// When none is left.
    pub fn take_any_ip(&mut self, family: Family) -> Result<IpAddr, Refusal> {
        let range = self.ranges.iter_mut().find(|range| range.family == family);
        let ip = range.ok_or(Refusal::OtherNetwork)?.take_any()?;
        self.taken_now.push(Held::Ip(ip));
        Ok(ip)
    }

    /// Releases an address at the commit.
    pub fn release_ip(&mut self, ip: IpAddr) {
        self.released_later.push(Held::Ip(ip));
    }

    /// Allocates a node port.
    ///
    /// # Errors
    /// When it is in use. The caller checks whether it is in the range.
    pub fn take_port(&mut self, port: u16) -> Result<(), Refusal> {
        if !self.ports.insert(port) {
            return Err(Refusal::PortTaken);
        }
        self.taken_now.push(Held::Port(port));
        Ok(())
    }

    /// Allocates any free node port.
    ///
    /// # Errors
    /// When none is left.
    pub fn take_any_port(&mut self) -> Result<u16, Refusal> {
        let count = usize::from(self.last_port - self.first_port) + 1;
        for _ in 0..count {
            let port = self.next_port;
            self.next_port = if port == self.last_port { self.first_port } else { port + 1 };
            if self.ports.insert(port) {
                self.taken_now.push(Held::Port(port));
                return Ok(port);
            }
        }
        Err(Refusal::Full)
    }

    /// Releases a node port at the commit.
    pub fn release_port(&mut self, port: u16) {
        self.released_later.push(Held::Port(port));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_and_given_back() {
        let mut allocator = Allocator::new(&["10.96.0.0/30", "fd00::/112"]).expect("right networks");
        let first = allocator.take_any_ip(Family::V4).expect("two are free");
        assert_eq!(first.to_string(), "10.96.0.1");
        assert_eq!(allocator.take_ip(first), Err(Refusal::IpTaken));
        assert_eq!(allocator.take_any_ip(Family::V4).map(|ip| ip.to_string()), Ok("10.96.0.2".to_owned()));
        assert_eq!(allocator.take_any_ip(Family::V4), Err(Refusal::Full));
        allocator.release_ip(first);
        assert_eq!(allocator.take_any_ip(Family::V4), Err(Refusal::Full), "it is free after the commit only");
        allocator.commit();
        assert_eq!(allocator.take_any_ip(Family::V4), Ok(first));
        let other: IpAddr = "1.2.3.4".parse().expect("an address");
        assert_eq!(allocator.take_ip(other), Err(Refusal::OtherNetwork));
        assert_eq!(allocator.take_any_ip(Family::V6).map(|ip| ip.to_string()), Ok("fd00::1".to_owned()));
    }

    #[test]
    fn ports_are_taken_once() {
        let mut allocator = Allocator::new(&["10.96.0.0/16"]).expect("a right network");
        assert_eq!(allocator.take_any_port(), Ok(30_000));
        assert_eq!(allocator.take_port(30_000), Err(Refusal::PortTaken));
        allocator.rollback();
        assert_eq!(allocator.take_port(30_000), Ok(()));
        assert_eq!(allocator.port_range(), "30000-32767");
        assert!(Allocator::new(&["x"]).is_err());
        assert!(Allocator::new(&["10.0.0.0/8", "11.0.0.0/8"]).is_err());
    }
}
