//! Instances: machines that only the admin API changes.

use crate::admin::Instance;
use std::collections::BTreeMap;

/// All instances by id.
#[derive(Debug, Default)]
pub(super) struct Instances(BTreeMap<String, Instance>);

impl Instances {
    pub(super) fn get(&self, id: &str) -> Option<&Instance> {
        self.0.get(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Instance> {
        self.0.values()
    }

    pub(super) fn put(&mut self, instance: Instance) {
        self.0.insert(instance.id.clone(), instance);
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Instance> {
        self.0.remove(id)
    }
}

impl FromIterator<Instance> for Instances {
    fn from_iter<I: IntoIterator<Item = Instance>>(instances: I) -> Instances {
        Instances(instances.into_iter().map(|instance| (instance.id.clone(), instance)).collect())
    }
}
