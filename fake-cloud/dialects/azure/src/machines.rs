//! `Microsoft.Compute`: virtual machines, which cannot be changed here, and sets of them, of which there are none.

use super::errors::{Arm, forbidden, not_found};
use super::names::{INTERFACES, LOCATION, compute_id, interface_of, network_id};
use super::query::{self, query};
use fake_cloud_driver::{Instance, InstanceState, Op};
use fake_cloud_kit::{Answer, Call, Error, Plan, Request, planned};
use fake_cloud_model::Cloud;
use serde_json::{Value, json};

const PROVIDER: &str = "Microsoft.Compute";
/// The kind of machines.
pub(super) const MACHINES: &str = "virtualMachines";

/// The machine with this name. Machines have no other id.
pub(super) fn find<'a>(cloud: &'a Cloud, name: &str) -> Option<&'a Instance> {
    cloud.instances_named(name).next()
}

/// The region of a machine.
pub(super) fn region(machine: &Instance) -> &str {
    if machine.region.is_empty() { LOCATION } else { &machine.region }
}

pub(super) fn list(request: &Request) -> Plan {
    let views = expands(request);
    planned(&Arm, Call::new(Op::InstanceList), query(request), move |_, query, cloud, now| {
        // A filter selects the machines of a scale set.
        let none = query.filter("$filter").is_some();
        let limit = cloud.page_size();
        let found = cloud.list_instances(now).into_iter().filter(|_| !none);
        Ok(query::page(query, limit, found.map(|machine| shown(machine, views))))
    })
}

pub(super) fn get(request: &Request, name: &str) -> Plan {
    let (views, name) = (expands(request), name.to_owned());
    planned(&Arm, Call::on(Op::InstanceGet, &name), query(request), move |_, _, cloud, _| {
        let machine = find(cloud, &name).ok_or_else(|| missing(&name))?;
        Ok(Answer::json(200, &shown(machine, views)))
    })
}

pub(super) fn instance_view(request: &Request, name: &str) -> Plan {
    let name = name.to_owned();
    planned(&Arm, Call::on(Op::InstanceGet, &name), query(request), move |_, _, cloud, _| {
        let machine = find(cloud, &name).ok_or_else(|| missing(&name))?;
        Ok(Answer::json(200, &view(machine)))
    })
}

/// A change of a machine, which the CCM's application may not make.
pub(super) fn refused(request: &Request, name: &str) -> Plan {
    let scope = compute_id(MACHINES, name);
    planned(&Arm, Call::on(Op::InstanceWrite, name), query(request), move |_, _, _, _| {
        Err(forbidden("Microsoft.Compute/virtualMachines/write", &scope))
    })
}

/// A list of sets of machines: availability sets and scale sets.
pub(super) fn no_sets(request: &Request) -> Plan {
    planned(&Arm, Call::new(Op::Other), query(request), |_, query, cloud, _| {
        Ok(query::page(query, cloud.page_size(), std::iter::empty()))
    })
}

/// One set of machines.
pub(super) fn no_set(request: &Request, kind: &'static str, name: &str) -> Plan {
    let name = name.to_owned();
    planned(&Arm, Call::new(Op::Other), query(request), move |_, _, _, _| {
        Err(not_found(PROVIDER, kind, &name))
    })
}

fn missing(name: &str) -> Error {
    not_found(PROVIDER, MACHINES, name)
}

fn expands(request: &Request) -> bool {
    request.query().any(|(key, value)| key == "$expand" && value.eq_ignore_ascii_case("instanceView"))
}

/// The shown form of a machine; `view`: with its instance view.
fn shown(machine: &Instance, with_view: bool) -> Value {
    let mut shown = json!({
        "id": compute_id(MACHINES, &machine.name),
        "name": machine.name,
        "type": format!("{PROVIDER}/{MACHINES}"),
        "location": region(machine),
        "tags": machine.labels,
        "properties": {
            "hardwareProfile": {"vmSize": machine.instance_type},
            "provisioningState": "Succeeded",
            "osProfile": {"computerName": machine.name, "adminUsername": "azureuser"},
            "networkProfile": {"networkInterfaces": [{
                "id": network_id(INTERFACES, &interface_of(&machine.name)),
                "properties": {"primary": true, "deleteOption": "Delete"},
            }]},
        },
    });
    if let Some(zone) = zone(machine) {
        shown["zones"] = json!([zone]);
    }
    if with_view {
        shown["properties"]["instanceView"] = view(machine);
    }
    shown
}

/// The number of a machine's availability zone: `1` in the zone `eastus-1`.
fn zone(machine: &Instance) -> Option<&str> {
    let number = machine.zone.strip_prefix(region(machine))?.strip_prefix('-')?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(number)
}

fn view(machine: &Instance) -> Value {
    let (code, text) = match machine.state {
        InstanceState::Running => ("PowerState/running", "VM running"),
        InstanceState::Stopped => ("PowerState/deallocated", "VM deallocated"),
    };
    json!({"computerName": machine.name, "platformFaultDomain": 0, "platformUpdateDomain": 0, "statuses": [
        {"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Provisioning succeeded"},
        {"code": code, "level": "Info", "displayStatus": text},
    ]})
}
