//! Target pools: the instances of an external load balancer.
//!
//! As long as a forwarding rule leads to a pool, its instances are the backends of that load balancer, which the driver
//! API can change.

use super::balancing;
use super::errors::{in_use, invalid, not_found};
use super::instances::{INSTANCES, link_of, linked};
use super::names::{PROJECT, Scope, name_in, owner_in, short};
use super::operations::{self, Change};
use super::parts::{self, CHECK, CHECKS, POOL, POOLS, RULES, names, texts};
use super::query::writing;
use super::resources::{self, Kind};
use fake_cloud_driver::Op;
use fake_cloud_kit::{Call, Error, Plan, Request};
use fake_cloud_model::Cloud;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Target pools.
pub(super) struct TargetPools;

impl Kind for TargetPools {
    const COLLECTION: &'static str = POOLS;
    const KIND: &'static str = "compute#targetPool";
    const AUX: &'static str = POOL;
    /// `members` are the ids of the instances; no client sends them.
    const FIELDS: &'static [&'static str] =
        &["description", "instances", "healthChecks", "sessionAffinity", "members"];

    fn prepare(
        cloud: &mut Cloud,
        _scope: &Scope,
        mut fields: Value,
        _before: Option<&Value>,
        _now: Duration,
    ) -> Result<Value, Error> {
        let members = members_in(cloud, texts(&fields["instances"]))?;
        if let Some(missing) = names(&fields["healthChecks"])
            .find(|name| parts::find(cloud, CHECK, &Scope::Global, name).is_none())
        {
            return Err(not_found(&short(&Scope::Global, CHECKS, missing)));
        }
        let affinity = fields["sessionAffinity"].as_str().unwrap_or("NONE").to_owned();
        if !["NONE", "CLIENT_IP", "CLIENT_IP_PROTO"].contains(&affinity.as_str()) {
            return Err(invalid("resource.sessionAffinity", &affinity, "It is not a session affinity."));
        }
        fields["sessionAffinity"] = json!(affinity);
        fields["members"] = json!(members);
        if let Some(fields) = fields.as_object_mut() {
            fields.remove("instances");
        }
        Ok(fields)
    }

    fn complete(cloud: &mut Cloud, scope: &Scope, mut shown: Value, now: Duration) -> Value {
        let rule = balancing::rule_of(cloud, scope, shown["name"].as_str().unwrap_or_default(), now);
        if let Some(rule) = &rule {
            let by_client = rule.session_affinity == "ClientIP";
            let stored = shown["sessionAffinity"] != json!("NONE");
            if by_client != stored {
                shown["sessionAffinity"] = json!(if by_client { "CLIENT_IP" } else { "NONE" });
            }
        }
        let members =
            rule.map_or_else(|| texts(&shown["members"]).map(str::to_owned).collect(), |rule| rule.backends);
        let links = members.iter().filter_map(|id| cloud.instance(id).ok()).map(link_of);
        let links: Vec<String> = links.collect();
        if let Some(fields) = shown.as_object_mut() {
            fields.remove("members");
        }
        if !links.is_empty() {
            shown["instances"] = json!(links);
        }
        shown
    }

    fn check_unused(cloud: &mut Cloud, scope: &Scope, name: &str, now: Duration) -> Result<(), Error> {
        match balancing::rule_of(cloud, scope, name, now) {
            None => Ok(()),
            Some(rule) => Err(in_use(
                "target_pool",
                &short(scope, Self::COLLECTION, name),
                &short(scope, RULES, &rule.name),
            )),
        }
    }
}

/// The ids of the instances that links name.
fn members_in<'a>(cloud: &Cloud, links: impl Iterator<Item = &'a str>) -> Result<BTreeSet<String>, Error> {
    let member = |link: &str| match linked(cloud, link) {
        Some(instance) => Ok(instance.id.clone()),
        None => {
            let place = link.split_once("zones/").map_or(link, |(_, place)| place);
            let what = format!("projects/{PROJECT}/zones/{place}");
            Err(if link.contains(INSTANCES) {
                not_found(&what)
            } else {
                invalid("resource.instances[0].instance", link, "The URL is malformed.")
            })
        }
    };
    links.map(member).collect()
}

/// Adds instances to a pool, or removes them.
pub(super) fn change(request: &Request, scope: Scope, name: &str, joins: bool) -> Plan {
    let name = name.to_owned();
    let call = Call::on(Op::LbUpdate, &name).owned_by(owner_in(&name));
    writing(request, call, move |body, cloud, now| {
        let aux = resources::existing::<TargetPools>(cloud, &scope, &name)?;
        let links =
            body["instances"].as_array().into_iter().flatten().filter_map(|one| one["instance"].as_str());
        let rule = balancing::rule_of(cloud, &scope, &name, now);
        let stored = texts(&aux.spec["resource"]["members"]).map(str::to_owned).collect();
        let mut members: BTreeSet<String> =
            rule.as_ref().map_or(stored, |rule| rule.backends.iter().cloned().collect());
        if joins {
            members.extend(members_in(cloud, links)?);
        } else {
            // An instance that is gone has left the pool with its deletion.
            let gone: BTreeSet<&str> = links.map(name_in).collect();
            members
                .retain(|id| cloud.instance(id).is_ok_and(|instance| !gone.contains(instance.name.as_str())));
        }
        let failure = cloud.take_action_failure();
        if failure.is_none() {
            let mut fields = aux.spec["resource"].clone();
            fields["members"] = json!(members);
            resources::store::<TargetPools>(cloud, &scope, &aux, fields, now)?;
            if let Some(rule) = rule {
                balancing::set_backends(cloud, &rule, members, now)?;
            }
        }
        let verb = if joins { "AddInstance" } else { "RemoveInstance" };
        let change = Change::of(verb, &scope, TargetPools::COLLECTION, &name);
        Ok(operations::began(cloud, &change, failure, (now, now)))
    })
}
