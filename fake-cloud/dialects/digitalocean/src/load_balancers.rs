//! Calls about load balancers.

use super::errors;
use super::lb_request::Wanted;
use super::query;
use super::state::State;
use super::tags::{self, Resource, Tags};
use super::wire::{self, Settings};
use fake_cloud_driver::{LoadBalancer, Op};
use fake_cloud_kit::{Answer, Call, Error, Plan, Request, Text, TextMap, planned};
use fake_cloud_model::{Cloud, Dependents, Refusal};
use std::sync::Arc;
use std::time::Duration;

/// The resource type of load balancers in tags.
const RESOURCE: &str = "load_balancer";

pub(super) fn list(state: &Arc<State>, request: &Request) -> Plan {
    planned(state, Call::new(Op::LbList), query::list(request, &[]), |state, query, cloud, now| {
        let (tags, limit) = (Tags::all(cloud), cloud.page_size());
        let shown: Vec<&LoadBalancer> =
            cloud.list_load_balancers(now).into_iter().filter(|lb| wire::is_visible(lb)).collect();
        let mut texts = state.load_balancers.open();
        let shown = shown.into_iter().map(|lb| text(&mut texts, lb, &tags));
        Ok(query::page(query, "load_balancers", limit, shown))
    })
}

pub(super) fn get(state: &Arc<State>, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(state, Call::on(Op::LbGet, &id), query::none(request), move |state, _, cloud, now| {
        shown(200, state, cloud, &id, now)
    })
}

pub(super) fn create(state: &Arc<State>, request: &Request) -> Plan {
    let wanted = request.body::<Wanted>();
    let (mut call, mut unknown) = (Call::new(Op::LbCreate), None);
    if let Ok(wanted) = &wanted {
        let name = wanted.name.as_deref().unwrap_or_default();
        call = call.keyed("name", name).owned_by(name);
        unknown = wanted.unknown(&request.body);
    }
    let plan = planned(state, call, query::none(request), move |state, _, cloud, now| {
        let wanted = wanted?;
        let tags = wanted.tags.clone().unwrap_or_default();
        tags.iter().try_for_each(|tag| tags::check_name(tag))?;
        let spec = wanted.into_spec(cloud, None, &state.now())?;
        let id = cloud.create_load_balancer(spec.0, spec.1, now).map_err(refused)?.id.clone();
        for tag in &tags {
            tags::create(cloud, tag, now)?;
            tags::tag(cloud, tag, vec![Resource::new(RESOURCE, &id)], now)?;
        }
        Ok(shown(202, state, cloud, &id, now)?.creating(&id))
    });
    plan.with_unknown(unknown)
}

pub(super) fn update(state: &Arc<State>, request: &Request, id: &str) -> Plan {
    let (id, wanted) = (id.to_owned(), request.body::<Wanted>());
    let (mut call, mut unknown) = (Call::on(Op::LbUpdate, &id), None);
    if let Ok(wanted) = &wanted {
        call = call.naming(wanted.name.as_deref().unwrap_or_default());
        unknown = wanted.unknown(&request.body);
    }
    let plan = planned(state, call, query::none(request), move |state, _, cloud, now| {
        let present = Settings::of(find(cloud, &id, now)?);
        let (spec, _) = wanted?.into_spec(cloud, Some(&present), &state.now())?;
        cloud.update_load_balancer(&id, now, |_| spec).map_err(refused)?;
        shown(200, state, cloud, &id, now)
    });
    plan.with_unknown(unknown)
}

/// The real cloud removes a load balancer as soon as it has answered 204, so the deletion time of the
/// settings does not apply here.
pub(super) fn delete(state: &Arc<State>, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(state, Call::on(Op::LbDelete, &id), query::none(request), move |_, _, cloud, now| {
        find(cloud, &id, now)?;
        cloud.remove_load_balancer(&id, Dependents::Remove, now)?;
        tags::forget(cloud, &Resource::new(RESOURCE, &id), now)?;
        Ok(Answer::empty(204))
    })
}

fn find<'a>(cloud: &'a mut Cloud, id: &str, now: Duration) -> Result<&'a LoadBalancer, Error> {
    let lb = cloud.load_balancer(id, now)?;
    if wire::is_visible(lb) { Ok(lb) } else { Err(errors::not_found()) }
}

fn text(texts: &mut TextMap<LoadBalancer>, lb: &LoadBalancer, tags: &Tags) -> Text {
    let tags = tags.of(RESOURCE, &lb.id);
    texts.text(&lb.id, lb, &tags, || wire::LoadBalancer::of(lb, &tags))
}

fn shown(status: u16, state: &State, cloud: &mut Cloud, id: &str, now: Duration) -> Result<Answer, Error> {
    let tags = Tags::all(cloud);
    let lb = find(cloud, id, now)?;
    Ok(Answer::one(status, "load_balancer", &text(&mut state.load_balancers.open(), lb, &tags)))
}

/// Converts the model's rejection of a load balancer: the only possible conflict is another one with the same name.
fn refused(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Conflict(_) => errors::invalid("name is not unique"),
        other => other.into(),
    }
}
