//! Calls about load balancers as a whole: look-up, creation, renaming, deletion.

use super::calls::{
    IdOrName, Now, ShownAction, act, check_labels, check_name, planned, planned_with, show_action,
};
use super::catalog::{BALANCER_TYPES, LOCATIONS};
use super::clock::Clock;
use super::details::{Details, Draft, OWNER_LABEL};
use super::errors;
use super::lb_services::NewService;
use super::lb_targets::NewTarget;
use super::lb_wire::{Shown, label, show};
use super::networks::{NETWORK_ID, free_address};
use super::query;
use super::shown::Shown as Texts;
use fake_cloud_driver::{LoadBalancer, Op};
use fake_cloud_kit::{Answer, Body, Call, Error, Plan, Request};
use fake_cloud_model::{Cloud, Dependents, Families, LbSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Serialize)]
struct Created {
    load_balancer: Shown,
    action: ShownAction,
}

/// The load balancer with this id.
pub(super) fn get(cloud: &mut Cloud, id: &str, now: Now) -> Result<LoadBalancer, Error> {
    find(cloud, id, now).cloned()
}

fn find<'a>(cloud: &'a mut Cloud, id: &str, now: Now) -> Result<&'a LoadBalancer, Error> {
    cloud.load_balancer(id, now.time).map_err(|_| errors::not_found("load_balancer", id))
}

/// Updates a load balancer with the result of `change`.
pub(super) fn update(
    cloud: &mut Cloud,
    id: &str,
    now: Now,
    change: impl FnOnce(&mut Draft, &mut Cloud) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut draft = Draft::of(&get(cloud, id, now)?);
    change(&mut draft, cloud)?;
    let spec = draft.finish()?;
    cloud.update_load_balancer(id, now.time, |_| spec)?;
    Ok(())
}

pub(super) fn list(clock: Clock, texts: &Arc<Texts>, request: &Request) -> Plan {
    let texts = texts.clone();
    let query = query::list(request, &["name", "label_selector"], &["id", "name", "created"]);
    let mut call = Call::new(Op::LbList);
    for (key, value) in query.filters() {
        call = call.keyed(key, value);
    }
    if let Some(owner) = query.besides.wanted_label(OWNER_LABEL) {
        call = call.owned_by(owner);
    }
    planned(clock, call, query, move |query, cloud, now| {
        let limit = cloud.page_size();
        // Most look-ups use the owner: comparing it first avoids parsing the labels of all others.
        let owner = query.besides.wanted_label(OWNER_LABEL);
        let fits = |lb: &&LoadBalancer| {
            owner.is_none_or(|owner| lb.owner == owner)
                && query.fits("name", &lb.name)
                && query.besides.selects(|key| label(lb, key))
        };
        let found: Vec<&LoadBalancer> =
            cloud.list_load_balancers(now.time).into_iter().filter(fits).collect();
        let value = |lb: &&LoadBalancer, key: &str| match key {
            "name" => lb.name.clone(),
            "created" => Details::of(lb).created,
            _ => lb.id.clone(),
        };
        let mut texts = texts.load_balancers.open();
        Ok(query::page(query, "load_balancers", limit, found, value, |lb| {
            texts.text(&lb.id, lb, &[], || show(lb, now))
        }))
    })
}

pub(super) fn read(clock: Clock, texts: &Arc<Texts>, request: &Request, id: &str) -> Plan {
    let (texts, id) = (texts.clone(), id.to_owned());
    planned(clock, Call::on(Op::LbGet, &id), query::none(request), move |_, cloud, now| {
        let lb = find(cloud, &id, now)?;
        let load_balancer = texts.load_balancers.open().text(&id, lb, &[], || show(lb, now));
        Ok(Answer::one(200, "load_balancer", &load_balancer))
    })
}

/// The body of a request that creates a load balancer.
#[derive(Deserialize)]
struct New {
    #[serde(default)]
    name: String,
    load_balancer_type: Option<IdOrName>,
    location: Option<IdOrName>,
    network_zone: Option<String>,
    algorithm: Option<Algorithm>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    public_interface: Option<bool>,
    network: Option<u64>,
    #[serde(default)]
    services: Vec<NewService>,
    #[serde(default)]
    targets: Vec<NewTarget>,
}

/// The algorithm that chooses targets.
#[derive(Deserialize)]
pub(super) struct Algorithm {
    #[serde(rename = "type")]
    pub(super) kind: String,
}

/// Checks the algorithm that chooses targets.
pub(super) fn check_algorithm(kind: String) -> Result<String, Error> {
    match kind.as_str() {
        "round_robin" | "least_connections" => Ok(kind),
        _ => Err(errors::field("type", "must be one of round_robin, least_connections")),
    }
}

pub(super) fn create(clock: Clock, request: &Request) -> Plan {
    let body: Body<New> = Body::of(request);
    let call = match &body.value {
        Ok(new) => {
            let owner = new.labels.get(OWNER_LABEL).map(String::as_str).unwrap_or_default();
            Call::new(Op::LbCreate).keyed("name", &new.name).owned_by(owner)
        }
        Err(_) => Call::new(Op::LbCreate),
    };
    planned_with(clock, call, request, body, |new, cloud, now| {
        check_free(cloud, &new.name, None, now)?;
        let draft = new.draft(cloud, now)?;
        let failure = cloud.take_action_failure();
        let lb = cloud.create_load_balancer(draft.finish()?, Families::Both, now.time)?.clone();
        let resources = vec![("load_balancer".to_owned(), lb.id.clone())];
        let done = cloud.provisioned_at(now.time);
        let action = cloud.begin_action("create_load_balancer", resources, failure, (now.time, done));
        let action = show_action(action, now);
        Ok(Answer::json(201, &Created { load_balancer: show(&lb, now), action }).creating(&lb.id))
    })
}

impl New {
    fn draft(self, cloud: &mut Cloud, now: Now) -> Result<Draft, Error> {
        check_name(&self.name)?;
        check_labels(&self.labels)?;
        let wanted = self.load_balancer_type.ok_or_else(|| errors::missing("load_balancer_type"))?;
        let details = Details {
            kind: balancer_type(&wanted)?,
            location: place(self.location, self.network_zone)?,
            created: now.text(),
            algorithm: self
                .algorithm
                .map_or(Ok("round_robin".to_owned()), |algorithm| check_algorithm(algorithm.kind))?,
            public_interface: self.public_interface.unwrap_or(true),
            private_ip: match self.network {
                None => None,
                Some(NETWORK_ID) => Some(free_address(cloud, None, now)?),
                Some(other) => return Err(errors::not_found("network", other)),
            },
            ..Details::default()
        };
        let mut draft = Draft { spec: LbSpec { name: self.name, ..LbSpec::default() }, details };
        draft.set_labels(self.labels);
        for service in self.services {
            service.add_to(&mut draft, cloud)?;
        }
        for target in self.targets {
            target.add_to(&mut draft, cloud)?;
        }
        Ok(draft)
    }
}

/// The name of the requested type.
pub(super) fn balancer_type(wanted: &IdOrName) -> Result<String, Error> {
    match BALANCER_TYPES.iter().find(|kind| wanted.is(kind.id, kind.name)) {
        Some(kind) => Ok(kind.name.to_owned()),
        None => Err(errors::not_found("load_balancer_type", wanted)),
    }
}

/// The location of a new load balancer: the requested one, or one in the requested network zone.
fn place(location: Option<IdOrName>, zone: Option<String>) -> Result<String, Error> {
    let found = match (&location, &zone) {
        (None, None) => return Err(errors::field("location", "either location or network_zone is required")),
        (Some(_), Some(_)) => return Err(errors::field("location", "cannot be combined with network_zone")),
        (Some(wanted), None) => LOCATIONS.iter().find(|location| wanted.is(location.id, location.name)),
        (None, Some(zone)) => LOCATIONS.iter().find(|location| location.network_zone == zone),
    };
    match found {
        Some(location) => Ok(location.name.to_owned()),
        None if location.is_some() => Err(errors::field("location", "does not exist")),
        None => Err(errors::field("network_zone", "does not exist")),
    }
}

fn check_free(cloud: &mut Cloud, name: &str, except: Option<&str>, now: Now) -> Result<(), Error> {
    let taken = cloud.load_balancers(now.time).any(|lb| lb.name == name && Some(lb.id.as_str()) != except);
    if taken { Err(errors::taken(name)) } else { Ok(()) }
}

/// The body of a request that renames a load balancer.
#[derive(Deserialize)]
struct Rename {
    name: Option<String>,
    labels: Option<BTreeMap<String, String>>,
}

pub(super) fn rename(clock: Clock, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    let body: Body<Rename> = Body::of(request);
    let mut call = Call::on(Op::LbUpdate, &id);
    if let Ok(rename) = &body.value {
        call = call.naming(rename.name.as_deref().unwrap_or_default());
        let owner = rename.labels.as_ref().and_then(|labels| labels.get(OWNER_LABEL));
        call = call.owned_by(owner.map(String::as_str).unwrap_or_default());
    }
    planned_with(clock, call, request, body, move |rename, cloud, now| {
        update(cloud, &id, now, |draft, cloud| {
            if let Some(name) = rename.name {
                check_name(&name)?;
                check_free(cloud, &name, Some(&id), now)?;
                draft.spec.name = name;
            }
            if let Some(labels) = rename.labels {
                check_labels(&labels)?;
                draft.set_labels(labels);
            }
            Ok(())
        })?;
        Ok(Answer::one(200, "load_balancer", &show(&get(cloud, &id, now)?, now)))
    })
}

pub(super) fn delete(clock: Clock, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(clock, Call::on(Op::LbDelete, &id), query::none(request), move |_, cloud, now| {
        if Details::of(&get(cloud, &id, now)?).protected {
            return Err(Error::said(403, "protected", "the load_balancer is delete protected"));
        }
        let resources = vec![("load_balancer".to_owned(), id.clone())];
        // This API has no state between existing and deleted: callers take the answer for the end.
        let action = act(cloud, now, "delete_load_balancer", resources, |cloud| {
            Ok(cloud.remove_load_balancer(&id, Dependents::Remove, now.time)?)
        })?;
        Ok(Answer::one(200, "action", &action))
    })
}
