//! Reviews of users and permissions: they are answered and not stored.

use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use embedded_semantics::lifecycle;
use serde_json::{Map, Value, json};

use crate::http::by_token;
use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use embedded_state::Api;
use embedded_state::auth::attributes::Attributes;
use embedded_state::auth::user::User;

/// Answers a POST of a review.
pub(super) fn review(call: &Call, kind: &'static Kind) -> Outcome {
    call.form()?;
    let mut review = call.object(kind, "CreateOptions")?.object;
    if !review.is_object() {
        return Err(status::bad_request(format!("the object provided is not a {}", kind.kind)));
    }
    lifecycle::place(&mut review, call.namespace_of(kind))?;
    let mut review = lifecycle::review(kind, &review)?;
    if !review["metadata"].is_object() {
        review["metadata"] = json!({});
    }
    review["status"] = match kind.kind {
        "TokenReview" => token(&call.api, &review["spec"]),
        "SelfSubjectReview" => {
            review["metadata"]["creationTimestamp"] = json!(call.clock.seconds);
            json!({"userInfo": user_info(&call.user)})
        }
        "SelfSubjectRulesReview" => rules(call, &review["spec"])?,
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            access(&call.api, &subject(&review["spec"]), &review["spec"])
        }
        "SelfSubjectAccessReview" => access(&call.api, &call.user, &review["spec"]),
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

fn token(api: &Api, spec: &Value) -> Value {
    use embedded_state::auth::account::ISSUER;
    let audiences: Vec<&str> = match spec["audiences"].as_array() {
        Some(given) if !given.is_empty() => given.iter().filter_map(Value::as_str).collect(),
        _ => vec![ISSUER],
    };
    let (user, claimed) = match by_token(api, text(spec, "token")) {
        Ok(found) => found,
        Err(why) => return json!({"user": {}, "error": why}),
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
        return json!({"user": {}, "error": why});
    }
    json!({"authenticated": true, "user": user_info(&user), "audiences": common})
}

fn subject(spec: &Value) -> User {
    let groups = spec["groups"].as_array().into_iter().flatten();
    User {
        name: text(spec, "user").to_owned(),
        uid: text(spec, "uid").to_owned(),
        groups: groups.filter_map(Value::as_str).map(str::to_owned).collect(),
        ..User::default()
    }
}

fn access(api: &Api, user: &User, spec: &Value) -> Value {
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let asked = if resource.is_object() {
        let (plural, sub) = (text(resource, "resource"), text(resource, "subresource"));
        Attributes {
            verb: text(resource, "verb").into(),
            group: text(resource, "group").into(),
            // The wildcard asks for all resources, and only rules for all resources allow that.
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
    answer
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
