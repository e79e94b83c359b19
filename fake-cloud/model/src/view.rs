//! What lists show of the cloud, when a fault says that it is not all of it.

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
    /// Everything but the objects that are known by one of these.
    Without(BTreeSet<String>),
    /// What there was.
    AsOf(Arc<Inventory>),
    /// Everything, after a page without items.
    EmptyFirstPage,
}

/// What can be listed.
pub(super) trait Listed: Sized {
    /// By what it is known.
    fn names(&self) -> Vec<&str>;

    /// Those of an inventory.
    fn of(inventory: &Inventory) -> &[Self];
}

impl View {
    /// What is shown of a list.
    pub(super) fn of<'a, T: Listed>(&'a self, all: Vec<&'a T>) -> Vec<&'a T> {
        match self {
            View::Whole | View::EmptyFirstPage => all,
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
