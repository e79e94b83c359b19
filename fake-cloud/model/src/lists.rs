//! Lists of objects: as old as the settings allow, and restricted by faults (contract CLOUD-08).

use super::Cloud;
use fake_cloud_driver::{Auxiliary, Instance, LoadBalancer, Route};
use std::time::Duration;

impl Cloud {
    /// All instances in the order of their creation, as old as the settings allow.
    pub fn list_instances(&mut self, now: Duration) -> Vec<&Instance> {
        let stale = self.stale();
        self.view.of(self.seen.instances.view(now, stale, || self.instances.iter()))
    }

    /// All load balancers by id, as old as the settings allow.
    pub fn list_load_balancers(&mut self, now: Duration) -> Vec<&LoadBalancer> {
        self.load_balancers.settle(now);
        let stale = self.stale();
        self.view.of(self.seen.load_balancers.view(now, stale, || self.load_balancers.iter()))
    }

    /// All auxiliaries by id, as old as the settings allow.
    pub fn list_auxiliaries(&mut self, now: Duration) -> Vec<&Auxiliary> {
        let stale = self.stale();
        self.view.of(self.seen.auxiliaries.view(now, stale, || self.auxiliaries.iter()))
    }

    /// All routes by id, as old as the settings allow.
    pub fn list_routes(&mut self, now: Duration) -> Vec<Route> {
        let fresh: Vec<Route> = self.routes.seen(&self.instances).collect();
        let stale = self.stale();
        self.view.of(self.seen.routes.view(now, stale, || fresh.iter())).into_iter().cloned().collect()
    }
}
