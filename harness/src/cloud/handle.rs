//! The cloud as a run and its checks use it.

use super::driver::facilities;
use super::{
    ActiveFault, BarrierStatus, CloudError, CloudRecord, Credential, Driver, Entry, Fault, Instance,
    InstanceIds, Inventory, LoadBalancer, Match, Problem, Route, RunningCloud, Settings, Shown, drivers,
};
use crate::check::Facility;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What was done to the cloud's answers, for whoever keeps a record of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// A fault is in force.
    FaultInjected(ActiveFault),
    /// A fault was ended, by its number.
    FaultCleared(u64),
    /// Calls wait at a barrier from now on.
    BarrierRaised(BarrierStatus),
    /// A barrier is gone; how it was at that moment.
    BarrierReleased(BarrierStatus),
}

/// Hears of every disturbance made through one handle.
type Observer = Arc<dyn Fn(&Disturbance) + Send + Sync>;

/// A cloud, whoever drives it. Cheap to clone.
///
/// Every call fails with [`Problem::Lacks`] where the driver lacks the facility it belongs to, which the call's
/// documentation names.
#[derive(Clone)]
pub struct Cloud {
    driver: Arc<dyn Driver>,
    observer: Option<Observer>,
}

impl fmt::Debug for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cloud").field("driver", &self.driver).finish_non_exhaustive()
    }
}

impl Cloud {
    /// The cloud behind a driver.
    pub fn new(driver: Arc<dyn Driver>) -> Cloud {
        Cloud { driver, observer: None }
    }

    /// The cloud that is recorded; no call is made.
    ///
    /// # Errors
    /// The record is not one of this program's drivers'.
    pub fn attach(record: &CloudRecord) -> Result<Cloud, CloudError> {
        Ok(Cloud::new(drivers::attach(record)?))
    }

    /// The same cloud, with an observer of the faults and barriers made through the handle returned.
    pub fn observed_by(&self, observer: impl Fn(&Disturbance) + Send + Sync + 'static) -> Cloud {
        Cloud { driver: self.driver.clone(), observer: Some(Arc::new(observer)) }
    }

    /// The driver's name.
    pub fn driver(&self) -> &str {
        self.driver.name()
    }

    /// What of a cloud's facilities the driver has.
    pub fn facilities(&self) -> BTreeSet<Facility> {
        facilities(self.driver.as_ref())
    }

    /// Which addresses of a machine the cloud's API can show to a CCM.
    pub fn shown(&self) -> Shown {
        self.driver.shown()
    }

    /// Which ids machines may have.
    pub fn ids(&self) -> InstanceIds {
        self.driver.ids()
    }

    /// Lets a replica of the CCM in; the journal calls it by the credential's name.
    ///
    /// # Errors
    /// When the cloud refuses or does not answer.
    pub async fn admit(&self, replica: &Credential) -> Result<(), CloudError> {
        self.driver.admit(replica).await
    }

    /// Puts a machine there, or changes the one with its id. Needs [`Facility::Machines`].
    ///
    /// # Errors
    /// When the cloud refuses or does not answer.
    pub async fn put_instance(&self, instance: &Instance) -> Result<(), CloudError> {
        self.put_instances(std::slice::from_ref(instance)).await
    }

    /// The same for many at once: all or none. Needs [`Facility::Machines`].
    ///
    /// # Errors
    /// When the cloud refuses or does not answer.
    pub async fn put_instances(&self, instances: &[Instance]) -> Result<(), CloudError> {
        let machines = self.has(self.driver.machines(), Facility::Machines, "putting machines there")?;
        machines.put(instances).await
    }

    /// Takes a machine away. Needs [`Facility::Machines`].
    ///
    /// # Errors
    /// [`Problem::NotFound`] when there is none of that id; when the cloud refuses or does not answer.
    pub async fn remove_instance(&self, id: &str) -> Result<(), CloudError> {
        self.has(self.driver.machines(), Facility::Machines, "removing a machine")?.remove(id).await
    }

    /// Puts a load balancer there, past every CCM, or changes the one with its id. Needs [`Facility::Objects`].
    ///
    /// # Errors
    /// When the cloud refuses or does not answer.
    pub async fn put_load_balancer(&self, lb: &LoadBalancer) -> Result<(), CloudError> {
        let objects = self.has(self.driver.objects(), Facility::Objects, "putting a load balancer there")?;
        objects.put_load_balancer(lb).await
    }

    /// Takes a load balancer away with everything that serves it, behind the CCM's back. Needs [`Facility::Objects`].
    ///
    /// # Errors
    /// [`Problem::NotFound`] when there is none of that id; when the cloud refuses or does not answer.
    pub async fn remove_load_balancer(&self, id: &str) -> Result<(), CloudError> {
        let objects = self.has(self.driver.objects(), Facility::Objects, "removing a load balancer")?;
        objects.remove_load_balancer(id).await
    }

    /// Puts a route there, past every CCM, or changes the one with its id; one with an empty id gets one. Needs
    /// [`Facility::Objects`].
    ///
    /// # Errors
    /// When the cloud refuses or does not answer.
    pub async fn put_route(&self, route: &Route) -> Result<Route, CloudError> {
        self.has(self.driver.objects(), Facility::Objects, "putting a route there")?.put_route(route).await
    }

    /// Takes a route away, behind the CCM's back. Needs [`Facility::Objects`].
    ///
    /// # Errors
    /// [`Problem::NotFound`] when there is none of that id; when the cloud refuses or does not answer.
    pub async fn remove_route(&self, id: &str) -> Result<(), CloudError> {
        self.has(self.driver.objects(), Facility::Objects, "removing a route")?.remove_route(id).await
    }

    /// Everything the cloud holds now. Needs [`Facility::Inventory`].
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn inventory(&self) -> Result<Inventory, CloudError> {
        self.has(self.driver.inventory(), Facility::Inventory, "reading the inventory")?.read().await
    }

    /// Journal entries numbered above `after`; waits for the first of them as long as `wait` says. Needs
    /// [`Facility::Journal`].
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn journal(&self, after: u64, wait: Duration) -> Result<Vec<Entry>, CloudError> {
        self.has(self.driver.journal(), Facility::Journal, READING_THE_JOURNAL)?.read(after, wait).await
    }

    /// Puts a fault in force. Needs [`Facility::Faults`].
    ///
    /// # Errors
    /// When the cloud refuses or does not answer.
    pub async fn inject(&self, fault: &Fault) -> Result<ActiveFault, CloudError> {
        let faults = self.has(self.driver.faults(), Facility::Faults, "injecting a fault")?;
        let active = faults.inject(fault).await?;
        self.tell(|| Disturbance::FaultInjected(active.clone()));
        Ok(active)
    }

    /// A fault and how often it has hit; also after it is used up, until it is cleared. Needs [`Facility::Faults`].
    ///
    /// # Errors
    /// [`Problem::NotFound`] when it was cleared; when the cloud does not answer.
    pub async fn fault(&self, id: u64) -> Result<ActiveFault, CloudError> {
        self.has(self.driver.faults(), Facility::Faults, "reading a fault")?.read(id).await
    }

    /// Ends a fault. Needs [`Facility::Faults`].
    ///
    /// # Errors
    /// [`Problem::NotFound`] when it was cleared before; when the cloud does not answer.
    pub async fn clear_fault(&self, id: u64) -> Result<(), CloudError> {
        self.has(self.driver.faults(), Facility::Faults, "clearing a fault")?.clear(id).await?;
        self.tell(|| Disturbance::FaultCleared(id));
        Ok(())
    }

    /// Raises a barrier: calls that match wait at it before they take effect. Needs [`Facility::Barriers`].
    ///
    /// # Errors
    /// When the cloud refuses or does not answer.
    pub async fn raise_barrier(&self, matching: &Match) -> Result<BarrierStatus, CloudError> {
        let barriers = self.has(self.driver.barriers(), Facility::Barriers, "raising a barrier")?;
        let raised = barriers.raise(matching).await?;
        self.tell(|| Disturbance::BarrierRaised(raised.clone()));
        Ok(raised)
    }

    /// A barrier and who waits at it. Needs [`Facility::Barriers`].
    ///
    /// # Errors
    /// [`Problem::NotFound`] when it was released; when the cloud does not answer.
    pub async fn barrier(&self, id: u64) -> Result<BarrierStatus, CloudError> {
        self.has(self.driver.barriers(), Facility::Barriers, "reading a barrier")?.read(id).await
    }

    /// Takes a barrier away and lets its calls go on; what it was at that moment. Needs [`Facility::Barriers`].
    ///
    /// # Errors
    /// [`Problem::NotFound`] when it was released before; when the cloud does not answer.
    pub async fn release_barrier(&self, id: u64) -> Result<BarrierStatus, CloudError> {
        let barriers = self.has(self.driver.barriers(), Facility::Barriers, "releasing a barrier")?;
        let released = barriers.release(id).await?;
        self.tell(|| Disturbance::BarrierReleased(released.clone()));
        Ok(released)
    }

    /// The settings in force, all fields filled. Needs [`Facility::Settings`].
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn settings(&self) -> Result<Settings, CloudError> {
        self.has(self.driver.settings(), Facility::Settings, "reading the settings")?.read().await
    }

    /// Changes the settings that are given; all of them as they are then. Needs [`Facility::Settings`].
    ///
    /// # Errors
    /// When the cloud refuses or does not answer.
    pub async fn change_settings(&self, settings: &Settings) -> Result<Settings, CloudError> {
        let tunable = self.has(self.driver.settings(), Facility::Settings, "changing the settings")?;
        tunable.change(settings).await
    }

    fn has<T>(&self, part: Option<T>, facility: Facility, call: &'static str) -> Result<T, CloudError> {
        part.ok_or_else(|| CloudError::new(self.driver(), call, Problem::Lacks(facility)))
    }

    fn tell(&self, what: impl FnOnce() -> Disturbance) {
        if let Some(observer) = &self.observer {
            observer(&what());
        }
    }
}

impl RunningCloud {
    /// The cloud, to be used.
    ///
    /// # Errors
    /// As [`Cloud::attach`].
    pub fn attach(&self) -> Result<Cloud, CloudError> {
        Cloud::attach(self.record())
    }
}

/// What reading the journal is called in errors.
pub(crate) const READING_THE_JOURNAL: &str = "reading the journal";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Facilities, Party, Served, chain};
    use crate::cloud::{Answer, Effect, Stock};
    use crate::config::{Candidate, Choice, Offer, Selection, select};
    use crate::ledger::SkipReason;
    use futures::FutureExt;
    use std::sync::Mutex;

    /// A real cloud, as somebody may bring it: it can be looked at, and nothing more.
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

        fn admit<'a>(&'a self, _: &'a Credential) -> Answer<'a, ()> {
            futures::future::ready(Ok(())).boxed()
        }

        fn inventory(&self) -> Option<&dyn Stock> {
            Some(self)
        }
    }

    impl Stock for Real {
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
        }
    }

    #[test]
    fn what_a_driver_lacks_makes_the_checks_that_need_it_not_observable() {
        let cloud = Cloud::new(Arc::new(Real));
        let offer = Offer {
            subjects: BTreeSet::from([Party::Ccm]),
            capabilities: BTreeSet::new(),
            facilities: Some(cloud.facilities()),
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
                unobservable(
                    "this environment lacks kubelet-control; the cloud's driver real lacks barriers"
                ),
            ]
        );
    }

    #[tokio::test]
    async fn a_call_that_a_driver_lacks_is_refused_by_name() {
        let cloud = Cloud::new(Arc::new(Real));
        assert_eq!(cloud.inventory().await.expect("it has one"), Inventory::default());
        let fault = Fault { matching: Match::default(), effect: Effect::Refuse, calls: None, for_ms: None };
        let error = cloud.inject(&fault).await.expect_err("it has no faults");
        assert_eq!(error.problem, Problem::Lacks(Facility::Faults));
        assert_eq!(chain(&error), "cloud driver 'real', injecting a fault: it has no faults");
    }

    #[tokio::test]
    async fn disturbances_are_told_to_the_observer_of_the_handle() {
        let running = drivers::start_here("native").await;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = heard.clone();
        let cloud = running.attach().expect("attached");
        let observed = cloud.observed_by(move |what| told.lock().expect("fine").push(what.clone()));
        let fault =
            Fault { matching: Match::default(), effect: Effect::Refuse, calls: Some(1), for_ms: None };
        let fault = observed.inject(&fault).await.expect("injected");
        let barrier = observed.raise_barrier(&Match::default()).await.expect("raised");
        cloud.inject(&fault.fault).await.expect("injected past the observer");
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
}
