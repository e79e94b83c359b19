//! Paths that are not resources: version, health, discovery, keys.

use bytes::Bytes;
use embedded_objects::{discovery as documents, status};
use http::{Method, header};
use serde_json::{Value, json};

use super::openapi;
use super::unknown::unknown;
use crate::http::accept::{self, Encoding, Form};
use crate::http::call::{Call, text_header};
use crate::http::encode;
use crate::http::reply::{Content, Outcome, Reply};
use embedded_state::auth::account::ISSUER;

/// The checks that `/livez`, `/readyz` and `/healthz` name with `?verbose`.
const CHECKS: [&str; 8] = [
    "ping",
    "log",
    "etcd",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "autoregister-completion",
];

/// Answers a path that is not a resource.
pub(super) fn answer(call: &Call) -> Outcome {
    let path = call.attributes().path.trim_end_matches('/');
    let known = known(call, path);
    if known.is_some() && !matches!(call.method, Method::GET | Method::HEAD) {
        return Err(status::method_not_allowed());
    }
    known.unwrap_or_else(|| unknown(call))
}

fn known(call: &Call, path: &str) -> Option<Outcome> {
    let json = |value: Value| {
        let content = Content::Text("application/json", Bytes::from(format!("{value}\n")));
        Ok(Reply { code: 200, content, warnings: Vec::new() })
    };
    Some(match path {
        "/version" => json(call.api.version().info()),
        "/openapi/v2" | "/openapi/v3" => openapi::answer(call, path),
        "/openid/v1/jwks" => json(call.api.signer.key_set()),
        "/.well-known/openid-configuration" => json(json!({
            "issuer": ISSUER,
            "jwks_uri": format!("{ISSUER}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })),
        "" => json(json!({"paths": [
            "/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2",
            "/openapi/v3", "/openid/v1/jwks", "/readyz", "/version",
        ]})),
        _ if path.starts_with("/openapi/v3/") => openapi::answer(call, path),
        _ if ["/livez", "/readyz", "/healthz"]
            .iter()
            .any(|check| path == *check || is_below(path, check)) =>
        {
            health(call, path)?
        }
        _ => discovery(call, path)?,
    })
}

fn is_below(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent).is_some_and(|rest| rest.starts_with('/'))
}

/// The health of a server whose start is complete: this server answers nothing before that.
fn health(call: &Call, path: &str) -> Option<Outcome> {
    let (_, rest) = path.split_at(1);
    let (check, one) = rest.split_once('/').unwrap_or((rest, ""));
    if !one.is_empty() {
        return CHECKS.contains(&one).then(|| Ok(Reply::text("ok")));
    }
    if call.query.get("verbose").is_none() {
        return Some(Ok(Reply::text("ok")));
    }
    let excluded: Vec<&str> = call.query.all("exclude").collect();
    let mut text = String::new();
    for name in CHECKS {
        let state = if excluded.contains(&name) { "excluded: ok" } else { "ok" };
        text.push_str(&format!("[+]{name} {state}\n"));
    }
    text.push_str(&format!("{check} check passed\n"));
    Some(Ok(Reply::text(text)))
}

fn discovery(call: &Call, path: &str) -> Option<Outcome> {
    let header = Some(text_header(&call.headers, &header::ACCEPT)).filter(|text| !text.is_empty());
    if matches!(path, "/api" | "/apis")
        && let Some(encoding) = accept::aggregated(header)
    {
        let body = if path == "/api" {
            documents::aggregated_core()
        } else {
            documents::aggregated_groups(&call.api.definitions.served())
        };
        let media_type = match encoding {
            Encoding::Json => documents::AGGREGATED,
            Encoding::Yaml => documents::AGGREGATED_YAML,
            Encoding::Protobuf => documents::AGGREGATED_PROTOBUF,
        };
        return Some(encode::object(&body, Form { encoding, ..Form::PLAIN }).map(|bytes| {
            let content = Content::Text(media_type, bytes);
            Reply { code: 200, content, warnings: Vec::new() }
        }));
    }
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let defined = call.api.definitions.served();
    let body = match parts.as_slice() {
        ["api"] => documents::api_versions(&call.api.address.to_string()),
        ["apis"] => documents::groups(&defined),
        ["apis", group] => documents::group(group, &defined)?,
        ["api", version] => documents::resources("", version, &[])?,
        ["apis", group, version] => documents::resources(group, version, &defined)?,
        _ => return None,
    };
    Some(call.form().map(|_| Reply::object(body)))
}
