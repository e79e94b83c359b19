//! OpenAPI documents, as far as clients read them: which parameters each operation takes.
//!
//! kubectl searches them for `fieldValidation` before it leaves validation to the server. The schemas of
//! kinds are named but empty: the server itself checks bodies.

use std::collections::BTreeMap;

use bytes::Bytes;
use embedded_objects::kinds::{self, Kind};
use serde_json::{Value, json};

use super::unknown::unknown;
use crate::http::call::Call;
use crate::http::reply::{Content, Outcome, Reply};

/// Answers `/openapi/v2`, `/openapi/v3` and the paths below it.
pub(super) fn answer(call: &Call, path: &str) -> Outcome {
    let defined = call.api.definitions.served();
    let all = || kinds::ALL.iter().chain(defined.iter().copied());
    let body = match path {
        "/openapi/v2" => document(call, all(), Version::Two),
        "/openapi/v3" => index(all()),
        _ => {
            let below = path.trim_start_matches("/openapi/v3/");
            let kinds: Vec<&Kind> = all().filter(|kind| place(kind) == below).collect();
            if kinds.is_empty() {
                return unknown(call);
            }
            document(call, kinds.into_iter(), Version::Three)
        }
    };
    let content = Content::Text("application/json", Bytes::from(format!("{body}\n")));
    Ok(Reply { code: 200, content, warnings: Vec::new() })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

/// The path under which a kind's group and version are served.
fn place(kind: &Kind) -> String {
    if kind.group.is_empty() {
        format!("api/{}", kind.version)
    } else {
        format!("apis/{}/{}", kind.group, kind.version)
    }
}

fn index<'a>(kinds: impl Iterator<Item = &'a Kind>) -> Value {
    let places: BTreeMap<String, Value> = kinds
        .map(|kind| {
            let place = place(kind);
            let url = format!("/openapi/v3/{place}");
            (place, json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": places})
}

fn document<'a>(call: &Call, kinds: impl Iterator<Item = &'a Kind>, version: Version) -> Value {
    let mut paths = json!({});
    let mut schemas = json!({});
    for kind in kinds {
        let group = if kind.group.is_empty() { "core" } else { kind.group };
        let gvk = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
        let name = if kind.custom.is_some() {
            let reversed: Vec<&str> = group.rsplit('.').collect();
            format!("{}.{}.{}", reversed.join("."), kind.version, kind.kind)
        } else {
            format!("io.k8s.api.{}.{}.{}", group.split('.').next().unwrap_or(group), kind.version, kind.kind)
        };
        schemas[name] = json!({
            "type": "object",
            "x-kubernetes-group-version-kind": [gvk],
            "x-kubernetes-preserve-unknown-fields": true,
        });
        let base = if kind.namespaced {
            format!("/{}/namespaces/{{namespace}}/{}", place(kind), kind.plural)
        } else {
            format!("/{}/{}", place(kind), kind.plural)
        };
        let one = format!("{base}/{{name}}");
        for verb in &kind.verbs {
            let (path, method, action) = match *verb {
                "create" => (&base, "post", "post"),
                "list" => (&base, "get", "list"),
                "deletecollection" => (&base, "delete", "deletecollection"),
                "get" => (&one, "get", "get"),
                "update" => (&one, "put", "put"),
                "patch" => (&one, "patch", "patch"),
                "delete" => (&one, "delete", "delete"),
                _ => continue,
            };
            paths[path.as_str()][method] = operation(action, &gvk, version);
        }
    }
    let info = json!({"title": "Kubernetes", "version": call.api.version().info()["gitVersion"]});
    match version {
        Version::Two => json!({"swagger": "2.0", "info": info, "paths": paths, "definitions": schemas}),
        Version::Three => json!({
            "openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas},
        }),
    }
}

fn operation(action: &str, gvk: &Value, version: Version) -> Value {
    let names: &[&str] = match action {
        "post" | "put" => &["dryRun", "fieldManager", "fieldValidation", "pretty"],
        "patch" => &["dryRun", "fieldManager", "fieldValidation", "force", "pretty"],
        "delete" => &["dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy", "pretty"],
        "list" | "deletecollection" => &[
            "continue",
            "fieldSelector",
            "labelSelector",
            "limit",
            "resourceVersion",
            "timeoutSeconds",
            "watch",
            "pretty",
        ],
        _ => &["pretty"],
    };
    let parameters: Vec<Value> = names
        .iter()
        .map(|name| match version {
            Version::Two => json!({"name": name, "in": "query", "type": "string", "uniqueItems": true}),
            Version::Three => {
                json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}})
            }
        })
        .collect();
    json!({
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk,
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
    })
}
