//! Calls about the configs of a NodeBalancer and their nodes. In the model, all of them are about the NodeBalancer.

use super::details::Details;
use super::errors;
use super::nodebalancers::{change, find};
use super::query;
use super::state::State;
use super::wire::{NewConfig, ShownConfig, ShownNode};
use fake_cloud_driver::Op;
use fake_cloud_kit::{Answer, Body, Call, Error, Plan, Request, planned, planned_with};
use fake_cloud_model::Cloud;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

pub(super) fn list(state: &Arc<State>, request: &Request, balancer: &str) -> Plan {
    let balancer = balancer.to_owned();
    planned(state, Call::on(Op::LbGet, &balancer), query::list(request), move |_, query, cloud, now| {
        let (details, limit) = (details(cloud, &balancer, now)?, cloud.page_size());
        Ok(query::page(query, limit, details.configs.iter().map(|config| ShownConfig::of(&balancer, config))))
    })
}

pub(super) fn get(state: &Arc<State>, request: &Request, balancer: &str, config: &str) -> Plan {
    let (balancer, config) = (balancer.to_owned(), config.to_owned());
    planned(state, Call::on(Op::LbGet, &balancer), query::none(request), move |_, _, cloud, now| {
        shown(cloud, &balancer, &config, now)
    })
}

pub(super) fn create(state: &Arc<State>, request: &Request, balancer: &str) -> Plan {
    let (balancer, body) = (balancer.to_owned(), Body::<NewConfig>::of(request));
    let call = Call::on(Op::LbUpdate, &balancer);
    planned_with(state, call, request, body, move |state, new, cloud, now| {
        let id = change(state, cloud, &balancer, None, now, |details, id| new.add_to(details, id))?;
        shown(cloud, &balancer, &id.to_string(), now)
    })
}

pub(super) fn rebuild(state: &Arc<State>, request: &Request, balancer: &str, config: &str) -> Plan {
    let (balancer, config) = (balancer.to_owned(), config.to_owned());
    let (call, body) = (Call::on(Op::LbUpdate, &balancer), Body::<NewConfig>::of(request));
    planned_with(state, call, request, body, move |state, new, cloud, now| {
        change(state, cloud, &balancer, None, now, |details, id| new.rebuild(details, &config, id))?;
        shown(cloud, &balancer, &config, now)
    })
}

pub(super) fn delete(state: &Arc<State>, request: &Request, balancer: &str, config: &str) -> Plan {
    let (balancer, config) = (balancer.to_owned(), config.to_owned());
    let call = Call::on(Op::LbUpdate, &balancer);
    planned(state, call, query::none(request), move |state, _, cloud, now| {
        change(state, cloud, &balancer, None, now, |details, _| {
            details.config(&config).ok_or_else(errors::not_found)?;
            details.configs.retain(|present| present.id.to_string() != config);
            Ok(())
        })?;
        Ok(Answer::json(200, &json!({})))
    })
}

pub(super) fn nodes(state: &Arc<State>, request: &Request, balancer: &str, config: &str) -> Plan {
    let (balancer, config) = (balancer.to_owned(), config.to_owned());
    planned(state, Call::on(Op::LbGet, &balancer), query::list(request), move |_, query, cloud, now| {
        let (details, limit) = (details(cloud, &balancer, now)?, cloud.page_size());
        let config = details.config(&config).ok_or_else(errors::not_found)?;
        let shown = config.nodes.iter().map(|node| ShownNode::of(&balancer, config.id, node));
        Ok(query::page(query, limit, shown))
    })
}

pub(super) fn node(state: &Arc<State>, request: &Request, balancer: &str, config: &str, node: &str) -> Plan {
    let [balancer, config, node] = [balancer, config, node].map(str::to_owned);
    planned(state, Call::on(Op::LbGet, &balancer), query::none(request), move |_, _, cloud, now| {
        let details = details(cloud, &balancer, now)?;
        let config = details.config(&config).ok_or_else(errors::not_found)?;
        let found = config.nodes.iter().find(|present| present.id.to_string() == node);
        let found = found.ok_or_else(errors::not_found)?;
        Ok(Answer::json(200, &ShownNode::of(&balancer, config.id, found)))
    })
}

fn details(cloud: &mut Cloud, balancer: &str, now: Duration) -> Result<Details, Error> {
    find(cloud, balancer, now).map(Details::of)
}

fn shown(cloud: &mut Cloud, balancer: &str, config: &str, now: Duration) -> Result<Answer, Error> {
    let details = details(cloud, balancer, now)?;
    let config = details.config(config).ok_or_else(errors::not_found)?;
    Ok(Answer::json(200, &ShownConfig::of(balancer, config)))
}
