//! What each kind does differently.

use serde_json::Value;

use super::{Context, meta};
use crate::alloc::Allocator;
use embedded_objects::cause::Cause;
use embedded_objects::kinds::Kind;
use embedded_objects::status::Status;

/// The hooks of one kind; what a kind does not override, it does as every kind does.
pub(super) trait Strategy: Sync {
    /// Fills in defaults of a decoded object.
    fn default(&self, _object: &mut Value) {}

    /// Sets and drops what a creation may not bring.
    fn prepare_create(&self, _object: &mut Value, _cx: &mut Context<'_>) {}

    /// Allocates for a creation.
    fn allocate_create(&self, _object: &mut Value, _cx: &mut Context<'_>) -> Result<(), Status> {
        Ok(())
    }

    /// The causes beyond metadata of an object that is created.
    fn validate_create(&self, _object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        Vec::new()
    }

    /// Keeps what an update of the object or of one subresource may not change.
    fn prepare_update(&self, _sub: Option<&str>, _old: &Value, _new: &mut Value, _cx: &mut Context<'_>) {}

    /// Allocates for an update of the object itself.
    fn allocate_update(&self, _old: &Value, _new: &mut Value, _cx: &mut Context<'_>) -> Result<(), Status> {
        Ok(())
    }

    /// The causes of an update beyond those every kind has. Kinds check metadata once more themselves.
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

    /// Gives back what an object had.
    fn released(&self, _object: &Value, _allocator: &mut Allocator) {}

    /// Takes what a stored object has.
    fn restored(&self, _object: &Value, _allocator: &mut Allocator) {}
}
