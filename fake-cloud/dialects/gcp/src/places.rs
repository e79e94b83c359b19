//! What is always there: the project, regions, zones, machine types, the network and its subnetworks.

use super::errors::{Google, invalid, not_found};
use super::names::{
    CREATED, NETWORK, PROJECT, PROJECT_NUMBER, REGION, SUBNETWORK, SUBNETWORK_RANGE, Scope, ZONES, link,
    network_link, number, project_link, region_of, short, subnetwork_link,
};
use super::query::{self, query, reading};
use fake_cloud_driver::Op;
use fake_cloud_kit::{Answer, Call, Error, Plan, Request, planned};
use fake_cloud_model::Cloud;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn project(request: &Request) -> Plan {
    reading(request, Call::new(Op::Other), |_, _| {
        Ok(json!({
            "kind": "compute#project", "id": PROJECT_NUMBER, "name": PROJECT, "creationTimestamp": CREATED,
            "defaultServiceAccount": format!("{PROJECT_NUMBER}-compute@developer.gserviceaccount.com"),
            "defaultNetworkTier": "PREMIUM", "xpnProjectStatus": "UNSPECIFIED_XPN_PROJECT_STATUS",
            "selfLink": project_link(""), "quotas": [],
        }))
    })
}

/// Whether there is such a region, as far as its name tells.
pub(super) fn check_region(name: &str) -> Result<(), Error> {
    let known = name.contains('-') && name.ends_with(|last: char| last.is_ascii_digit());
    if known { Ok(()) } else { Err(invalid("region", name, "Unknown region.")) }
}

/// Whether there is such a zone, as far as its name tells.
pub(super) fn check_zone(name: &str) -> Result<(), Error> {
    let known = name.rsplit_once('-').is_some_and(|(region, zone)| {
        check_region(region).is_ok()
            && zone.len() == 1
            && zone.starts_with(|first: char| first.is_ascii_lowercase())
    });
    if known { Ok(()) } else { Err(invalid("zone", name, "Unknown zone.")) }
}

/// The zones of the cloud's own region, and those of its machines.
fn zone_names(cloud: &Cloud) -> BTreeSet<String> {
    let own = ZONES.iter().map(|zone| format!("{REGION}-{zone}"));
    own.chain(cloud.instances().map(super::instances::zone_of)).collect()
}

pub(super) fn zones(request: &Request) -> Plan {
    named_list(request, "compute#zone", "/zones", |cloud| {
        zone_names(cloud).iter().map(|name| zone_shown(name)).collect()
    })
}

pub(super) fn zone(request: &Request, name: &str) -> Plan {
    let name = name.to_owned();
    reading(request, Call::new(Op::Other), move |cloud, _| match zone_names(cloud).contains(&name) {
        true => Ok(zone_shown(&name)),
        false => Err(not_found(&format!("projects/{PROJECT}/zones/{name}"))),
    })
}

fn zone_shown(name: &str) -> Value {
    json!({
        "kind": "compute#zone", "id": number(name).to_string(), "name": name, "description": name, "status": "UP",
        "creationTimestamp": CREATED, "region": project_link(&format!("/regions/{}", region_of(name))),
        "selfLink": project_link(&format!("/zones/{name}")),
    })
}

pub(super) fn regions(request: &Request) -> Plan {
    named_list(request, "compute#region", "/regions", |cloud| {
        let zones = zone_names(cloud);
        let names: BTreeSet<&str> = zones.iter().map(|zone| region_of(zone)).collect();
        names.into_iter().map(|name| region_shown(name, &zones)).collect()
    })
}

pub(super) fn region(request: &Request, name: &str) -> Plan {
    let name = name.to_owned();
    reading(request, Call::new(Op::Other), move |cloud, _| {
        let zones = zone_names(cloud);
        match zones.iter().any(|zone| region_of(zone) == name) {
            true => Ok(region_shown(&name, &zones)),
            false => Err(not_found(&format!("projects/{PROJECT}/regions/{name}"))),
        }
    })
}

fn region_shown(name: &str, zones: &BTreeSet<String>) -> Value {
    let own = zones.iter().filter(|zone| region_of(zone) == name);
    let own: Vec<String> = own.map(|zone| project_link(&format!("/zones/{zone}"))).collect();
    json!({
        "kind": "compute#region", "id": number(name).to_string(), "name": name, "description": name, "status": "UP",
        "creationTimestamp": CREATED, "zones": own, "quotas": [], "selfLink": project_link(&format!("/regions/{name}")),
    })
}

/// A list of what is directly in the project.
fn named_list(
    request: &Request,
    kind: &'static str,
    place: &'static str,
    all: impl FnOnce(&Cloud) -> Vec<Value> + Send + 'static,
) -> Plan {
    planned(&Google, Call::new(Op::Other), query(request), move |_, query, cloud, _| {
        let found = all(cloud).into_iter().filter(|item| query.besides.fits(item));
        let page = query::page(query, cloud.page_size(), found);
        let header = json!({"kind": format!("{kind}List"), "id": format!("projects/{PROJECT}{place}"),
            "selfLink": project_link(place)});
        Ok(Answer::json(200, &query::merged(header, page)))
    })
}

pub(super) fn machine_type(request: &Request, zone: &str, name: &str) -> Plan {
    let (scope, name) = (Scope::Zone(zone.to_owned()), name.to_owned());
    reading(request, Call::new(Op::Other), move |_, _| {
        Ok(json!({
            "kind": "compute#machineType", "id": number(&name).to_string(), "name": name, "creationTimestamp": CREATED,
            "guestCpus": 2, "memoryMb": 7680, "isSharedCpu": false, "zone": scope.path().replace("zones/", ""),
            "selfLink": link(&scope, "machineTypes", &name),
        }))
    })
}

pub(super) fn networks(request: &Request) -> Plan {
    let place = ("compute#network", Scope::Global, "networks");
    query::listing(request, Call::new(Op::Other), place, |_, _| vec![network_shown()])
}

pub(super) fn network(request: &Request, name: &str) -> Plan {
    let name = name.to_owned();
    reading(request, Call::new(Op::Other), move |_, _| match name == NETWORK {
        true => Ok(network_shown()),
        false => Err(not_found(&short(&Scope::Global, "networks", &name))),
    })
}

fn network_shown() -> Value {
    json!({
        "kind": "compute#network", "id": number(NETWORK).to_string(), "name": NETWORK, "creationTimestamp": CREATED,
        "description": "Default network for the project", "autoCreateSubnetworks": true,
        "subnetworks": [subnetwork_link(REGION)], "routingConfig": {"routingMode": "REGIONAL"},
        "selfLink": network_link(),
    })
}

pub(super) fn subnetworks(request: &Request, region: &str) -> Plan {
    let (name, place) =
        (region.to_owned(), ("compute#subnetwork", Scope::Region(region.to_owned()), "subnetworks"));
    query::listing(request, Call::new(Op::Other), place, move |_, _| vec![subnetwork_shown(&name)])
}

pub(super) fn subnetwork(request: &Request, region: &str, name: &str) -> Plan {
    let (region, name) = (region.to_owned(), name.to_owned());
    reading(request, Call::new(Op::Other), move |_, _| match name == SUBNETWORK {
        true => Ok(subnetwork_shown(&region)),
        false => Err(not_found(&short(&Scope::Region(region), "subnetworks", &name))),
    })
}

fn subnetwork_shown(region: &str) -> Value {
    json!({
        "kind": "compute#subnetwork", "id": number(region).to_string(), "name": SUBNETWORK,
        "creationTimestamp": CREATED, "network": network_link(), "ipCidrRange": SUBNETWORK_RANGE,
        "gatewayAddress": "10.128.0.1", "region": project_link(&format!("/regions/{region}")),
        "privateIpGoogleAccess": false, "purpose": "PRIVATE", "stackType": "IPV4_ONLY",
        "selfLink": subnetwork_link(region),
    })
}
