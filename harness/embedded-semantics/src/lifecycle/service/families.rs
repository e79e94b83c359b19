//! The IP families of a Service: how they are inferred, and which ones the cluster has.
//!
//! Source: `initIPFamilyFields` in `pkg/registry/core/service/storage/alloc.go`.

use serde_json::{Value, json};

use super::super::Context;
use super::needs::{is_headless, needs_cluster_ip};
use super::validate;
use crate::alloc::Family;
use embedded_objects::cause::Cause;
use embedded_objects::rules::net;
use embedded_objects::status::{self, Status};
use embedded_objects::value::{Edit as _, PathAccess as _};

const POLICY: &str = "spec.ipFamilyPolicy";

/// Fills in the families and their policy.
pub(super) fn init(old: Option<&Value>, new: &mut Value, cx: &Context<'_>) -> Result<(), Status> {
    if !needs_cluster_ip(new) || old.is_some_and(|old| keeps_preferred_families(old, new)) {
        return Ok(());
    }
    let selectorless = is_none(new) && new.map("spec.selector").is_empty();
    if !new.has(POLICY) {
        let policy = match old.map(|old| old.text(POLICY)).filter(|policy| !policy.is_empty()) {
            Some(policy) => policy,
            None if selectorless => "RequireDualStack",
            None => "SingleStack",
        };
        new.put(POLICY, policy);
    }
    refuse(new, validate::cluster_ips(new, old))?;
    let mut causes = Vec::new();
    if let Some(old) = old {
        causes.extend(narrowed(old, new));
    }
    causes.extend(too_many_for_one_stack(new));
    causes.extend(infer_from_ips(new, cx));
    refuse(new, causes)?;

    let families = cx.allocator.families();
    if new.list("spec.ipFamilies").is_empty() && selectorless {
        put_default_family(new, &families);
    }
    let both = new.text(POLICY) != "SingleStack";
    if selectorless {
        if both {
            add_other_family(new);
        }
        return Ok(());
    }
    let mut causes = Vec::new();
    if new.text(POLICY) == "RequireDualStack" && families.len() < 2 {
        let why = "this cluster is not configured for dual-stack services";
        causes.push(Cause::invalid(POLICY, new.text(POLICY), why));
    }
    for (at, family) in new.list("spec.ipFamilies").iter().enumerate() {
        if !families.iter().any(|known| family == known.name()) {
            let field = format!("spec.ipFamilies[{at}]");
            causes.push(Cause::invalid(field, family.clone(), "not configured on this cluster"));
        }
    }
    refuse(new, causes)?;
    if new.list("spec.ipFamilies").is_empty() {
        put_default_family(new, &families);
    }
    if both && families.len() == 2 {
        add_other_family(new);
    }
    Ok(())
}

fn refuse(service: &Value, causes: Vec<Cause>) -> Result<(), Status> {
    if causes.is_empty() {
        Ok(())
    } else {
        Err(status::invalid_of("", "Service", service.text("metadata.name"), &causes))
    }
}

fn is_none(service: &Value) -> bool {
    service.text("spec.clusterIP") == "None"
}

fn put_default_family(new: &mut Value, families: &[Family]) {
    let name = families.first().map(|family| family.name()).unwrap_or("IPv4");
    new.put("spec.ipFamilies", json!([name]));
}

fn add_other_family(new: &mut Value) {
    let other = match new.list("spec.ipFamilies") {
        [only] if only == "IPv4" => json!(["IPv4", "IPv6"]),
        [only] if only == "IPv6" => json!(["IPv6", "IPv4"]),
        _ => return,
    };
    new.put("spec.ipFamilies", other);
}

/// Whether the Service prefers two families before and after, and changed none of them.
pub(super) fn keeps_preferred_families(old: &Value, new: &Value) -> bool {
    let preferred = |service: &Value| service.text(POLICY) == "PreferDualStack";
    new.has(POLICY)
        && preferred(new)
        && (!old.has(POLICY) || preferred(old))
        && old.text("spec.type") == new.text("spec.type")
        && matches!(new.text("spec.type"), "ClusterIP" | "NodePort" | "LoadBalancer")
        && old.list("spec.clusterIPs") == new.list("spec.clusterIPs")
        && old.list("spec.ipFamilies") == new.list("spec.ipFamilies")
}

/// A change to one family removes the second if the update left the lists unchanged; otherwise it has to be
/// explicit.
fn narrowed(old: &Value, new: &mut Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let lists = [("spec.clusterIPs", "secondary cluster IP"), ("spec.ipFamilies", "secondary IP family")];
    for (path, what) in lists {
        let (before, after) = (old.list(path), new.list(path));
        if new.text(POLICY) == "SingleStack" {
            if before == after && after.len() > 1 {
                let first = after[0].clone();
                new.put(path, json!([first]));
            }
        } else if !after.is_empty() && after.len() < before.len() {
            let why = format!("must be 'SingleStack' to release the {what}");
            causes.push(Cause::invalid(POLICY, new.text(POLICY), why));
        }
    }
    causes
}

fn too_many_for_one_stack(new: &Value) -> Vec<Cause> {
    if new.text(POLICY) != "SingleStack" {
        return Vec::new();
    }
    [("spec.clusterIPs", "cluster IPs"), ("spec.ipFamilies", "IP families")]
        .into_iter()
        .filter(|(path, _)| new.list(path).len() == 2)
        .map(|(_, what)| {
            let why =
                format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            Cause::invalid(POLICY, new.text(POLICY), why)
        })
        .collect()
}

/// Adds the family of each address that has none yet.
fn infer_from_ips(new: &mut Value, cx: &Context<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    if is_headless(new) {
        return causes;
    }
    let ips = new.list("spec.clusterIPs").to_vec();
    let mut families = new.list("spec.ipFamilies").to_vec();
    for (at, ip) in ips.iter().enumerate().skip(families.len()) {
        let Some(family) = ip.as_str().and_then(net::parse_ip).map(Family::of) else { continue };
        if cx.allocator.network(family).is_some() {
            families.push(family.name().into());
        } else {
            let why = format!("{} is not configured on this cluster", family.name());
            causes.push(Cause::invalid(format!("spec.clusterIPs[{at}]"), Value::Array(ips.clone()), why));
        }
    }
    if !families.is_empty() {
        new.put("spec.ipFamilies", families);
    }
    causes
}
