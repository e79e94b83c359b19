//! Tokens: the refresh token of a user's credentials for an access token.
//!
//! A token is the credential itself: the refresh token is returned as the access token, so that replicas with different
//! credentials can be distinguished, and a credential that is removed is not accepted any more.

use fake_cloud_driver::Op;
use fake_cloud_kit::{Answer, Call, Denial, Identity, Plan, Request};
use fake_cloud_recording::credentials::Credentials;
use hyper::Method;
use serde_json::{Value, json};

/// How long a token is valid, in seconds.
const LIFE_S: u64 = 3_599;

/// Whether this is a call for a token.
pub(super) fn is_login(request: &Request) -> bool {
    request.method == Method::POST && request.uri.path() == "/token"
}

/// The plan of a call for a token whose credential is known.
pub(super) fn plan(request: &Request) -> Plan {
    let grant = form_value(request, "grant_type").unwrap_or_default();
    let answer = if grant == "refresh_token" {
        let token = form_value(request, "refresh_token").unwrap_or_default();
        let scope = "https://www.googleapis.com/auth/cloud-platform";
        Answer::json(
            200,
            &json!({"access_token": token, "expires_in": LIFE_S, "scope": scope,
            "token_type": "Bearer"}),
        )
    } else {
        Answer::json(400, &refusal("unsupported_grant_type", &format!("Invalid grant_type: {grant:.40}")))
    };
    Plan::new(Call::new(Op::Other), move |_, _| answer)
}

/// The credential in a request for a token.
pub(super) fn identify(request: &Request, known: &Credentials) -> Identity {
    match form_value(request, "refresh_token").and_then(|token| known.name_of(&token)) {
        Some(name) => Identity::Known(name),
        None => {
            let body = refusal("invalid_grant", "Bad Request").to_string();
            Identity::Rejected(Denial::Credential { status: 400, body })
        }
    }
}

fn form_value(request: &Request, wanted: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(&request.body);
    pairs.find(|(key, _)| key == wanted).map(|(_, value)| value.into_owned())
}

fn refusal(error: &str, text: &str) -> Value {
    json!({"error": error, "error_description": text})
}
