//! Managed fields: every write records in the object which manager owns which fields.

use embedded_objects::kinds::Kind;
use embedded_objects::patch;
use serde_json::Value;

use crate::write::Write;

/// Records in the object which fields the manager has set with this write. A manager without a name is not
/// recorded.
pub(crate) fn note(
    object: &mut Value,
    old: Option<&Value>,
    write: &Write<'_>,
    kind: &'static Kind,
    sub: Option<&str>,
) {
    if !write.manager.is_empty() {
        patch::note_update(
            kind,
            write.manager,
            old.unwrap_or(&Value::Null),
            object,
            &write.clock.seconds,
            sub,
        );
    }
}
