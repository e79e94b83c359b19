//! Octavia: load balancers as a whole.

use super::identity::PROJECT;
use super::networks::{NETWORK, SUBNET};
use super::parts::{Fields, Kind, text, vip_port};
use super::query;
use super::services::{Service, conflict, invalid, not_found};
use super::tree::{Tree, owner};
use fake_cloud_driver::{LbState, LoadBalancer, Op};
use fake_cloud_kit::{Answer, Call, Error, Plan, Request, planned};
use fake_cloud_model::{Cloud, Dependents, Families};
use serde_json::{Value, json};
use std::time::Duration;

const OCTAVIA: Service = Service::LoadBalancer;

/// The status of a load balancer in the API's words.
pub(super) fn status(state: LbState) -> &'static str {
    match state {
        LbState::Provisioning => "PENDING_CREATE",
        LbState::Active => "ACTIVE",
        LbState::Deleting => "PENDING_DELETE",
    }
}

/// The shown form of a load balancer.
fn show(lb: &LoadBalancer) -> Value {
    let tree = Tree::of(lb);
    let ids = |parts: &mut dyn Iterator<Item = &Fields>| -> Value {
        parts.map(|part| json!({"id": part["id"]})).collect()
    };
    let mut shown = tree.own.clone();
    let vip = Some(text(&tree.own, "vip_address")).filter(|ip| !ip.is_empty());
    let state = lb.state;
    for (key, value) in [
        ("id", json!(lb.id)),
        ("name", json!(lb.name)),
        ("project_id", json!(PROJECT)),
        ("provisioning_status", json!(status(state))),
        ("operating_status", json!(if state == LbState::Active { "ONLINE" } else { "OFFLINE" })),
        ("vip_address", json!(vip.map_or_else(|| vip_of(&lb.id), str::to_owned))),
        ("vip_port_id", json!(vip_port(&lb.id))),
        ("vip_subnet_id", json!(SUBNET)),
        ("vip_network_id", json!(NETWORK)),
        ("listeners", ids(&mut tree.listeners.iter())),
        ("pools", ids(&mut tree.pools.iter().map(|pool| &pool.own))),
        ("created_at", json!("2026-01-02T03:04:05")),
        ("updated_at", json!("2026-01-02T03:04:05")),
    ] {
        shown.insert(key.to_owned(), value);
    }
    Value::Object(shown)
}

/// The private address of a load balancer, a different one for each. Its public address in the model is that
/// of the floating IP that it may get.
pub(super) fn vip_of(id: &str) -> String {
    let number =
        id.rsplit('-').next().and_then(|tail| u64::from_str_radix(tail, 16).ok()).unwrap_or_default();
    let [.., high, low] = number.to_be_bytes();
    format!("10.11.{high}.{low}")
}

pub(super) fn list(request: &Request) -> Plan {
    let query = query::list(request, &["name", "vip_port_id", "project_id"]);
    let call = match query.filter("name") {
        Some(name) => Call::new(Op::LbGet).keyed("name", name),
        None => Call::new(Op::LbList),
    };
    planned(&OCTAVIA, call, query, |_, query, cloud, now| {
        let limit = cloud.page_size();
        // A look-up is always fresh; only lists may be stale.
        let mut found: Vec<&LoadBalancer> = match query.filter("name") {
            Some(name) => cloud.load_balancers(now).filter(|lb| lb.name == name).collect(),
            None => cloud.list_load_balancers(now),
        };
        if let Some(port) = query.filter("vip_port_id") {
            found.retain(|lb| vip_port(&lb.id) == port);
        }
        Ok(query::page(query, "loadbalancers", limit, found.into_iter().map(show)))
    })
}

pub(super) fn get(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(&OCTAVIA, Call::on(Op::LbGet, &id), query::none(request), move |_, _, cloud, now| {
        Ok(Answer::one(200, "loadbalancer", &show(find(cloud, &id, now)?)))
    })
}

pub(super) fn create(request: &Request) -> Plan {
    let body = asked_for(request, Kind::LoadBalancer);
    let (mut call, mut unknown) = (Call::new(Op::LbCreate), None);
    if let Ok(wanted) = &body {
        call = call.keyed("name", text(wanted, "name")).owned_by(&owner(text(wanted, "description")));
        unknown = Kind::LoadBalancer.unknown_in(wanted);
    }
    let plan = planned(&OCTAVIA, call, query::none(request), move |_, _, cloud, now| {
        let wanted = body?;
        let nets = [("vip_subnet_id", SUBNET), ("vip_network_id", NETWORK)];
        let given = nets.map(|(key, known)| (key, text(&wanted, key), known));
        if let Some((key, id, _)) = given.iter().find(|(_, id, known)| !id.is_empty() && id != known) {
            return Err(invalid(format!("{key} {id:.80} not found.")));
        }
        if given.iter().all(|(_, id, _)| id.is_empty()) {
            let text =
                "Validation failure: VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id.";
            return Err(invalid(text.to_owned()));
        }
        let mut tree = Tree::new(&wanted)?;
        let id = cloud.create_load_balancer(tree.clone().into_spec()?, Families::V4, now)?.id.clone();
        // The ids of its parts contain its own.
        tree.belongs_to(&id);
        let spec = tree.into_spec()?;
        let lb = cloud.update_load_balancer(&id, now, |_| spec)?;
        Ok(Answer::one(201, "loadbalancer", &show(lb)).creating(&id))
    });
    plan.with_unknown(unknown)
}

pub(super) fn update(request: &Request, id: &str) -> Plan {
    let (id, body) = (id.to_owned(), asked_for(request, Kind::LoadBalancer));
    let unknown = body.as_ref().ok().and_then(|wanted| Kind::LoadBalancer.unknown_in(wanted));
    let plan =
        planned(&OCTAVIA, Call::on(Op::LbUpdate, &id), query::none(request), move |_, _, cloud, now| {
            let wanted = body?;
            change(cloud, &id, now, |tree| Kind::LoadBalancer.change(&mut tree.own, &wanted))?;
            Ok(Answer::one(200, "loadbalancer", &show(find(cloud, &id, now)?)))
        });
    plan.with_unknown(unknown)
}

pub(super) fn delete(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    let query = query::list(request, &["cascade"]);
    planned(&OCTAVIA, Call::on(Op::LbDelete, &id), query, move |_, query, cloud, now| {
        let lb = find(cloud, &id, now)?;
        check_mutable(lb)?;
        let cascade = query.filter("cascade").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let tree = Tree::of(lb);
        let childless = tree.listeners.is_empty() && tree.pools.is_empty();
        if !(cascade || childless) {
            return Err(conflict(format!("Cannot delete Load Balancer {id} - it has children")));
        }
        // A floating IP outlives its load balancer.
        cloud.delete_load_balancer(&id, Dependents::Keep, now)?;
        Ok(Answer::empty(204))
    })
}

/// The fields of a request, which are under the key of its kind.
///
/// # Errors
/// When the key is missing.
pub(super) fn asked_for(request: &Request, kind: Kind) -> Result<Fields, Error> {
    let body: Value = request.body()?;
    let wanted = body.get(kind.one()).and_then(Value::as_object);
    wanted.cloned().ok_or_else(|| invalid(format!("Missing argument: \"{}\"", kind.one())))
}

/// The load balancer with this id.
///
/// # Errors
/// When there is none.
pub(super) fn find<'a>(cloud: &'a mut Cloud, id: &str, now: Duration) -> Result<&'a LoadBalancer, Error> {
    cloud.load_balancer(id, now).map_err(|_| not_found("Load Balancer", id))
}

/// Changes the details of a load balancer, and accordingly the model.
///
/// # Errors
/// When there is none, it is being created or deleted, or the change is rejected.
pub(super) fn change<T>(
    cloud: &mut Cloud,
    id: &str,
    now: Duration,
    change: impl FnOnce(&mut Tree) -> Result<T, Error>,
) -> Result<T, Error> {
    let lb = find(cloud, id, now)?;
    check_mutable(lb)?;
    let mut tree = Tree::of(lb);
    let outcome = change(&mut tree)?;
    let spec = tree.into_spec()?;
    cloud.update_load_balancer(id, now, |_| spec)?;
    Ok(outcome)
}

fn check_mutable(lb: &LoadBalancer) -> Result<(), Error> {
    if lb.state == LbState::Active {
        return Ok(());
    }
    Err(conflict(format!("Invalid state {} of loadbalancer resource {}", status(lb.state), lb.id)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_load_balancer_has_a_private_address_of_its_own() {
        let vips = ["fa4ec10d-0000-8000-8000-000000000007", "fa4ec10d-0000-8000-8000-000000000107", "x"];
        assert_eq!(vips.map(super::vip_of), ["10.11.0.7", "10.11.1.7", "10.11.0.0"]);
    }
}
