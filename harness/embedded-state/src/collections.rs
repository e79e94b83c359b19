//! Under which name the store keeps the objects of a kind.

use embedded_objects::kinds::Kind;

use crate::store::CollectionName;

/// The collection of a kind.
#[must_use]
pub fn collection_of(kind: &'static Kind) -> CollectionName {
    &kind.collection
}
