//! The network security group of the subnet. Services share its rules: a rule admits the same clients to the
//! addresses of several load balancers. In the model, a rule and one of its destinations are an auxiliary object
//! that belongs to the load balancer with that address, and what its rules admit are the source ranges of that
//! load balancer.

use super::errors::{Arm, invalid, not_found};
use super::names::{LOCATION, NETWORK, SECURITY_GROUP, SUBNET, name_in, network_id, owner_in, same};
use super::query::{self, Precondition, query, tagged, with_body};
use super::{operations, public_ips};
use fake_cloud_driver::{Auxiliary, LoadBalancer, Op};
use fake_cloud_kit::{Answer, Call, Error, Plan, Request, planned};
use fake_cloud_model::{AuxSpec, Cloud, LbSpec, parse_cidr};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

const PROVIDER: &str = "Microsoft.Network";
/// The kind of security groups.
pub(super) const KIND: &str = "networkSecurityGroups";
/// The kind of a rule with one destination in the model.
const AUX: &str = "security-rule";

/// A rule with one of its destinations.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// The name of the auxiliary object.
    pub(super) name: String,
    /// The destination: an address, a range, or a tag of a service.
    pub(super) destination: String,
    /// The rule without its destinations.
    rule: Value,
    /// Whether the rule was written with a single destination, which is another field.
    single: bool,
}

impl Part {
    /// The parts of all rules in a body.
    pub(super) fn all(body: &Value) -> Result<Vec<Part>, Error> {
        let mut parts: Vec<Part> = Vec::new();
        let mut names = BTreeSet::new();
        for rule in body["properties"]["securityRules"].as_array().into_iter().flatten() {
            let name = rule["name"].as_str().unwrap_or_default();
            if name.is_empty() || !names.insert(name.to_ascii_lowercase()) {
                let why = format!("The security rule name '{name:.80}' is missing or used twice.");
                return Err(invalid("InvalidResourceName", why));
            }
            let mut properties = rule["properties"].clone();
            let Some(fields) = properties.as_object_mut() else {
                return Err(invalid(
                    "InvalidRequestFormat",
                    format!("The security rule {name:.80} is empty."),
                ));
            };
            fields.remove("provisioningState");
            let single = fields.remove("destinationAddressPrefix").filter(Value::is_string);
            let several = fields.remove("destinationAddressPrefixes").unwrap_or_default();
            fields.retain(|_, value| !value.is_null());
            let several = several.as_array().into_iter().flatten().filter_map(Value::as_str);
            let destinations: BTreeSet<&str> =
                single.as_ref().and_then(Value::as_str).into_iter().chain(several).collect();
            if destinations.is_empty() {
                let why = format!("The security rule {name:.80} has no destination.");
                return Err(invalid("SecurityRuleInvalidAddressPrefix", why));
            }
            parts.extend(destinations.into_iter().map(|destination| Part {
                name: format!("{name}/{destination}"),
                destination: destination.to_owned(),
                rule: json!({"name": name, "properties": properties.clone()}),
                single: single.is_some(),
            }));
        }
        Ok(parts)
    }

    fn of(aux: &Auxiliary) -> Option<Part> {
        (aux.kind == AUX).then(|| Part {
            name: aux.name.clone(),
            destination: aux.spec["destination"].as_str().unwrap_or_default().to_owned(),
            rule: aux.spec["rule"].clone(),
            single: aux.spec["single"] == true,
        })
    }

    fn spec(&self, front: Option<&LoadBalancer>, owner: String) -> AuxSpec {
        AuxSpec {
            name: self.name.clone(),
            owner,
            load_balancer: front.map(|front| front.id.clone()),
            spec: json!({"destination": self.destination, "rule": self.rule, "single": self.single}),
        }
    }

    fn rule_name(&self) -> &str {
        self.rule["name"].as_str().unwrap_or_default()
    }

    /// The clients that it admits; `None` if it admits no client.
    fn admits(&self) -> Option<Vec<&str>> {
        let properties = &self.rule["properties"];
        let is = |field: &str, word: &str| properties[field].as_str().is_some_and(|text| same(text, word));
        let single = properties["sourceAddressPrefix"].as_str().into_iter();
        let several =
            properties["sourceAddressPrefixes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        (is("access", "Allow") && is("direction", "Inbound")).then(|| single.chain(several).collect())
    }
}

/// The address of a frontend, also while it is being provisioned.
fn address_of(front: &LoadBalancer, cloud: &Cloud) -> Option<IpAddr> {
    let public = front.details["frontend"]["properties"]["publicIPAddress"]["id"].as_str();
    match public.and_then(|id| public_ips::find(cloud, name_in(id))) {
        Some(aux) => Some(public_ips::address_of(&aux)),
        None => front.addresses.iter().find_map(|address| address.ip),
    }
}

/// The frontend with this address.
fn front_at<'a>(destination: &str, fronts: &'a [LoadBalancer], cloud: &Cloud) -> Option<&'a LoadBalancer> {
    let wanted = destination.parse::<IpAddr>().ok()?;
    fronts.iter().find(|front| address_of(front, cloud) == Some(wanted))
}

/// The owner of a destination: that of its frontend or of its public address.
pub(super) fn owner_of(destination: &str, cloud: &mut Cloud, now: Duration) -> String {
    let fronts: Vec<LoadBalancer> = cloud.load_balancers(now).cloned().collect();
    if let Some(front) = front_at(destination, &fronts, cloud) {
        return front.owner.clone();
    }
    let wanted = destination.parse::<IpAddr>().ok();
    let mut addresses = cloud.auxiliaries().filter(|aux| aux.kind == public_ips::AUX);
    let address = addresses.find(|aux| wanted == Some(public_ips::address_of(aux)));
    address.map(|aux| owner_in(&aux.name).to_owned()).unwrap_or_default()
}

/// The ranges that these rules admit to a frontend: none means all.
fn ranges<'a>(parts: impl Iterator<Item = &'a Part>) -> Vec<String> {
    let mut ranges = BTreeSet::new();
    for client in parts.filter_map(Part::admits).flatten() {
        match client {
            "*" | "0.0.0.0/0" | "::/0" => return Vec::new(),
            client if same(client, "Internet") => return Vec::new(),
            client if parse_cidr(client).is_some() => {
                ranges.insert(client.to_owned());
            }
            client if client.parse::<IpAddr>().is_ok() => {
                let length = if client.contains(':') { 128 } else { 32 };
                ranges.insert(format!("{client}/{length}"));
            }
            // Tags of services, such as AzureLoadBalancer, are not ranges.
            _ => {}
        }
    }
    ranges.into_iter().collect()
}

fn parts(cloud: &Cloud) -> Vec<(Auxiliary, Part)> {
    cloud.auxiliaries().filter_map(|aux| Some((aux.clone(), Part::of(aux)?))).collect()
}

/// Makes the source ranges of these frontends those of their rules.
pub(super) fn apply(cloud: &mut Cloud, ids: &BTreeSet<String>, now: Duration) -> Result<(), Error> {
    let parts = parts(cloud);
    let fronts: Vec<LoadBalancer> = cloud.load_balancers(now).cloned().collect();
    for front in fronts.iter().filter(|front| ids.contains(&front.id)) {
        let address = address_of(front, cloud);
        let own = |part: &&(Auxiliary, Part)| address.is_some() && part.1.destination.parse().ok() == address;
        for (aux, part) in
            parts.iter().filter(own).filter(|(aux, _)| aux.load_balancer.as_ref() != Some(&front.id))
        {
            cloud.update_auxiliary(AUX, &aux.id, part.spec(Some(front), front.owner.clone()), now)?;
        }
        let source_ranges = ranges(parts.iter().filter(own).map(|(_, part)| part));
        if source_ranges != front.source_ranges {
            cloud.update_load_balancer(&front.id, now, move |spec| LbSpec { source_ranges, ..spec })?;
        }
    }
    Ok(())
}

pub(super) fn list(request: &Request) -> Plan {
    planned(&Arm, Call::new(Op::AuxRead), query(request), |_, query, cloud, now| {
        let shown = group(cloud, now);
        Ok(query::page(query, cloud.page_size(), std::iter::once(shown)))
    })
}

pub(super) fn get(request: &Request, name: &str) -> Plan {
    let name = name.to_owned();
    planned(&Arm, Call::new(Op::AuxRead), query(request), move |_, _, cloud, now| {
        known(&name)?;
        Ok(Answer::json(200, &group(cloud, now)))
    })
}

/// Replaces the rules.
pub(super) fn put(request: &Request, name: &str) -> Plan {
    let (name, guard, base) = (name.to_owned(), Precondition::of(&request.headers), query::base(request));
    let call = Call::new(Op::AuxUpdate);
    with_body(request, call, move |body, cloud, now| {
        known(&name)?;
        guard.check(Some(&group(cloud, now)), &network_id(KIND, SECURITY_GROUP))?;
        let wanted = Part::all(&body)?;
        let failure = cloud.take_action_failure();
        if failure.is_none() {
            replace(cloud, &wanted, now)?;
        }
        let answer = Answer::json(200, &group(cloud, now));
        Ok(operations::began(cloud, &base, KIND, answer, failure, (now, now)))
    })
}

fn replace(cloud: &mut Cloud, wanted: &[Part], now: Duration) -> Result<(), Error> {
    let difference = Difference::of(cloud, wanted);
    let fronts: Vec<LoadBalancer> = cloud.load_balancers(now).cloned().collect();
    let mut touched = BTreeSet::new();
    for (aux, part) in &difference.removed {
        cloud.delete_auxiliary(AUX, &aux.id)?;
        touched.extend(front_at(&part.destination, &fronts, cloud).map(|front| front.id.clone()));
    }
    for part in &difference.created {
        let owner = owner_of(&part.destination, cloud, now);
        let front = front_at(&part.destination, &fronts, cloud);
        cloud.create_auxiliary(AUX, "rule", part.spec(front, owner), now)?;
        touched.extend(front.map(|front| front.id.clone()));
    }
    for (id, part) in &difference.changed {
        let owner = owner_of(&part.destination, cloud, now);
        let front = front_at(&part.destination, &fronts, cloud);
        cloud.update_auxiliary(AUX, id, part.spec(front, owner), now)?;
        touched.extend(front.map(|front| front.id.clone()));
    }
    apply(cloud, &touched, now)
}

/// How a body changes the parts of rules.
pub(super) struct Difference {
    pub(super) created: Vec<Part>,
    /// With the id of the present one.
    pub(super) changed: Vec<(String, Part)>,
    pub(super) removed: Vec<(Auxiliary, Part)>,
}

impl Difference {
    pub(super) fn of(cloud: &Cloud, wanted: &[Part]) -> Difference {
        let present = parts(cloud);
        let mut difference = Difference { created: Vec::new(), changed: Vec::new(), removed: Vec::new() };
        for part in wanted {
            match present.iter().find(|(_, known)| same(&known.name, &part.name)) {
                None => difference.created.push(part.clone()),
                Some((_, known)) if known == part => {}
                Some((aux, _)) => difference.changed.push((aux.id.clone(), part.clone())),
            }
        }
        let gone = |known: &(Auxiliary, Part)| !wanted.iter().any(|part| same(&known.1.name, &part.name));
        difference.removed = present.into_iter().filter(gone).collect();
        difference
    }
}

fn known(name: &str) -> Result<(), Error> {
    if same(name, SECURITY_GROUP) { Ok(()) } else { Err(not_found(PROVIDER, KIND, name)) }
}

/// The shown form. A destination whose load balancer admits other clients than its rules, because the driver API has
/// changed it, is missing.
fn group(cloud: &mut Cloud, now: Duration) -> Value {
    let fronts: Vec<LoadBalancer> = cloud.load_balancers(now).cloned().collect();
    let parts: Vec<Part> = parts(cloud).into_iter().map(|(_, part)| part).collect();
    let deviates = |front: &&LoadBalancer| {
        let address = address_of(front, cloud);
        let own = parts.iter().filter(|part| address.is_some() && part.destination.parse().ok() == address);
        ranges(own) != front.source_ranges
    };
    let changed: BTreeSet<IpAddr> =
        fronts.iter().filter(deviates).filter_map(|front| address_of(front, cloud)).collect();
    let mut rules: BTreeMap<String, (Value, bool, Vec<String>)> = BTreeMap::new();
    for part in &parts {
        if part.destination.parse().is_ok_and(|address| changed.contains(&address)) {
            continue;
        }
        let entry = rules.entry(part.rule_name().to_owned());
        entry
            .or_insert_with(|| (part.rule.clone(), part.single, Vec::new()))
            .2
            .push(part.destination.clone());
    }
    let id = network_id(KIND, SECURITY_GROUP);
    let mut rules: Vec<Value> = rules
        .into_iter()
        .map(|(name, (mut rule, single, destinations))| {
            let properties = &mut rule["properties"];
            match destinations.as_slice() {
                [one] if single => properties["destinationAddressPrefix"] = json!(one),
                several => properties["destinationAddressPrefixes"] = json!(several),
            }
            properties["provisioningState"] = json!("Succeeded");
            rule["id"] = json!(format!("{id}/securityRules/{name}"));
            rule["type"] = json!("Microsoft.Network/networkSecurityGroups/securityRules");
            rule
        })
        .collect();
    rules.sort_by_key(|rule| rule["properties"]["priority"].as_u64());
    tagged(json!({
        "id": id, "name": SECURITY_GROUP, "location": LOCATION, "type": "Microsoft.Network/networkSecurityGroups",
        "properties": {"provisioningState": "Succeeded", "securityRules": rules, "defaultSecurityRules": [],
            "subnets": [{"id": format!("{}/subnets/{SUBNET}", network_id("virtualNetworks", NETWORK))}]},
    }))
}
