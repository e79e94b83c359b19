//! Under which name the store keeps the objects of a kind.

use embedded_semantics::kinds::{self, Kind};

use crate::store::CollectionName;

/// The collection of a kind. Both groups' Events are one.
#[must_use]
pub(crate) fn collection_of(kind: &Kind) -> CollectionName {
    // The names live as long as the program: there is one for each kind of a fixed table.
    static NAMES: std::sync::OnceLock<std::collections::BTreeMap<(&str, &str), String>> =
        std::sync::OnceLock::new();
    let names = NAMES.get_or_init(|| {
        kinds::ALL
            .iter()
            .map(|kind| {
                let name = if kind.kind == "Event" { kind.plural.to_owned() } else { kind.resource() };
                ((kind.group, kind.plural), name)
            })
            .collect()
    });
    names.get(&(kind.group, kind.plural)).map_or("", String::as_str)
}
