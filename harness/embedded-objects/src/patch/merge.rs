//! JSON merge patch (RFC 7386).

use serde_json::Value;

use crate::fields;
use crate::status::{self, Status};
use crate::typed;

/// The object after a merge patch.
///
/// # Errors
/// A Status with Go's text when the patch is not JSON or not an object.
pub fn merge(old: &Value, patch_text: &str) -> Result<Value, Status> {
    let refused = |why: &str| status::bad_request(format!("error decoding patch: {why}"));
    if let Some(why) = fields::syntax_error(patch_text) {
        return Err(refused(&why));
    }
    let patch: Value = serde_json::from_str(patch_text).map_err(|why| refused(&why.to_string()))?;
    if patch.is_null() {
        return Err(status::bad_request("Invalid JSON Patch"));
    }
    if !patch.is_object() {
        let is = typed::kind_of(&patch);
        return Err(refused(&format!(
            "json: cannot unmarshal {is} into Go value of type map[string]interface {{}}"
        )));
    }
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
        let refusal_of = |text: &str| {
            let status = merge(&old, text).expect_err("no patch");
            (status.code, status.message)
        };
        let decoding = |why: &str| (400, format!("error decoding patch: {why}"));
        assert_eq!(refusal_of("{"), decoding("unexpected end of JSON input"));
        let array = "json: cannot unmarshal array into Go value of type map[string]interface {}";
        assert_eq!(refusal_of("[]"), decoding(array));
        assert_eq!(refusal_of("null"), (400, "Invalid JSON Patch".to_owned()));
    }
}
