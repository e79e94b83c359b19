//! Instances: machines that only the driver API changes.

use fake_cloud_driver::Instance;
use std::collections::{BTreeMap, BTreeSet};

/// All instances by id: shorter ids first, so that numbers are in order. Names need not be unique. CCMs look
/// up new machines by name, so names have an index, in lower case because some clouds ignore the case.
#[derive(Debug, Default)]
pub(super) struct Instances {
    by_id: BTreeMap<Key, Instance>,
    keys_by_name: BTreeMap<String, BTreeSet<Key>>,
}

/// An id's length and the id.
type Key = (usize, String);

fn key(id: &str) -> Key {
    (id.len(), id.to_owned())
}

impl Instances {
    pub(super) fn get(&self, id: &str) -> Option<&Instance> {
        self.by_id.get(&key(id))
    }

    /// The instances with this name, ignoring case, by id.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = &Instance> {
        self.keys_by_name
            .get(&name.to_ascii_lowercase())
            .into_iter()
            .flatten()
            .filter_map(|key| self.by_id.get(key))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Instance> {
        self.by_id.values()
    }

    pub(super) fn put(&mut self, instance: Instance) {
        self.forget_name(&instance.id);
        let key = key(&instance.id);
        self.keys_by_name.entry(instance.name.to_ascii_lowercase()).or_default().insert(key.clone());
        self.by_id.insert(key, instance);
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Instance> {
        self.forget_name(id);
        self.by_id.remove(&key(id))
    }

    fn forget_name(&mut self, id: &str) {
        let Some(name) = self.get(id).map(|instance| instance.name.to_ascii_lowercase()) else {
            return;
        };
        if let Some(keys) = self.keys_by_name.get_mut(&name) {
            keys.remove(&key(id));
            if keys.is_empty() {
                self.keys_by_name.remove(&name);
            }
        }
    }
}

impl FromIterator<Instance> for Instances {
    fn from_iter<I: IntoIterator<Item = Instance>>(instances: I) -> Instances {
        let mut all = Instances::default();
        instances.into_iter().for_each(|instance| all.put(instance));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fake_cloud_driver::InstanceState;

    fn instance(id: &str, name: &str) -> Instance {
        Instance {
            id: id.to_owned(),
            provider_id: None,
            name: name.to_owned(),
            instance_type: String::new(),
            zone: String::new(),
            region: String::new(),
            addresses: Vec::new(),
            labels: BTreeMap::new(),
            state: InstanceState::Running,
        }
    }

    #[test]
    fn numbers_are_in_their_order() {
        let all: Instances = ["10", "9", "100"].map(|id| instance(id, "a")).into_iter().collect();
        let ids = |found: Vec<&Instance>| found.into_iter().map(|i| i.id.clone()).collect::<Vec<String>>();
        assert_eq!(ids(all.iter().collect()), ["9", "10", "100"]);
        assert_eq!(ids(all.named("a").collect()), ["9", "10", "100"]);
    }

    #[test]
    fn a_name_leads_to_those_that_have_it_now() {
        let mut all: Instances =
            [instance("1", "a"), instance("2", "a"), instance("3", "b")].into_iter().collect();
        let ids =
            |all: &Instances, name: &str| -> Vec<String> { all.named(name).map(|i| i.id.clone()).collect() };
        assert_eq!((ids(&all, "a"), ids(&all, "A")), (vec!["1".to_owned(), "2".to_owned()], ids(&all, "a")));
        all.put(instance("2", "c"));
        all.remove("1");
        assert_eq!((ids(&all, "a"), ids(&all, "c")), (vec![], vec!["2".to_owned()]));
        assert_eq!(all.keys_by_name.len(), 2, "no name without an instance is kept");
    }
}
