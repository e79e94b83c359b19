//! Calls about the offers of this cloud and about its actions.

use super::calls::{Now, planned, show_action, status_of};
use super::catalog::{BALANCER_TYPES, BalancerType, LOCATIONS, Location};
use super::clock::Clock;
use super::errors;
use super::query;
use fake_cloud_driver::Op;
use fake_cloud_kit::{Answer, Call, Error, Plan, Request};
use fake_cloud_model::{Action, Cloud};

pub(super) fn locations(clock: Clock, request: &Request) -> Plan {
    let query = query::list(request, &["name"], &["id", "name"]);
    planned(clock, Call::new(Op::Other), query, |query, cloud, _| {
        let found: Vec<&Location<'_>> =
            LOCATIONS.iter().filter(|place| query.fits("name", place.name)).collect();
        let value = |place: &&Location<'_>, key: &str| match key {
            "name" => place.name.to_owned(),
            _ => place.id.to_string(),
        };
        Ok(query::page(query, "locations", cloud.page_size(), found, value, |place| place))
    })
}

pub(super) fn location(clock: Clock, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(clock, Call::new(Op::Other), query::none(request), move |_, _, _| {
        match LOCATIONS.iter().find(|place| place.id.to_string() == id) {
            Some(place) => Ok(Answer::one(200, "location", place)),
            None => Err(errors::not_found("location", id)),
        }
    })
}

pub(super) fn balancer_types(clock: Clock, request: &Request) -> Plan {
    let query = query::list(request, &["name"], &["id", "name"]);
    planned(clock, Call::new(Op::Other), query, |query, cloud, _| {
        let found: Vec<&BalancerType> =
            BALANCER_TYPES.iter().filter(|kind| query.fits("name", kind.name)).collect();
        let value = |kind: &&BalancerType, key: &str| match key {
            "name" => kind.name.to_owned(),
            _ => kind.id.to_string(),
        };
        Ok(query::page(query, "load_balancer_types", cloud.page_size(), found, value, |kind| kind))
    })
}

pub(super) fn balancer_type(clock: Clock, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(clock, Call::new(Op::Other), query::none(request), move |_, _, _| {
        match BALANCER_TYPES.iter().find(|kind| kind.id.to_string() == id) {
            Some(found) => Ok(Answer::one(200, "load_balancer_type", found)),
            None => Err(errors::not_found("load_balancer_type", id)),
        }
    })
}

/// Which actions are requested.
#[derive(Clone, Debug)]
pub(super) enum Whose {
    /// All actions.
    All,
    /// The actions of all objects of a kind.
    Kind(&'static str),
    /// The actions of one object.
    One(&'static str, String),
}

impl Whose {
    fn are(&self, action: &Action) -> bool {
        match self {
            Whose::All => true,
            Whose::Kind(kind) => action.resources.iter().any(|resource| resource.0 == *kind),
            Whose::One(kind, id) => action.concerns(kind, id),
        }
    }
}

pub(super) fn actions(clock: Clock, request: &Request, whose: Whose) -> Plan {
    let sorts = ["id", "command", "status", "started", "finished"];
    let query = query::list(request, &["id", "status"], &sorts);
    planned(clock, Call::new(Op::Other), query, move |query, cloud, now| {
        let fits = |action: &&Action| {
            whose.are(action) && query.fits("id", &action.id) && query.fits("status", status_of(action, now))
        };
        let found: Vec<&Action> = cloud.actions().filter(fits).collect();
        let value = |action: &&Action, key: &str| match key {
            "command" => action.command.clone(),
            "status" => status_of(action, now).to_owned(),
            "started" => millis(action.started),
            "finished" => millis(action.ends),
            _ => action.id.clone(),
        };
        Ok(query::page(query, "actions", cloud.page_size(), found, value, |action| show_action(action, now)))
    })
}

/// A time as text, whose order is that of time.
fn millis(time: std::time::Duration) -> String {
    format!("{:020}", time.as_millis())
}

pub(super) fn action(clock: Clock, request: &Request, whose: Whose, id: &str) -> Plan {
    let id = id.to_owned();
    planned(clock, Call::new(Op::Other), query::none(request), move |_, cloud, now| {
        find(cloud, &whose, &id, now)
    })
}

fn find(cloud: &Cloud, whose: &Whose, id: &str, now: Now) -> Result<Answer, Error> {
    match cloud.action(id).filter(|action| whose.are(action)) {
        Some(action) => Ok(Answer::one(200, "action", &show_action(action, now))),
        None => Err(errors::not_found("action", id)),
    }
}
