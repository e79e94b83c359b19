//! The calls of the `digitalocean` dialect: from method and path to their meaning and effect. Those about
//! load balancers are in a separate file.

use super::certificates::{self, NewCertificate};
use super::droplets;
use super::errors;
use super::query;
use super::state::State;
use super::tags::{self, NewTag, Resources, Tags};
use super::{firewalls, load_balancers, places};
use fake_cloud_driver::{Instance, Op};
use fake_cloud_kit::{Answer, Call, Error, Plan, Request, Voice, planned};
use hyper::Method;
use serde_json::json;
use std::sync::Arc;

/// The plan of a call.
pub(super) fn plan(state: &Arc<State>, request: &Request) -> Plan {
    let segments = request.segments();
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let ["v2", parts @ ..] = parts.as_slice() else { return unknown(state, request) };
    match (&request.method, parts) {
        (&Method::GET, ["account"]) => account(state, request),
        (&Method::GET, ["regions"]) => list_regions(state, request),
        (&Method::GET, ["droplets"]) => list_droplets(state, request),
        (&Method::GET, ["droplets", id]) => get_droplet(state, request, id),
        (&Method::GET, ["droplets", ..]) => unknown(state, request),
        (_, ["droplets"]) => forbidden(state, request, Call::new(Op::InstanceWrite)),
        (_, ["droplets", id, ..]) => forbidden(state, request, Call::on(Op::InstanceWrite, id)),
        (&Method::GET, ["load_balancers"]) => load_balancers::list(state, request),
        (&Method::POST, ["load_balancers"]) => load_balancers::create(state, request),
        (&Method::GET, ["load_balancers", id]) => load_balancers::get(state, request, id),
        (&Method::PUT, ["load_balancers", id]) => load_balancers::update(state, request, id),
        (&Method::DELETE, ["load_balancers", id]) => load_balancers::delete(state, request, id),
        (&Method::POST, ["tags"]) => create_tag(state, request),
        (&Method::GET, ["tags", name]) => get_tag(state, request, name),
        (&Method::POST, ["tags", name, "resources"]) => tag_resources(state, request, name),
        (&Method::DELETE, ["tags", name, "resources"]) => untag_resources(state, request, name),
        (&Method::GET, ["certificates"]) => list_certificates(state, request),
        (&Method::POST, ["certificates"]) => create_certificate(state, request),
        (&Method::GET, ["certificates", id]) => get_certificate(state, request, id),
        (&Method::DELETE, ["certificates", id]) => delete_certificate(state, request, id),
        (&Method::GET, ["firewalls"]) => list_firewalls(state, request),
        (&Method::POST, ["firewalls"]) => create_firewall(state, request),
        (&Method::GET, ["firewalls", id]) => get_firewall(state, request, id),
        (&Method::PUT, ["firewalls", id]) => update_firewall(state, request, id),
        (&Method::DELETE, ["firewalls", id]) => delete_firewall(state, request, id),
        _ => unknown(state, request),
    }
}

fn unknown(state: &Arc<State>, request: &Request) -> Plan {
    let (state, Plan { call, run, unknown }) = (state.clone(), Plan::unknown(request));
    Plan { call, run: Box::new(move |cloud, now| state.answer(Ok(run(cloud, now)))), unknown }
}

fn account(state: &Arc<State>, request: &Request) -> Plan {
    planned(state, Call::new(Op::Other), query::none(request), |_, _, _, _| {
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

fn list_regions(state: &Arc<State>, request: &Request) -> Plan {
    planned(state, Call::new(Op::Other), query::list(request, &[]), |_, query, cloud, _| {
        let regions = places::regions(cloud.instances().map(|instance| instance.region.as_str()));
        Ok(query::page(query, "regions", cloud.page_size(), regions.into_iter()))
    })
}

fn list_droplets(state: &Arc<State>, request: &Request) -> Plan {
    let query = query::list(request, &["name"]);
    let op = if query.filter("name").is_some() { Op::InstanceGet } else { Op::InstanceList };
    planned(state, query.call(op), query, move |state, query, cloud, now| {
        let (tags, limit) = (Tags::all(cloud), cloud.page_size());
        // A look-up is always fresh; only lists may be stale.
        let found: Vec<&Instance> = match query.filter("name") {
            Some(name) => cloud.instances_named(name).collect(),
            None => cloud.list_instances(now),
        };
        // All of them are droplets: the driver API accepts no other ids for this dialect.
        let mut texts = state.droplets.open();
        let shown =
            found.into_iter().map(|instance| droplets::text(&mut texts, instance, state.started(), &tags));
        Ok(query::page(query, "droplets", limit, shown))
    })
}

fn get_droplet(state: &Arc<State>, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(state, Call::on(Op::InstanceGet, &id), query::none(request), move |state, _, cloud, _| {
        let tags = Tags::all(cloud);
        let instance = cloud.instance(&id)?;
        let droplet = droplets::text(&mut state.droplets.open(), instance, state.started(), &tags);
        Ok(Answer::one(200, "droplet", &droplet.ok_or_else(errors::not_found)?))
    })
}

fn forbidden(state: &Arc<State>, request: &Request, call: Call) -> Plan {
    planned(state, call, query::none(request), |_, _, _, _| {
        Err(Error::new(403, "You do not have access for the attempted action."))
    })
}

fn create_tag(state: &Arc<State>, request: &Request) -> Plan {
    let new = request.body::<NewTag>();
    let call = match &new {
        Ok(new) => Call::new(Op::AuxCreate).keyed("name", &new.name),
        Err(_) => Call::new(Op::AuxCreate),
    };
    planned(state, call, query::none(request), |_, _, cloud, now| {
        let NewTag { name } = new?;
        let created = tags::create(cloud, &name, now)?;
        let answer = Answer::one(201, "tag", &tags::shown(cloud, &name));
        Ok(created.into_iter().fold(answer, |answer, id| answer.creating(&id)))
    })
}

fn get_tag(state: &Arc<State>, request: &Request, name: &str) -> Plan {
    let name = name.to_owned();
    planned(state, Call::on(Op::AuxRead, &name), query::none(request), move |_, _, cloud, _| {
        let tag = tags::shown(cloud, &name).ok_or_else(errors::not_found)?;
        Ok(Answer::one(200, "tag", &tag))
    })
}

fn tag_resources(state: &Arc<State>, request: &Request, name: &str) -> Plan {
    let (name, new) = (name.to_owned(), request.body::<Resources>());
    planned(state, Call::on(Op::AuxUpdate, &name), query::none(request), move |_, _, cloud, now| {
        let resources = new?.checked(cloud, now)?;
        tags::tag(cloud, &name, resources, now)?;
        Ok(Answer::empty(204))
    })
}

fn untag_resources(state: &Arc<State>, request: &Request, name: &str) -> Plan {
    let (name, old) = (name.to_owned(), request.body::<Resources>());
    planned(state, Call::on(Op::AuxUpdate, &name), query::none(request), move |_, _, cloud, now| {
        tags::untag(cloud, &name, &old?.resources, now)?;
        Ok(Answer::empty(204))
    })
}

fn list_certificates(state: &Arc<State>, request: &Request) -> Plan {
    let query = query::list(request, &["name"]);
    planned(state, query.call(Op::AuxRead), query, |_, query, cloud, now| {
        let limit = cloud.page_size();
        let name = query.filter("name");
        let mut found = cloud.list_auxiliaries(now);
        found.retain(|aux| aux.kind == certificates::KIND && name.is_none_or(|name| aux.name == name));
        Ok(query::page(query, "certificates", limit, found.into_iter().map(certificates::shown)))
    })
}

fn create_certificate(state: &Arc<State>, request: &Request) -> Plan {
    let new = request.body::<NewCertificate>();
    let call = match &new {
        Ok(new) => Call::new(Op::AuxCreate).keyed("name", &new.name),
        Err(_) => Call::new(Op::AuxCreate),
    };
    planned(state, call, query::none(request), |state, _, cloud, now| {
        let spec = new?.into_spec(&state.now())?;
        let aux = cloud.create_auxiliary(certificates::KIND, certificates::KIND, spec, now)?;
        let answer = Answer::one(201, "certificate", &certificates::shown(aux));
        Ok(answer.creating(&aux.id))
    })
}

fn get_certificate(state: &Arc<State>, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(state, Call::on(Op::AuxRead, &id), query::none(request), move |_, _, cloud, _| {
        let aux = cloud.auxiliary(certificates::KIND, &id)?;
        Ok(Answer::one(200, "certificate", &certificates::shown(aux)))
    })
}

fn delete_certificate(state: &Arc<State>, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(state, Call::on(Op::AuxDelete, &id), query::none(request), move |_, _, cloud, now| {
        cloud.auxiliary(certificates::KIND, &id)?;
        if cloud.load_balancers(now).any(|lb| certificates::is_used_by(&id, lb)) {
            let text = "Make sure the certificate is not in use before deleting it";
            return Err(Error::new(403, text));
        }
        cloud.delete_auxiliary(certificates::KIND, &id)?;
        Ok(Answer::empty(204))
    })
}

fn list_firewalls(state: &Arc<State>, request: &Request) -> Plan {
    planned(state, Call::new(Op::AuxRead), query::list(request, &[]), |_, query, cloud, now| {
        let limit = cloud.page_size();
        let mut found = cloud.list_auxiliaries(now);
        found.retain(|aux| aux.kind == firewalls::KIND);
        Ok(query::page(query, "firewalls", limit, found.into_iter().map(firewalls::shown)))
    })
}

fn create_firewall(state: &Arc<State>, request: &Request) -> Plan {
    let wanted = request.body::<firewalls::Wanted>();
    let call = match &wanted {
        Ok(wanted) => Call::new(Op::AuxCreate).keyed("name", &wanted.name),
        Err(_) => Call::new(Op::AuxCreate),
    };
    planned(state, call, query::none(request), |state, _, cloud, now| {
        let spec = wanted?.into_spec(cloud, &state.now())?;
        let created = cloud.create_auxiliary(firewalls::KIND, firewalls::KIND, spec, now);
        let aux = created.map_err(firewalls::refused)?;
        Ok(Answer::one(202, "firewall", &firewalls::shown(aux)).creating(&aux.id))
    })
}

fn get_firewall(state: &Arc<State>, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(state, Call::on(Op::AuxRead, &id), query::none(request), move |_, _, cloud, _| {
        let aux = cloud.auxiliary(firewalls::KIND, &id)?;
        Ok(Answer::one(200, "firewall", &firewalls::shown(aux)))
    })
}

fn update_firewall(state: &Arc<State>, request: &Request, id: &str) -> Plan {
    let (id, wanted) = (id.to_owned(), request.body::<firewalls::Wanted>());
    let mut call = Call::on(Op::AuxUpdate, &id);
    if let Ok(wanted) = &wanted {
        call = call.naming(&wanted.name);
    }
    planned(state, call, query::none(request), move |_, _, cloud, now| {
        let created_at = firewalls::created_at(cloud.auxiliary(firewalls::KIND, &id)?).to_owned();
        let spec = wanted?.into_spec(cloud, &created_at)?;
        let updated = cloud.update_auxiliary(firewalls::KIND, &id, spec, now);
        let aux = updated.map_err(firewalls::refused)?;
        Ok(Answer::one(200, "firewall", &firewalls::shown(aux)))
    })
}

fn delete_firewall(state: &Arc<State>, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(state, Call::on(Op::AuxDelete, &id), query::none(request), move |_, _, cloud, _| {
        cloud.delete_auxiliary(firewalls::KIND, &id)?;
        Ok(Answer::empty(204))
    })
}
