//! Instances, which cannot be changed here.

use super::errors::{Google, forbidden, not_found};
use super::names::{
    CREATED, REGION, Scope, fingerprint, link, name_in, network_link, number, project_link, region_of, short,
    subnetwork_link,
};
use super::query::{self, query, reading};
use fake_cloud_driver::{Instance, InstanceState, Op};
use fake_cloud_kit::{Call, Plan, Request, planned};
use fake_cloud_model::Cloud;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The collection of instances.
pub(super) const INSTANCES: &str = "instances";

/// The zone of an instance; the first one of the region for one without a zone.
pub(super) fn zone_of(instance: &Instance) -> String {
    if instance.zone.is_empty() { format!("{REGION}-a") } else { instance.zone.clone() }
}

/// The instance with this name in a zone.
pub(super) fn find<'a>(cloud: &'a Cloud, zone: &str, name: &str) -> Option<&'a Instance> {
    cloud.instances_named(name).find(|instance| zone_of(instance) == zone)
}

/// The instance that a link names: `…/zones/ZONE/instances/NAME`.
pub(super) fn linked<'a>(cloud: &'a Cloud, link: &str) -> Option<&'a Instance> {
    let (_, place) = link.split_once("zones/")?;
    let (zone, _) = place.split_once('/')?;
    find(cloud, zone, name_in(link))
}

/// The link of an instance.
pub(super) fn link_of(instance: &Instance) -> String {
    link(&Scope::Zone(zone_of(instance)), INSTANCES, &instance.name)
}

pub(super) fn list(request: &Request, zone: &str) -> Plan {
    let name = zone.to_owned();
    let place = ("compute#instance", Scope::Zone(name.clone()), INSTANCES);
    query::listing(request, Call::new(Op::InstanceList), place, move |cloud, now| {
        let all = cloud.list_instances(now).into_iter();
        all.filter(|instance| zone_of(instance) == name).map(shown).collect()
    })
}

pub(super) fn get(request: &Request, zone: &str, name: &str) -> Plan {
    let (zone, name) = (zone.to_owned(), name.to_owned());
    reading(request, Call::on(Op::InstanceGet, &name), move |cloud, _| {
        let missing = || not_found(&short(&Scope::Zone(zone.clone()), INSTANCES, &name));
        find(cloud, &zone, &name).map(shown).ok_or_else(missing)
    })
}

/// A change of an instance, which the CCM's account may not make.
pub(super) fn refused(request: &Request, zone: &str, name: &str) -> Plan {
    let what = short(&Scope::Zone(zone.to_owned()), INSTANCES, name);
    planned(&Google, Call::on(Op::InstanceWrite, name), query(request), move |_, _, _, _| {
        Err(forbidden("compute.instances.update", &what))
    })
}

/// The first address of this type and family.
pub(super) fn address<A: std::str::FromStr>(instance: &Instance, kind: &str) -> Option<String> {
    let own = instance.addresses.iter().filter(|own| own.kind == kind);
    own.map(|own| own.address.clone()).find(|own| own.parse::<A>().is_ok())
}

fn shown(instance: &Instance) -> Value {
    let zone = zone_of(instance);
    let scope = Scope::Zone(zone.clone());
    let status = match instance.state {
        InstanceState::Running => "RUNNING",
        InstanceState::Stopped => "TERMINATED",
    };
    let interface = interface(instance, region_of(&zone));
    json!({
        "kind": "compute#instance",
        "id": number(&instance.name).to_string(),
        "name": instance.name,
        "creationTimestamp": CREATED,
        "zone": project_link(&format!("/zones/{zone}")),
        "status": status,
        "machineType": link(&scope, "machineTypes", &instance.instance_type),
        "canIpForward": true,
        "cpuPlatform": "Intel Broadwell",
        "tags": {"items": ["cluster-node"], "fingerprint": fingerprint("cluster-node")},
        "labels": instance.labels,
        "labelFingerprint": fingerprint(&json!(instance.labels).to_string()),
        "metadata": {"kind": "compute#metadata", "fingerprint": fingerprint("")},
        "networkInterfaces": [interface],
        "disks": [],
        "selfLink": link_of(instance),
    })
}

fn interface(instance: &Instance, region: &str) -> Value {
    let mut shown = json!({
        "kind": "compute#networkInterface",
        "name": "nic0",
        "network": network_link(),
        "subnetwork": subnetwork_link(region),
        "stackType": "IPV4_ONLY",
    });
    if let Some(ip) = address::<Ipv4Addr>(instance, "InternalIP") {
        shown["networkIP"] = json!(ip);
    }
    if let Some(ip) = address::<Ipv6Addr>(instance, "InternalIP") {
        shown["ipv6Address"] = json!(ip);
        shown["ipv6AccessType"] = json!("INTERNAL");
        shown["stackType"] = json!("IPV4_IPV6");
    }
    if let Some(ip) = address::<Ipv4Addr>(instance, "ExternalIP") {
        shown["accessConfigs"] = json!([{"kind": "compute#accessConfig", "type": "ONE_TO_ONE_NAT",
            "name": "external-nat", "natIP": ip, "networkTier": "PREMIUM"}]);
    }
    shown["fingerprint"] = json!(fingerprint(&shown.to_string()));
    shown
}
