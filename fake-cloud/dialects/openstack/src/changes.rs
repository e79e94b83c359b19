//! Octavia: the parts of a load balancer. In the model, all calls about them are about their load balancer.

use super::balancers::{asked_for, change, find, status};
use super::identity::PROJECT;
use super::parts::{Fields, Kind, balancer_of, text};
use super::query;
use super::services::{Service, invalid, not_found};
use super::tree::{Pool, Tree, check_ranges};
use fake_cloud_driver::{LbState, Op};
use fake_cloud_kit::{Answer, Call, Error, Plan, Request, planned};
use fake_cloud_model::Cloud;
use serde_json::{Value, json};
use std::time::Duration;

const OCTAVIA: Service = Service::LoadBalancer;

/// The shown form of a part, with its links to others.
fn show(part: &Fields, state: LbState, links: &[(&str, Value)]) -> Value {
    let mut shown = part.clone();
    shown.insert("project_id".to_owned(), json!(PROJECT));
    shown.insert("provisioning_status".to_owned(), json!(status(state)));
    shown.insert("operating_status".to_owned(), json!("ONLINE"));
    shown.extend(links.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    Value::Object(shown)
}

/// A load balancer and its state.
struct ShownBalancer {
    id: String,
    state: LbState,
    tree: Tree,
}

impl ShownBalancer {
    fn of(cloud: &mut Cloud, id: &str, now: Duration) -> Result<ShownBalancer, Error> {
        let lb = find(cloud, id, now)?;
        Ok(ShownBalancer { id: id.to_owned(), state: lb.state, tree: Tree::of(lb) })
    }

    fn listener(&self, listener: &Fields) -> Value {
        show(listener, self.state, &[("loadbalancers", json!([{"id": self.id}])), ("l7policies", json!([]))])
    }

    fn pool(&self, pool: &Pool) -> Value {
        let users = self.tree.listeners.iter().filter(|one| one["default_pool_id"] == pool.own["id"]);
        let users: Vec<Value> = users.map(|listener| json!({"id": listener["id"]})).collect();
        let members: Vec<Value> = pool.members.iter().map(|member| json!({"id": member["id"]})).collect();
        let monitor = pool.monitor.as_ref().map(|monitor| monitor["id"].clone());
        let links = [
            ("listeners", json!(users)),
            ("loadbalancers", json!([{"id": self.id}])),
            ("members", json!(members)),
            ("healthmonitor_id", json!(monitor)),
        ];
        show(&pool.own, self.state, &links)
    }

    fn monitor(&self, pool: &Pool) -> Option<Value> {
        let monitor = pool.monitor.as_ref()?;
        Some(show(monitor, self.state, &[("pools", json!([{"id": pool.own["id"]}]))]))
    }

    /// All parts of this kind.
    fn all(&self, kind: Kind) -> Vec<Value> {
        let pools = || self.tree.pools.iter();
        match kind {
            Kind::LoadBalancer => Vec::new(),
            Kind::Listener => self.tree.listeners.iter().map(|listener| self.listener(listener)).collect(),
            Kind::Pool => pools().map(|pool| self.pool(pool)).collect(),
            Kind::Member => {
                pools().flat_map(|pool| &pool.members).map(|member| show(member, self.state, &[])).collect()
            }
            Kind::Monitor => pools().filter_map(|pool| self.monitor(pool)).collect(),
        }
    }

    /// The part of this kind with this id.
    fn one(&self, kind: Kind, id: &str) -> Result<Value, Error> {
        let found = self.all(kind).into_iter().find(|part| part["id"] == id);
        found.ok_or_else(|| not_found(kind.one(), id))
    }
}

/// Lists the parts of one kind: of one load balancer, or of all.
pub(super) fn list(request: &Request, kind: Kind) -> Plan {
    let query = query::list(request, &["loadbalancer_id", "name", "project_id"]);
    let call = match query.filter("loadbalancer_id") {
        Some(id) => Call::on(Op::LbGet, id),
        None => Call::new(Op::LbList),
    };
    let many = format!("{}s", kind.one());
    planned(&OCTAVIA, call, query, move |_, query, cloud, now| {
        let ids: Vec<String> = match query.filter("loadbalancer_id") {
            Some(id) => vec![find(cloud, id, now)?.id.clone()],
            None => cloud.list_load_balancers(now).iter().map(|lb| lb.id.clone()).collect(),
        };
        let mut found = Vec::new();
        for id in ids {
            found.extend(ShownBalancer::of(cloud, &id, now)?.all(kind));
        }
        found.retain(|part| query.filter("name").is_none_or(|name| part["name"] == name));
        Ok(query::page(query, &many, cloud.page_size(), found.into_iter()))
    })
}

pub(super) fn get(request: &Request, kind: Kind, id: &str) -> Plan {
    let id = id.to_owned();
    let call = Call::on(Op::LbGet, &balancer_of(&id));
    planned(&OCTAVIA, call, query::none(request), move |_, _, cloud, now| shown(200, cloud, kind, &id, now))
}

fn shown(answer: u16, cloud: &mut Cloud, kind: Kind, id: &str, now: Duration) -> Result<Answer, Error> {
    let seen = ShownBalancer::of(cloud, &balancer_of(id), now).map_err(|_| not_found(kind.one(), id))?;
    Ok(Answer::one(answer, kind.one(), &seen.one(kind, id)?))
}

/// Creates a part.
pub(super) fn create(request: &Request, kind: Kind) -> Plan {
    let body = asked_for(request, kind);
    let of = body.as_ref().ok().map(|wanted| parent(kind, wanted)).unwrap_or_default();
    let unknown = body.as_ref().ok().and_then(|wanted| kind.unknown_in(wanted));
    let call = Call::on(Op::LbUpdate, &of);
    let plan = planned(&OCTAVIA, call, query::none(request), move |_, _, cloud, now| {
        let wanted = body?;
        let id = change(cloud, &of, now, |tree| match kind {
            Kind::Listener => tree.add_listener(&of, &wanted),
            Kind::Pool => {
                let listener = Some(text(&wanted, "listener_id")).filter(|id| !id.is_empty());
                tree.add_pool(&of, listener, &wanted)
            }
            Kind::Monitor => tree.add_monitor(&of, text(&wanted, "pool_id"), &wanted),
            Kind::LoadBalancer | Kind::Member => Err(invalid("this is made otherwise".to_owned())),
        })?;
        shown(201, cloud, kind, &id, now)
    });
    plan.with_unknown(unknown)
}

/// The load balancer of a new part.
fn parent(kind: Kind, wanted: &Fields) -> String {
    let by_part = |key: &str| Some(text(wanted, key)).filter(|id| !id.is_empty()).map(balancer_of);
    let own = Some(text(wanted, "loadbalancer_id")).filter(|id| !id.is_empty()).map(str::to_owned);
    match kind {
        Kind::Pool => by_part("listener_id").or(own),
        Kind::Monitor => by_part("pool_id"),
        _ => own,
    }
    .unwrap_or_default()
}

/// Changes a part.
pub(super) fn update(request: &Request, kind: Kind, id: &str) -> Plan {
    let (id, body) = (id.to_owned(), asked_for(request, kind));
    let unknown = body.as_ref().ok().and_then(|wanted| kind.unknown_in(wanted));
    let of = balancer_of(&id);
    let plan =
        planned(&OCTAVIA, Call::on(Op::LbUpdate, &of), query::none(request), move |_, _, cloud, now| {
            let wanted = body?;
            change(cloud, &of, now, |tree| {
                let part = match kind {
                    Kind::Listener => Some(tree.listener(&id)?),
                    Kind::Pool => Some(&mut tree.pool(&id)?.own),
                    Kind::Monitor => tree.monitored(&id)?.monitor.as_mut(),
                    Kind::LoadBalancer | Kind::Member => None,
                };
                let part = part.ok_or_else(|| not_found(kind.one(), &id))?;
                kind.change(part, &wanted)?;
                check_ranges(part)
            })?;
            shown(200, cloud, kind, &id, now)
        });
    plan.with_unknown(unknown)
}

/// Removes a part.
pub(super) fn delete(request: &Request, kind: Kind, id: &str) -> Plan {
    let (id, of) = (id.to_owned(), balancer_of(id));
    planned(&OCTAVIA, Call::on(Op::LbUpdate, &of), query::none(request), move |_, _, cloud, now| {
        change(cloud, &of, now, |tree| match kind {
            Kind::Listener => tree.remove_listener(&id),
            Kind::Pool => tree.remove_pool(&id),
            Kind::Monitor => tree.monitored(&id).map(|pool| pool.monitor = None),
            Kind::LoadBalancer | Kind::Member => Err(not_found(kind.one(), &id)),
        })?;
        Ok(Answer::empty(204))
    })
}

pub(super) fn members(request: &Request, pool: &str) -> Plan {
    let (pool, of) = (pool.to_owned(), balancer_of(pool));
    let query = query::list(request, &["name"]);
    planned(&OCTAVIA, Call::on(Op::LbGet, &of), query, move |_, query, cloud, now| {
        let mut seen = ShownBalancer::of(cloud, &of, now).map_err(|_| not_found("Pool", &pool))?;
        let state = seen.state;
        let members = seen.tree.pool(&pool)?.members.clone();
        let shown = members.iter().map(|member| show(member, state, &[]));
        Ok(query::page(query, "members", cloud.page_size(), shown))
    })
}

/// Replaces the members of a pool. The answer has no body.
pub(super) fn set_members(request: &Request, pool: &str) -> Plan {
    let (pool, of, body) = (pool.to_owned(), balancer_of(pool), request.body::<Value>());
    let wanted = body.and_then(|body| {
        let listed = body.get("members").and_then(Value::as_array);
        let listed = listed.and_then(|list| list.iter().map(|item| item.as_object().cloned()).collect());
        listed.ok_or_else(|| invalid("Missing argument: \"members\"".to_owned()))
    });
    let unknown = wanted
        .as_ref()
        .ok()
        .and_then(|wanted: &Vec<Fields>| wanted.iter().find_map(|member| Kind::Member.unknown_in(member)));
    let plan =
        planned(&OCTAVIA, Call::on(Op::LbUpdate, &of), query::none(request), move |_, _, cloud, now| {
            let wanted = wanted?;
            change(cloud, &of, now, |tree| tree.set_members(&of, &pool, &wanted))?;
            Ok(Answer::empty(202))
        });
    plan.with_unknown(unknown)
}
