//! The facilities of the cloud that a check needs, if they differ from the machines and the inventory that most checks
//! need.

use super::{Check, Facility};

impl<Cx: 'static> Check<Cx> {
    /// Also reads the CCM's calls to the cloud.
    pub const fn by_calls(self) -> Check<Cx> {
        self.with(&[Facility::Journal])
    }

    /// Creates or removes load balancers or routes without the CCM.
    pub const fn on_objects(self) -> Check<Cx> {
        self.with(&[Facility::Objects])
    }

    /// Creates or removes routes without the CCM.
    pub const fn on_routes(self) -> Check<Cx> {
        self.with(&[Facility::Routes])
    }

    /// Creates no machines: the existing Nodes are enough.
    pub const fn without_machines(mut self) -> Check<Cx> {
        self.facilities = self.facilities.without(&[Facility::Machines]);
        self
    }

    /// Needs exactly these facilities of the cloud, without the machines and inventory that most checks need.
    pub const fn of_the_cloud(mut self, facilities: &[Facility]) -> Check<Cx> {
        self.facilities = self.facilities.without(Facility::OF_THE_CLOUD).and(facilities);
        self
    }
}
