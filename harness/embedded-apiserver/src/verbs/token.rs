//! Tokens of service accounts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embedded_objects::cause::Cause;
use embedded_objects::kinds::{self, Kind};
use embedded_objects::status::{self, Status};
use serde_json::{Value, json};

use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use embedded_state::auth::account::{Bound, Claims, EXTENDED_SECONDS, ISSUER, Reference, WARN_ONLY_SECONDS};
use embedded_state::{Api, Clock, unique_id};

/// The annotations of a token Secret that name its service account.
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
/// Such a token never expires; here it is valid for this time.
const SECRET_SECONDS: i64 = 10 * 365 * 24 * 3600;

/// Answers a POST to `serviceaccounts/NAME/token`.
pub(super) fn create(call: &Call, kind: &'static Kind) -> Outcome {
    call.form()?;
    let mut request =
        call.object_as(("authentication.k8s.io", "v1", "TokenRequest"), "CreateOptions")?.object;
    if !request.is_object() {
        return Err(status::bad_request("the object provided is not a TokenRequest"));
    }
    for (field, expected) in [("name", call.name()), ("namespace", call.namespace())] {
        let said = request["metadata"][field].as_str().unwrap_or_default();
        if !said.is_empty() && said != expected {
            let cause = Cause::invalid(
                format!("metadata.{field}"),
                said,
                format!("must match the service account {field} if specified"),
            );
            return Err(status::invalid_of("authentication.k8s.io", "TokenRequest", call.name(), &[cause]));
        }
    }
    let account = call.api.find(kind, call.namespace(), call.name())?.value();
    let seconds = seconds(&request)?;
    let audiences: Vec<String> = match request["spec"]["audiences"].as_array() {
        Some(given) if !given.is_empty() => {
            given.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => vec![ISSUER.to_owned()],
    };
    let mut bound = Bound {
        namespace: call.namespace().to_owned(),
        serviceaccount: reference(call.name(), &account),
        ..Bound::default()
    };
    bind(call, &request["spec"]["boundObjectRef"], &mut bound)?;
    let asks_for_a_year = bound.pod.is_some() && seconds == WARN_ONLY_SECONDS && audiences == [ISSUER];
    let lifetime = if asks_for_a_year { EXTENDED_SECONDS } else { seconds };
    let now = call.clock.at.as_second();
    bound.warnafter = asks_for_a_year.then_some(now + seconds);
    let token = sign(&call.api, bound, audiences.clone(), now, lifetime)?;
    let metadata = &mut request["metadata"];
    metadata["name"] = json!(call.name());
    metadata["namespace"] = json!(call.namespace());
    metadata["uid"] = account["metadata"]["uid"].clone();
    metadata["creationTimestamp"] = json!(call.clock.seconds);
    request["kind"] = json!("TokenRequest");
    request["apiVersion"] = json!("authentication.k8s.io/v1");
    request["spec"]["audiences"] = json!(audiences);
    request["spec"]["expirationSeconds"] = json!(seconds);
    if request["spec"]["boundObjectRef"].is_null() {
        request["spec"]["boundObjectRef"] = Value::Null;
    }
    request["status"] = json!({"token": token, "expirationTimestamp": call.clock.seconds_later(seconds)});
    Ok(Reply::object(request).with_code(201))
}

/// A token for a service account, bound to the account alone.
///
/// # Errors
///
/// 404 if there is no such account.
pub(crate) fn for_account(api: &Api, namespace: &str, name: &str, seconds: i64) -> Result<String, Status> {
    let Some(kind) = kinds::find("", "v1", "serviceaccounts") else { return Err(status::no_such_resource()) };
    let account = api.find(kind, namespace, name)?.value();
    let bound = Bound {
        namespace: namespace.to_owned(),
        serviceaccount: reference(name, &account),
        ..Bound::default()
    };
    sign(api, bound, vec![ISSUER.to_owned()], Clock::now().at.as_second(), seconds)
}

/// Fills a Secret for the token of a service account, as the controller manager's token controller does
/// (`k8s.io/kubernetes/pkg/controller/serviceaccount/tokens_controller.go`). A Secret that names no account
/// stays as it is.
///
/// # Errors
///
/// The system provides no random numbers for the signature.
pub(super) fn fill(api: &Api, namespace: &str, secret: &mut Value) -> Result<(), Status> {
    if secret["type"] != "kubernetes.io/service-account-token" || !secret["data"]["token"].is_null() {
        return Ok(());
    }
    let named = secret["metadata"]["annotations"][ACCOUNT_NAME].as_str().unwrap_or_default().to_owned();
    let Some(accounts) = kinds::find("", "v1", "serviceaccounts") else { return Ok(()) };
    let Ok(account) = api.find(accounts, namespace, &named) else { return Ok(()) };
    let token = for_account(api, namespace, &named, SECRET_SECONDS)?;
    secret["metadata"]["annotations"][ACCOUNT_UID] = account.value()["metadata"]["uid"].clone();
    let encode = |text: &str| json!(STANDARD.encode(text));
    if !secret["data"].is_object() {
        secret["data"] = json!({});
    }
    secret["data"]["token"] = encode(&token);
    secret["data"]["ca.crt"] = encode(&api.authority.certificate());
    secret["data"]["namespace"] = encode(namespace);
    Ok(())
}

fn sign(api: &Api, bound: Bound, aud: Vec<String>, now: i64, lifetime: i64) -> Result<String, Status> {
    let sub = format!("system:serviceaccount:{}:{}", bound.namespace, bound.serviceaccount.name);
    let claims = Claims {
        aud,
        exp: now + lifetime,
        iat: now,
        iss: ISSUER.to_owned(),
        jti: unique_id(),
        bound,
        nbf: now,
        sub,
    };
    let signed = api.signer.sign(&claims);
    let token = signed.map_err(|why| status::internal(&format!("failed to generate token: {why}")))?;
    api.tell_issued(&token);
    Ok(token)
}

fn seconds(request: &Value) -> Result<i64, Status> {
    const SHORTEST: i64 = 600;
    const LONGEST: i64 = 1 << 32;
    let given = &request["spec"]["expirationSeconds"];
    let seconds = match given {
        Value::Null => 3600,
        given => {
            given.as_i64().ok_or_else(|| status::bad_request("spec.expirationSeconds is a whole number"))?
        }
    };
    let why = if seconds < SHORTEST {
        "may not specify a duration less than 10 minutes"
    } else if seconds > LONGEST {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(seconds);
    };
    let cause = Cause::invalid("spec.expirationSeconds", seconds, why);
    Err(status::invalid_of("authentication.k8s.io", "TokenRequest", "", &[cause]))
}

fn reference(name: &str, object: &Value) -> Reference {
    Reference {
        name: name.to_owned(),
        uid: object["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
    }
}

/// Binds the token to the object that the request names.
fn bind(call: &Call, wanted: &Value, bound: &mut Bound) -> Result<(), Status> {
    if wanted.is_null() {
        return Ok(());
    }
    let text = |field: &str| wanted[field].as_str().unwrap_or_default();
    let (kind, name, uid) = (text("kind"), text("name"), text("uid"));
    let (plural, namespace) = match (text("apiVersion"), kind) {
        ("v1", "Pod") => ("pods", call.namespace()),
        ("v1", "Secret") => ("secrets", call.namespace()),
        ("v1", "Node") => ("nodes", ""),
        (version, kind) => {
            let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
            return Err(status::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    let Some(served) = kinds::find("", "v1", plural) else { return Err(status::no_such_resource()) };
    let object = call.api.find(served, namespace, name)?.value();
    let found = reference(name, &object);
    if kind == "Pod" && object["spec"]["serviceAccountName"] != call.name() {
        return Err(status::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            call.name()
        )));
    }
    if !uid.is_empty() && uid != found.uid {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(status::conflict_on("", kind, name, &why));
    }
    match kind {
        "Pod" => {
            if let Some(node) = object["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
                let there =
                    kinds::find("", "v1", "nodes").and_then(|nodes| call.api.find(nodes, "", node).ok());
                bound.node = Some(reference(node, &there.map(|node| node.value()).unwrap_or_default()));
            }
            bound.pod = Some(found);
        }
        "Secret" => bound.secret = Some(found),
        _ => bound.node = Some(found),
    }
    Ok(())
}
