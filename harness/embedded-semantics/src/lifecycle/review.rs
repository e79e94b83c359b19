//! Requests that are answered but not stored: reviews of tokens and access, bindings.
//!
//! Source: `pkg/apis/authorization/validation`, `pkg/registry/authentication/tokenreview`,
//! `ValidatePodBinding` in `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use embedded_objects::cause::Cause;
use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use embedded_objects::value::PathAccess as _;

/// The review or binding in a body, whose namespace is already set.
///
/// # Errors
/// The Status with which the API server rejects it.
pub fn review(kind: &Kind, body: &Value) -> Result<Value, Status> {
    let object = super::decode(kind, body)?;
    match kind.kind {
        "TokenReview" if object.text("spec.token").is_empty() => {
            return Err(status::bad_request("token is required for TokenReview in authentication"));
        }
        "Binding" => binding(&object)?,
        "SubjectAccessReview" | "SelfSubjectAccessReview" | "LocalSubjectAccessReview" => {
            let causes = access(kind, &object);
            if !causes.is_empty() {
                // The server does not have the kind any more at this point, so its message contains only the group.
                return Err(status::invalid_of(kind.group, "", "", &causes));
            }
        }
        _ => {}
    }
    Ok(object)
}

fn binding(object: &Value) -> Result<(), Status> {
    let mut causes = Vec::new();
    let kind = object.text("target.kind");
    if !matches!(kind, "" | "Node") {
        causes.push(Cause::not_supported("target.kind", kind, &["Node", "<empty>"]));
    }
    if object.text("target.name").is_empty() {
        causes.push(Cause::required("target.name", ""));
    }
    let texts: Vec<String> = causes.iter().map(Cause::text).collect();
    match texts.as_slice() {
        [] => Ok(()),
        [only] => Err(status::unexplained(only.as_str())),
        many => Err(status::unexplained(format!("[{}]", many.join(", ")))),
    }
}

fn access(kind: &Kind, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (resource, other) = ("spec.resourceAttributes", "spec.nonResourceAttributes");
    match (object.has(resource), object.has(other)) {
        (true, true) => {
            let why = "cannot be specified in combination with resourceAttributes";
            causes.push(Cause::invalid(other, object.at(other).clone(), why));
        }
        (false, false) => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            causes.push(Cause::invalid(resource, Value::Null, why));
        }
        _ => {}
    }
    let is_anonymous = object.text("spec.user").is_empty() && object.list("spec.groups").is_empty();
    if kind.kind != "SelfSubjectAccessReview" && is_anonymous {
        causes.push(Cause::invalid("spec.user", "", "at least one of user or group must be specified"));
    }
    let local = kind.kind == "LocalSubjectAccessReview";
    let metadata = object.map("metadata");
    let odd = |name: &str| name != "managedFields" && !(local && name == "namespace");
    if metadata.keys().any(|name| odd(name)) {
        let why = if local { "must be empty except for namespace" } else { "must be empty" };
        causes.push(Cause::invalid("metadata", object.at("metadata").clone(), why));
    }
    if local {
        let (asked, own) =
            (object.text("spec.resourceAttributes.namespace"), object.text("metadata.namespace"));
        if object.has(resource) && asked != own {
            let why = "must match metadata.namespace";
            causes.push(Cause::invalid("spec.resourceAttributes.namespace", asked, why));
        }
        if object.has(other) {
            let why = "disallowed on this kind of request";
            causes.push(Cause::invalid(other, object.at(other).clone(), why));
        }
    }
    causes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use embedded_objects::kinds;

    fn asked(plural: &str, spec: Value) -> Result<Value, Status> {
        let kind = kinds::ALL.iter().find(|kind| kind.plural == plural).expect("it is served");
        review(kind, &json!({"spec": spec, "target": spec}))
    }

    #[test]
    fn reviews_are_checked() {
        let right = json!({"user": "a", "resourceAttributes": {"verb": "get"}});
        assert!(asked("subjectaccessreviews", right).is_ok());
        let empty = asked("subjectaccessreviews", json!({})).expect_err("it asks nothing");
        assert_eq!(
            empty.message,
            ".authorization.k8s.io \"\" is invalid: [spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified, spec.user: Invalid value: \"\": at least one of user or group must be specified]"
        );
        assert_eq!(asked("tokenreviews", json!({})).expect_err("no token").code, 400);
    }

    #[test]
    fn bindings_name_a_node() {
        assert!(asked("bindings", json!({"kind": "Node", "name": "n"})).is_ok());
        let wrong = asked("bindings", json!({"kind": "Pod"})).expect_err("a Pod is not a target");
        assert_eq!(
            wrong.message,
            "[target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\", target.name: Required value]"
        );
    }
}
