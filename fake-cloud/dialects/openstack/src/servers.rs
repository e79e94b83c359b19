//! Nova: servers, which cannot be changed here.

use super::identity::PROJECT;
use super::networks::NETWORK_NAME;
use super::query;
use super::services::{Service, not_found};
use fake_cloud_driver::{Instance, InstanceState, Op};
use fake_cloud_kit::{Answer, Call, Error, Plan, Request, planned};
use serde_json::{Value, json};
use std::net::IpAddr;

/// A condition on the names of servers in a list.
enum Name {
    /// The name equals this: the expression is anchored at both ends.
    Exact(String),
    /// The name contains this.
    Part(String),
}

impl Name {
    /// Parses the regular expression in a query; `None` if it is more than a literal text, quoted or anchored.
    fn of(expression: &str) -> Option<Name> {
        let anchored = expression.strip_prefix('^').and_then(|rest| rest.strip_suffix('$'));
        let mut text = String::new();
        let mut characters = anchored.unwrap_or(expression).chars();
        while let Some(character) = characters.next() {
            match character {
                '\\' => text.push(characters.next().filter(|quoted| !quoted.is_ascii_alphanumeric())?),
                '^' | '$' | '.' | '|' | '?' | '*' | '+' | '(' | ')' | '[' | ']' | '{' | '}' => return None,
                plain => text.push(plain),
            }
        }
        Some(if anchored.is_some() { Name::Exact(text) } else { Name::Part(text) })
    }
}

/// The shown form of an instance.
fn show(instance: &Instance) -> Value {
    let address = |ip: &str, kind: &str| {
        let version = if ip.parse().is_ok_and(|ip: IpAddr| ip.is_ipv6()) { 6 } else { 4 };
        json!({"addr": ip, "version": version, "OS-EXT-IPS:type": kind,
            "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01"})
    };
    let addresses = instance.addresses.iter().filter_map(|known| match known.kind.as_str() {
        "InternalIP" => Some(address(&known.address, "fixed")),
        "ExternalIP" => Some(address(&known.address, "floating")),
        _ => None,
    });
    let addresses: Vec<Value> = addresses.collect();
    let networks = if addresses.is_empty() { json!({}) } else { json!({ NETWORK_NAME: addresses }) };
    json!({
        "id": instance.id,
        "name": instance.name,
        "status": match instance.state {
            InstanceState::Running => "ACTIVE",
            InstanceState::Stopped => "SHUTOFF",
        },
        "tenant_id": PROJECT,
        "accessIPv4": "",
        "accessIPv6": "",
        "flavor": {"original_name": instance.instance_type, "vcpus": 2, "ram": 4096, "disk": 20, "ephemeral": 0,
            "swap": 0, "extra_specs": {}},
        "image": "",
        "addresses": networks,
        "metadata": {},
        "OS-EXT-AZ:availability_zone": instance.zone,
        "created": "2026-01-02T03:04:05Z",
        "updated": "2026-01-02T03:04:05Z",
        "links": [],
        "security_groups": [],
        "config_drive": "",
        "key_name": null,
    })
}

/// Lists servers, with all fields or only with names and ids.
pub(super) fn list(request: &Request, detailed: bool) -> Plan {
    let mut query = query::list(request, &["name", "all_tenants", "deleted"]);
    let name = query.filter("name").map(Name::of);
    let (name, unknown) = match name {
        None => (None, None),
        Some(Some(name)) => (Some(name), None),
        Some(None) => (None, query.filter("name").map(|text| format!("name={text:.80}: an expression"))),
    };
    if let Some(unknown) = unknown {
        query.does_not_know(unknown);
    }
    let call = match &name {
        Some(Name::Exact(name)) => Call::new(Op::InstanceGet).keyed("name", name),
        _ => Call::new(Op::InstanceList),
    };
    planned(&Service::Compute, call, query, move |_, query, cloud, now| {
        let limit = cloud.page_size();
        // A look-up is always fresh; only lists may be stale.
        let found: Vec<&Instance> = match &name {
            Some(Name::Exact(name)) => {
                cloud.instances_named(name).filter(|instance| instance.name == *name).collect()
            }
            Some(Name::Part(part)) => {
                let mut all = cloud.list_instances(now);
                all.retain(|instance| instance.name.contains(part));
                all
            }
            None => cloud.list_instances(now),
        };
        let brief = |shown: Value| json!({"id": shown["id"], "name": shown["name"], "links": []});
        let shown = found.into_iter().map(show).map(|shown| if detailed { shown } else { brief(shown) });
        Ok(query::page(query, "servers", limit, shown))
    })
}

pub(super) fn get(request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(&Service::Compute, Call::on(Op::InstanceGet, &id), query::none(request), move |_, _, cloud, _| {
        let instance = cloud.instance(&id).map_err(|_| not_found("Instance", &id))?;
        Ok(Answer::one(200, "server", &show(instance)))
    })
}

/// The plan of a call that would change a server.
pub(super) fn forbidden(request: &Request, call: Call) -> Plan {
    planned(&Service::Compute, call, query::none(request), |_, _, _, _| {
        Err(Error::new(403, "Policy doesn't allow this to be performed."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_and_anchored_name_is_exact() {
        let read = |text: &str| match Name::of(text) {
            Some(Name::Exact(name)) => format!("={name}"),
            Some(Name::Part(part)) => format!("~{part}"),
            None => "?".to_owned(),
        };
        let seen = ["^node-1$", "^a\\.b$", "node", "^node", "a.*", "\\d"].map(read);
        assert_eq!(seen, ["=node-1", "=a.b", "~node", "?", "?", "?"]);
    }
}
