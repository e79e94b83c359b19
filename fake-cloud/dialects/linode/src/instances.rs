//! Calls about instances, which cannot be changed here.

use super::errors;
use super::query;
use super::state::State;
use fake_cloud_driver::{Instance, InstanceState, Op};
use fake_cloud_kit::{Answer, Call, Error, Plan, Request, Text, TextMap, planned};
use serde::Serialize;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// An instance.
#[derive(Serialize)]
struct Linode<'a> {
    id: u64,
    label: &'a str,
    group: &'static str,
    status: &'static str,
    created: &'a str,
    updated: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    ipv4: Vec<&'a str>,
    ipv6: Option<String>,
    image: Option<()>,
    region: &'a str,
    specs: Specs,
    alerts: Value,
    backups: Value,
    hypervisor: &'static str,
    watchdog_enabled: bool,
    tags: [&'static str; 0],
    host_uuid: String,
    has_user_data: bool,
    placement_group: Option<()>,
    disk_encryption: &'static str,
    lke_cluster_id: Option<()>,
    capabilities: [&'static str; 0],
    interface_generation: &'static str,
    maintenance_policy: &'static str,
    locks: [&'static str; 0],
}

#[derive(Serialize)]
struct Specs {
    disk: u32,
    memory: u32,
    vcpus: u32,
    gpus: u32,
    transfer: u32,
    accelerated_devices: u32,
}

/// Callers only need an instance to have a size.
const SPECS: Specs =
    Specs { disk: 81_920, memory: 4096, vcpus: 2, gpus: 0, transfer: 4000, accelerated_devices: 0 };

impl<'a> Linode<'a> {
    fn of(id: u64, instance: &'a Instance, created: &'a str) -> Linode<'a> {
        let ips = || {
            let ip = |kind: &str| matches!(kind, "InternalIP" | "ExternalIP");
            instance.addresses.iter().filter(move |a| ip(&a.kind)).map(|a| a.address.as_str())
        };
        let public = instance.addresses.iter().filter(|a| a.kind == "ExternalIP").map(|a| &a.address);
        let ipv6 = public.into_iter().find(|text| text.parse::<Ipv6Addr>().is_ok());
        Linode {
            id,
            label: &instance.name,
            group: "",
            status: match instance.state {
                InstanceState::Running => "running",
                InstanceState::Stopped => "offline",
            },
            created,
            updated: created,
            kind: &instance.instance_type,
            ipv4: ips().filter(|text| text.parse::<Ipv4Addr>().is_ok()).collect(),
            ipv6: ipv6.map(|text| format!("{text}/128")),
            image: None,
            region: &instance.region,
            specs: SPECS,
            alerts: json!({"cpu": 180, "io": 10_000, "network_in": 10, "network_out": 10, "transfer_quota": 80}),
            backups: json!({
                "available": false, "enabled": false, "last_successful": null,
                "schedule": {"day": null, "window": null},
            }),
            hypervisor: "kvm",
            watchdog_enabled: true,
            tags: [],
            // Forty digits for the machine's host: each machine has its own.
            host_uuid: format!("{id:040x}"),
            has_user_data: false,
            placement_group: None,
            disk_encryption: "disabled",
            lke_cluster_id: None,
            capabilities: [],
            interface_generation: "legacy_config",
            maintenance_policy: "linode/migrate",
            locks: [],
        }
    }
}

/// The JSON of an instance. Every id is a number: the driver API accepts no other ids for this dialect.
fn text(texts: &mut TextMap<Instance>, instance: &Instance, created: &str) -> Text {
    let id = instance.id.parse().unwrap_or_default();
    texts.text(&instance.id, instance, &[], || Linode::of(id, instance, created))
}

pub(super) fn list(state: &Arc<State>, request: &Request) -> Plan {
    let query = query::list(request);
    let call = query::call(&query, (Op::InstanceList, Op::InstanceGet), &["label"]);
    planned(state, call, query, |state, query, cloud, now| {
        let (filter, limit) = (&query.besides, cloud.page_size());
        // A look-up is always fresh; only lists may be stale.
        let mut found: Vec<&Instance> = match filter.equal("label") {
            Some(label) => cloud.instances_named(label).filter(|instance| instance.name == label).collect(),
            None => cloud.list_instances(now),
        };
        let mut texts = state.instances.open();
        let started = state.started();
        found.retain(|instance| {
            filter.is_empty()
                || serde_json::to_value(text(&mut texts, instance, started))
                    .is_ok_and(|shown| filter.fits(&shown))
        });
        Ok(query::page(query, limit, found.into_iter().map(|instance| text(&mut texts, instance, started))))
    })
}

pub(super) fn get(state: &Arc<State>, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(state, Call::on(Op::InstanceGet, &id), query::none(request), move |state, _, cloud, _| {
        let instance = cloud.instance(&id).map_err(|_| errors::not_found())?;
        Ok(Answer::json(200, &text(&mut state.instances.open(), instance, state.started())))
    })
}

/// The plan of a call that would change an instance.
pub(super) fn forbidden(state: &Arc<State>, request: &Request, call: Call) -> Plan {
    planned(state, call, query::none(request), |_, _, _, _| Err(Error::new(403, "Unauthorized")))
}

/// The profile of the token's user.
pub(super) fn profile(state: &Arc<State>, request: &Request) -> Plan {
    planned(state, Call::new(Op::Other), query::none(request), |_, _, _, _| {
        Ok(Answer::json(
            200,
            &json!({
                "uid": 1, "username": "user", "email": "user@example.com", "timezone": "UTC",
                "email_notifications": false, "ip_whitelist_enabled": false, "two_factor_auth": false,
                "restricted": false, "authorized_keys": [], "lish_auth_method": "keys_only",
                "authentication_type": "password", "verified_phone_number": null,
                "referrals": {"code": "", "url": "", "total": 0, "completed": 0, "pending": 0, "credit": 0},
            }),
        ))
    })
}
