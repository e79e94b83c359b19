//! Forwarding rules of a region, each a load balancer of the model.

use super::balancing;
use super::errors::{exists, invalid, not_found, required};
use super::names::{CREATED, Scope, fingerprint, name_in, number, owner_in, project_link, short};
use super::operations::{self, Change};
use super::parts::{ADDRESS, POOL, POOLS, RULES, link_of, ports, reserved};
use super::query::{self, merged, reading, writing};
use super::resources::{self, check_name, kept, name_of, unknown_field};
use super::target_pools::TargetPools;
use fake_cloud_driver::{Auxiliary, LbState, LoadBalancer, Op};
use fake_cloud_kit::{Call, Error, Plan, Request};
use fake_cloud_model::{Cloud, Dependents, Families, LbSpec};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::time::Duration;

const FIELDS: &[&str] = &[
    "description",
    "IPAddress",
    "IPProtocol",
    "portRange",
    "target",
    "loadBalancingScheme",
    "networkTier",
    "labels",
    "ipVersion",
];

fn is_at(rule: &LoadBalancer, region: &str) -> bool {
    let own = rule.details["region"].as_str();
    rule.state != LbState::Deleting && own.unwrap_or(super::names::REGION) == region
}

fn find(cloud: &mut Cloud, region: &str, name: &str, now: Duration) -> Option<LoadBalancer> {
    cloud.load_balancers(now).find(|rule| rule.name == name && is_at(rule, region)).cloned()
}

pub(super) fn list(request: &Request, region: &str) -> Plan {
    let region = region.to_owned();
    let scope = Scope::Region(region.clone());
    let place = ("compute#forwardingRule", scope.clone(), RULES);
    query::listing(request, Call::new(Op::LbList), place, move |cloud, now| {
        let all = cloud.list_load_balancers(now).into_iter().filter(|rule| is_at(rule, &region));
        let all: Vec<LoadBalancer> = all.cloned().collect();
        all.iter().map(|rule| shown(cloud, &scope, rule)).collect()
    })
}

pub(super) fn get(request: &Request, region: &str, name: &str) -> Plan {
    let (region, name) = (region.to_owned(), name.to_owned());
    let call = Call::on(Op::LbGet, &name).owned_by(owner_in(&name));
    reading(request, call, move |cloud, now| {
        let scope = Scope::Region(region.clone());
        match find(cloud, &region, &name, now) {
            Some(rule) => Ok(shown(cloud, &scope, &rule)),
            None => Err(not_found(&short(&scope, RULES, &name))),
        }
    })
}

pub(super) fn insert(request: &Request, region: &str) -> Plan {
    let (region, name) = (region.to_owned(), name_of(request));
    let call = Call::new(Op::LbCreate).keyed("name", &name).owned_by(owner_in(&name));
    let plan = writing(request, call, move |body, cloud, now| {
        let scope = Scope::Region(region.clone());
        check_name(&name)?;
        if find(cloud, &region, &name, now).is_some() {
            return Err(exists(&short(&scope, RULES, &name)));
        }
        let mut rule = prepared(kept(&body, FIELDS))?;
        let pool = target(cloud, &scope, &rule)?;
        let address = address(cloud, &scope, &rule, now)?;
        rule["IPAddress"] = json!(address);
        let failure = cloud.take_action_failure();
        let (mut until, mut made) = (now, None);
        if failure.is_none() {
            let (backends, health_check, session_affinity) = balancing::pooled(cloud, &scope, &pool);
            let spec = LbSpec {
                name: name.clone(),
                owner: owner_in(&name).to_owned(),
                frontends: balancing::frontends(cloud, &rule),
                source_ranges: balancing::sources(cloud, &rule),
                backends,
                health_check,
                session_affinity,
                details: json!({"region": region, "pool": pool, "rule": rule}),
            };
            let id = cloud.create_load_balancer(spec, Families::At(address), now)?.id.clone();
            let parts = parts(cloud, &name, &pool);
            resources::attach(cloud, parts, Some(&id), now)?;
            made = Some(id);
            until = cloud.provisioned_at(now);
        }
        let answer =
            operations::began(cloud, &Change::of("insert", &scope, RULES, &name), failure, (now, until));
        Ok(made.iter().fold(answer, |answer, id| answer.creating(id)))
    });
    plan.with_unknown(unknown_field(request, FIELDS))
}

pub(super) fn delete(request: &Request, region: &str, name: &str) -> Plan {
    let (region, name) = (region.to_owned(), name.to_owned());
    let call = Call::on(Op::LbDelete, &name).owned_by(owner_in(&name));
    writing(request, call, move |_, cloud, now| {
        let scope = Scope::Region(region.clone());
        let Some(rule) = find(cloud, &region, &name, now) else {
            return Err(not_found(&short(&scope, RULES, &name)));
        };
        let failure = cloud.take_action_failure();
        let mut until = now;
        if failure.is_none() {
            keep_members(cloud, &scope, &rule, now)?;
            let parts = cloud.auxiliaries().filter(|aux| aux.load_balancer.as_ref() == Some(&rule.id));
            let parts = parts.cloned().collect();
            resources::attach(cloud, parts, None, now)?;
            cloud.delete_load_balancer(&rule.id, Dependents::Keep, now)?;
            until = cloud.deleted_at(now);
        }
        Ok(operations::began(cloud, &Change::of("delete", &scope, RULES, &name), failure, (now, until)))
    })
}

/// What belongs to a forwarding rule: its pool, and firewalls and health checks of the same owner. An address does not: it
/// can be there before and after.
fn parts(cloud: &Cloud, rule: &str, pool: &str) -> Vec<Auxiliary> {
    let owner = owner_in(rule);
    let own = |aux: &&Auxiliary| match aux.kind.as_str() {
        ADDRESS => false,
        POOL if aux.name == pool => true,
        _ => !owner.is_empty() && aux.owner == owner,
    };
    cloud.auxiliaries().filter(own).cloned().collect()
}

/// The instances of a pool stay when the forwarding rule goes that leads to it.
fn keep_members(cloud: &mut Cloud, scope: &Scope, rule: &LoadBalancer, now: Duration) -> Result<(), Error> {
    let pool = rule.details["pool"].as_str().unwrap_or_default();
    let Some(aux) = resources::find::<TargetPools>(cloud, scope, pool) else { return Ok(()) };
    let mut fields = aux.spec["resource"].clone();
    fields["members"] = json!(rule.backends);
    resources::store::<TargetPools>(cloud, scope, &aux, fields, now)
}

/// The fields of a request with their defaults.
fn prepared(mut rule: Value) -> Result<Value, Error> {
    let defaults = [("IPProtocol", "TCP"), ("loadBalancingScheme", "EXTERNAL"), ("networkTier", "PREMIUM")];
    for (field, value) in defaults {
        if rule[field].is_null() {
            rule[field] = json!(value);
        }
    }
    let text = |field: &str| rule[field].as_str().unwrap_or_default().to_owned();
    let protocol = text("IPProtocol");
    if !["TCP", "UDP"].contains(&protocol.as_str()) {
        return Err(invalid("resource.IPProtocol", &protocol, "The fake cloud forwards TCP and UDP only."));
    }
    let scheme = text("loadBalancingScheme");
    if scheme != "EXTERNAL" {
        let why = "The fake cloud has external load balancers only.";
        return Err(invalid("resource.loadBalancingScheme", &scheme, why));
    }
    let range = text("portRange");
    let range = if range.is_empty() { "1-65535".to_owned() } else { range };
    let Some(ports) = ports(&range) else {
        return Err(invalid("resource.portRange", &range, "Must be a port or a range of ports."));
    };
    rule["portRange"] = json!(format!("{}-{}", ports.start(), ports.end()));
    Ok(rule)
}

/// The name of the target pool that a rule leads to.
fn target(cloud: &Cloud, scope: &Scope, rule: &Value) -> Result<String, Error> {
    let link = rule["target"].as_str().ok_or_else(|| required("resource.target"))?;
    if !link.contains(POOLS) {
        return Err(invalid("resource.target", link, "The fake cloud forwards to target pools only."));
    }
    resources::existing::<TargetPools>(cloud, scope, name_in(link)).map(|aux| aux.name)
}

/// The address of a rule: a reserved one, or a free one.
fn address(cloud: &mut Cloud, scope: &Scope, rule: &Value, now: Duration) -> Result<IpAddr, Error> {
    let reserved = reserved(cloud);
    let Some(text) = rule["IPAddress"].as_str() else { return Ok(cloud.free_address(reserved, now)?) };
    let field = "resource.IPAddress";
    let address: IpAddr = text.parse().map_err(|_| invalid(field, text, "Invalid IP address."))?;
    if balancing::at(cloud, text, now).is_some() {
        let why = "Specified IP address is in-use and would result in a conflict.";
        return Err(invalid(field, text, why));
    }
    if !reserved.contains(&address) {
        let why = format!("The specified external IP address was not found in {}.", scope.path());
        return Err(invalid(field, text, &why));
    }
    Ok(address)
}

/// The shown form of a forwarding rule. The driver API can change its ports, which then are those of its range.
fn shown(cloud: &Cloud, scope: &Scope, rule: &LoadBalancer) -> Value {
    let mut shown = json!({
        "kind": "compute#forwardingRule",
        "id": number(&format!("{} {}", rule.id, rule.name)).to_string(),
        "name": rule.name,
        "creationTimestamp": CREATED,
        "IPProtocol": "TCP",
        "loadBalancingScheme": "EXTERNAL",
        "networkTier": "PREMIUM",
        "selfLink": link_of(scope, &rule.name),
    });
    let stored = &rule.details["rule"];
    if stored.is_object() {
        shown = merged(shown, stored.clone());
    }
    if let Scope::Region(region) = scope {
        shown["region"] = json!(project_link(&format!("/regions/{region}")));
    }
    if let Some(address) = balancing::address_of(rule) {
        shown["IPAddress"] = json!(address);
    }
    if !stored.is_object() || balancing::frontends(cloud, stored) != rule.frontends {
        let ports = rule.frontends.iter().map(|frontend| frontend.port);
        if let (Some(first), Some(last)) = (ports.clone().min(), ports.max()) {
            shown["portRange"] = json!(format!("{first}-{last}"));
        }
        if let Some(frontend) = rule.frontends.first() {
            shown["IPProtocol"] = json!(frontend.protocol);
        }
    }
    shown["fingerprint"] = json!(fingerprint(&shown.to_string()));
    shown
}
