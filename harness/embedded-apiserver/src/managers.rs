//! Whose fields are whose: every write notes it in the object.

use embedded_objects::kinds::Kind;
use embedded_objects::patch;
use serde_json::Value;

use crate::write::Write;

/// Notes in the object which fields this write has made the manager's. A manager without a name is nobody.
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
