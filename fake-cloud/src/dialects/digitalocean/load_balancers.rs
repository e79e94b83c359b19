//! Calls about load balancers.

use super::super::{Answer, Call, Plan, Request, Shelf, Text};
use super::desk::Desk;
use super::errors::Trouble;
use super::lb_request::Wanted;
use super::query::Query;
use super::routes::{body, planned};
use super::tags::{self, Resource, Tags};
use super::wire::{self, Settings};
use crate::admin::{LoadBalancer, Op};
use crate::model::{Cloud, Dependents, Refusal};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// What tags call a load balancer.
const RESOURCE: &str = "load_balancer";

#[derive(Serialize)]
struct One {
    load_balancer: Text,
}

pub(super) fn list(desk: &Arc<Desk>, request: &Request) -> Plan {
    planned(desk, Call::new(Op::LbList), Query::of_list(request, &[]), |desk, query, cloud, now| {
        let (tags, limit) = (Tags::all(cloud), cloud.page_size());
        let shown: Vec<&LoadBalancer> =
            cloud.list_load_balancers(now).into_iter().filter(|lb| wire::is_visible(lb)).collect();
        let mut texts = desk.load_balancers.open();
        let shown = shown.into_iter().map(|lb| text(&mut texts, lb, &tags));
        Ok(query.page("load_balancers", limit, shown))
    })
}

pub(super) fn get(desk: &Arc<Desk>, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(desk, Call::on(Op::LbGet, &id), Query::none(request), move |desk, _, cloud, now| {
        shown(200, desk, cloud, &id, now)
    })
}

pub(super) fn create(desk: &Arc<Desk>, request: &Request) -> Plan {
    let wanted = body::<Wanted>(request);
    let (mut call, mut beyond) = (Call::new(Op::LbCreate), None);
    if let Ok(wanted) = &wanted {
        let name = wanted.name.as_deref().unwrap_or_default();
        call = call.keyed("name", name).owned_by(name);
        beyond = wanted.beyond(&request.body);
    }
    let plan = planned(desk, call, Query::none(request), move |desk, _, cloud, now| {
        let wanted = wanted?;
        let tags = wanted.tags.clone().unwrap_or_default();
        tags.iter().try_for_each(|tag| tags::check_name(tag))?;
        let spec = wanted.into_spec(cloud, None, &desk.now())?;
        let id = cloud.create_load_balancer(spec.0, spec.1, now).map_err(refused)?.id.clone();
        for tag in &tags {
            tags::create(cloud, tag, now)?;
            tags::tag(cloud, tag, vec![Resource::new(RESOURCE, &id)], now)?;
        }
        Ok(shown(202, desk, cloud, &id, now)?.creating(&id))
    });
    beyond.into_iter().fold(plan, Plan::beyond)
}

pub(super) fn update(desk: &Arc<Desk>, request: &Request, id: &str) -> Plan {
    let (id, wanted) = (id.to_owned(), body::<Wanted>(request));
    let (mut call, mut beyond) = (Call::on(Op::LbUpdate, &id), None);
    if let Ok(wanted) = &wanted {
        call = call.naming(wanted.name.as_deref().unwrap_or_default());
        beyond = wanted.beyond(&request.body);
    }
    let plan = planned(desk, call, Query::none(request), move |desk, _, cloud, now| {
        let present = Settings::of(find(cloud, &id, now)?);
        let (spec, _) = wanted?.into_spec(cloud, Some(&present), &desk.now())?;
        cloud.update_load_balancer(&id, now, |_| spec).map_err(refused)?;
        shown(200, desk, cloud, &id, now)
    });
    beyond.into_iter().fold(plan, Plan::beyond)
}

/// The real cloud forgets a load balancer as soon as it has said 204, so the time that deletion takes is none here.
pub(super) fn delete(desk: &Arc<Desk>, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(desk, Call::on(Op::LbDelete, &id), Query::none(request), move |_, _, cloud, now| {
        find(cloud, &id, now)?;
        cloud.remove_load_balancer(&id, Dependents::Remove, now)?;
        tags::forget(cloud, &Resource::new(RESOURCE, &id), now)?;
        Ok(Answer::empty(204))
    })
}

fn find<'a>(cloud: &'a mut Cloud, id: &str, now: Duration) -> Result<&'a LoadBalancer, Trouble> {
    let lb = cloud.load_balancer(id, now)?;
    if wire::is_visible(lb) { Ok(lb) } else { Err(Trouble::not_found()) }
}

fn text(texts: &mut Shelf<LoadBalancer>, lb: &LoadBalancer, tags: &Tags) -> Text {
    let tags = tags.of(RESOURCE, &lb.id);
    texts.text(&lb.id, lb, &tags, || wire::LoadBalancer::of(lb, &tags))
}

fn shown(status: u16, desk: &Desk, cloud: &mut Cloud, id: &str, now: Duration) -> Result<Answer, Trouble> {
    let tags = Tags::all(cloud);
    let lb = find(cloud, id, now)?;
    Ok(Answer::json(status, &One { load_balancer: text(&mut desk.load_balancers.open(), lb, &tags) }))
}

/// A refusal of the model about a load balancer: the one thing in its way is another one of that name.
fn refused(refusal: Refusal) -> Trouble {
    match refusal {
        Refusal::Conflict(_) => Trouble::invalid("name is not unique"),
        other => other.into(),
    }
}
