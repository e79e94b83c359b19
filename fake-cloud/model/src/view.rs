//! What lists show of the cloud while a fault hides a part of it.

use super::names::{names_of_auxiliary, names_of_instance, names_of_load_balancer, names_of_route};
use fake_cloud_driver::{Auxiliary, Instance, Inventory, LoadBalancer, Route};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What lists show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Everything.
    #[default]
    Whole,
    /// Nothing.
    Nothing,
    /// Everything except the objects with one of these names.
    Without(BTreeSet<String>),
    /// An earlier state.
    AsOf(Arc<Inventory>),
    /// Everything, after a page without items.
    EmptyFirstPage,
    /// In every second list, pages that begin later than they should.
    ShiftedPages,
}

/// A kind of object that can be listed.
pub(super) trait Listed: Sized {
    /// The names of the object.
    fn names(&self) -> Vec<&str>;

    /// The objects of this kind in an inventory.
    fn of(inventory: &Inventory) -> &[Self];
}

impl View {
    /// The objects of a list that are shown.
    pub(super) fn of<'a, T: Listed>(&'a self, all: Vec<&'a T>) -> Vec<&'a T> {
        match self {
            View::Whole | View::EmptyFirstPage | View::ShiftedPages => all,
            View::Nothing => Vec::new(),
            View::Without(names) => {
                let hidden =
                    |item: &&T| item.names().iter().any(|name| !name.is_empty() && names.contains(*name));
                all.into_iter().filter(|item| !hidden(item)).collect()
            }
            View::AsOf(then) => T::of(then).iter().collect(),
        }
    }
}

macro_rules! listed {
    ($($kind:ty, $field:ident, $names:ident;)+) => {
        $(impl Listed for $kind {
            fn names(&self) -> Vec<&str> {
                $names(self).to_vec()
            }

            fn of(inventory: &Inventory) -> &[Self] {
                &inventory.$field
            }
        })+
    };
}

listed! {
    Instance, instances, names_of_instance;
    LoadBalancer, load_balancers, names_of_load_balancer;
    Auxiliary, auxiliaries, names_of_auxiliary;
    Route, routes, names_of_route;
}
