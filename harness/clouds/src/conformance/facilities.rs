//! Checks of a driver's facilities, which are the parts beyond machines and inventory.

use super::trial::{Broken, OURS, Trial, kept, refused, removed_again, same, words};
use crate::as_written::{lost_of_load_balancer, lost_of_route};
use crate::operators_balancer;
use fake_cloud_driver::{
    Credential, DriverFacility, Effect, Fault, Frontend, LoadBalancer, Match, Route, Settings, fresh_id,
};
use std::time::{Duration, Instant};

/// How long a read of an idle journal waits.
const WAIT: Duration = Duration::from_millis(300);
/// How much longer its answer may take.
const SLACK: Duration = Duration::from_secs(3);

pub(super) async fn try_one(trial: &mut Trial<'_>, facility: DriverFacility) {
    match facility {
        DriverFacility::Objects => {
            let outcome = load_balancers(trial).await;
            trial.note(
                "objects: a load balancer that is put is in the inventory, changed, and removed once",
                outcome,
            );
        }
        DriverFacility::Routes => {
            let outcome = routes(trial).await;
            trial.note(
                "routes: one that is put has an id, is in the inventory, changed, and removed once",
                outcome,
            );
        }
        DriverFacility::Journal => {
            let outcome = journal(trial).await;
            trial.note("journal: entries are numbered without gaps, and a look beyond the last waits as long as asked", outcome);
        }
        DriverFacility::Faults => {
            let outcome = faults(trial).await;
            trial.note(
                "faults: one that is injected is in force and unhit, and gone once it is cleared",
                outcome,
            );
            let outcome = ended_before_it_began(trial).await;
            trial.note("faults: one that was cleared before it was injected is refused with 409", outcome);
            let outcome = nonsense(trial).await;
            trial.note("faults: one that could never hit is refused with 422", outcome);
        }
        DriverFacility::Barriers => {
            let outcome = barriers(trial).await;
            trial.note(
                "barriers: one that is raised holds no other call, and is gone once it is released",
                outcome,
            );
            let outcome = released_before_it_was_raised(trial).await;
            trial.note("barriers: one that was released before it was raised is refused with 409", outcome);
        }
        DriverFacility::Settings => {
            let outcome = settings(trial).await;
            trial.note("settings: all are filled, and what is not given stays", outcome);
        }
        DriverFacility::Credentials => {
            let outcome = credentials(trial).await;
            trial.note("credentials: one is let in, and given another token", outcome);
        }
    }
}

async fn credentials(trial: &Trial<'_>) -> Result<(), Broken> {
    for which in ["one", "another"] {
        let token = format!("{OURS}-{}-{which}", std::process::id());
        let credential = Credential { name: OURS.to_owned(), token };
        trial.client.put_credential(&credential).await.map_err(words)?;
    }
    Ok(())
}

async fn load_balancers(trial: &Trial<'_>) -> Result<(), Broken> {
    let id = trial.capabilities.ids.make(OURS);
    let lb = operators_balancer(id.clone(), OURS.to_owned(), format!("nobody-{OURS}"));
    let outcome = put_load_balancer(trial, &lb).await;
    let last = trial.client.delete_load_balancer(&id, true).await;
    match outcome {
        Ok(()) => {
            last.map_err(words)?;
            refused(trial.client.delete_load_balancer(&id, true).await, 404)
        }
        Err(_) => removed_again(outcome, last),
    }
}

async fn put_load_balancer(trial: &Trial<'_>, lb: &LoadBalancer) -> Result<(), Broken> {
    let moved = LoadBalancer { frontends: vec![Frontend::new(81, "TCP", 30_081)], ..lb.clone() };
    for wanted in [lb, &moved] {
        trial.client.put_load_balancer(wanted).await.map_err(words)?;
        let inventory = trial.inventory().await?;
        let seen = inventory.load_balancers.iter().find(|one| one.id == wanted.id);
        let seen = seen.ok_or_else(|| format!("the inventory has no load balancer {}", wanted.id))?;
        kept(lost_of_load_balancer(wanted, seen))?;
    }
    Ok(())
}

async fn routes(trial: &Trial<'_>) -> Result<(), Broken> {
    let route = Route {
        id: String::new(),
        destination: "10.255.255.0/24".to_owned(),
        target_instance: None,
        target_addresses: Vec::new(),
        blackhole: true,
    };
    let put = trial.client.put_route(&route).await.map_err(words)?;
    if put.id.is_empty() {
        return Err("the route that was put has no id".to_owned());
    }
    let outcome = put_route(trial, &put).await;
    let last = trial.client.delete_route(&put.id).await;
    match outcome {
        Ok(()) => {
            last.map_err(words)?;
            refused(trial.client.delete_route(&put.id).await, 404)
        }
        Err(_) => removed_again(outcome, last),
    }
}

async fn put_route(trial: &Trial<'_>, first: &Route) -> Result<(), Broken> {
    is_shown(trial, first).await?;
    let moved = Route { destination: "10.255.254.0/24".to_owned(), ..first.clone() };
    let put = trial.client.put_route(&moved).await.map_err(words)?;
    same("id", &moved.id, &put.id)?;
    is_shown(trial, &moved).await
}

async fn is_shown(trial: &Trial<'_>, route: &Route) -> Result<(), Broken> {
    let inventory = trial.inventory().await?;
    let seen = inventory.routes.iter().find(|one| one.id == route.id);
    let seen = seen.ok_or_else(|| format!("the inventory has no route {}", route.id))?;
    kept(lost_of_route(route, seen))
}

async fn journal(trial: &Trial<'_>) -> Result<(), Broken> {
    let entries = trial.client.journal(0, Duration::ZERO).await.map_err(words)?;
    let numbers = entries.iter().map(|entry| entry.seq);
    if let Some((number, seen)) = (1..).zip(numbers).find(|(number, seen)| number != seen) {
        return Err(format!("entry {number} has the number {seen}"));
    }
    let (last, began) = (entries.last().map_or(0, |entry| entry.seq), Instant::now());
    let more = trial.client.journal(last, WAIT).await.map_err(words)?;
    let took = began.elapsed();
    let (wait, seconds) = (WAIT.as_secs_f64(), took.as_secs_f64());
    if more.is_empty() && took < WAIT / 2 {
        return Err(format!(
            "a look beyond the last entry was to wait for {wait} s, and was answered after {seconds:.1} s"
        ));
    }
    if took > WAIT + SLACK {
        return Err(format!("a look that was to wait for {wait} s was answered after {seconds:.1} s"));
    }
    Ok(())
}

/// Matches no real object, so that no CCM is affected.
fn about_no_owner() -> Match {
    Match { resource: Some(format!("nobody-{OURS}")), ..Match::default() }
}

async fn faults(trial: &Trial<'_>) -> Result<(), Broken> {
    let effect = Effect::Status { status: 503, retry_after_s: None };
    let fault = Fault { matching: about_no_owner(), effect, calls: Some(1), for_ms: None };
    let active = trial.client.inject(&fault).await.map_err(words)?;
    let seen = trial.client.fault(active.id).await.map_err(words)?;
    same("fault", &fault, &seen.fault)?;
    same("hits", 0, seen.hits)?;
    same("in_force", true, seen.in_force)?;
    trial.client.clear_fault(active.id).await.map_err(words)?;
    refused(trial.client.fault(active.id).await, 404)?;
    refused(trial.client.clear_fault(active.id).await, 404)
}

/// The call that activates a fault may be carried out after the one that ends it, if its caller has disconnected.
async fn ended_before_it_began(trial: &Trial<'_>) -> Result<(), Broken> {
    let fault = Fault { matching: about_no_owner(), effect: Effect::Refuse, calls: Some(1), for_ms: None };
    let id = fresh_id();
    refused(trial.client.clear_fault(id).await, 404)?;
    let late = trial.client.inject_as(id, &fault).await;
    if late.is_ok() {
        trial.client.clear_fault(id).await.map_err(words)?;
    }
    refused(late, 409)
}

async fn released_before_it_was_raised(trial: &Trial<'_>) -> Result<(), Broken> {
    let id = fresh_id();
    refused(trial.client.release_barrier(id).await, 404)?;
    let late = trial.client.raise_barrier_as(id, &about_no_owner()).await;
    if late.is_ok() {
        trial.client.release_barrier(id).await.map_err(words)?;
    }
    refused(late, 409)
}

async fn nonsense(trial: &Trial<'_>) -> Result<(), Broken> {
    let fault = Fault { matching: about_no_owner(), effect: Effect::Refuse, calls: Some(0), for_ms: None };
    let answer = trial.client.inject(&fault).await;
    if let Ok(active) = &answer {
        trial.client.clear_fault(active.id).await.map_err(words)?;
    }
    refused(answer, 422)
}

async fn barriers(trial: &Trial<'_>) -> Result<(), Broken> {
    let raised = trial.client.raise_barrier(&about_no_owner()).await.map_err(words)?;
    let seen = trial.client.barrier(raised.id).await.map_err(words)?;
    same("matching", &about_no_owner(), &seen.matching)?;
    same("waiting", 0, seen.waiting)?;
    trial.client.release_barrier(raised.id).await.map_err(words)?;
    refused(trial.client.barrier(raised.id).await, 404)?;
    refused(trial.client.release_barrier(raised.id).await, 404)
}

async fn settings(trial: &Trial<'_>) -> Result<(), Broken> {
    let before = trial.client.settings().await.map_err(words)?;
    let Settings { page_size, provisioning_ms, deletion_ms, stale_ms, .. } = &before;
    let filled =
        page_size.is_some() && provisioning_ms.is_some() && deletion_ms.is_some() && stale_ms.is_some();
    if !filled {
        let shown = serde_json::to_string(&before).unwrap_or_default();
        return Err(format!("not all are filled: {shown}"));
    }
    let size = Settings { page_size: page_size.map(|size| size + 1), ..Settings::default() };
    let changed = trial.client.set_settings(&size).await.map_err(words)?;
    trial.client.set_settings(&before).await.map_err(words)?;
    same("settings", Settings { page_size: size.page_size, ..before.clone() }, changed)?;
    same("settings set back", before, trial.client.settings().await.map_err(words)?)
}
