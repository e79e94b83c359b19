//! Keystone: a token in exchange for a password or the secret of an application credential.

use super::query;
use super::services::Service;
use fake_cloud_driver::Op;
use fake_cloud_kit::{Answer, Call, Plan, Request, planned};
use hyper::Method;
use hyper::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};

const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
const ISSUED: HeaderName = HeaderName::from_static("x-subject-token");
/// The only region.
pub(super) const REGION: &str = "RegionOne";
/// The only project.
pub(super) const PROJECT: &str = "fa4ec10d0000800080000000000000a1";
const USER: &str = "fa4ec10d0000800080000000000000a2";

/// The path where tokens are issued.
const TOKENS: &str = "/identity/v3/auth/tokens";

/// The token of a call.
pub(super) fn token_of(request: &Request) -> Option<&str> {
    request.headers.get(TOKEN)?.to_str().ok()
}

/// The secret in a request for a token.
pub(super) fn secret_in(request: &Request) -> Option<String> {
    if request.method != Method::POST || request.uri.path() != TOKENS {
        return None;
    }
    let body: Value = request.body().ok()?;
    let identity = body.pointer("/auth/identity")?;
    let secret = ["/password/user/password", "/application_credential/secret"];
    let found = secret.iter().find_map(|pointer| identity.pointer(pointer)?.as_str());
    found.map(str::to_owned)
}

/// Issues a token.
pub(super) fn token(request: &Request) -> Plan {
    let secret = secret_in(request).unwrap_or_default();
    let host = query::host(request);
    planned(&Service::Identity, Call::new(Op::Other), query::none(request), move |_, _, _, _| {
        let catalog: Vec<Value> = Service::ALL.iter().map(|service| entry(*service, &host)).collect();
        let named = |id: &str, name: &str| json!({"id": id, "name": name, "domain": {"id": "default", "name": "Default"}});
        let answer = Answer::json(
            201,
            &json!({"token": {
                "methods": ["password"],
                "issued_at": "2026-01-02T03:04:05.000000Z",
                "expires_at": "2036-01-02T03:04:05.000000Z",
                "audit_ids": ["a"],
                "is_domain": false,
                "roles": [{"id": "member", "name": "member"}],
                "project": named(PROJECT, "demo"),
                "user": named(USER, "admin"),
                "catalog": catalog,
            }}),
        );
        // A text that is not a valid header is not a credential, so no caller reaches this point with it.
        Ok(match HeaderValue::from_str(&secret) {
            Ok(token) => answer.with(ISSUED, token),
            Err(_) => answer,
        })
    })
}

fn entry(service: Service, host: &str) -> Value {
    let (kind, name) = service.words();
    json!({"type": kind, "name": name, "id": format!("catalog-{kind}"), "endpoints": [{
        "id": format!("endpoint-{kind}"), "interface": "public", "region": REGION, "region_id": REGION,
        "url": format!("{host}{}", service.path()),
    }]})
}
