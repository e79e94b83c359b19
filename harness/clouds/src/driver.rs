//! What a driver of a cloud can be asked, one trait a facility.
//!
//! A driver has a facility when it hands out the trait for it; so it cannot claim what it does not have, and what it
//! lacks makes the checks that name it 'not observable'.

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

/// What a driver answers, once it does.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, CloudError>>;

/// A way to a cloud: a simulator, a proxy before one, or a real cloud that can only be looked at.
///
/// Every call ends by itself, within 10 s where nothing else is said.
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
    fn inventory(&self) -> Option<&dyn Stock> {
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

/// What an operator of the cloud does, past every CCM.
pub trait Machines: Sync {
    /// Puts machines there, or changes those with the same ids (power state included): all or none.
    fn put<'a>(&'a self, instances: &'a [Instance]) -> Answer<'a, ()>;

    /// Takes a machine away; [`Problem::NotFound`](super::Problem::NotFound) when there is none of that id.
    fn remove<'a>(&'a self, id: &'a str) -> Answer<'a, ()>;
}

/// What an operator of the cloud does with what CCMs make.
pub trait Objects: Sync {
    /// Puts a load balancer there as it is given, or changes the one with its id.
    fn put_load_balancer<'a>(&'a self, lb: &'a LoadBalancer) -> Answer<'a, ()>;

    /// Takes a load balancer away with everything that serves it;
    /// [`Problem::NotFound`](super::Problem::NotFound) when there is none of that id.
    fn remove_load_balancer<'a>(&'a self, id: &'a str) -> Answer<'a, ()>;
}

/// What an operator of the cloud does with its routes.
pub trait Routes: Sync {
    /// Puts a route there as it is given, or changes the one with its id; one with an empty id gets one.
    fn put_route<'a>(&'a self, route: &'a Route) -> Answer<'a, Route>;

    /// Takes a route away; [`Problem::NotFound`](super::Problem::NotFound) when there is none of that id.
    fn remove_route<'a>(&'a self, id: &'a str) -> Answer<'a, ()>;
}

/// What the cloud holds.
pub trait Stock: Sync {
    /// Everything the cloud holds now, sorted by id.
    fn read(&self) -> Answer<'_, Inventory>;
}

/// The record of every call that CCMs made.
pub trait Journalled: Sync {
    /// Entries numbered above `after`, in order of arrival without gaps. Answers as soon as there is one; waits for it as
    /// long as `wait` says and then answers with none, so this call alone may take that much longer.
    fn read(&self, after: u64, wait: Duration) -> Answer<'_, Vec<Entry>>;
}

/// Trouble to order.
pub trait Faults: Sync {
    /// Puts a fault in force under an id that the caller has chosen; each serves once, and one that was ended stays so even
    /// if this call is carried out later.
    fn inject<'a>(&'a self, id: u64, fault: &'a Fault) -> Answer<'a, ActiveFault>;

    /// A fault and how often it has hit; also after it is used up, until it is cleared.
    fn read(&self, id: u64) -> Answer<'_, ActiveFault>;

    /// Ends a fault for good; [`Problem::NotFound`](super::Problem::NotFound) when it was cleared before.
    fn clear(&self, id: u64) -> Answer<'_, ()>;
}

/// Calls held before they take effect.
pub trait Barriers: Sync {
    /// Raises a barrier under an id that the caller has chosen, as [`Faults::inject`]: calls that match wait at it.
    fn raise<'a>(&'a self, id: u64, matching: &'a Match) -> Answer<'a, BarrierStatus>;

    /// A barrier and who waits at it.
    fn read(&self, id: u64) -> Answer<'_, BarrierStatus>;

    /// Takes a barrier away and lets its calls go on; what it was at that moment.
    /// [`Problem::NotFound`](super::Problem::NotFound) when it was released before.
    fn release(&self, id: u64) -> Answer<'_, BarrierStatus>;
}

/// How the cloud as a whole behaves.
pub trait Tunable: Sync {
    /// The settings in force, all fields filled.
    fn read(&self) -> Answer<'_, Settings>;

    /// Changes the settings that are given; all of them as they are then.
    fn change<'a>(&'a self, settings: &'a Settings) -> Answer<'a, Settings>;
}

/// Whom the cloud lets in.
pub trait Admission: Sync {
    /// Lets a caller in, whose calls have the credential's name in the journal; one of that name that was let in before with
    /// another token is refused from now on.
    fn admit<'a>(&'a self, caller: &'a Credential) -> Answer<'a, ()>;
}
