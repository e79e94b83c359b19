//! Identifiers the cloud gives out: a prefix and a number that only grows.

use crate::admin::Inventory;
use std::collections::BTreeMap;

/// The last number given out for each prefix. None is ever given out twice, not even after a reset.
#[derive(Debug, Default)]
pub(super) struct Ids(BTreeMap<String, u64>);

impl Ids {
    /// The next id, e.g. `lb-1`.
    pub(super) fn next(&mut self, prefix: &str) -> String {
        let last = match self.0.get_mut(prefix) {
            Some(last) => last,
            None => self.0.entry(prefix.to_owned()).or_default(),
        };
        *last = last.saturating_add(1);
        format!("{prefix}-{last}")
    }

    /// Takes note of an id somebody else chose.
    pub(super) fn saw(&mut self, id: &str) {
        let Some((prefix, number)) = id.rsplit_once('-') else { return };
        // A number at the end of the range would leave none to give out.
        let Ok(number) = number.parse::<u32>() else { return };
        let last = self.0.entry(prefix.to_owned()).or_default();
        *last = (*last).max(u64::from(number));
    }

    /// Takes note of all ids the cloud could have given out.
    pub(super) fn saw_all(&mut self, inventory: &Inventory) {
        let load_balancers = inventory.load_balancers.iter().map(|lb| &lb.id);
        let auxiliaries = inventory.auxiliaries.iter().map(|aux| &aux.id);
        let routes = inventory.routes.iter().map(|route| &route.id);
        for id in load_balancers.chain(auxiliaries).chain(routes) {
            self.saw(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_only_grow() {
        let mut ids = Ids::default();
        assert_eq!(ids.next("lb"), "lb-1");
        ids.saw("lb-7");
        ids.saw("lb-3");
        for odd in ["lb-x", "lb", "", "-", "lb-18446744073709551615", "lb--1"] {
            ids.saw(odd);
        }
        assert_eq!(ids.next("lb"), "lb-8");
        assert_eq!(ids.next("fw"), "fw-1");
    }
}
