//! Calls of the `digitalocean` dialect: from method and path to what they mean and do. Those about load balancers have a
//! file of their own.

use super::super::{Answer, Call, Plan, Request, Text};
use super::certificates::{self, NewCertificate};
use super::desk::Desk;
use super::droplets;
use super::errors::Trouble;
use super::query::Query;
use super::tags::{self, NewTag, Resources, Tags};
use super::{firewalls, load_balancers, places};
use crate::admin::{Instance, Op};
use crate::model::Cloud;
use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// What a call means.
pub(super) fn plan(desk: &Arc<Desk>, request: &Request) -> Plan {
    let segments = request.segments();
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let ["v2", parts @ ..] = parts.as_slice() else { return unknown(desk, request) };
    match (&request.method, parts) {
        (&Method::GET, ["account"]) => account(desk, request),
        (&Method::GET, ["regions"]) => list_regions(desk, request),
        (&Method::GET, ["droplets"]) => list_droplets(desk, request),
        (&Method::GET, ["droplets", id]) => get_droplet(desk, request, id),
        (&Method::GET, ["droplets", ..]) => unknown(desk, request),
        (_, ["droplets"]) => forbidden(desk, request, Call::new(Op::InstanceWrite)),
        (_, ["droplets", id, ..]) => forbidden(desk, request, Call::on(Op::InstanceWrite, id)),
        (&Method::GET, ["load_balancers"]) => load_balancers::list(desk, request),
        (&Method::POST, ["load_balancers"]) => load_balancers::create(desk, request),
        (&Method::GET, ["load_balancers", id]) => load_balancers::get(desk, request, id),
        (&Method::PUT, ["load_balancers", id]) => load_balancers::update(desk, request, id),
        (&Method::DELETE, ["load_balancers", id]) => load_balancers::delete(desk, request, id),
        (&Method::POST, ["tags"]) => create_tag(desk, request),
        (&Method::GET, ["tags", name]) => get_tag(desk, request, name),
        (&Method::POST, ["tags", name, "resources"]) => tag_resources(desk, request, name),
        (&Method::DELETE, ["tags", name, "resources"]) => untag_resources(desk, request, name),
        (&Method::GET, ["certificates"]) => list_certificates(desk, request),
        (&Method::POST, ["certificates"]) => create_certificate(desk, request),
        (&Method::GET, ["certificates", id]) => get_certificate(desk, request, id),
        (&Method::DELETE, ["certificates", id]) => delete_certificate(desk, request, id),
        (&Method::GET, ["firewalls"]) => list_firewalls(desk, request),
        (&Method::POST, ["firewalls"]) => create_firewall(desk, request),
        (&Method::GET, ["firewalls", id]) => get_firewall(desk, request, id),
        (&Method::PUT, ["firewalls", id]) => update_firewall(desk, request, id),
        (&Method::DELETE, ["firewalls", id]) => delete_firewall(desk, request, id),
        _ => unknown(desk, request),
    }
}

fn unknown(desk: &Arc<Desk>, request: &Request) -> Plan {
    let (desk, Plan { call, run, unknown }) = (desk.clone(), Plan::unknown(request));
    Plan { call, run: Box::new(move |cloud, now| desk.answer(|_| run(cloud, now))), unknown }
}

fn account(desk: &Arc<Desk>, request: &Request) -> Plan {
    planned(desk, Call::new(Op::Other), Query::none(request), |_, _, _, _| {
        Ok(Answer::json(
            200,
            &json!({"account": {
                "droplet_limit": 1000,
                "floating_ip_limit": 3,
                "reserved_ip_limit": 3,
                "volume_limit": 100,
                "email": "user@example.com",
                "name": "User",
                "uuid": places::ACCOUNT,
                "email_verified": true,
                "status": "active",
                "status_message": "",
                "team": {"uuid": places::TEAM, "name": "Team"},
            }}),
        ))
    })
}

fn list_regions(desk: &Arc<Desk>, request: &Request) -> Plan {
    planned(desk, Call::new(Op::Other), Query::of_list(request, &[]), |_, query, cloud, _| {
        let regions = places::regions(cloud.instances().map(|instance| instance.region.as_str()));
        Ok(query.page("regions", cloud.page_size(), regions.into_iter()))
    })
}

fn list_droplets(desk: &Arc<Desk>, request: &Request) -> Plan {
    let query = Query::of_list(request, &["name"]);
    let op = if query.filter("name").is_some() { Op::InstanceGet } else { Op::InstanceList };
    planned(desk, query.call(op), query, move |desk, query, cloud, now| {
        let (tags, limit) = (Tags::all(cloud), cloud.page_size());
        // A look-up is always fresh, only lists may be stale.
        let found: Vec<&Instance> = match query.filter("name") {
            Some(name) => cloud.instances_named(name).collect(),
            None => cloud.list_instances(now),
        };
        // Every one of them is a droplet: the admin API takes no other ids for this dialect.
        let mut texts = desk.droplets.open();
        let shown =
            found.into_iter().map(|instance| droplets::text(&mut texts, instance, desk.opened(), &tags));
        Ok(query.page("droplets", limit, shown))
    })
}

fn get_droplet(desk: &Arc<Desk>, request: &Request, id: &str) -> Plan {
    #[derive(Serialize)]
    struct One {
        droplet: Text,
    }
    let id = id.to_owned();
    planned(desk, Call::on(Op::InstanceGet, &id), Query::none(request), move |desk, _, cloud, _| {
        let tags = Tags::all(cloud);
        let instance = cloud.instance(&id)?;
        let droplet = droplets::text(&mut desk.droplets.open(), instance, desk.opened(), &tags);
        Ok(Answer::json(200, &One { droplet: droplet.ok_or_else(Trouble::not_found)? }))
    })
}

fn forbidden(desk: &Arc<Desk>, request: &Request, call: Call) -> Plan {
    planned(desk, call, Query::none(request), |_, _, _, _| {
        Err(Trouble::new(403, "You do not have access for the attempted action."))
    })
}

fn create_tag(desk: &Arc<Desk>, request: &Request) -> Plan {
    let new = body::<NewTag>(request);
    let call = match &new {
        Ok(new) => Call::new(Op::AuxCreate).keyed("name", &new.name),
        Err(_) => Call::new(Op::AuxCreate),
    };
    planned(desk, call, Query::none(request), |_, _, cloud, now| {
        let NewTag { name } = new?;
        let created = tags::create(cloud, &name, now)?;
        let answer = Answer::json(201, &json!({"tag": tags::shown(cloud, &name)}));
        Ok(created.into_iter().fold(answer, |answer, id| answer.creating(&id)))
    })
}

fn get_tag(desk: &Arc<Desk>, request: &Request, name: &str) -> Plan {
    let name = name.to_owned();
    planned(desk, Call::on(Op::AuxRead, &name), Query::none(request), move |_, _, cloud, _| {
        let tag = tags::shown(cloud, &name).ok_or_else(Trouble::not_found)?;
        Ok(Answer::json(200, &json!({"tag": tag})))
    })
}

fn tag_resources(desk: &Arc<Desk>, request: &Request, name: &str) -> Plan {
    let (name, new) = (name.to_owned(), body::<Resources>(request));
    planned(desk, Call::on(Op::AuxUpdate, &name), Query::none(request), move |_, _, cloud, now| {
        let resources = new?.checked(cloud, now)?;
        tags::tag(cloud, &name, resources, now)?;
        Ok(Answer::empty(204))
    })
}

fn untag_resources(desk: &Arc<Desk>, request: &Request, name: &str) -> Plan {
    let (name, old) = (name.to_owned(), body::<Resources>(request));
    planned(desk, Call::on(Op::AuxUpdate, &name), Query::none(request), move |_, _, cloud, now| {
        tags::untag(cloud, &name, &old?.resources, now)?;
        Ok(Answer::empty(204))
    })
}

fn list_certificates(desk: &Arc<Desk>, request: &Request) -> Plan {
    let query = Query::of_list(request, &["name"]);
    planned(desk, query.call(Op::AuxRead), query, |_, query, cloud, now| {
        let limit = cloud.page_size();
        let name = query.filter("name");
        let mut found = cloud.list_auxiliaries(now);
        found.retain(|aux| aux.kind == certificates::KIND && name.is_none_or(|name| aux.name == name));
        Ok(query.page("certificates", limit, found.into_iter().map(certificates::shown)))
    })
}

fn create_certificate(desk: &Arc<Desk>, request: &Request) -> Plan {
    let new = body::<NewCertificate>(request);
    let call = match &new {
        Ok(new) => Call::new(Op::AuxCreate).keyed("name", &new.name),
        Err(_) => Call::new(Op::AuxCreate),
    };
    planned(desk, call, Query::none(request), |desk, _, cloud, now| {
        let spec = new?.into_spec(&desk.now())?;
        let aux = cloud.create_auxiliary(certificates::KIND, certificates::KIND, spec, now)?;
        let answer = Answer::json(201, &json!({"certificate": certificates::shown(aux)}));
        Ok(answer.creating(&aux.id))
    })
}

fn get_certificate(desk: &Arc<Desk>, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(desk, Call::on(Op::AuxRead, &id), Query::none(request), move |_, _, cloud, _| {
        let aux = cloud.auxiliary(certificates::KIND, &id)?;
        Ok(Answer::json(200, &json!({"certificate": certificates::shown(aux)})))
    })
}

fn delete_certificate(desk: &Arc<Desk>, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(desk, Call::on(Op::AuxDelete, &id), Query::none(request), move |_, _, cloud, now| {
        cloud.auxiliary(certificates::KIND, &id)?;
        if cloud.load_balancers(now).any(|lb| certificates::is_used_by(&id, lb)) {
            let text = "Make sure the certificate is not in use before deleting it";
            return Err(Trouble::new(403, text));
        }
        cloud.delete_auxiliary(certificates::KIND, &id)?;
        Ok(Answer::empty(204))
    })
}

fn list_firewalls(desk: &Arc<Desk>, request: &Request) -> Plan {
    planned(desk, Call::new(Op::AuxRead), Query::of_list(request, &[]), |_, query, cloud, now| {
        let limit = cloud.page_size();
        let mut found = cloud.list_auxiliaries(now);
        found.retain(|aux| aux.kind == firewalls::KIND);
        Ok(query.page("firewalls", limit, found.into_iter().map(firewalls::shown)))
    })
}

fn create_firewall(desk: &Arc<Desk>, request: &Request) -> Plan {
    let wanted = body::<firewalls::Wanted>(request);
    let call = match &wanted {
        Ok(wanted) => Call::new(Op::AuxCreate).keyed("name", &wanted.name),
        Err(_) => Call::new(Op::AuxCreate),
    };
    planned(desk, call, Query::none(request), |desk, _, cloud, now| {
        let spec = wanted?.into_spec(cloud, &desk.now())?;
        let created = cloud.create_auxiliary(firewalls::KIND, firewalls::KIND, spec, now);
        let aux = created.map_err(firewalls::refused)?;
        Ok(Answer::json(202, &json!({"firewall": firewalls::shown(aux)})).creating(&aux.id))
    })
}

fn get_firewall(desk: &Arc<Desk>, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(desk, Call::on(Op::AuxRead, &id), Query::none(request), move |_, _, cloud, _| {
        let aux = cloud.auxiliary(firewalls::KIND, &id)?;
        Ok(Answer::json(200, &json!({"firewall": firewalls::shown(aux)})))
    })
}

fn update_firewall(desk: &Arc<Desk>, request: &Request, id: &str) -> Plan {
    let (id, wanted) = (id.to_owned(), body::<firewalls::Wanted>(request));
    let mut call = Call::on(Op::AuxUpdate, &id);
    if let Ok(wanted) = &wanted {
        call = call.naming(&wanted.name);
    }
    planned(desk, call, Query::none(request), move |_, _, cloud, now| {
        let created_at = firewalls::created_at(cloud.auxiliary(firewalls::KIND, &id)?).to_owned();
        let spec = wanted?.into_spec(cloud, &created_at)?;
        let updated = cloud.update_auxiliary(firewalls::KIND, &id, spec, now);
        let aux = updated.map_err(firewalls::refused)?;
        Ok(Answer::json(200, &json!({"firewall": firewalls::shown(aux)})))
    })
}

fn delete_firewall(desk: &Arc<Desk>, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(desk, Call::on(Op::AuxDelete, &id), Query::none(request), move |_, _, cloud, _| {
        cloud.delete_auxiliary(firewalls::KIND, &id)?;
        Ok(Answer::empty(204))
    })
}

/// A plan that checks its query first, puts what goes wrong into this dialect's form and gives every answer its headers.
pub(super) fn planned<F>(desk: &Arc<Desk>, call: Call, mut query: Query, run: F) -> Plan
where
    F: FnOnce(&Desk, &Query, &mut Cloud, Duration) -> Result<Answer, Trouble> + Send + 'static,
{
    let (desk, unknown, problem) = (desk.clone(), query.unknown.take(), query.problem.take());
    let plan = Plan::new(call, move |cloud, now| {
        let outcome = match problem {
            None => run(&desk, &query, cloud, now),
            Some(problem) => Err(problem),
        };
        desk.answer(|ticket| outcome.unwrap_or_else(|trouble| trouble.answer(ticket)))
    });
    unknown.into_iter().fold(plan, Plan::beyond)
}

/// The body of a call.
pub(super) fn body<T: DeserializeOwned>(request: &Request) -> Result<T, Trouble> {
    Ok(serde_json::from_slice(&request.body)?)
}
