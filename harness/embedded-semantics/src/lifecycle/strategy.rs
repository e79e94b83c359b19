//! The special behaviour of each kind.

use serde_json::Value;

use super::{Context, meta};
use crate::alloc::Allocator;
use embedded_objects::cause::Cause;
use embedded_objects::kinds::Kind;
use embedded_objects::status::Status;

/// The hooks of one kind. A hook that a kind does not override has the default behaviour.
pub(super) trait Strategy: Sync {
    /// Adds defaults to a decoded object.
    fn default(&self, _object: &mut Value) {}

    /// Sets and removes fields that a creation may not contain.
    fn prepare_create(&self, _object: &mut Value, _cx: &mut Context<'_>) {}

    /// Allocates for a creation.
    fn allocate_create(&self, _object: &mut Value, _cx: &mut Context<'_>) -> Result<(), Status> {
        Ok(())
    }

    /// The causes for an object that is created, without those for metadata.
    fn validate_create(&self, _object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        Vec::new()
    }

    /// Keeps what an update of the object or of one subresource may not change.
    fn prepare_update(&self, _sub: Option<&str>, _old: &Value, _new: &mut Value, _cx: &mut Context<'_>) {}

    /// Allocates for an update of the object itself.
    fn allocate_update(&self, _old: &Value, _new: &mut Value, _cx: &mut Context<'_>) -> Result<(), Status> {
        Ok(())
    }

    /// The causes for an update, without those of every kind. Some kinds check metadata again.
    fn validate_update(
        &self,
        _kind: &Kind,
        _sub: Option<&str>,
        old: &Value,
        new: &Value,
        _cx: &Context<'_>,
    ) -> Vec<Cause> {
        meta::changed(old, new)
    }

    /// Releases the addresses and ports of an object.
    fn released(&self, _object: &Value, _allocator: &mut Allocator) {}

    /// Allocates the addresses and ports of a stored object.
    fn restored(&self, _object: &Value, _allocator: &mut Allocator) {}
}
