//! Checks of machines: create, read, change, power off and on, remove.

use super::trial::{Broken, OURS, Trial, is_sound, kept, refused, words};
use crate::as_written::lost_of_instance;
use fake_cloud_driver::{Address, Instance, InstanceState};

pub(super) async fn try_all(trial: &mut Trial<'_>) {
    let (first, second) = (machine(trial, 1), machine(trial, 2));
    let put = put(trial, &[first.clone(), second.clone()]).await;
    trial.note("machines: two that are put are in the inventory as they were put", put);
    let changed = Instance { instance_type: "m1.xlarge".to_owned(), ..second.clone() };
    let outcome = put_and_see(trial, &changed).await;
    trial.note("machines: one that is put again is changed", outcome);
    let stopped = Instance { state: InstanceState::Stopped, ..first.clone() };
    let outcome = put_and_see(trial, &stopped).await;
    trial.note("machines: one that is switched off is seen as stopped", outcome);
    let outcome = put_and_see(trial, &first).await;
    trial.note("machines: one that is switched on again is seen as running", outcome);
    let outcome = all_or_none(trial).await;
    trial.note("machines: of several none is put where one has no id (422)", outcome);
    for one in [&first, &second] {
        let outcome = removed(trial, &one.id).await;
        trial.note(format!("machines: {} that is removed is gone", one.name), outcome);
    }
    // The leftovers of a failed step are not another fault.
    for one in [&first, &second] {
        let _ = trial.client.delete_instance(&one.id).await;
    }
    let unknown = refused(trial.client.delete_instance(&first.id).await, 404);
    trial.note("machines: removing one that is not there is refused with 404", unknown);
}

/// A machine with everything that the cloud can show.
fn machine(trial: &Trial<'_>, number: u8) -> Instance {
    let shows = trial.capabilities.shows;
    let name = format!("{OURS}-{number}");
    let id = trial.capabilities.ids.make(&name);
    let address = |kind: &str, most: Option<u32>, address: String| {
        (most != Some(0)).then(|| Address { kind: kind.to_owned(), address })
    };
    let addresses = [
        address("InternalIP", shows.internal_v4, format!("192.0.2.{number}")),
        address("ExternalIP", shows.external_v4, format!("198.51.100.{number}")),
    ];
    Instance {
        provider_id: shows.provider_ids.then(|| format!("{OURS}://{id}")),
        id,
        name,
        instance_type: "m1.small".to_owned(),
        zone: "zone-a".to_owned(),
        region: "region-1".to_owned(),
        addresses: addresses.into_iter().flatten().collect(),
        labels: Default::default(),
        state: InstanceState::Running,
    }
}

async fn put(trial: &Trial<'_>, machines: &[Instance]) -> Result<(), Broken> {
    trial.client.put_instances(machines).await.map_err(words)?;
    let inventory = trial.inventory().await?;
    is_sound(&inventory)?;
    for wanted in machines {
        let seen = inventory.instances.iter().find(|one| one.id == wanted.id);
        let seen = seen.ok_or_else(|| format!("the inventory has no machine {}", wanted.id))?;
        kept(lost_of_instance(wanted, seen, trial.capabilities.shows.provider_ids))?;
    }
    Ok(())
}

async fn put_and_see(trial: &Trial<'_>, machine: &Instance) -> Result<(), Broken> {
    put(trial, std::slice::from_ref(machine)).await
}

async fn all_or_none(trial: &Trial<'_>) -> Result<(), Broken> {
    let good = machine(trial, 3);
    let nameless = Instance { id: String::new(), ..machine(trial, 4) };
    let outcome = refused(trial.client.put_instances(&[good.clone(), nameless]).await, 422);
    let there = trial.inventory().await?.instances.iter().any(|one| one.id == good.id);
    if there {
        trial.client.delete_instance(&good.id).await.map_err(words)?;
        return Err(format!("the machine {} before it was put there", good.id));
    }
    outcome
}

async fn removed(trial: &Trial<'_>, id: &str) -> Result<(), Broken> {
    trial.client.delete_instance(id).await.map_err(words)?;
    match trial.inventory().await?.instances.iter().any(|one| one.id == id) {
        true => Err(format!("the inventory still has machine {id}")),
        false => Ok(()),
    }
}
