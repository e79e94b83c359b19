//! Reserved addresses of a region. One that a forwarding rule uses can be deleted, and then belongs to the rule alone.

use super::balancing;
use super::errors::invalid;
use super::names::Scope;
use super::parts::{ADDRESS, link_of, reserved};
use super::resources::Kind;
use fake_cloud_kit::Error;
use fake_cloud_model::Cloud;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::time::Duration;

/// Reserved addresses.
pub(super) struct Addresses;

impl Kind for Addresses {
    const COLLECTION: &'static str = "addresses";
    const KIND: &'static str = "compute#address";
    const AUX: &'static str = ADDRESS;
    const FIELDS: &'static [&'static str] = &["description", "address", "addressType", "networkTier"];

    fn prepare(
        cloud: &mut Cloud,
        scope: &Scope,
        mut fields: Value,
        _before: Option<&Value>,
        now: Duration,
    ) -> Result<Value, Error> {
        let kind = fields["addressType"].as_str().unwrap_or("EXTERNAL").to_owned();
        if kind != "EXTERNAL" {
            return Err(invalid(
                "resource.addressType",
                &kind,
                "The fake cloud reserves external addresses only.",
            ));
        }
        let address = match fields["address"].as_str() {
            Some(text) => chosen(cloud, text, scope, now)?,
            None => cloud.free_address(reserved(cloud), now)?,
        };
        fields["address"] = json!(address);
        fields["addressType"] = json!(kind);
        if fields["networkTier"].is_null() {
            fields["networkTier"] = json!("PREMIUM");
        }
        Ok(fields)
    }

    fn complete(cloud: &mut Cloud, scope: &Scope, mut shown: Value, now: Duration) -> Value {
        let user = balancing::at(cloud, shown["address"].as_str().unwrap_or_default(), now);
        shown["status"] = json!(if user.is_some() { "IN_USE" } else { "RESERVED" });
        if let Some(rule) = user {
            shown["users"] = json!([link_of(scope, &rule.name)]);
        }
        shown
    }
}

/// An address that the caller chooses: that of a forwarding rule, which it has until then without a reservation.
fn chosen(cloud: &mut Cloud, text: &str, scope: &Scope, now: Duration) -> Result<IpAddr, Error> {
    let field = "resource.address";
    let address: IpAddr = text.parse().map_err(|_| invalid(field, text, "Invalid IP address."))?;
    if reserved(cloud).contains(&address) {
        let why = "Specified IP address is already reserved.";
        return Err(invalid(field, text, why));
    }
    match balancing::at(cloud, text, now) {
        Some(_) => Ok(address),
        None => {
            let why = format!("The specified IP address was not found in {}.", scope.path());
            Err(invalid(field, text, &why))
        }
    }
}
