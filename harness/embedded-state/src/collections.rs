//! The names of the store's collections.

use embedded_objects::kinds::Kind;

use crate::store::CollectionName;

/// The name of the collection with the objects of a kind.
#[must_use]
pub fn collection_of(kind: &'static Kind) -> CollectionName {
    &kind.collection
}
