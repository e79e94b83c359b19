//! The cloud in the form that a run and its checks use.

use super::as_written::{lost_of_load_balancer, lost_of_route};
use super::driver::facilities;
use super::{
    ActiveFault, BarrierStatus, CloudError, CloudRecord, Credential, Driver, Entry, Fault, Instance,
    InstanceIds, Inventory, LoadBalancer, Match, Op, Problem, Route, RunningCloud, Settings, Shown, drivers,
};
use harness_core::check::Facility;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A change of the cloud's answers, for the record of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// A fault was activated.
    FaultInjected(ActiveFault),
    /// A fault was ended, by its number.
    FaultCleared(u64),
    /// Calls wait at this barrier from now on.
    BarrierRaised(BarrierStatus),
    /// A barrier was released; its state at that moment.
    BarrierReleased(BarrierStatus),
}

/// Called for every disturbance that is made through one handle.
type Observer = Arc<dyn Fn(&Disturbance) + Send + Sync>;

/// A cloud with any driver. Cheap to clone.
///
/// Every call fails with [`Problem::Lacks`] if the driver lacks the facility that it needs; the documentation
/// of the call names the facility.
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

    /// The recorded cloud; no call is made.
    ///
    /// # Errors
    /// The record does not belong to a driver of this program.
    pub fn attach(record: &CloudRecord) -> Result<Cloud, CloudError> {
        Ok(Cloud::new(drivers::attach(record)?))
    }

    /// The same cloud, with an observer of the faults and barriers that are made through the returned handle.
    pub fn observed_by(&self, observer: impl Fn(&Disturbance) + Send + Sync + 'static) -> Cloud {
        Cloud { driver: self.driver.clone(), observer: Some(Arc::new(observer)) }
    }

    /// The driver's name.
    pub fn driver(&self) -> &str {
        self.driver.name()
    }

    /// The facilities that the driver has.
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

    /// Accepts a caller, whose calls have the credential's name in the journal; an earlier caller with the
    /// same name is rejected. Does nothing if the driver does not manage credentials.
    ///
    /// # Errors
    /// When the cloud rejects it or does not answer.
    pub async fn admit(&self, caller: &Credential) -> Result<(), CloudError> {
        match self.driver.credentials() {
            Some(admission) => admission.admit(caller).await,
            None => Ok(()),
        }
    }

    /// Creates a machine, or changes the one with its id. Needs [`Facility::Machines`].
    ///
    /// # Errors
    /// When the cloud rejects it or does not answer.
    pub async fn put_instance(&self, instance: &Instance) -> Result<(), CloudError> {
        self.put_instances(std::slice::from_ref(instance)).await
    }

    /// The same for several machines: all or none. Needs [`Facility::Machines`].
    ///
    /// # Errors
    /// When the cloud rejects it or does not answer.
    pub async fn put_instances(&self, instances: &[Instance]) -> Result<(), CloudError> {
        let machines = self.has(self.driver.machines(), Facility::Machines, "putting machines there")?;
        machines.put(instances).await
    }

    /// Removes a machine. Needs [`Facility::Machines`].
    ///
    /// # Errors
    /// [`Problem::NotFound`] if there is none with this id; when the cloud rejects it or does not answer.
    pub async fn remove_instance(&self, id: &str) -> Result<(), CloudError> {
        self.has(self.driver.machines(), Facility::Machines, "removing a machine")?.remove(id).await
    }

    /// Creates a load balancer without the CCM, or changes the one with its id. Returns it as the cloud shows
    /// it afterwards. Needs [`Facility::Objects`].
    ///
    /// # Errors
    /// When the cloud rejects it or does not answer; [`Problem::NotKept`] if it shows something else than
    /// what was written.
    pub async fn put_load_balancer(&self, lb: &LoadBalancer) -> Result<LoadBalancer, CloudError> {
        const CALL: &str = "putting a load balancer there";
        let objects = self.has(self.driver.objects(), Facility::Objects, CALL)?;
        objects.put_load_balancer(lb).await?;
        let Some(stock) = self.driver.inventory() else { return Ok(lb.clone()) };
        let seen = stock.read().await?.load_balancers.into_iter().find(|one| one.id == lb.id);
        let Some(seen) = seen else {
            return match self.was_removed(Op::LbDelete, &lb.id).await? {
                true => Ok(lb.clone()),
                false => Err(self.not_kept(CALL, vec![format!("no load balancer {}", lb.id)])),
            };
        };
        match lost_of_load_balancer(lb, &seen) {
            lost if lost.is_empty() => Ok(seen),
            lost => Err(self.not_kept(CALL, lost)),
        }
    }

    /// Removes a load balancer and the objects that belong to it, without the CCM. Needs [`Facility::Objects`].
    ///
    /// # Errors
    /// [`Problem::NotFound`] if there is none with this id; when the cloud rejects it or does not answer.
    pub async fn remove_load_balancer(&self, id: &str) -> Result<(), CloudError> {
        let objects = self.has(self.driver.objects(), Facility::Objects, "removing a load balancer")?;
        objects.remove_load_balancer(id).await
    }

    /// Creates a route without the CCM, or changes the one with its id; a route with an empty id gets one.
    /// Returns it as the cloud shows it afterwards. Needs [`Facility::Routes`].
    ///
    /// # Errors
    /// When the cloud rejects it or does not answer; [`Problem::NotKept`] if it shows something else than
    /// what was written.
    pub async fn put_route(&self, route: &Route) -> Result<Route, CloudError> {
        const CALL: &str = "putting a route there";
        let put = self.has(self.driver.routes(), Facility::Routes, CALL)?.put_route(route).await?;
        let Some(stock) = self.driver.inventory() else { return Ok(put) };
        let seen = stock.read().await?.routes.into_iter().find(|one| one.id == put.id);
        let Some(seen) = seen else {
            return match self.was_removed(Op::RouteDelete, &put.id).await? {
                true => Ok(put),
                false => Err(self.not_kept(CALL, vec![format!("no route {}", put.id)])),
            };
        };
        match lost_of_route(route, &seen) {
            lost if lost.is_empty() => Ok(seen),
            lost => Err(self.not_kept(CALL, lost)),
        }
    }

    /// Removes a route without the CCM. Needs [`Facility::Routes`].
    ///
    /// # Errors
    /// [`Problem::NotFound`] if there is none with this id; when the cloud rejects it or does not answer.
    pub async fn remove_route(&self, id: &str) -> Result<(), CloudError> {
        self.has(self.driver.routes(), Facility::Routes, "removing a route")?.remove_route(id).await
    }

    /// All current objects of the cloud. Needs [`Facility::Inventory`].
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn inventory(&self) -> Result<Inventory, CloudError> {
        self.has(self.driver.inventory(), Facility::Inventory, "reading the inventory")?.read().await
    }

    /// Journal entries with a number above `after`; waits for the first of them as long as `wait` says. Needs
    /// [`Facility::Journal`].
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn journal(&self, after: u64, wait: Duration) -> Result<Vec<Entry>, CloudError> {
        self.has(self.driver.journal(), Facility::Journal, READING_THE_JOURNAL)?.read(after, wait).await
    }

    /// Activates a fault with an id of the caller ([`fresh_id`](super::fresh_id)), which notes the id before
    /// the call: if the answer is lost, the fault may still be active. Needs [`Facility::Faults`].
    ///
    /// # Errors
    /// When the cloud rejects it or does not answer.
    pub async fn inject(&self, id: u64, fault: &Fault) -> Result<ActiveFault, CloudError> {
        let faults = self.has(self.driver.faults(), Facility::Faults, "injecting a fault")?;
        let asked_for = ActiveFault { id, fault: fault.clone(), hits: 0, in_force: true };
        let news = PendingDisturbance { cloud: self, what: Some(Disturbance::FaultInjected(asked_for)) };
        news.of(faults.inject(id, fault).await, |active| Disturbance::FaultInjected(active.clone()))
    }

    /// A fault and how many calls it has hit. It can be read until it is cleared, also after it is used up.
    /// Needs [`Facility::Faults`].
    ///
    /// # Errors
    /// [`Problem::NotFound`] if it was cleared; when the cloud does not answer.
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

    /// Raises a barrier with an id of the caller, as [`Cloud::inject`]: matching calls wait at it before they
    /// take effect. Needs [`Facility::Barriers`].
    ///
    /// # Errors
    /// When the cloud rejects it or does not answer.
    pub async fn raise_barrier(&self, id: u64, matching: &Match) -> Result<BarrierStatus, CloudError> {
        let barriers = self.has(self.driver.barriers(), Facility::Barriers, "raising a barrier")?;
        let asked_for = BarrierStatus { id, matching: matching.clone(), waiting: 0, arrived: 0 };
        let news = PendingDisturbance { cloud: self, what: Some(Disturbance::BarrierRaised(asked_for)) };
        news.of(barriers.raise(id, matching).await, |raised| Disturbance::BarrierRaised(raised.clone()))
    }

    /// A barrier and the calls that wait at it. Needs [`Facility::Barriers`].
    ///
    /// # Errors
    /// [`Problem::NotFound`] if it was released; when the cloud does not answer.
    pub async fn barrier(&self, id: u64) -> Result<BarrierStatus, CloudError> {
        self.has(self.driver.barriers(), Facility::Barriers, "reading a barrier")?.read(id).await
    }

    /// Removes a barrier and lets its calls continue; returns its state at that moment. Needs
    /// [`Facility::Barriers`].
    ///
    /// # Errors
    /// [`Problem::NotFound`] if it was released before; when the cloud does not answer.
    pub async fn release_barrier(&self, id: u64) -> Result<BarrierStatus, CloudError> {
        let barriers = self.has(self.driver.barriers(), Facility::Barriers, "releasing a barrier")?;
        let released = barriers.release(id).await?;
        self.tell(|| Disturbance::BarrierReleased(released.clone()));
        Ok(released)
    }

    /// The current settings, with all fields set. Needs [`Facility::Settings`].
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn settings(&self) -> Result<Settings, CloudError> {
        self.has(self.driver.settings(), Facility::Settings, "reading the settings")?.read().await
    }

    /// Changes the given settings; returns all settings afterwards. Needs [`Facility::Settings`].
    ///
    /// # Errors
    /// When the cloud rejects it or does not answer.
    pub async fn change_settings(&self, settings: &Settings) -> Result<Settings, CloudError> {
        let tunable = self.has(self.driver.settings(), Facility::Settings, "changing the settings")?;
        tunable.change(settings).await
    }

    /// Whether a CCM has removed an object that was put there a moment ago, according to the request log. If there is none, it
    /// may have.
    async fn was_removed(&self, op: Op, id: &str) -> Result<bool, CloudError> {
        let Some(journal) = self.driver.journal() else { return Ok(true) };
        let is_it = |call: &Entry| call.op == op && call.resource.as_deref().is_none_or(|one| one == id);
        Ok(journal.read(0, Duration::ZERO).await?.iter().any(is_it))
    }

    fn not_kept(&self, call: &'static str, lost: Vec<String>) -> CloudError {
        CloudError::new(self.driver(), call, Problem::NotKept).caused_by(lost.join("; "))
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

/// A disturbance that was requested. It is reported when this is dropped, unless the cloud has rejected it:
/// if the answer was lost, it may still have taken effect.
struct PendingDisturbance<'a> {
    cloud: &'a Cloud,
    what: Option<Disturbance>,
}

impl PendingDisturbance<'_> {
    fn of<T>(
        mut self,
        answered: Result<T, CloudError>,
        what: impl FnOnce(&T) -> Disturbance,
    ) -> Result<T, CloudError> {
        match &answered {
            Ok(it) => self.what = Some(what(it)),
            Err(error) if error.problem == Problem::Refused => self.what = None,
            Err(_) => {}
        }
        answered
    }
}

impl Drop for PendingDisturbance<'_> {
    fn drop(&mut self) {
        if let Some(what) = self.what.take() {
            self.cloud.tell(|| what);
        }
    }
}

impl RunningCloud {
    /// A handle to the cloud.
    ///
    /// # Errors
    /// As [`Cloud::attach`].
    pub fn attach(&self) -> Result<Cloud, CloudError> {
        Cloud::attach(self.record())
    }
}

/// The name of reading the journal in errors.
pub const READING_THE_JOURNAL: &str = "reading the journal";

#[cfg(test)]
mod tests;
