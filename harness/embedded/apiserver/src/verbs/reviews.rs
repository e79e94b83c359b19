//! Questions about users and permissions: they are answered and not stored.

use embedded_semantics::cause::Cause;
use embedded_semantics::kinds::Kind;
use embedded_semantics::status::{self, Status};
use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::auth::attributes::Attributes;
use crate::auth::user::User;
use crate::http::by_token;
use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};

/// Answers a POST of a review.
pub(super) fn review(call: &Call, kind: &'static Kind) -> Outcome {
    call.form()?;
    let mut review = call.object(kind, "CreateOptions")?.object;
    if !review.is_object() {
        return Err(status::bad_request(format!("the object provided is not a {}", kind.kind)));
    }
    review["kind"] = json!(kind.kind);
    review["apiVersion"] = json!(kind.api_version());
    if !review["metadata"].is_object() {
        review["metadata"] = json!({});
    }
    review["status"] = match kind.kind {
        "TokenReview" => token(&call.api, &review["spec"])?,
        "SelfSubjectReview" => {
            review["metadata"]["creationTimestamp"] = json!(call.clock.seconds);
            json!({"userInfo": user_info(&call.user)})
        }
        "SelfSubjectRulesReview" => rules(call, &review["spec"])?,
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            let user = subject(kind, &review["spec"])?;
            if kind.kind == "LocalSubjectAccessReview" {
                check_namespace(call, &review["spec"])?;
            }
            access(&call.api, &user, kind, &review["spec"])?
        }
        "SelfSubjectAccessReview" => access(&call.api, &call.user, kind, &review["spec"])?,
        _ => return Err(status::method_not_allowed()),
    };
    Ok(Reply::object(review).with_code(201))
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn user_info(user: &User) -> Value {
    let mut info = Map::new();
    if !user.name.is_empty() {
        info.insert("username".into(), json!(user.name));
    }
    if !user.uid.is_empty() {
        info.insert("uid".into(), json!(user.uid));
    }
    if !user.groups.is_empty() {
        info.insert("groups".into(), json!(user.groups));
    }
    if !user.extra.is_empty() {
        info.insert("extra".into(), json!(user.extra));
    }
    Value::Object(info)
}

fn token(api: &Api, spec: &Value) -> Result<Value, Status> {
    use crate::auth::account::ISSUER;
    let token = text(spec, "token");
    if token.is_empty() {
        return Err(status::bad_request("token is required for TokenReview in authentication"));
    }
    let audiences: Vec<&str> = match spec["audiences"].as_array() {
        Some(given) if !given.is_empty() => given.iter().filter_map(Value::as_str).collect(),
        _ => vec![ISSUER],
    };
    let (user, claimed) = match by_token(api, token) {
        Ok(found) => found,
        Err(why) => return Ok(json!({"user": {}, "error": why})),
    };
    let common: Vec<&str> =
        audiences.iter().copied().filter(|one| claimed.iter().any(|aud| aud == one)).collect();
    if common.is_empty() {
        let quoted = |list: &[&str]| {
            format!("[{}]", list.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(" "))
        };
        let claimed: Vec<&str> = claimed.iter().map(String::as_str).collect();
        let why = format!(
            "[invalid bearer token, token audiences {} is invalid for the target audiences {}]",
            quoted(&claimed),
            quoted(&audiences)
        );
        return Ok(json!({"user": {}, "error": why}));
    }
    Ok(json!({"authenticated": true, "user": user_info(&user), "audiences": common}))
}

fn subject(kind: &Kind, spec: &Value) -> Result<User, Status> {
    let groups: Vec<String> = spec["groups"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let name = text(spec, "user");
    if name.is_empty() && groups.is_empty() {
        let cause = Cause::invalid("spec.user", "", "at least one of user or group must be specified");
        return Err(status::invalid_of(kind.group, kind.kind, "", &[cause]));
    }
    Ok(User { name: name.to_owned(), uid: text(spec, "uid").to_owned(), groups, ..User::default() })
}

fn check_namespace(call: &Call, spec: &Value) -> Result<(), Status> {
    let said = text(&spec["resourceAttributes"], "namespace");
    if said != call.namespace() {
        let cause =
            Cause::invalid("spec.resourceAttributes.namespace", said, "must match metadata.namespace");
        return Err(status::invalid_of("authorization.k8s.io", "LocalSubjectAccessReview", "", &[cause]));
    }
    Ok(())
}

fn access(api: &Api, user: &User, kind: &Kind, spec: &Value) -> Result<Value, Status> {
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let cause = match (resource.is_object(), path.is_object()) {
        (true, true) => Some("cannot be specified in combination with resourceAttributes"),
        (false, false) => {
            Some("exactly one of nonResourceAttributes or resourceAttributes must be specified")
        }
        _ => None,
    };
    if let Some(why) = cause {
        let field =
            if resource.is_object() { "spec.nonResourceAttributes" } else { "spec.resourceAttributes" };
        let cause = Cause::invalid(field, Value::Null, why);
        return Err(status::invalid_of(kind.group, kind.kind, "", &[cause]));
    }
    let asked = if resource.is_object() {
        let (plural, sub) = (text(resource, "resource"), text(resource, "subresource"));
        Attributes {
            verb: text(resource, "verb").into(),
            group: text(resource, "group").into(),
            // The wildcard asks for all of them, and only rules for all allow that.
            resource: if plural.is_empty() { "*".into() } else { plural.into() },
            subresource: sub.into(),
            namespace: text(resource, "namespace").into(),
            name: text(resource, "name").into(),
            ..Attributes::default()
        }
    } else {
        Attributes {
            verb: text(path, "verb").into(),
            path: text(path, "path").into(),
            ..Attributes::default()
        }
    };
    let decision = api.authorize(user, &asked);
    let mut answer = json!({"allowed": decision.is_allowed()});
    if !decision.reason().is_empty() {
        answer["reason"] = json!(decision.reason());
    }
    Ok(answer)
}

fn rules(call: &Call, spec: &Value) -> Result<Value, Status> {
    let namespace = text(spec, "namespace");
    if namespace.is_empty() {
        return Err(status::bad_request("no namespace on request"));
    }
    let all = call.api.policy().rules_for(&call.user, namespace);
    let (of_paths, of_resources): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|rule| rule.resources.is_empty());
    Ok(json!({"resourceRules": of_resources, "nonResourceRules": of_paths, "incomplete": false}))
}
