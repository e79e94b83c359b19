//! The ids that the cloud assigns: a prefix and a number that only grows.

use fake_cloud_driver::Inventory;
use std::collections::BTreeMap;

/// The form of assigned ids. The driver API chooses those of instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdForm {
    /// A word for the kind and a number, e.g. `lb-1`.
    #[default]
    Prefixed,
    /// A number; all have at least eight digits, so that their texts sort like numbers for a long time.
    Number,
    /// A UUID (RFC 9562, version 8: custom), with the number at its end.
    Uuid,
}

/// The number that is added to the count for [`IdForm::Number`].
const FIRST_NUMBER: u64 = 10_000_000;
/// The text before the count in [`IdForm::Uuid`].
const UUID_HEAD: &str = "fa4ec10d-0000-8000-8000-";

/// The last number for each prefix. None is ever assigned twice, not even after a reset.
#[derive(Debug, Default)]
pub(super) struct Ids {
    form: IdForm,
    last: BTreeMap<String, u64>,
}

impl Ids {
    pub(super) fn new(form: IdForm) -> Ids {
        Ids { form, last: BTreeMap::new() }
    }

    /// The next id for kinds of objects with this prefix, e.g. `lb-1`.
    pub(super) fn next(&mut self, prefix: &str) -> String {
        let key = match self.form {
            IdForm::Prefixed => prefix,
            // One count for all kinds: an id identifies an object even without its kind.
            IdForm::Number | IdForm::Uuid => "",
        };
        let last = match self.last.get_mut(key) {
            Some(last) => last,
            None => self.last.entry(key.to_owned()).or_default(),
        };
        *last = last.saturating_add(1);
        match self.form {
            IdForm::Prefixed => format!("{prefix}-{last}"),
            IdForm::Number => FIRST_NUMBER.saturating_add(*last).to_string(),
            IdForm::Uuid => format!("{UUID_HEAD}{last:012x}"),
        }
    }

    /// Records an id that was chosen elsewhere.
    pub(super) fn saw(&mut self, id: &str) {
        let (prefix, number) = match self.form {
            IdForm::Prefixed => match id.rsplit_once('-') {
                Some((prefix, number)) => (prefix, number.parse().ok()),
                None => return,
            },
            IdForm::Number => ("", id.parse::<u64>().ok().and_then(|n| n.checked_sub(FIRST_NUMBER))),
            IdForm::Uuid => ("", id.strip_prefix(UUID_HEAD).and_then(|n| u64::from_str_radix(n, 16).ok())),
        };
        // A number at the end of the range would leave none to assign.
        let Some(number) = number.filter(|number| u32::try_from(*number).is_ok()) else { return };
        let last = self.last.entry(prefix.to_owned()).or_default();
        *last = (*last).max(number);
    }

    /// Records all ids that the cloud could have assigned.
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

    #[test]
    fn other_forms_count_all_kinds_together() {
        let mut ids = Ids::new(IdForm::Number);
        assert_eq!((ids.next("lb").as_str(), ids.next("fw").as_str()), ("10000001", "10000002"));
        for seen in ["10000007", "3", "x", "18446744073709551615", ""] {
            ids.saw(seen);
        }
        assert_eq!(ids.next("lb"), "10000008");
        let mut ids = Ids::new(IdForm::Uuid);
        assert_eq!(ids.next("lb"), "fa4ec10d-0000-8000-8000-000000000001");
        for seen in ["fa4ec10d-0000-8000-8000-00000000000f", "fa4ec10d-0000-8000-8000-ffffffffffff", "x", ""]
        {
            ids.saw(seen);
        }
        assert_eq!(ids.next("fw"), "fa4ec10d-0000-8000-8000-000000000010");
    }
}
