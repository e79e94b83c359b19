//! The rules between kinds of objects, and the main type of this crate.

use super::actions::Actions;
use super::auxiliaries::{AuxSpec, Auxiliaries};
use super::checks::{self, check_inventory};
use super::ids::{IdForm, Ids};
use super::instances::Instances;
use super::load_balancers::{Deleted, Families, GoneBackends, LbSpec, LoadBalancers, Naming};
use super::refusal::Refusal;
use super::routes::{self, RouteTarget, Routes};
use super::stale::LastListed;
use super::tuning::Tuning;
use super::view::View;
use fake_cloud_driver::{
    Auxiliary, Instance, Inventory, LbAddressing, LoadBalancer, ObjectKind, Route, Settings,
};
use std::net::IpAddr;
use std::time::Duration;

/// What happens to the auxiliary objects of a load balancer that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependents {
    /// If there are any, the load balancer is not deleted.
    Forbid,
    /// They are deleted with it.
    Remove,
    /// They stay and refer to nothing.
    Keep,
}

/// All objects, and the behaviour of the cloud.
#[derive(Debug, Default)]
pub struct Cloud {
    pub(super) instances: Instances,
    pub(super) load_balancers: LoadBalancers,
    pub(super) auxiliaries: Auxiliaries,
    pub(super) routes: Routes,
    pub(super) actions: Actions,
    gone_backends: GoneBackends,
    naming: Naming,
    pub(super) ids: Ids,
    tuning: Tuning,
    pub(super) seen: LastListed,
    /// What lists show to the current call.
    pub(super) view: View,
    /// Whether the list that was begun last under [`View::ShiftedPages`] is one whose pages are shifted.
    is_shifted: bool,
}

impl Cloud {
    /// An empty cloud with ids of this form and these rules for load balancers.
    pub fn new(ids: IdForm, gone_backends: GoneBackends, naming: Naming) -> Cloud {
        let load_balancers = LoadBalancers::named(naming);
        Cloud { ids: Ids::new(ids), gone_backends, naming, load_balancers, ..Cloud::default() }
    }

    /// The current settings.
    pub fn settings(&self) -> Settings {
        let ms = |duration: Duration| Some(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
        Settings {
            page_size: Some(self.tuning.page_size),
            provisioning_ms: ms(self.tuning.provisioning),
            deletion_ms: ms(self.tuning.deletion),
            stale_ms: ms(self.tuning.stale),
            action_ms: ms(self.tuning.action),
            latency_ms: ms(self.tuning.latency),
            addresses: Some(self.tuning.addresses),
        }
    }

    /// Changes the given settings. Load balancers that are already being provisioned or deleted keep their
    /// times; when lists become stale, they show the current state.
    pub fn set(&mut self, settings: &Settings, now: Duration) -> Result<(), Refusal> {
        if settings.page_size == Some(0) {
            return Err(Refusal::Invalid("page_size must be at least 1".to_owned()));
        }
        let ms = |given: Option<u64>, old: Duration| given.map_or(old, Duration::from_millis);
        self.tuning = Tuning {
            page_size: settings.page_size.unwrap_or(self.tuning.page_size),
            provisioning: ms(settings.provisioning_ms, self.tuning.provisioning),
            deletion: ms(settings.deletion_ms, self.tuning.deletion),
            stale: ms(settings.stale_ms, self.tuning.stale),
            action: ms(settings.action_ms, self.tuning.action),
            latency: ms(settings.latency_ms, self.tuning.latency),
            addresses: settings.addresses.unwrap_or(self.tuning.addresses),
        };
        self.forget_lists(now);
        Ok(())
    }

    /// Calls `act` with another provisioning time than that of the settings.
    pub fn with_provisioning<T>(&mut self, time: Duration, act: impl FnOnce(&mut Cloud) -> T) -> T {
        let usual = std::mem::replace(&mut self.tuning.provisioning, time);
        let outcome = act(self);
        self.tuning.provisioning = usual;
        outcome
    }

    /// How long a call waits before it takes effect.
    pub fn latency(&self) -> Duration {
        self.tuning.latency
    }

    /// Calls `act` with another deletion time than that of the settings.
    pub fn with_deletion<T>(&mut self, time: Duration, act: impl FnOnce(&mut Cloud) -> T) -> T {
        let usual = std::mem::replace(&mut self.tuning.deletion, time);
        let outcome = act(self);
        self.tuning.deletion = usual;
        outcome
    }

    /// Calls `act` while lists show this view.
    pub fn with_view<T>(&mut self, view: View, act: impl FnOnce(&mut Cloud) -> T) -> T {
        let usual = std::mem::replace(&mut self.view, view);
        let outcome = act(self);
        self.view = usual;
        outcome
    }

    /// Whether lists begin with a page without items.
    pub fn begins_with_an_empty_page(&self) -> bool {
        self.view == View::EmptyFirstPage
    }

    /// How many items are missing before this page of a list, because others have moved.
    pub fn items_lost_before(&mut self, page: u64) -> u64 {
        if self.view != View::ShiftedPages {
            return 0;
        }
        if page == 1 {
            self.is_shifted = !self.is_shifted;
        }
        if self.is_shifted { page.saturating_sub(1) } else { 0 }
    }

    /// A new id for an object that only the dialect knows.
    pub fn new_id(&mut self, prefix: &str) -> String {
        self.ids.next(prefix)
    }

    /// How old a list may be.
    pub(super) fn stale(&self) -> Duration {
        self.tuning.stale
    }

    /// How long an action runs.
    pub(super) fn action_time(&self) -> Duration {
        self.tuning.action
    }

    /// When a load balancer that is created now will be active.
    pub fn provisioned_at(&self, now: Duration) -> Duration {
        now.saturating_add(self.tuning.provisioning)
    }

    /// When a load balancer that is deleted now will be gone.
    pub fn deleted_at(&self, now: Duration) -> Duration {
        now.saturating_add(self.tuning.deletion)
    }

    /// The largest number of items in a page.
    pub fn page_size(&self) -> u32 {
        self.tuning.page_size
    }

    /// All objects, never stale.
    pub fn inventory(&mut self, now: Duration) -> Inventory {
        self.load_balancers.settle(now);
        Inventory {
            instances: self.instances.iter().cloned().collect(),
            load_balancers: self.load_balancers.iter().cloned().collect(),
            auxiliaries: self.auxiliaries.iter().cloned().collect(),
            routes: self.routes.seen(&self.instances).collect(),
        }
    }

    /// Replaces all objects. A load balancer that is already as in the inventory keeps the time at which its
    /// state ends; any other stays in the given state.
    pub fn restore(&mut self, inventory: Inventory, now: Duration) -> Result<(), Refusal> {
        check_inventory(&inventory)?;
        self.ids.saw_all(&inventory);
        self.load_balancers.settle(now);
        self.load_balancers.restore(inventory.load_balancers);
        self.instances = inventory.instances.into_iter().collect();
        self.auxiliaries = inventory.auxiliaries.into_iter().collect();
        self.routes = inventory.routes.into_iter().collect();
        self.forget_lists(now);
        Ok(())
    }

    /// Removes everything and resets the settings. Assigned ids are not assigned again.
    pub fn reset(&mut self) {
        let ids = std::mem::take(&mut self.ids);
        let (gone_backends, naming) = (self.gone_backends, self.naming);
        let load_balancers = LoadBalancers::named(naming);
        *self = Cloud { ids, gone_backends, naming, load_balancers, ..Cloud::default() };
    }

    /// Lists show the current state; while they may be stale, they keep showing it.
    fn forget_lists(&mut self, now: Duration) {
        self.seen = LastListed::default();
        if !self.tuning.stale.is_zero() {
            let _ = (self.list_instances(now).len(), self.list_load_balancers(now).len());
            let _ = (self.list_auxiliaries(now).len(), self.list_routes(now).len());
        }
    }
}

/// Instances. Only the driver API changes them.
impl Cloud {
    /// One instance.
    pub fn instance(&self, id: &str) -> Result<&Instance, Refusal> {
        self.instances.get(id).ok_or_else(|| Refusal::no(ObjectKind::Instance, id))
    }

    /// The current instances by id, for look-ups by another key.
    pub fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.instances.iter()
    }

    /// The current instances with this name, ignoring case.
    pub fn instances_named(&self, name: &str) -> impl Iterator<Item = &Instance> {
        self.instances.named(name)
    }

    /// Creates an instance, or replaces it.
    pub fn put_instance(&mut self, instance: Instance) -> Result<(), Refusal> {
        checks::check_id(ObjectKind::Instance, &instance.id)?;
        self.instances.put(instance);
        Ok(())
    }

    /// Creates all of these instances, or none of them.
    pub fn put_instances(&mut self, instances: Vec<Instance>) -> Result<(), Refusal> {
        checks::check_ids(ObjectKind::Instance, instances.iter().map(|instance| instance.id.as_str()))?;
        for instance in instances {
            self.instances.put(instance);
        }
        Ok(())
    }

    /// Deletes an instance. Routes to it become black holes.
    pub fn delete_instance(&mut self, id: &str) -> Result<(), Refusal> {
        if self.gone_backends == GoneBackends::Dropped {
            self.load_balancers.drop_backend(id);
        }
        self.instances.remove(id).map(drop).ok_or_else(|| Refusal::no(ObjectKind::Instance, id))
    }
}

/// Load balancers.
impl Cloud {
    /// One load balancer.
    pub fn load_balancer(&mut self, id: &str, now: Duration) -> Result<&LoadBalancer, Refusal> {
        self.load_balancers.settle(now);
        self.load_balancers.get(id)
    }

    /// The current load balancers by id, for look-ups by another key.
    pub fn load_balancers(&mut self, now: Duration) -> impl Iterator<Item = &LoadBalancer> {
        self.load_balancers.settle(now);
        self.load_balancers.iter()
    }

    /// Creates a load balancer with addresses of these families.
    pub fn create_load_balancer(
        &mut self,
        spec: LbSpec,
        families: Families,
        now: Duration,
    ) -> Result<&LoadBalancer, Refusal> {
        self.load_balancers.settle(now);
        let spec = spec.checked()?;
        self.check_backends(&spec.backends)?;
        let families = match self.tuning.addresses {
            _ if matches!(families, Families::At(_)) => families,
            LbAddressing::Usual => families,
            LbAddressing::DualStack => Families::Both,
            LbAddressing::Named => Families::Named,
        };
        self.load_balancers.create((spec, families), &mut self.ids, now, self.tuning.provisioning)
    }

    /// Replaces a load balancer by the result of `change`.
    pub fn update_load_balancer(
        &mut self,
        id: &str,
        now: Duration,
        change: impl FnOnce(LbSpec) -> LbSpec,
    ) -> Result<&LoadBalancer, Refusal> {
        self.load_balancers.settle(now);
        let spec = change(LbSpec::of(self.load_balancers.get(id)?)).checked()?;
        self.check_backends(&spec.backends)?;
        self.load_balancers.update(id, spec)
    }

    /// Begins to delete a load balancer.
    pub fn delete_load_balancer(
        &mut self,
        id: &str,
        dependents: Dependents,
        now: Duration,
    ) -> Result<Deleted<'_>, Refusal> {
        self.load_balancers.settle(now);
        self.load_balancers.get(id)?;
        self.part_from(id, dependents)?;
        self.load_balancers.delete(id, now, self.tuning.deletion)
    }

    /// Creates a load balancer or replaces it, ignoring the rules. It stays in the given state.
    pub fn put_load_balancer(&mut self, lb: LoadBalancer) -> Result<(), Refusal> {
        checks::check_id(ObjectKind::LoadBalancer, &lb.id)?;
        self.ids.saw(&lb.id);
        self.load_balancers.put(lb);
        Ok(())
    }

    /// Removes a load balancer at once.
    pub fn remove_load_balancer(
        &mut self,
        id: &str,
        dependents: Dependents,
        now: Duration,
    ) -> Result<(), Refusal> {
        self.load_balancers.settle(now);
        self.load_balancers.get(id)?;
        self.part_from(id, dependents)?;
        self.load_balancers.remove(id);
        Ok(())
    }

    fn part_from(&mut self, load_balancer: &str, dependents: Dependents) -> Result<(), Refusal> {
        match (dependents, self.auxiliaries.serving(load_balancer)) {
            (Dependents::Keep, _) | (_, None) => {}
            (Dependents::Remove, Some(_)) => self.auxiliaries.remove_serving(load_balancer),
            (Dependents::Forbid, Some(aux)) => {
                let text =
                    format!("load balancer {load_balancer} is in use: {} {} refers to it", aux.kind, aux.id);
                return Err(Refusal::Conflict(text));
            }
        }
        Ok(())
    }

    fn check_backends(&self, ids: &[String]) -> Result<(), Refusal> {
        // A backend may be any address.
        let is_none = |id: &&String| self.instances.get(id).is_none() && id.parse::<IpAddr>().is_err();
        match ids.iter().find(is_none) {
            None => Ok(()),
            Some(id) => Err(Refusal::Invalid(format!("backend {} is not an instance", checks::shown(id)))),
        }
    }
}

/// Objects that belong to load balancers.
impl Cloud {
    /// One auxiliary object of that kind.
    pub fn auxiliary(&self, kind: &str, id: &str) -> Result<&Auxiliary, Refusal> {
        self.auxiliaries.get(kind, id)
    }

    /// The current auxiliary objects by id, for look-ups by another key.
    pub fn auxiliaries(&self) -> impl Iterator<Item = &Auxiliary> {
        self.auxiliaries.iter()
    }

    /// Creates an auxiliary object whose id begins with `prefix`.
    pub fn create_auxiliary(
        &mut self,
        kind: &str,
        prefix: &str,
        spec: AuxSpec,
        now: Duration,
    ) -> Result<&Auxiliary, Refusal> {
        self.check_served(spec.load_balancer.as_deref(), now)?;
        self.auxiliaries.create(kind, prefix, spec, &mut self.ids)
    }

    /// Replaces an auxiliary object of this kind.
    pub fn update_auxiliary(
        &mut self,
        kind: &str,
        id: &str,
        spec: AuxSpec,
        now: Duration,
    ) -> Result<&Auxiliary, Refusal> {
        let present = self.auxiliaries.get(kind, id)?;
        if present.load_balancer != spec.load_balancer {
            self.check_served(spec.load_balancer.as_deref(), now)?;
        }
        self.auxiliaries.update(kind, id, spec)
    }

    /// Deletes an auxiliary object of this kind.
    pub fn delete_auxiliary(&mut self, kind: &str, id: &str) -> Result<(), Refusal> {
        self.auxiliaries.remove(kind, id)
    }

    fn check_served(&mut self, load_balancer: Option<&str>, now: Duration) -> Result<(), Refusal> {
        let Some(id) = load_balancer else { return Ok(()) };
        match self.load_balancer(id, now) {
            Ok(lb) if lb.state == fake_cloud_driver::LbState::Deleting => {
                Err(Refusal::Conflict(format!("load balancer {id} is being deleted")))
            }
            Ok(_) => Ok(()),
            Err(refusal) => Err(Refusal::Invalid(refusal.to_string())),
        }
    }
}

/// Routes.
impl Cloud {
    /// All routes by id as they were written, for look-ups by another key.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter()
    }

    /// Creates a route to an instance, or to an address that may belong to an instance.
    pub fn create_route(&mut self, destination: &str, target: RouteTarget<'_>) -> Result<Route, Refusal> {
        self.routes.create(destination, target, &self.instances, &mut self.ids)
    }

    /// Deletes a route.
    pub fn delete_route(&mut self, id: &str) -> Result<(), Refusal> {
        self.routes.remove(id)
    }

    /// Creates a route or replaces it, ignoring the rules; without an id it gets one.
    pub fn put_route(&mut self, mut route: Route) -> Result<Route, Refusal> {
        if route.id.is_empty() {
            route.id = self.ids.next(routes::PREFIX);
        }
        checks::check_id(ObjectKind::Route, &route.id)?;
        self.ids.saw(&route.id);
        self.routes.put(route.clone());
        Ok(self.routes.seen(&self.instances).find(|seen| seen.id == route.id).unwrap_or(route))
    }
}
