//! Entra ID: the description of the endpoints, and tokens for client credentials.
//!
//! A token is the credential itself: the client secret is returned as the access token, so that replicas with
//! different secrets can be distinguished, and a credential that is removed is not accepted any more.

use super::names::{CLIENT, LOGIN_HOST, TENANT, same};
use super::query::base;
use fake_cloud_driver::Op;
use fake_cloud_kit::{Answer, Call, Denial, Identity, Plan, Request};
use fake_cloud_recording::credentials::Credentials;
use hyper::Method;
use serde_json::{Value, json};

/// How long a token is valid, in seconds.
const LIFE_S: u64 = 86_399;

/// A call of Entra ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Login {
    /// Which hosts are aliases of each other.
    Instances,
    /// The endpoints of this tenant.
    Endpoints(String),
    /// A token of this tenant.
    Token(String),
}

/// The call of Entra ID that this is, if it is one.
pub(super) fn login(request: &Request) -> Option<Login> {
    let segments = request.segments();
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    match (&request.method, parts.as_slice()) {
        (&Method::GET, ["common", "discovery", "instance"]) => Some(Login::Instances),
        (&Method::GET, [tenant, "v2.0", ".well-known", "openid-configuration"]) => {
            Some(Login::Endpoints((*tenant).to_owned()))
        }
        (&Method::POST, [tenant, "oauth2", "v2.0", "token"]) => Some(Login::Token((*tenant).to_owned())),
        _ => None,
    }
}

/// The plan of a call of Entra ID.
pub(super) fn plan(request: &Request, login: Login) -> Plan {
    let base = base(request);
    let answer = match login {
        Login::Instances => Answer::json(200, &instances(&base)),
        Login::Endpoints(tenant) if knows(&tenant) => Answer::json(200, &endpoints(&base, &tenant)),
        Login::Endpoints(tenant) => Answer::json(400, &no_tenant(&tenant)),
        Login::Token(_) => token(request),
    };
    Plan::new(Call::new(Op::Other), move |_, _| answer)
}

/// The credential in a request for a token; other calls of Entra ID need none.
pub(super) fn identify(request: &Request, login: &Login, known: &Credentials) -> Identity {
    let Login::Token(tenant) = login else { return Identity::Anybody };
    let rejected =
        |status, body: Value| Identity::Rejected(Denial::Credential { status, body: body.to_string() });
    if !knows(tenant) {
        return rejected(400, no_tenant(tenant));
    }
    let client = form_value(request, "client_id").unwrap_or_default();
    if !same(&client, CLIENT) {
        let text = format!(
            "AADSTS700016: Application with identifier '{client:.80}' was not found in the directory '{tenant}'. This \
             can happen if the application has not been installed by the administrator of the tenant or consented to by \
             any user in the tenant."
        );
        return rejected(400, refusal("unauthorized_client", 700_016, &text));
    }
    match form_value(request, "client_secret").and_then(|secret| known.name_of(&secret)) {
        Some(name) => Identity::Known(name),
        None => {
            let text = format!(
                "AADSTS7000215: Invalid client secret provided. Ensure the secret being sent in the request is the client \
                 secret value, not the client secret ID, for a secret added to app '{CLIENT}'."
            );
            rejected(401, refusal("invalid_client", 7_000_215, &text))
        }
    }
}

/// The answer to a request for a token whose credential is known.
fn token(request: &Request) -> Answer {
    let grant = form_value(request, "grant_type").unwrap_or_default();
    if grant != "client_credentials" {
        let text = format!("AADSTS70003: The app requested an unsupported grant type '{grant:.40}'.");
        return Answer::json(400, &refusal("unsupported_grant_type", 70_003, &text));
    }
    let secret = form_value(request, "client_secret").unwrap_or_default();
    let token = json!({"token_type": "Bearer", "expires_in": LIFE_S, "ext_expires_in": LIFE_S,
        "access_token": secret});
    Answer::json(200, &token)
}

fn form_value(request: &Request, wanted: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(&request.body);
    pairs.find(|(key, _)| key == wanted).map(|(_, value)| value.into_owned())
}

/// Whether it is the tenant of the cloud.
fn knows(tenant: &str) -> bool {
    same(tenant, TENANT)
}

fn no_tenant(tenant: &str) -> Value {
    let text = format!(
        "AADSTS90002: Tenant '{tenant:.80}' not found. Check to make sure you have the correct tenant ID and are \
         signing into the correct cloud. Check with your subscription administrator, this may happen if there are no \
         active subscriptions for the tenant."
    );
    refusal("invalid_tenant", 90_002, &text)
}

fn refusal(error: &str, code: u32, text: &str) -> Value {
    json!({"error": error, "error_description": text, "error_codes": [code],
        "error_uri": format!("https://{LOGIN_HOST}/error?code={code}")})
}

fn endpoints(base: &str, tenant: &str) -> Value {
    json!({
        "token_endpoint": format!("{base}/{tenant}/oauth2/v2.0/token"),
        "token_endpoint_auth_methods_supported": ["client_secret_post"],
        "authorization_endpoint": format!("{base}/{tenant}/oauth2/v2.0/authorize"),
        "issuer": format!("{base}/{tenant}/v2.0"),
        "tenant_region_scope": "NA",
        "cloud_instance_name": "microsoftonline.com",
    })
}

fn instances(base: &str) -> Value {
    json!({
        "tenant_discovery_endpoint": format!("{base}/{TENANT}/v2.0/.well-known/openid-configuration"),
        "api-version": "1.1",
        "metadata": [{"preferred_network": LOGIN_HOST, "preferred_cache": "login.windows.net",
            "aliases": [LOGIN_HOST, "login.windows.net", "login.microsoft.com", "sts.windows.net"]}],
    })
}
