//! What does not change: the description of the cloud, the subscription, the resource group, and where there are
//! availability zones.

use super::errors::{Arm, not_found};
use super::names::{ARM_HOST, GROUP, LOCATION, LOGIN_HOST, SUBSCRIPTION, TENANT, same};
use super::query::{self, base, query};
use fake_cloud_driver::Op;
use fake_cloud_kit::{Answer, Call, Plan, Request, planned};
use serde_json::{Value, json};

/// The endpoints of the cloud, for clients that know only this one (`resourceManagerEndpoint`); no token is
/// needed.
pub(super) fn endpoints(request: &Request) -> Plan {
    let base = base(request);
    let shown = json!([{
        "name": "AzureCloud",
        "resourceManager": base,
        "authentication": {"loginEndpoint": format!("https://{}", LOGIN_HOST),
            "audiences": [format!("https://{ARM_HOST}/")], "tenant": "common", "identityProvider": "AAD"},
        "suffixes": {"storage": "core.windows.net", "acrLoginServer": "azurecr.io"},
    }]);
    Plan::new(Call::new(Op::Other), move |_, _| Answer::json(200, &shown))
}

pub(super) fn subscription(request: &Request) -> Plan {
    let shown = json!({"id": format!("/subscriptions/{SUBSCRIPTION}"), "subscriptionId": SUBSCRIPTION,
        "tenantId": TENANT, "displayName": "ccm-conformance", "state": "Enabled"});
    constant(request, shown)
}

pub(super) fn group(request: &Request) -> Plan {
    let shown = json!({"id": format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}"), "name": GROUP,
        "type": "Microsoft.Resources/resourceGroups", "location": LOCATION,
        "properties": {"provisioningState": "Succeeded"}});
    constant(request, shown)
}

/// A resource provider: `Microsoft.Compute` says which zones there are.
pub(super) fn provider(request: &Request, name: &str) -> Plan {
    let name = name.to_owned();
    planned(&Arm, Call::new(Op::Other), query(request), move |_, _, _, _| {
        if !same(&name, "Microsoft.Compute") && !same(&name, "Microsoft.Network") {
            return Err(not_found("Microsoft.Resources", "providers", &name));
        }
        let types = match same(&name, "Microsoft.Compute") {
            true => json!([{"resourceType": "virtualMachines", "locations": ["East US"],
                "zoneMappings": [{"location": "East US", "zones": ["1", "2", "3"]}]}]),
            false => json!([{"resourceType": "loadBalancers", "locations": ["East US"]}]),
        };
        let shown = json!({"id": format!("/subscriptions/{SUBSCRIPTION}/providers/{name}"), "namespace": name,
            "registrationState": "Registered", "resourceTypes": types});
        Ok(Answer::json(200, &shown))
    })
}

/// A list of resources that the resource group has none of.
pub(super) fn none(request: &Request, op: Op) -> Plan {
    planned(&Arm, Call::new(op), query(request), |_, query, cloud, _| {
        Ok(query::page(query, cloud.page_size(), std::iter::empty()))
    })
}

fn constant(request: &Request, shown: Value) -> Plan {
    planned(&Arm, Call::new(Op::Other), query(request), move |_, _, _, _| Ok(Answer::json(200, &shown)))
}
