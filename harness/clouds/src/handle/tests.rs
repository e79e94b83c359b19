//! The handle with drivers that lack something, and with one whose answers are always lost.

use super::*;
use crate::{Answer, Barriers, Effect, Faults, InventorySource, Journalled, Routes};
use futures::FutureExt;
use harness_config::{Candidate, Choice, Offer, Selection, select};
use harness_core::check::{Facilities, Party, Served, chain};
use harness_core::ledger::SkipReason;
use serde_json::json;
use std::sync::Mutex;

/// A real cloud as a user may provide it: it can only be read.
#[derive(Debug)]
struct Real;

impl Driver for Real {
    fn name(&self) -> &str {
        "real"
    }

    fn shown(&self) -> Shown {
        Shown::ALL
    }

    fn ids(&self) -> InstanceIds {
        InstanceIds::Text
    }

    fn inventory(&self) -> Option<&dyn InventorySource> {
        Some(self)
    }
}

impl InventorySource for Real {
    fn read(&self) -> Answer<'_, Inventory> {
        futures::future::ready(Ok(Inventory::default())).boxed()
    }
}

fn needs(id: &'static str, facilities: &[Facility]) -> Candidate {
    Candidate {
        suite: "any",
        judges: Party::Ccm,
        id,
        needs: &[],
        lacks: &[],
        facilities: Facilities::of(facilities),
        served: Served::Always,
        takes_s: 0,
        soaks: false,
        upgrades: false,
    }
}

#[test]
fn missing_facilities_of_a_driver_make_checks_not_observable() {
    let cloud = Cloud::new(Arc::new(Real));
    let offer = Offer {
        subjects: BTreeSet::from([Party::Ccm]),
        capabilities: BTreeSet::new(),
        facilities: Some(cloud.facilities()),
        hosted: false,
        cloud: Some(cloud.driver().to_owned()),
        served_minor: None,
    };
    let candidates = [
        needs("A-01", &[Facility::Inventory]),
        needs("A-02", &[Facility::Machines, Facility::Inventory, Facility::Journal]),
        needs("A-03", &[Facility::Inventory, Facility::Barriers, Facility::KubeletControl]),
    ];
    let unobservable = |detail: &str| Choice::Skip(SkipReason::NotObservable, detail.to_owned());
    assert_eq!(
        select(&candidates, &Selection::default(), &offer).expect("nothing was asked for"),
        [
            Choice::Selected,
            unobservable("the cloud's driver real lacks machines, journal"),
            unobservable("this environment lacks kubelet-control; the cloud's driver real lacks barriers"),
        ]
    );
}

#[tokio::test]
async fn a_call_that_a_driver_lacks_is_refused_by_name() {
    let cloud = Cloud::new(Arc::new(Real));
    assert_eq!(cloud.inventory().await.expect("it has one"), Inventory::default());
    let fault = Fault { matching: Match::default(), effect: Effect::Refuse, calls: None, for_ms: None };
    let error = cloud.inject(1, &fault).await.expect_err("it has no faults");
    assert_eq!(error.problem, Problem::Lacks(Facility::Faults));
    assert_eq!(chain(&error), "cloud driver 'real', injecting a fault: it has no faults");
}

#[tokio::test]
async fn disturbances_are_reported_to_the_observer_of_the_handle() {
    let running = drivers::start_here("native").await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let observed = heard.clone();
    let cloud = running.attach().expect("attached");
    let observed = cloud.observed_by(move |what| observed.lock().expect("fine").push(what.clone()));
    let fault = Fault { matching: Match::default(), effect: Effect::Refuse, calls: Some(1), for_ms: None };
    let fault = observed.inject(1, &fault).await.expect("injected");
    let barrier = observed.raise_barrier(2, &Match::default()).await.expect("raised");
    cloud.inject(3, &fault.fault).await.expect("injected past the observer");
    observed.clear_fault(fault.id).await.expect("cleared");
    assert!(observed.clear_fault(fault.id).await.expect_err("cleared before").is_not_found());
    let released = observed.release_barrier(barrier.id).await.expect("released");
    assert_eq!(
        *heard.lock().expect("fine"),
        [
            Disturbance::FaultInjected(fault.clone()),
            Disturbance::BarrierRaised(barrier),
            Disturbance::FaultCleared(fault.id),
            Disturbance::BarrierReleased(released),
        ]
    );
    running.stop().await.expect("stopped");
}

/// A driver that activates disturbances, but whose answers are always lost.
#[derive(Debug)]
struct Unheard(Arc<dyn Driver>);

impl Driver for Unheard {
    fn name(&self) -> &str {
        "unheard"
    }

    fn shown(&self) -> Shown {
        self.0.shown()
    }

    fn ids(&self) -> InstanceIds {
        self.0.ids()
    }

    fn faults(&self) -> Option<&dyn Faults> {
        Some(self)
    }

    fn barriers(&self) -> Option<&dyn Barriers> {
        Some(self)
    }
}

impl Faults for Unheard {
    fn inject<'a>(&'a self, id: u64, fault: &'a Fault) -> Answer<'a, ActiveFault> {
        let taken = self.0.faults().expect("it has faults").inject(id, fault);
        taken.then(|_| futures::future::pending()).boxed()
    }

    fn read(&self, id: u64) -> Answer<'_, ActiveFault> {
        self.0.faults().expect("it has faults").read(id)
    }

    fn clear(&self, id: u64) -> Answer<'_, ()> {
        self.0.faults().expect("it has faults").clear(id)
    }
}

impl Barriers for Unheard {
    fn raise<'a>(&'a self, id: u64, matching: &'a Match) -> Answer<'a, BarrierStatus> {
        let taken = self.0.barriers().expect("it has barriers").raise(id, matching);
        taken.then(|_| futures::future::pending()).boxed()
    }

    fn read(&self, id: u64) -> Answer<'_, BarrierStatus> {
        self.0.barriers().expect("it has barriers").read(id)
    }

    fn release(&self, id: u64) -> Answer<'_, BarrierStatus> {
        self.0.barriers().expect("it has barriers").release(id)
    }
}

#[tokio::test]
async fn a_call_dropped_in_the_middle_is_reported_and_can_be_undone() {
    let running = drivers::start_here("native").await;
    let cloud = running.attach().expect("attached");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let observed = heard.clone();
    let unheard = Cloud::new(Arc::new(Unheard(cloud.driver.clone())))
        .observed_by(move |what| observed.lock().expect("fine").push(what.clone()));
    let fault = Fault { matching: Match::default(), effect: Effect::Refuse, calls: None, for_ms: None };
    let soon = Duration::from_millis(300);
    tokio::time::timeout(soon, unheard.inject(7, &fault)).await.expect_err("nothing is heard");
    tokio::time::timeout(soon, unheard.raise_barrier(8, &fault.matching))
        .await
        .expect_err("nothing is heard");
    assert!(cloud.fault(7).await.expect("it is in force").in_force);
    assert_eq!(cloud.barrier(8).await.expect("it stands").waiting, 0);
    assert_eq!(heard.lock().expect("fine").len(), 2, "both may be in force");
    cloud.clear_fault(7).await.expect("undone");
    cloud.release_barrier(8).await.expect("undone");
    // The other order: a disturbance that was ended first does not become active later.
    assert!(cloud.clear_fault(9).await.expect_err("not there yet").is_not_found());
    let refused = cloud.inject(9, &fault).await.expect_err("it was ended");
    assert_eq!(refused.problem, Problem::Refused);
    assert!(cloud.release_barrier(10).await.expect_err("not there yet").is_not_found());
    cloud.raise_barrier(10, &fault.matching).await.expect_err("it was released");
    running.stop().await.expect("stopped");
}

/// A cloud from which each route is gone at once, with this request log.
#[derive(Debug)]
struct Emptied(Vec<Entry>);

impl Driver for Emptied {
    fn name(&self) -> &str {
        "emptied"
    }

    fn shown(&self) -> Shown {
        Shown::ALL
    }

    fn ids(&self) -> InstanceIds {
        InstanceIds::Text
    }

    fn inventory(&self) -> Option<&dyn InventorySource> {
        Some(&Real)
    }

    fn routes(&self) -> Option<&dyn Routes> {
        Some(self)
    }

    fn journal(&self) -> Option<&dyn Journalled> {
        Some(self)
    }
}

impl Routes for Emptied {
    fn put_route<'a>(&'a self, route: &'a Route) -> Answer<'a, Route> {
        futures::future::ready(Ok(Route { id: "r-1".to_owned(), ..route.clone() })).boxed()
    }

    fn remove_route<'a>(&'a self, _: &'a str) -> Answer<'a, ()> {
        futures::future::ready(Ok(())).boxed()
    }
}

impl Journalled for Emptied {
    fn read(&self, _: u64, _: Duration) -> Answer<'_, Vec<Entry>> {
        futures::future::ready(Ok(self.0.clone())).boxed()
    }
}

#[tokio::test]
async fn a_route_that_is_gone_is_a_fault_of_the_cloud_unless_the_ccm_has_removed_it() {
    let deleted = |route: &str| -> Entry {
        serde_json::from_value(json!({
            "seq": 1, "at_ms": 0, "took_ms": 1, "peer": "127.0.0.1", "credential": "a", "op": "route.delete",
            "write": true, "resource": route, "owner": null, "request": "DELETE /routes", "outcome": {"kind": "answered", "status": 204},
        }))
        .expect("an entry")
    };
    let stray: Route = serde_json::from_value(json!({
        "id": "", "destination": "10.0.0.0/24", "target_instance": null, "target_addresses": [], "blackhole": true,
    }))
    .expect("a route");
    let put = async |log: Vec<Entry>| Cloud::new(Arc::new(Emptied(log))).put_route(&stray).await;
    assert_eq!(put(vec![deleted("r-1")]).await.expect("the CCM has removed it").id, "r-1");
    for log in [Vec::new(), vec![deleted("r-2")]] {
        assert_eq!(put(log).await.expect_err("it was not removed").problem, Problem::NotKept);
    }
}
