//! Endpoints and EndpointSlices.
//!
//! Source: `validateEndpointSubsets` in `pkg/apis/core/validation/validation.go`, `pkg/apis/discovery/validation`.

use serde_json::Value;

use super::strategy::Strategy;
use super::{Context, meta};
use embedded_objects::cause::Cause;
use embedded_objects::kinds::Kind;
use embedded_objects::rules::{names, net};
use embedded_objects::value::{Edit as _, PathAccess as _};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

pub(super) struct Endpoints;
pub(super) struct Slice;

fn label_causes(causes: &mut Vec<Cause>, path: String, text: &str) {
    causes.extend(names::label(text).iter().map(|fault| Cause::invalid(path.clone(), text, fault)));
}

impl Endpoints {
    fn validate(object: &Value) -> Vec<Cause> {
        let mut causes = Vec::new();
        for (at, subset) in object.list("subsets").iter().enumerate() {
            let path = format!("subsets[{at}]");
            if subset.list("addresses").is_empty() && subset.list("notReadyAddresses").is_empty() {
                causes.push(Cause::required(path.clone(), "must specify `addresses` or `notReadyAddresses`"));
            }
            for list in ["addresses", "notReadyAddresses"] {
                for (at, address) in subset.list(list).iter().enumerate() {
                    endpoint_address(address, &format!("{path}.{list}[{at}]"), &mut causes);
                }
            }
            let ports = subset.list("ports");
            for (at, port) in ports.iter().enumerate() {
                endpoint_port(port, ports.len() > 1, &format!("{path}.ports[{at}]"), &mut causes);
            }
        }
        causes
    }
}

fn endpoint_address(address: &Value, path: &str, causes: &mut Vec<Cause>) {
    let ip = address.text("ip");
    causes.extend(net::ip_causes(&format!("{path}.ip"), ip));
    let host = address.text("hostname");
    if !host.is_empty() {
        label_causes(causes, format!("{path}.hostname"), host);
    }
    if let Some(node) = address.at("nodeName").as_str() {
        let field = format!("{path}.nodeName");
        causes.extend(names::subdomain(node).iter().map(|fault| Cause::invalid(field.clone(), node, fault)));
    }
    causes.extend(net::endpoint_ip_causes(&format!("{path}.ip"), ip));
}

fn endpoint_port(port: &Value, named: bool, path: &str, causes: &mut Vec<Cause>) {
    let name = port.text("name");
    if name.is_empty() {
        if named {
            causes.push(Cause::required(format!("{path}.name"), ""));
        }
    } else {
        label_causes(causes, format!("{path}.name"), name);
    }
    let number = port.int("port");
    causes.extend(net::port_fault(number).map(|why| Cause::invalid(format!("{path}.port"), number, why)));
    let protocol = port.text("protocol");
    if !PROTOCOLS.contains(&protocol) {
        causes.push(Cause::not_supported(format!("{path}.protocol"), protocol, PROTOCOLS));
    }
    app_protocol(port, path, causes);
}

fn app_protocol(port: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let Some(app) = port.at("appProtocol").as_str() {
        let field = format!("{path}.appProtocol");
        causes.extend(names::qualified(app).iter().map(|fault| Cause::invalid(field.clone(), app, fault)));
    }
}

impl Strategy for Endpoints {
    fn default(&self, object: &mut Value) {
        for subset in object.items("subsets") {
            for port in subset.items("ports") {
                port.put_default("protocol", "TCP");
            }
        }
    }

    fn validate_create(&self, object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        Endpoints::validate(object)
    }

    fn validate_update(
        &self,
        kind: &Kind,
        _sub: Option<&str>,
        old: &Value,
        new: &Value,
        _cx: &Context<'_>,
    ) -> Vec<Cause> {
        let mut causes = meta::changed(old, new);
        causes.extend(meta::created(kind, new));
        if old.at("subsets") != new.at("subsets") {
            causes.extend(Endpoints::validate(new));
        }
        causes
    }
}

impl Slice {
    fn validate(object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut causes = Vec::new();
        let family = object.text("addressType");
        let families = ["FQDN", "IPv4", "IPv6"];
        if family.is_empty() {
            causes.push(Cause::required("addressType", ""));
        } else if !families.contains(&family) {
            causes.push(Cause::not_supported("addressType", family, &families));
        }
        let ports = object.list("ports");
        for (at, port) in ports.iter().enumerate() {
            let path = format!("ports[{at}]");
            let name = port.text("name");
            if !name.is_empty() {
                label_causes(&mut causes, format!("{path}.name"), name);
            }
            if ports[..at].iter().any(|other| other.text("name") == name) {
                causes.push(Cause::duplicate(format!("{path}.name"), name));
            }
            let protocol = port.text("protocol");
            if !PROTOCOLS.contains(&protocol) {
                causes.push(Cause::not_supported(format!("{path}.protocol"), protocol, PROTOCOLS));
            }
            app_protocol(port, &path, &mut causes);
        }
        if old.is_none_or(|old| old.at("endpoints") != object.at("endpoints")) {
            for (at, endpoint) in object.list("endpoints").iter().enumerate() {
                one_endpoint(endpoint, family, &format!("endpoints[{at}]"), &mut causes);
            }
        }
        causes
    }
}

fn one_endpoint(endpoint: &Value, family: &str, path: &str, causes: &mut Vec<Cause>) {
    let addresses = endpoint.list("addresses");
    let list = format!("{path}.addresses");
    if addresses.is_empty() {
        causes.push(Cause::required(list.clone(), "must contain at least 1 address"));
    } else if addresses.len() > 100 {
        causes.push(Cause::too_many(list.clone(), addresses.len(), 100));
    }
    for (at, address) in addresses.iter().filter_map(Value::as_str).enumerate() {
        let field = format!("{list}[{at}]");
        if !matches!(family, "IPv4" | "IPv6") {
            continue;
        }
        let faults = net::ip_causes(&field, address);
        if faults.is_empty() {
            if net::parse_ip(address).is_some_and(|ip| ip.is_ipv4()) != (family == "IPv4") {
                causes.push(Cause::invalid(list.clone(), address, format!("must be an {family} address")));
            }
            causes.extend(net::endpoint_ip_causes(&field, address));
        } else {
            causes.extend(faults);
        }
    }
    if let Some(node) = endpoint.at("nodeName").as_str() {
        let field = format!("{path}.nodeName");
        causes.extend(names::subdomain(node).iter().map(|fault| Cause::invalid(field.clone(), node, fault)));
    }
    if let Some(host) = endpoint.at("hostname").as_str() {
        label_causes(causes, format!("{path}.hostname"), host);
    }
}

impl Strategy for Slice {
    fn default(&self, object: &mut Value) {
        for port in object.items("ports") {
            if !port.has("name") {
                port.put("name", "");
            }
            if !port.has("protocol") {
                port.put("protocol", "TCP");
            }
        }
    }

    fn prepare_create(&self, object: &mut Value, _cx: &mut Context<'_>) {
        object.put("metadata.generation", 1);
    }

    fn validate_create(&self, object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        Slice::validate(object, None)
    }

    fn prepare_update(&self, _sub: Option<&str>, old: &Value, new: &mut Value, _cx: &mut Context<'_>) {
        let parts = ["addressType", "endpoints", "ports"];
        let labels = old.map("metadata.labels") != new.map("metadata.labels");
        if labels || parts.iter().any(|part| old.at(part) != new.at(part)) {
            new.put("metadata.generation", old.int("metadata.generation") + 1);
        }
    }

    fn validate_update(
        &self,
        kind: &Kind,
        _sub: Option<&str>,
        old: &Value,
        new: &Value,
        _cx: &Context<'_>,
    ) -> Vec<Cause> {
        let mut causes = meta::created(kind, new);
        causes.extend(Slice::validate(new, Some(old)));
        causes.extend(meta::immutable(old, new, "addressType"));
        causes
    }
}
