//! What a check needs of the cloud beyond, or short of, the machines and the inventory that most need.

use super::{Check, Facility};

impl<Cx: 'static> Check<Cx> {
    /// Looks at the calls that the CCM makes to the cloud as well.
    pub const fn by_calls(self) -> Check<Cx> {
        self.with(&[Facility::Journal])
    }

    /// Creates or removes load balancers without the CCM.
    pub const fn on_objects(self) -> Check<Cx> {
        self.with(&[Facility::Objects])
    }

    /// Creates or removes routes without the CCM.
    pub const fn on_routes(self) -> Check<Cx> {
        self.with(&[Facility::Routes])
    }

    /// Makes no machine: the Nodes that the cluster has will do.
    pub const fn without_machines(mut self) -> Check<Cx> {
        self.facilities = self.facilities.without(&[Facility::Machines]);
        self
    }

    /// Needs these facilities of the cloud and no other: not the machines and inventory that most checks need.
    pub const fn of_the_cloud(mut self, facilities: &[Facility]) -> Check<Cx> {
        self.facilities = self.facilities.without(Facility::OF_THE_CLOUD).and(facilities);
        self
    }
}
