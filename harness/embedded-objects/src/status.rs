//! Status objects: the errors of the API server, in its own words.
//!
//! Source of the words: `k8s.io/apimachinery/pkg/api/errors` and the handlers of `k8s.io/apiserver`.

use serde_json::{Map, Value, json};

use crate::cause::Cause;
use crate::kinds::{self, Kind};

/// An answer of kind Status. [`Status::body`] makes its body.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct Status {
    /// The HTTP status.
    pub code: u16,
    /// The machine-readable reason; empty if the server gives none.
    pub reason: &'static str,
    /// The text for people.
    pub message: String,
    /// The `details` in the body, or null if there are none.
    pub details: Value,
    /// Whether the `status` member is `Success`.
    pub success: bool,
}

impl Status {
    fn failure(code: u16, reason: &'static str, message: impl Into<String>) -> Status {
        Status { code, reason, message: message.into(), details: Value::Null, success: false }
    }

    fn about(mut self, name: &str, group: &str, kind: &str) -> Status {
        let mut details = Map::new();
        for (key, value) in [("name", name), ("group", group), ("kind", kind)] {
            if !value.is_empty() {
                details.insert(key.to_owned(), value.into());
            }
        }
        self.details = Value::Object(details);
        self
    }

    /// Adds the seconds a client should wait before it tries again.
    pub fn retry_after(mut self, seconds: u32) -> Status {
        self.detail("retryAfterSeconds", seconds.into());
        self
    }

    /// Adds one cause that is not a field error.
    pub fn caused_by(mut self, reason: &str, message: &str, field: &str) -> Status {
        let mut cause = Map::new();
        for (key, value) in [("reason", reason), ("message", message), ("field", field)] {
            if !value.is_empty() {
                cause.insert(key.to_owned(), value.into());
            }
        }
        self.detail("causes", Value::Array(vec![Value::Object(cause)]));
        self
    }

    fn detail(&mut self, key: &str, value: Value) {
        if !self.details.is_object() {
            self.details = json!({});
        }
        if let Some(details) = self.details.as_object_mut() {
            details.insert(key.to_owned(), value);
        }
    }

    /// The body as JSON.
    pub fn body(&self) -> Value {
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": if self.success { "Success" } else { "Failure" },
        });
        if let Some(members) = body.as_object_mut() {
            if !self.message.is_empty() {
                members.insert("message".to_owned(), self.message.clone().into());
            }
            if !self.reason.is_empty() {
                members.insert("reason".to_owned(), self.reason.into());
            }
            if !self.details.is_null() {
                members.insert("details".to_owned(), self.details.clone());
            }
            if self.code != 0 {
                members.insert("code".to_owned(), self.code.into());
            }
        }
        body
    }
}

impl From<&Status> for Value {
    fn from(status: &Status) -> Value {
        status.body()
    }
}

/// The answer to a deletion that removed the object at once. The body has no code; the HTTP status is 200.
pub fn deleted(kind: &Kind, name: &str, uid: &str) -> Status {
    let mut status =
        Status { code: 0, reason: "", message: String::new(), details: Value::Null, success: true }.about(
            name,
            kind.group,
            kind.plural,
        );
    status.detail("uid", uid.into());
    status
}

/// The answer to a completed binding or eviction.
pub fn created() -> Status {
    Status { code: 201, reason: "", message: String::new(), details: Value::Null, success: true }
}

/// There is no object with this name.
pub fn not_found(kind: &Kind, name: &str) -> Status {
    Status::failure(404, "NotFound", format!("{} {name:?} not found", kind.resource())).about(
        name,
        kind.group,
        kind.plural,
    )
}

/// The server does not serve this path below an API group that it has.
pub fn no_such_resource() -> Status {
    Status::failure(404, "NotFound", "the server could not find the requested resource").about("", "", "")
}

/// There is already an object with this name.
pub fn already_exists(kind: &Kind, name: &str) -> Status {
    Status::failure(409, "AlreadyExists", format!("{} {name:?} already exists", kind.resource())).about(
        name,
        kind.group,
        kind.plural,
    )
}

/// There is already an object with a name generated from generateName.
pub fn generated_name_taken(kind: &Kind, name: &str) -> Status {
    let message = format!(
        "{} {name:?} already exists, the server was not able to generate a unique name for the object",
        kind.resource()
    );
    Status::failure(409, "AlreadyExists", message).about(name, kind.group, kind.plural).retry_after(1)
}

/// The write is not possible in the object's current state.
pub fn conflict(kind: &Kind, name: &str, why: &str) -> Status {
    conflict_on(kind.group, kind.plural, name, why)
}

/// A conflict on a resource that is not a kind of its own, such as `pods/binding`.
pub fn conflict_on(group: &str, resource: &str, name: &str, why: &str) -> Status {
    let dotted = kinds::dotted(resource, group);
    Status::failure(409, "Conflict", format!("Operation cannot be fulfilled on {dotted} {name:?}: {why}"))
        .about(name, group, resource)
}

/// The object was changed since the version that the write is based on.
pub fn stale(kind: &Kind, name: &str) -> Status {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    conflict(kind, name, why)
}

/// Other managers own fields that an apply would change: pairs of a manager, as it is shown, and a field's path.
pub fn apply_conflict(conflicts: &[(String, String)]) -> Status {
    let message = match conflicts {
        [(manager, field)] => format!("Apply failed with 1 conflict: conflict with {manager}: {field}"),
        many => {
            let mut managers: Vec<&str> = many.iter().map(|(manager, _)| manager.as_str()).collect();
            managers.sort_unstable();
            managers.dedup();
            let mut lines = Vec::new();
            for manager in managers {
                lines.push(format!("conflicts with {manager}:"));
                let fields = many.iter().filter(|(owner, _)| owner == manager);
                lines.extend(fields.map(|(_, field)| format!("- {field}")));
            }
            format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n"))
        }
    };
    let causes: Vec<Value> = conflicts
        .iter()
        .map(|(manager, field)| {
            json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": field})
        })
        .collect();
    let mut status = Status::failure(409, "Conflict", message);
    status.detail("causes", causes.into());
    status
}

/// The object violates rules of its kind.
pub fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Status {
    invalid_of(kind.group, kind.kind, name, causes)
}

/// Something that is not of a served kind violates rules, such as `ListOptions` of `meta.k8s.io`.
pub fn invalid_of(group: &str, kind: &str, name: &str, causes: &[Cause]) -> Status {
    let mut seen = std::collections::HashSet::new();
    let texts: Vec<String> =
        causes.iter().map(Cause::text).filter(|text| seen.insert(text.clone())).collect();
    let why = match texts.as_slice() {
        [] => String::new(),
        [only] => format!(": {only}"),
        many => format!(": [{}]", many.join(", ")),
    };
    let listed: Vec<Value> = causes
        .iter()
        .map(|cause| json!({"reason": cause.reason.name(), "message": cause.message, "field": cause.field}))
        .collect();
    let mut status =
        Status::failure(422, "Invalid", format!("{} {name:?} is invalid{why}", kinds::dotted(kind, group)))
            .about(name, group, kind);
    if !listed.is_empty() {
        status.detail("causes", listed.into());
    }
    status
}

/// The request is invalid.
pub fn bad_request(message: impl Into<String>) -> Status {
    Status::failure(400, "BadRequest", message)
}

/// The user may not do this, or admission rejects it. An empty name means that there is none.
pub fn forbidden(kind: &Kind, name: &str, why: &str) -> Status {
    forbidden_on(kind.group, kind.plural, name, why)
}

/// The same for a resource that is not a kind of its own; an empty resource means that there is none.
pub fn forbidden_on(group: &str, resource: &str, name: &str, why: &str) -> Status {
    let dotted = kinds::dotted(resource, group);
    let message = match (resource, name) {
        ("", _) => format!("forbidden: {why}"),
        (_, "") => format!("{dotted} is forbidden: {why}"),
        _ => format!("{dotted} {name:?} is forbidden: {why}"),
    };
    Status::failure(403, "Forbidden", message).about(name, group, resource)
}

/// The namespace of a creation is being deleted.
pub fn namespace_terminating(kind: &Kind, name: &str, namespace: &str) -> Status {
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    forbidden(kind, name, &why).caused_by(
        "NamespaceTerminating",
        &format!("namespace {namespace} is being terminated"),
        "metadata.namespace",
    )
}

/// The server cannot identify the caller.
pub fn unauthorized() -> Status {
    Status::failure(401, "Unauthorized", "Unauthorized")
}

/// The resource version or continue token is too old.
pub fn expired(message: impl Into<String>) -> Status {
    Status::failure(410, "Expired", message)
}

/// A watch cannot begin this far back.
pub fn gone(message: impl Into<String>) -> Status {
    Status::failure(410, "Gone", message)
}

/// The body's content type is not supported; the supported ones are listed in order.
pub fn unsupported_media_type(accepted: &[&str]) -> Status {
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    );
    Status::failure(415, "UnsupportedMediaType", message)
}

/// The server has none of the content types that the client accepts; the available ones are listed in order.
pub fn not_acceptable(possible: &[&str]) -> Status {
    let message = format!("only the following media types are accepted: {}", possible.join(", "));
    Status::failure(406, "NotAcceptable", message)
}

/// The resource has none of the content types that the client accepts; the available ones are listed in order.
pub fn not_acceptable_here(available: &[&str]) -> Status {
    let message = format!("406: Not Acceptable\n\nAvailable representations: {}", available.join(", "));
    Status::failure(406, "NotAcceptable", message).about("", "", "")
}

/// The resource has no patch with this content type.
pub fn unsupported_patch() -> Status {
    Status::failure(415, "UnsupportedMediaType", "415: Unsupported Media Type").about("", "", "")
}

/// The resource has no such verb.
pub fn method_not_allowed() -> Status {
    Status::failure(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )
    .about("", "", "")
}

/// The verb is not supported on the resource.
pub fn method_not_supported(kind: &Kind, action: &str) -> Status {
    let message = format!("{action} is not supported on resources of kind {:?}", kind.resource());
    Status::failure(405, "MethodNotAllowed", message).about("", kind.group, kind.plural)
}

/// A patch does not fit the object. The answer gives no reason.
pub fn unprocessable() -> Status {
    Status::failure(422, "Invalid", "the server rejected our request due to an error in our request")
        .about("", "", "")
}

/// The body is larger than the server accepts.
pub fn too_large(limit: usize) -> Status {
    entity_too_large(&format!("limit is {limit}"))
}

/// The request demands too much, for this reason.
pub fn entity_too_large(why: &str) -> Status {
    Status::failure(413, "RequestEntityTooLarge", format!("Request entity too large: {why}"))
}

/// A JSON patch has more operations than the server accepts.
pub fn too_many_operations(limit: usize, count: usize) -> Status {
    entity_too_large(&format!("The allowed maximum operations in a JSON patch is {limit}, got {count}"))
}

/// The server is too busy, or a disruption budget refuses an eviction.
pub fn too_many_requests(message: impl Into<String>, seconds: u32) -> Status {
    Status::failure(429, "TooManyRequests", message).retry_after(seconds)
}

/// The operation took too long.
pub fn timeout(message: &str, seconds: u32) -> Status {
    Status::failure(504, "Timeout", format!("Timeout: {message}")).retry_after(seconds)
}

/// The server failed.
pub fn internal(message: &str) -> Status {
    Status::failure(500, "InternalError", format!("Internal error occurred: {message}"))
        .caused_by("", message, "")
}

/// A component behind the server cannot be reached.
pub fn unavailable(message: &str) -> Status {
    Status::failure(503, "ServiceUnavailable", message)
}

/// An error of the server's own code without a reason, as for a watch with an invalid resourceVersion.
pub fn unexplained(message: impl Into<String>) -> Status {
    Status::failure(500, "", message)
}
