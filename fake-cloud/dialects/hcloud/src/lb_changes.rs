//! Calls that change a load balancer with an action: its services, targets, network, type and so on.

use super::calls::{IdOrName, Now, act, changed, planned, planned_with};
use super::clock::Clock;
use super::details::Draft;
use super::errors;
use super::lb_services::{NewService, OldService, ServiceUpdate};
use super::lb_targets::{NewTarget, OldTarget};
use super::load_balancers::{Algorithm, balancer_type, check_algorithm, update};
use super::networks::{NETWORK_ID, free_address};
use super::query;
use fake_cloud_driver::Op;
use fake_cloud_kit::{Answer, Body, Call, Error, Plan, Request};
use fake_cloud_model::Cloud;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::net::{IpAddr, Ipv4Addr};

/// The plan for one of the actions; `None` when there is no such action.
pub(super) fn plan(clock: Clock, request: &Request, id: &str, action: &str) -> Option<Plan> {
    let on = Target { clock, request, id, action };
    Some(match action {
        "add_service" => on.with(|new: NewService, draft, cloud, _| new.add_to(draft, cloud)),
        "update_service" => on.with(|new: ServiceUpdate, draft, cloud, _| new.apply_to(draft, cloud)),
        "delete_service" => on.with(|old: OldService, draft, _, _| old.take_from(draft)),
        "add_target" => on.with(|new: NewTarget, draft, cloud, _| new.add_to(draft, cloud)),
        "remove_target" => on.with(|old: OldTarget, draft, _, _| old.take_from(draft)),
        "attach_to_network" => on.with(attach),
        "detach_from_network" => on.with(detach),
        "change_algorithm" => on.with(|new: Algorithm, draft, _, _| {
            draft.details.algorithm = check_algorithm(new.kind)?;
            Ok(())
        }),
        "change_type" => on.with(change_type),
        "change_dns_ptr" => on.with(change_dns_ptr),
        "change_protection" => on.with(|new: Protection, draft, _, _| {
            draft.details.protected = new.delete;
            Ok(())
        }),
        "enable_public_interface" => on.without(|draft| {
            draft.details.public_interface = true;
            Ok(())
        }),
        "disable_public_interface" => on.without(disable_public_interface),
        _ => return None,
    })
}

/// The load balancer of an action, and its call.
struct Target<'a> {
    clock: Clock,
    request: &'a Request,
    id: &'a str,
    action: &'a str,
}

impl Target<'_> {
    /// An action with a body.
    fn with<T, F>(&self, change: F) -> Plan
    where
        T: DeserializeOwned + Send + 'static,
        F: FnOnce(T, &mut Draft, &mut Cloud, Now) -> Result<(), Error> + Send + 'static,
    {
        let body: Body<T> = Body::of(self.request);
        let (id, command) = (self.id.to_owned(), self.action.to_owned());
        planned_with(self.clock, Call::on(Op::LbUpdate, &id), self.request, body, move |body, cloud, now| {
            carry_out(cloud, now, &id, &command, |draft, cloud| change(body, draft, cloud, now))
        })
    }

    /// An action without one.
    fn without(&self, change: impl FnOnce(&mut Draft) -> Result<(), Error> + Send + 'static) -> Plan {
        let (id, command) = (self.id.to_owned(), self.action.to_owned());
        let query = query::none(self.request);
        planned(self.clock, Call::on(Op::LbUpdate, &id), query, move |_, cloud, now| {
            carry_out(cloud, now, &id, &command, |draft, _| change(draft))
        })
    }
}

fn carry_out(
    cloud: &mut Cloud,
    now: Now,
    id: &str,
    command: &str,
    change: impl FnOnce(&mut Draft, &mut Cloud) -> Result<(), Error>,
) -> Result<Answer, Error> {
    super::load_balancers::get(cloud, id, now)?;
    let resources = vec![("load_balancer".to_owned(), id.to_owned())];
    act(cloud, now, command, resources, |cloud| update(cloud, id, now, change)).map(|action| changed(&action))
}

#[derive(Deserialize)]
struct Attach {
    network: u64,
    ip: Option<String>,
    ip_range: Option<String>,
}

fn attach(new: Attach, draft: &mut Draft, cloud: &mut Cloud, now: Now) -> Result<(), Error> {
    if new.network != NETWORK_ID {
        return Err(errors::not_found("network", new.network));
    }
    if draft.details.private_ip.is_some() {
        let message = "the load_balancer is already attached to the network";
        return Err(Error::said(409, "load_balancer_already_attached", message));
    }
    if new.ip_range.as_deref().is_some_and(|range| fake_cloud_model::parse_cidr(range).is_none()) {
        return Err(errors::field("ip_range", "is not an IP range"));
    }
    let wanted = match new.ip.as_deref().map(str::parse::<Ipv4Addr>) {
        None => None,
        Some(Ok(ip)) => Some(ip),
        Some(Err(_)) => return Err(errors::field("ip", "is not an IPv4 address")),
    };
    draft.details.private_ip = Some(free_address(cloud, wanted, now)?);
    Ok(())
}

#[derive(Deserialize)]
struct Detach {
    network: u64,
}

fn detach(old: Detach, draft: &mut Draft, _: &mut Cloud, _: Now) -> Result<(), Error> {
    if old.network != NETWORK_ID || draft.details.private_ip.is_none() {
        let message = "the load_balancer is not attached to the network";
        return Err(Error::said(422, "load_balancer_not_attached_to_network", message));
    }
    draft.details.private_ip = None;
    // Targets that it reached through the network are removed as well.
    let private = std::mem::take(&mut draft.details.private_targets);
    draft.spec.backends.retain(|id| !private.contains(id));
    Ok(())
}

#[derive(Deserialize)]
struct NewType {
    load_balancer_type: IdOrName,
}

fn change_type(new: NewType, draft: &mut Draft, _: &mut Cloud, _: Now) -> Result<(), Error> {
    draft.details.kind = balancer_type(&new.load_balancer_type)?;
    let kind = draft.details.balancer_type();
    if draft.target_count() > kind.max_targets || draft.spec.frontends.len() > kind.max_services {
        let message = format!("the load_balancer has more targets or services than {} allows", kind.name);
        return Err(Error::said(422, "invalid_load_balancer_type", message));
    }
    Ok(())
}

#[derive(Deserialize)]
struct DnsPtr {
    ip: String,
    dns_ptr: Option<String>,
}

fn change_dns_ptr(new: DnsPtr, draft: &mut Draft, cloud: &mut Cloud, now: Now) -> Result<(), Error> {
    let wanted: IpAddr = new.ip.parse().map_err(|_| errors::field("ip", "is not an IP address"))?;
    let own = cloud.load_balancers(now.time).find(|lb| lb.name == draft.spec.name);
    if !own.is_some_and(|lb| lb.addresses.iter().any(|address| address.ip == Some(wanted))) {
        return Err(errors::not_found("ip", wanted));
    }
    match new.dns_ptr.filter(|name| !name.is_empty()) {
        Some(name) => draft.details.dns_ptr.insert(wanted.to_string(), name),
        None => draft.details.dns_ptr.remove(&wanted.to_string()),
    };
    Ok(())
}

#[derive(Deserialize)]
struct Protection {
    delete: bool,
}

fn disable_public_interface(draft: &mut Draft) -> Result<(), Error> {
    let public = draft.spec.backends.iter().any(|id| !draft.details.private_targets.contains(id));
    if public || !draft.details.ip_targets.is_empty() {
        let message = "the load_balancer has targets without use_private_ip";
        return Err(Error::said(422, "targets_without_use_private_ip", message));
    }
    draft.details.public_interface = false;
    Ok(())
}
