//! JSON merge patch (RFC 7386).

use serde_json::Value;

use crate::status::{self, Status};

/// The object after a merge patch.
///
/// # Errors
/// A Status when the patch is no JSON.
pub fn merge(old: &Value, patch_text: &str) -> Result<Value, Status> {
    let patch: Value =
        serde_json::from_str(patch_text).map_err(|_| status::bad_request("Invalid JSON Patch"))?;
    let mut object = old.clone();
    json_patch::merge(&mut object, &patch);
    Ok(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_replaced_and_nulls_remove() {
        let old = json!({"a": {"b": 1, "c": [1, 2]}, "d": 1});
        assert_eq!(
            merge(&old, r#"{"a": {"c": [3], "b": null}, "e": {"f": null}}"#),
            Ok(json!({"a": {"c": [3]}, "d": 1, "e": {}}))
        );
        assert_eq!(merge(&old, "{").expect_err("no JSON").code, 400);
    }
}
