//! Droplets: the model's instances. Only an instance with a number as its id can be a droplet.

use super::places::{DEFAULT_VPC, Region, Size};
use super::tags::Tags;
use fake_cloud_driver::InstanceIds;
use fake_cloud_driver::{Instance, InstanceState};
use fake_cloud_kit::{Text, TextMap};
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A droplet.
#[derive(Serialize)]
struct Droplet<'a> {
    id: u64,
    name: &'a str,
    memory: u32,
    vcpus: u32,
    disk: u32,
    locked: bool,
    status: &'static str,
    kernel: Option<()>,
    created_at: &'a str,
    features: [&'static str; 1],
    backup_ids: [u64; 0],
    next_backup_window: Option<()>,
    snapshot_ids: [u64; 0],
    image: Image,
    volume_ids: [&'static str; 0],
    size: Size<'a>,
    size_slug: &'a str,
    networks: Networks<'a>,
    region: Region<'a>,
    tags: &'a [&'a str],
    vpc_uuid: &'static str,
}

/// The image of a droplet. Callers only need it to exist.
#[derive(Serialize)]
struct Image {
    id: u64,
    name: &'static str,
    distribution: &'static str,
    slug: &'static str,
    public: bool,
    regions: [&'static str; 0],
    created_at: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    min_disk_size: u32,
    size_gigabytes: f32,
    description: &'static str,
    tags: [&'static str; 0],
    status: &'static str,
    error_message: &'static str,
}

const IMAGE: Image = Image {
    id: 63_663_980,
    name: "12 x64",
    distribution: "Debian",
    slug: "debian-12-x64",
    public: true,
    regions: [],
    created_at: "2025-01-02T03:04:05Z",
    kind: "base",
    min_disk_size: 7,
    size_gigabytes: 0.5,
    description: "",
    tags: [],
    status: "available",
    error_message: "",
};

#[derive(Serialize)]
struct Networks<'a> {
    v4: Vec<Network<'a, Ipv4Addr>>,
    v6: Vec<Network<'a, u8>>,
}

/// One address of a droplet. The netmask is an address for IPv4 and a prefix length for IPv6.
#[derive(Serialize)]
struct Network<'a, M> {
    ip_address: &'a str,
    netmask: M,
    gateway: IpAddr,
    #[serde(rename = "type")]
    kind: &'static str,
}

/// The droplet's number, if the instance is a droplet.
pub(super) fn number(instance: &Instance) -> Option<u64> {
    id(&instance.id)
}

/// Parses a droplet's id: digits without anything before them.
pub(super) fn id(text: &str) -> Option<u64> {
    if InstanceIds::Number.allow(text) { text.parse().ok() } else { None }
}

/// The JSON of an instance, if it is a droplet. Droplets are as old as the cloud.
pub(super) fn text(
    texts: &mut TextMap<Instance>,
    instance: &Instance,
    created_at: &str,
    tags: &Tags,
) -> Option<Text> {
    let id = number(instance)?;
    let tags = tags.of("droplet", &instance.id);
    Some(texts.text(&instance.id, instance, &tags, || Droplet::of(id, instance, created_at, &tags)))
}

impl<'a> Droplet<'a> {
    fn of(id: u64, instance: &'a Instance, created_at: &'a str, tags: &'a [&'a str]) -> Droplet<'a> {
        let size = Size::of(&instance.instance_type);
        Droplet {
            id,
            name: &instance.name,
            memory: size.memory,
            vcpus: size.vcpus,
            disk: size.disk,
            locked: false,
            status: match instance.state {
                InstanceState::Running => "active",
                InstanceState::Stopped => "off",
            },
            kernel: None,
            created_at,
            features: ["private_networking"],
            backup_ids: [],
            next_backup_window: None,
            snapshot_ids: [],
            image: IMAGE,
            volume_ids: [],
            size,
            size_slug: &instance.instance_type,
            networks: networks(instance),
            region: Region::of(&instance.region),
            tags,
            vpc_uuid: DEFAULT_VPC,
        }
    }
}

/// The networks: internal addresses are private, external ones public. Names and private IPv6 addresses are
/// left out, because a droplet cannot have them.
fn networks(instance: &Instance) -> Networks<'_> {
    let mut networks = Networks { v4: Vec::new(), v6: Vec::new() };
    for address in &instance.addresses {
        let private = match address.kind.as_str() {
            "InternalIP" => true,
            "ExternalIP" => false,
            _ => continue,
        };
        let ip_address = &address.address;
        match address.address.parse() {
            Ok(IpAddr::V4(ip)) => {
                let [a, b, c, _] = ip.octets();
                let (netmask, gateway, kind) = if private {
                    (Ipv4Addr::new(255, 255, 0, 0), Ipv4Addr::new(a, b, 0, 1), "private")
                } else {
                    (Ipv4Addr::new(255, 255, 255, 0), Ipv4Addr::new(a, b, c, 1), "public")
                };
                networks.v4.push(Network { ip_address, netmask, gateway: gateway.into(), kind });
            }
            Ok(IpAddr::V6(ip)) if !private => {
                let [a, b, c, d, ..] = ip.segments();
                let gateway = Ipv6Addr::new(a, b, c, d, 0, 0, 0, 1).into();
                networks.v6.push(Network { ip_address, netmask: 64, gateway, kind: "public" });
            }
            Ok(IpAddr::V6(_)) | Err(_) => {}
        }
    }
    networks
}

#[cfg(test)]
mod tests {
    use super::*;
    use fake_cloud_driver::Address;
    use fake_cloud_kit::Texts;
    use std::collections::BTreeMap;

    fn instance(id: &str, addresses: &[(&str, &str)]) -> Instance {
        let address = |(kind, address): &(&str, &str)| Address {
            kind: (*kind).to_owned(),
            address: (*address).to_owned(),
        };
        Instance {
            id: id.to_owned(),
            name: "node-1".to_owned(),
            provider_id: None,
            instance_type: String::new(),
            zone: String::new(),
            region: String::new(),
            addresses: addresses.iter().map(address).collect(),
            labels: BTreeMap::new(),
            state: InstanceState::Stopped,
        }
    }

    #[test]
    fn addresses_become_networks() {
        let addresses = [
            ("Hostname", "node-1"),
            ("InternalIP", "10.1.2.3"),
            ("InternalIP", "fd00::3"),
            ("ExternalIP", "198.51.100.9"),
            ("ExternalIP", "2001:db8:1:2:3::4"),
            ("ExternalIP", "no address"),
            ("InternalDNS", "node-1.internal"),
        ];
        let instance = instance("7", &addresses);
        let networks = serde_json::to_value(networks(&instance)).expect("JSON");
        let expected = serde_json::json!({
            "v4": [
                {"ip_address": "10.1.2.3", "netmask": "255.255.0.0", "gateway": "10.1.0.1", "type": "private"},
                {"ip_address": "198.51.100.9", "netmask": "255.255.255.0", "gateway": "198.51.100.1", "type": "public"},
            ],
            "v6": [{"ip_address": "2001:db8:1:2:3::4", "netmask": 64, "gateway": "2001:db8:1:2::1", "type": "public"}],
        });
        assert_eq!(networks, expected);
    }

    #[test]
    fn a_droplet_has_every_field_whatever_the_instance_says() {
        let (tags, texts) = (Tags::default(), Texts::default());
        let stopped = instance("7", &[]);
        let shown = text(&mut texts.open(), &stopped, "2026-01-02T03:04:05Z", &tags).expect("a droplet");
        let shown = serde_json::to_value(shown).expect("JSON");
        assert_eq!((&shown["id"], &shown["status"]), (&7.into(), &"off".into()));
        assert_eq!((&shown["kernel"], &shown["region"]["slug"]), (&serde_json::Value::Null, &"".into()));
        assert!(text(&mut texts.open(), &instance("i-7", &[]), "", &tags).is_none());
    }
}
