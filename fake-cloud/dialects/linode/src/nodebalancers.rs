//! Calls about NodeBalancers. Each is complete when the call that creates it is answered, and gone when the
//! one that deletes it is: the provisioning and deletion times of the settings do not apply.

use super::details::Details;
use super::errors;
use super::query;
use super::state::State;
use super::wire::{ChangedBalancer, NewBalancer, NodeBalancer, check_label};
use fake_cloud_driver::{LoadBalancer, Op};
use fake_cloud_kit::{Answer, Body, Call, Error, Plan, Request, Text, TextMap, planned, planned_with};
use fake_cloud_model::{Cloud, Dependents, Families, Refusal};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The fields with which a filter names a single NodeBalancer.
const NAMES: [&str; 3] = ["ipv4", "ipv6", "label"];

pub(super) fn list(state: &Arc<State>, request: &Request) -> Plan {
    let query = query::list(request);
    let call = query::call(&query, (Op::LbList, Op::LbGet), &NAMES);
    planned(state, call, query, |state, query, cloud, now| {
        let (filter, limit) = (&query.besides, cloud.page_size());
        let mut texts = state.balancers.open();
        let look_up = NAMES.iter().any(|name| filter.equal(name).is_some());
        // A look-up is always fresh; only lists may be stale.
        let mut found: Vec<&LoadBalancer> =
            if look_up { cloud.load_balancers(now).collect() } else { cloud.list_load_balancers(now) };
        found.retain(|lb| {
            filter.is_empty()
                || serde_json::to_value(text(&mut texts, lb)).is_ok_and(|shown| filter.fits(&shown))
        });
        Ok(query::page(query, limit, found.into_iter().map(|lb| text(&mut texts, lb))))
    })
}

pub(super) fn get(state: &Arc<State>, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(state, Call::on(Op::LbGet, &id), query::none(request), move |state, _, cloud, now| {
        shown(state, cloud, &id, now)
    })
}

pub(super) fn create(state: &Arc<State>, request: &Request) -> Plan {
    let body = Body::<NewBalancer>::of(request);
    let mut call = Call::new(Op::LbCreate);
    if let Ok(new) = &body.value {
        call = call.keyed("label", new.label.as_deref().unwrap_or_default());
        call = call.owned_by(new.tags.last().map_or("", String::as_str));
    }
    planned_with(state, call, request, body, |state, new, cloud, now| {
        let label = new.label.clone();
        let details = new.into_details(&state.now(), &mut || number(cloud))?;
        let label = label.unwrap_or_else(|| format!("nodebalancer{}", number(cloud)));
        check_label(&label)?;
        let spec = details.into_spec(label)?;
        let made = cloud.with_provisioning(Duration::ZERO, |cloud| {
            let created = cloud.create_load_balancer(spec, Families::Named, now);
            created.map(|lb| lb.id.clone()).map_err(refused)
        });
        let id = made?;
        Ok(shown(state, cloud, &id, now)?.creating(&id))
    })
}

pub(super) fn update(state: &Arc<State>, request: &Request, id: &str) -> Plan {
    let (id, body) = (id.to_owned(), Body::<ChangedBalancer>::of(request));
    planned_with(state, Call::on(Op::LbUpdate, &id), request, body, move |state, wanted, cloud, now| {
        let label = wanted.label.clone();
        label.as_deref().map_or(Ok(()), check_label)?;
        change(state, cloud, &id, label, now, |details, _| wanted.apply(details))?;
        shown(state, cloud, &id, now)
    })
}

pub(super) fn delete(state: &Arc<State>, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(state, Call::on(Op::LbDelete, &id), query::none(request), move |_, _, cloud, now| {
        cloud.remove_load_balancer(&id, Dependents::Keep, now)?;
        Ok(Answer::json(200, &json!({})))
    })
}

/// The firewalls of a NodeBalancer: none, as they are only made by annotations that are not used here.
pub(super) fn firewalls(state: &Arc<State>, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    let query = query::list(request);
    planned(state, Call::on(Op::AuxRead, &id), query, move |_, query, cloud, now| {
        find(cloud, &id, now)?;
        Ok(query::page(query, cloud.page_size(), std::iter::empty::<()>()))
    })
}

/// Changes the details of a NodeBalancer, and accordingly the model; `change` can create ids.
///
/// # Errors
/// When there is none, or the change is rejected.
pub(super) fn change<T>(
    state: &State,
    cloud: &mut Cloud,
    id: &str,
    label: Option<String>,
    now: Duration,
    change: impl FnOnce(&mut Details, &mut dyn FnMut() -> u64) -> Result<T, Error>,
) -> Result<T, Error> {
    let lb = find(cloud, id, now)?;
    let (mut details, label) = (Details::of(lb), label.unwrap_or_else(|| lb.name.clone()));
    let outcome = change(&mut details, &mut || number(cloud))?;
    details.updated = state.now();
    let spec = details.into_spec(label)?;
    cloud.update_load_balancer(id, now, |_| spec).map_err(refused)?;
    Ok(outcome)
}

/// The NodeBalancer with this id.
///
/// # Errors
/// When there is none.
pub(super) fn find<'a>(cloud: &'a mut Cloud, id: &str, now: Duration) -> Result<&'a LoadBalancer, Error> {
    cloud.load_balancer(id, now).map_err(|_| errors::not_found())
}

fn shown(state: &State, cloud: &mut Cloud, id: &str, now: Duration) -> Result<Answer, Error> {
    let lb = find(cloud, id, now)?;
    Ok(Answer::json(200, &text(&mut state.balancers.open(), lb)))
}

fn text(texts: &mut TextMap<LoadBalancer>, lb: &LoadBalancer) -> Text {
    texts.text(&lb.id, lb, &[], || NodeBalancer::of(lb))
}

/// A new number that no other object has.
fn number(cloud: &mut Cloud) -> u64 {
    cloud.new_id("").parse().unwrap_or_default()
}

/// Converts the model's rejection of a NodeBalancer: the only possible conflict is another one with the same label.
fn refused(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Conflict(_) => errors::field("label", "Label must be unique"),
        other => other.into(),
    }
}
