//! Leftovers of an attempt at a check that an error of the environment aborted. They are not the CCM's fault: they are
//! removed, and checks that judge the whole run do not count them.

use super::CheckCx;
use super::cloud::absent_is_fine;
use harness_clouds::Inventory;
use harness_core::events::Fold;
use std::sync::atomic::Ordering;

/// Who is responsible for a leftover in the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A check that was judged, or no check: the CCM is responsible.
    Judged,
    /// That of an aborted attempt at this check.
    Aborted(String),
    /// Unknown, as it may belong to aborted attempts.
    Unknown,
}

/// Who is responsible for a leftover for this Service, given as namespace and name, in the cloud of that lane; the
/// Service is `None` if it is unknown.
pub(super) fn origin(fold: &Fold, lane: u32, service: Option<&str>) -> Origin {
    let aborted = fold.aborted_in(lane);
    let namespace = service.and_then(|service| service.split_once('/')).map(|(namespace, _)| namespace);
    match namespace.and_then(|namespace| fold.maker_of(namespace)) {
        Some(check) if aborted.contains(&check) => Origin::Aborted(check.to_owned()),
        Some(_) => Origin::Judged,
        None if aborted.is_empty() => Origin::Judged,
        None => Origin::Unknown,
    }
}

/// The owner of the load balancer or auxiliary with that id, or of the load balancer that the auxiliary serves.
pub(super) fn owner_in(inventory: &Inventory, id: &str) -> Option<String> {
    let balancer =
        |id: &str| inventory.load_balancers.iter().find(|lb| lb.id == id).map(|lb| lb.owner.clone());
    let auxiliary = inventory.auxiliaries.iter().find(|aux| aux.id == id);
    let served = || auxiliary?.load_balancer.as_deref().and_then(balancer);
    balancer(id)
        .or_else(|| auxiliary.map(|aux| aux.owner.clone()).filter(|owner| !owner.is_empty()))
        .or_else(served)
}

impl CheckCx {
    /// Whether the cleanup has removed the finalizers of a Service that the CCM did not release in time. Its load balancer
    /// is then left in the cloud.
    pub fn has_released_services(&self) -> bool {
        self.released.load(Ordering::SeqCst)
    }

    /// Removes the load balancers of all Services that this attempt created, with their resources, once the Services
    /// themselves are gone.
    ///
    /// # Errors
    /// The cloud does not answer, or refuses.
    pub async fn remove_own_balancers(&self) -> Result<(), String> {
        let fold = self.whole_run().map_err(|error| error.text)?;
        let Ok(inventory) = self.cloud.inventory().await else {
            // Some clouds have no inventory; a cloud that does not answer is reported by the calls that need it.
            return Ok(());
        };
        let is_own = |owner: &str| {
            fold.conduct().service_of(owner).is_some_and(|service| service.starts_with(&self.prefix))
        };
        for balancer in inventory.load_balancers.iter().filter(|balancer| is_own(&balancer.owner)) {
            absent_is_fine(self.cloud.remove_load_balancer(&balancer.id).await)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::events::{Event, Payload, PlannedCheck};
    use harness_core::ledger::{FIRST_TRY, Outcome};
    use serde_json::json;

    fn event(check: &str, event: Payload) -> Event {
        Event { at_ms: 1, lane: Some(0), check: Some(check.to_owned()), event }
    }

    /// A run of two checks, one of which was judged again.
    fn fold() -> Fold {
        let planned = ["SVC-DEL-11", "SVC-DEL-12"].map(|id| -> PlannedCheck {
            let check = json!({"id": id, "suite": "s", "title": "t", "level": "MUST", "sharing": "shared"});
            serde_json::from_value(check).expect("a planned check")
        });
        let ended = |first_try: bool| Payload::CheckEnded {
            ended: Outcome::Pass,
            duration_ms: 1,
            budget_used_percent: None,
            facts: first_try.then(|| (FIRST_TRY.to_owned(), "etcd".to_owned())).into_iter().collect(),
        };
        Fold::of(&[
            event("", Payload::ChecksPlanned { checks: planned.to_vec() }),
            event("SVC-DEL-11", ended(true)),
            event("SVC-DEL-12", ended(false)),
        ])
    }

    #[test]
    fn leftovers_of_an_aborted_attempt_do_not_count_against_the_ccm() {
        let fold = fold();
        let aborted = Origin::Aborted("SVC-DEL-11".to_owned());
        assert_eq!(origin(&fold, 0, Some("svc-del-11-abcd/web")), aborted);
        assert_eq!(origin(&fold, 0, Some("svc-del-12-abcd/web")), Origin::Judged);
        assert_eq!(origin(&fold, 0, None), Origin::Unknown, "it may be of the aborted attempt");
        assert_eq!(origin(&fold, 1, None), Origin::Judged, "nothing was aborted in that lane");
    }

    #[test]
    fn an_auxiliary_is_of_its_owner_or_of_that_of_its_load_balancer() {
        let inventory: Inventory = serde_json::from_value(json!({
            "instances": [], "routes": [],
            "load_balancers": [{"id": "lb", "name": "lb", "owner": "uid-1", "frontends": [], "backends": [], "addresses": [], "state": "active"}],
            "auxiliaries": [
                {"id": "aux-1", "kind": "firewall", "name": "f", "owner": "", "load_balancer": "lb"},
                {"id": "aux-2", "kind": "firewall", "name": "g", "owner": "uid-2"},
            ],
        }))
        .expect("an inventory");
        let owners = ["lb", "aux-1", "aux-2", "other"].map(|id| owner_in(&inventory, id));
        assert_eq!(owners.map(Option::unwrap_or_default), ["uid-1", "uid-1", "uid-2", ""]);
    }
}
