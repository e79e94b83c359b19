//! The verbs of the server: one file for each verb or family of verbs.

mod binding;
mod collection;
mod components;
mod connect;
mod create;
mod delete;
mod deletion;
mod eviction;
mod fixed;
mod insert;
mod list;
mod list_options;
mod log;
mod namespaces;
mod openapi;
mod patch;
mod reviews;
mod scale;
mod token;
mod unknown;
mod update;
mod watch;

use embedded_objects::kinds::Kind;
use embedded_objects::status;
use embedded_semantics::lifecycle;
use http::Method;

use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use embedded_state::auth::attributes::Attributes;

pub(crate) use create::create_object;
pub(crate) use token::for_account as token_for_account;

/// Answers an authorized request.
pub(crate) async fn dispatch(call: Call) -> Outcome {
    let Attributes { group, resource, .. } = call.attributes();
    let kind = call.api.kind(group, &call.target.version, resource);
    let deprecated = kind.and_then(lifecycle::deprecation);
    let mut outcome = answer(call, kind).await;
    if let (Some(text), Ok(reply)) = (deprecated, &mut outcome) {
        reply.warnings.insert(0, text.to_owned());
    }
    outcome
}

async fn answer(call: Call, kind: Option<&'static Kind>) -> Outcome {
    if !call.attributes().is_resource() {
        return fixed::answer(&call);
    }
    let attributes = call.attributes();
    // Only a proxy passes on a HEAD request.
    if call.method == Method::HEAD && attributes.subresource != "proxy" {
        return Err(status::method_not_allowed());
    }
    let Some(kind) = kind else { return unknown::unknown(&call) };
    let one = !attributes.name.is_empty();
    // A namespaced kind is written in a namespace; only lists of all namespaces have none.
    if kind.namespaced
        && attributes.namespace.is_empty()
        && (one_by_path(&call) || attributes.verb == "create")
    {
        return Err(status::no_such_resource());
    }
    if !kind.namespaced && !attributes.namespace.is_empty() && attributes.resource != "namespaces" {
        return Err(status::no_such_resource());
    }
    if !attributes.subresource.is_empty() {
        return subresource(call, kind);
    }
    let verb = attributes.verb.clone();
    if !kind.verbs.contains(&verb.as_str()) {
        return Err(status::method_not_allowed());
    }
    match (verb.as_str(), one) {
        ("get", true) if components::is_component(kind) => components::get(&call, kind),
        ("list", _) if components::is_component(kind) => components::list(&call, kind),
        ("get", true) => get(&call, kind),
        ("list", _) => list::list(&call, kind).await,
        // A path may also request a watch, whatever the method.
        ("watch", _) if matches!(call.method, Method::GET | Method::HEAD) => watch::watch(call, kind).await,
        ("create", false) => match kind.group {
            "authentication.k8s.io" | "authorization.k8s.io" if kind.custom.is_none() => {
                reviews::review(&call, kind)
            }
            "" if kind.kind == "Binding" => binding::bind(&call, kind),
            _ => create::create(&call, kind),
        },
        ("update", true) => update::update(&call, kind, None),
        ("patch", true) => patch::patch(&call, kind, None),
        ("delete", true) => delete::delete(&call, kind),
        ("deletecollection", _) => collection::delete(&call, kind),
        _ => Err(status::method_not_allowed()),
    }
}

/// Whether the path itself names an object, rather than a field selector.
fn one_by_path(call: &Call) -> bool {
    !call.name().is_empty()
        && !matches!(call.attributes().verb.as_str(), "list" | "watch" | "deletecollection")
}

fn subresource(call: Call, kind: &'static Kind) -> Outcome {
    let attributes = call.attributes();
    let Some(sub) = kind.subresource(&attributes.subresource) else {
        return Err(status::no_such_resource());
    };
    let verb = attributes.verb.as_str();
    if !sub.verbs.contains(&verb) {
        return Err(status::method_not_allowed());
    }
    match (sub.name, verb) {
        ("scale", _) => scale::scale(&call, kind),
        ("binding", _) => binding::bind(&call, kind),
        ("eviction", _) => eviction::evict(&call, kind),
        ("token", _) => token::create(&call, kind),
        ("finalize", _) => update::update(&call, kind, Some("finalize")),
        ("log", _) => log::log(&call, kind),
        (name @ ("exec" | "attach" | "portforward" | "proxy"), _) => connect::connect(&call, kind, name),
        (name, "get") => get_sub(&call, kind, name),
        (name, "update") => update::update(&call, kind, Some(name)),
        (name, "patch") => patch::patch(&call, kind, Some(name)),
        _ => Err(status::method_not_allowed()),
    }
}

fn get(call: &Call, kind: &'static Kind) -> Outcome {
    call.form()?;
    list_options::check_revision_of_get(call)?;
    Ok(Reply::record(kind, call.api.find(kind, call.namespace_of(kind), call.name())?))
}

fn get_sub(call: &Call, kind: &'static Kind, _sub: &str) -> Outcome {
    get(call, kind)
}

impl Call {
    /// The namespace under which an object of the kind is kept.
    pub(crate) fn namespace_of(&self, kind: &Kind) -> &str {
        if kind.namespaced { self.namespace() } else { "" }
    }
}
