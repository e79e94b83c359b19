//! Instances: machines that only the driver API changes.

use fake_cloud_driver::Instance;
use std::collections::{BTreeMap, BTreeSet};

/// All instances in the order of their creation: the deletion of a machine moves only younger ones to an earlier page of a
/// list. Names need not be unique. CCMs look up new machines by name, so names have an index, in lower case because some
/// clouds ignore the case.
#[derive(Debug, Default)]
pub(super) struct Instances {
    all: BTreeMap<u64, Instance>,
    numbers: BTreeMap<String, u64>,
    numbers_by_name: BTreeMap<String, BTreeSet<u64>>,
    /// How many have been created.
    created: u64,
}

impl Instances {
    pub(super) fn get(&self, id: &str) -> Option<&Instance> {
        self.all.get(self.numbers.get(id)?)
    }

    /// The instances with this name, ignoring case, in the order of their creation.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = &Instance> {
        let numbers = self.numbers_by_name.get(&name.to_ascii_lowercase()).into_iter().flatten();
        numbers.filter_map(|number| self.all.get(number))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Instance> {
        self.all.values()
    }

    /// Adds an instance, or replaces the one with its id, whose place it takes.
    pub(super) fn put(&mut self, instance: Instance) {
        self.forget_name(&instance.id);
        let number = self.numbers.get(&instance.id).copied().unwrap_or_else(|| {
            self.created += 1;
            self.created
        });
        self.numbers.insert(instance.id.clone(), number);
        self.numbers_by_name.entry(instance.name.to_ascii_lowercase()).or_default().insert(number);
        self.all.insert(number, instance);
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Instance> {
        self.forget_name(id);
        self.all.remove(&self.numbers.remove(id)?)
    }

    fn forget_name(&mut self, id: &str) {
        let Some(number) = self.numbers.get(id) else { return };
        let Some(name) = self.all.get(number).map(|instance| instance.name.to_ascii_lowercase()) else {
            return;
        };
        if let Some(numbers) = self.numbers_by_name.get_mut(&name) {
            numbers.remove(number);
            if numbers.is_empty() {
                self.numbers_by_name.remove(&name);
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
    fn instances_are_in_the_order_of_their_creation() {
        let mut all: Instances = ["10", "9", "100"].map(|id| instance(id, "a")).into_iter().collect();
        let ids = |found: Vec<&Instance>| found.into_iter().map(|i| i.id.clone()).collect::<Vec<String>>();
        assert_eq!(ids(all.iter().collect()), ["10", "9", "100"]);
        assert_eq!(ids(all.named("a").collect()), ["10", "9", "100"]);
        all.remove("9");
        all.put(instance("10", "b"));
        all.put(instance("9", "a"));
        assert_eq!(
            ids(all.iter().collect()),
            ["10", "100", "9"],
            "a change keeps the place, a deletion does not"
        );
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
        assert_eq!(all.numbers_by_name.len(), 2, "no name without an instance is kept");
    }
}
