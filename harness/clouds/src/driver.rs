//! The interface of a driver, with one trait for each facility.
//!
//! A driver has a facility if it returns the trait for it, so it cannot claim a facility that it does not
//! have. A missing facility makes the checks that need it 'not observable'.

use super::CloudError;
use super::{
    ActiveFault, BarrierStatus, Credential, Entry, Fault, Instance, InstanceIds, Inventory, LoadBalancer,
    Match, Route, Settings, Shown,
};
use futures::future::BoxFuture;
use harness_core::check::Facility;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// The future answer of a driver.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, CloudError>>;

/// Access to a cloud: a simulator, a proxy in front of one, or a real cloud that can only be read.
///
/// Every call ends by itself, within 10 s unless stated otherwise.
pub trait Driver: fmt::Debug + Send + Sync {
    /// Its name, as errors, reports and [`CloudRecord`](super::CloudRecord) use it.
    fn name(&self) -> &str;

    /// Which addresses of a machine the cloud's API can show to a CCM.
    fn shown(&self) -> Shown;

    /// Which ids machines may have.
    fn ids(&self) -> InstanceIds;

    /// [`Facility::Machines`].
    fn machines(&self) -> Option<&dyn Machines> {
        None
    }

    /// [`Facility::Objects`].
    fn objects(&self) -> Option<&dyn Objects> {
        None
    }

    /// [`Facility::Routes`].
    fn routes(&self) -> Option<&dyn Routes> {
        None
    }

    /// [`Facility::Inventory`].
    fn inventory(&self) -> Option<&dyn InventorySource> {
        None
    }

    /// [`Facility::Journal`].
    fn journal(&self) -> Option<&dyn Journalled> {
        None
    }

    /// [`Facility::Faults`].
    fn faults(&self) -> Option<&dyn Faults> {
        None
    }

    /// [`Facility::Barriers`].
    fn barriers(&self) -> Option<&dyn Barriers> {
        None
    }

    /// [`Facility::Settings`].
    fn settings(&self) -> Option<&dyn Tunable> {
        None
    }

    /// [`Facility::Credentials`].
    fn credentials(&self) -> Option<&dyn Admission> {
        None
    }
}

/// The facilities a driver has.
pub(super) fn facilities(driver: &dyn Driver) -> BTreeSet<Facility> {
    let has = [
        (Facility::Machines, driver.machines().is_some()),
        (Facility::Objects, driver.objects().is_some()),
        (Facility::Routes, driver.routes().is_some()),
        (Facility::Inventory, driver.inventory().is_some()),
        (Facility::Journal, driver.journal().is_some()),
        (Facility::Faults, driver.faults().is_some()),
        (Facility::Barriers, driver.barriers().is_some()),
        (Facility::Settings, driver.settings().is_some()),
        (Facility::Credentials, driver.credentials().is_some()),
    ];
    has.into_iter().filter(|(_, has)| *has).map(|(facility, _)| facility).collect()
}

/// The operations on machines, as by an operator of the cloud, without a CCM.
pub trait Machines: Sync {
    /// Creates machines, or changes those with the same ids (including their power state): all or none.
    fn put<'a>(&'a self, instances: &'a [Instance]) -> Answer<'a, ()>;

    /// Removes a machine; [`Problem::NotFound`](super::Problem::NotFound) if there is none with this id.
    fn remove<'a>(&'a self, id: &'a str) -> Answer<'a, ()>;
}

/// The operations on objects that CCMs usually create, as by an operator of the cloud.
pub trait Objects: Sync {
    /// Creates this load balancer, or changes the one with its id.
    fn put_load_balancer<'a>(&'a self, lb: &'a LoadBalancer) -> Answer<'a, ()>;

    /// Removes a load balancer and the objects that belong to it;
    /// [`Problem::NotFound`](super::Problem::NotFound) if there is none with this id.
    fn remove_load_balancer<'a>(&'a self, id: &'a str) -> Answer<'a, ()>;
}

/// The operations on routes, as by an operator of the cloud.
pub trait Routes: Sync {
    /// Creates this route, or changes the one with its id; a route with an empty id gets one.
    fn put_route<'a>(&'a self, route: &'a Route) -> Answer<'a, Route>;

    /// Removes a route; [`Problem::NotFound`](super::Problem::NotFound) if there is none with this id.
    fn remove_route<'a>(&'a self, id: &'a str) -> Answer<'a, ()>;
}

/// The content of the cloud.
pub trait InventorySource: Sync {
    /// All current objects, sorted by id.
    fn read(&self) -> Answer<'_, Inventory>;
}

/// The record of every call that CCMs made.
pub trait Journalled: Sync {
    /// Entries with a number above `after`, in order of arrival and without gaps. Answers as soon as there is
    /// one. Otherwise it waits as long as `wait` says and answers with none, so only this call may take that
    /// much longer.
    fn read(&self, after: u64, wait: Duration) -> Answer<'_, Vec<Entry>>;
}

/// Faults that can be activated.
pub trait Faults: Sync {
    /// Activates a fault with an id that the caller has chosen. Each id can be used once, and an ended fault
    /// stays ended even if this call is carried out later.
    fn inject<'a>(&'a self, id: u64, fault: &'a Fault) -> Answer<'a, ActiveFault>;

    /// A fault and how many calls it has hit. It can be read until it is cleared, also after it is used up.
    fn read(&self, id: u64) -> Answer<'_, ActiveFault>;

    /// Ends a fault for good; [`Problem::NotFound`](super::Problem::NotFound) if it was cleared before.
    fn clear(&self, id: u64) -> Answer<'_, ()>;
}

/// Calls held before they take effect.
pub trait Barriers: Sync {
    /// Raises a barrier with an id that the caller has chosen, as [`Faults::inject`]: matching calls wait at it.
    fn raise<'a>(&'a self, id: u64, matching: &'a Match) -> Answer<'a, BarrierStatus>;

    /// A barrier and the calls that wait at it.
    fn read(&self, id: u64) -> Answer<'_, BarrierStatus>;

    /// Removes a barrier and lets its calls continue; returns its state at that moment.
    /// [`Problem::NotFound`](super::Problem::NotFound) if it was released before.
    fn release(&self, id: u64) -> Answer<'_, BarrierStatus>;
}

/// The behaviour of the cloud as a whole.
pub trait Tunable: Sync {
    /// The current settings, with all fields set.
    fn read(&self) -> Answer<'_, Settings>;

    /// Changes the given settings; returns all settings afterwards.
    fn change<'a>(&'a self, settings: &'a Settings) -> Answer<'a, Settings>;
}

/// The credentials that the cloud accepts.
pub trait Admission: Sync {
    /// Accepts a caller, whose calls have the credential's name in the journal. An earlier credential with
    /// the same name and another token is rejected from now on.
    fn admit<'a>(&'a self, caller: &'a Credential) -> Answer<'a, ()>;
}
