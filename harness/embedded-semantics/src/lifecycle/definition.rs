//! Definitions of custom resources: defaults, allowed updates, and validation.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/{v1/defaults.go,validation/validation.go}`
//! and `pkg/registry/customresourcedefinition/strategy.go`.

use serde_json::{Value, json};

use super::Context;
use super::meta::immutable;
use super::strategy::Strategy;
use embedded_objects::cause::Cause;
use embedded_objects::kinds::Kind;
use embedded_objects::rules::names::{self, Faults};
use embedded_objects::structural;
use embedded_objects::value::{Edit as _, PathAccess as _};

pub(super) struct Definition;

/// The annotation with the approval of Kubernetes' API reviewers, which the groups of Kubernetes itself need.
const APPROVAL: &str = "api-approved.kubernetes.io";
const PROTECTED: [&str; 2] = ["k8s.io", "kubernetes.io"];

impl Strategy for Definition {
    fn default(&self, object: &mut Value) {
        let kind = object.text("spec.names.kind").to_owned();
        if !kind.is_empty() {
            object.put_default("spec.names.singular", kind.to_lowercase());
            object.put_default("spec.names.listKind", format!("{kind}List"));
        }
        if !object.has("spec.conversion") {
            object.put("spec.conversion", json!({"strategy": "None"}));
        }
        let service = "spec.conversion.webhook.clientConfig.service";
        if object.has(service) && !object.has(&format!("{service}.port")) {
            object.put(&format!("{service}.port"), 443);
        }
    }

    fn prepare_create(&self, object: &mut Value, _cx: &mut Context<'_>) {
        object.put("metadata.generation", 1);
        let stored: Vec<Value> = storage_version(object).into_iter().map(Value::from).collect();
        object.put(
            "status",
            json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}),
        );
    }

    fn prepare_update(&self, sub: Option<&str>, old: &Value, new: &mut Value, _cx: &mut Context<'_>) {
        if sub == Some("status") {
            new.put("spec", old.at("spec").clone());
            return;
        }
        new.put("status", old.at("status").clone());
        if old.at("spec") != new.at("spec") {
            new.put("metadata.generation", old.int("metadata.generation") + 1);
        }
        if let Some(version) = storage_version(new) {
            let mut stored = new.list("status.storedVersions").to_vec();
            if !stored.contains(&json!(version)) {
                stored.push(json!(version));
                new.put("status.storedVersions", stored);
            }
        }
    }

    fn validate_create(&self, object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        validate(object)
    }

    fn validate_update(
        &self,
        _kind: &Kind,
        sub: Option<&str>,
        old: &Value,
        new: &Value,
        _cx: &Context<'_>,
    ) -> Vec<Cause> {
        let mut causes = stored_versions(new);
        if sub.is_some() {
            return causes;
        }
        causes.extend(validate(new));
        let established = old.list("status.conditions").iter();
        if established.clone().any(|one| one.text("type") == "Established" && one.text("status") == "True") {
            for field in ["spec.scope", "spec.names.kind", "spec.names.plural"] {
                causes.extend(immutable(old, new, field));
            }
        }
        causes.extend(immutable(old, new, "spec.group"));
        causes
    }
}

fn storage_version(object: &Value) -> Option<String> {
    let storage = object.list("spec.versions").iter().find(|version| version.truth("storage"));
    storage.map(|version| version.text("name").to_owned())
}

fn faults(causes: &mut Vec<Cause>, path: &str, value: &str, found: Faults) {
    causes.extend(found.into_iter().map(|fault| Cause::invalid(path, value, fault)));
}

fn validate(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (group, plural) = (object.text("spec.group"), object.text("spec.names.plural"));
    let name = object.text("metadata.name");
    if name != format!("{plural}.{group}") {
        causes.push(Cause::invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
    }
    if group.is_empty() {
        causes.push(Cause::required("spec.group", ""));
    } else {
        faults(&mut causes, "spec.group", group, names::subdomain(group));
        if !group.contains('.') {
            causes.push(Cause::invalid("spec.group", group, "should be a domain with at least one dot"));
        }
    }
    if PROTECTED.iter().any(|owned| group == *owned || group.ends_with(&format!(".{owned}")))
        && !object.map("metadata.annotations").contains_key(APPROVAL)
    {
        let why = format!(
            "protected groups must have approval annotation {APPROVAL:?}, see https://github.com/kubernetes/enhancements/pull/1111"
        );
        causes.push(Cause::required(format!("metadata.annotations[{APPROVAL}]"), &why));
    }
    match object.text("spec.scope") {
        "Cluster" | "Namespaced" => {}
        "" => causes.push(Cause::required("spec.scope", "")),
        other => causes.push(Cause::not_supported("spec.scope", other, &["Cluster", "Namespaced"])),
    }
    named(object, &mut causes);
    versions(object, &mut causes);
    match object.text("spec.conversion.strategy") {
        "None" => {}
        "Webhook" if !object.has("spec.conversion.webhook.clientConfig") => {
            let why = "required when strategy is set to Webhook";
            causes.push(Cause::required("spec.conversion.webhookClientConfig", why));
        }
        "Webhook" => {}
        "" => causes.push(Cause::required("spec.conversion.strategy", "")),
        other => {
            causes.push(Cause::not_supported("spec.conversion.strategy", other, &["None", "Webhook"]));
        }
    }
    if object.truth("spec.preserveUnknownFields") {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        causes.push(Cause::invalid("spec.preserveUnknownFields", true, why));
    }
    causes
}

fn named(object: &Value, causes: &mut Vec<Cause>) {
    let given = object.at("spec.names");
    for field in ["plural", "singular", "kind", "listKind"] {
        let (path, text) = (format!("spec.names.{field}"), given.text(field));
        if text.is_empty() {
            causes.push(Cause::required(path, ""));
        } else {
            faults(causes, &path, text, names::label_1035(&text.to_lowercase()));
        }
    }
    for field in ["shortNames", "categories"] {
        for (at, text) in given.list(field).iter().filter_map(Value::as_str).enumerate() {
            faults(causes, &format!("spec.names.{field}[{at}]"), text, names::label_1035(text));
        }
    }
    if !given.text("kind").is_empty() && given.text("kind") == given.text("listKind") {
        let why = "kind and listKind may not be the same";
        causes.push(Cause::invalid("spec.names.listKind", given.text("listKind"), why));
    }
}

fn versions(object: &Value, causes: &mut Vec<Cause>) {
    let versions = object.list("spec.versions");
    let mut seen = Vec::new();
    for (at, version) in versions.iter().enumerate() {
        let (path, name) = (format!("spec.versions[{at}]"), version.text("name"));
        faults(causes, &format!("{path}.name"), name, names::label_1035(name));
        seen.push(name);
        let schema = version.at("schema.openAPIV3Schema");
        let at = format!("{path}.schema.openAPIV3Schema");
        if schema.is_object() {
            causes.extend(structural::faults(schema, &at));
        } else {
            causes.push(Cause::required(at, "schemas are required"));
        }
        if version.has("subresources.scale") {
            scale(version.at("subresources.scale"), &format!("{path}.subresources.scale"), causes);
        }
    }
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    if seen.len() < count {
        let why = "must contain unique version names";
        causes.push(Cause::invalid("spec.versions", object.at("spec.versions").clone(), why));
    }
    if versions.iter().filter(|version| version.truth("storage")).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", object.at("spec.versions").clone(), why));
    }
}

fn scale(scale: &Value, path: &str, causes: &mut Vec<Cause>) {
    let fields =
        [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status"), ("labelSelectorPath", "")];
    for (field, below) in fields {
        let (at, text) = (format!("{path}.{field}"), scale.text(field));
        if text.is_empty() && !below.is_empty() {
            causes.push(Cause::required(at, ""));
        } else if !below.is_empty() && !text.starts_with(&format!("{below}.")) {
            causes.push(Cause::invalid(at, text, format!("should be a json path under {below}")));
        }
    }
}

fn stored_versions(object: &Value) -> Vec<Cause> {
    let stored = object.list("status.storedVersions");
    if stored.is_empty() {
        return vec![Cause::invalid(
            "status.storedVersions",
            json!([]),
            "must have at least one stored version",
        )];
    }
    let versions = object.list("spec.versions");
    let missing = stored
        .iter()
        .enumerate()
        .filter_map(|(at, name)| Some((at, name.as_str()?)))
        .filter(|(_, name)| !versions.iter().any(|version| version.text("name") == *name));
    missing
        .map(|(at, name)| {
            let why = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            Cause::invalid(format!("status.storedVersions[{at}]"), name, why)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right() -> Value {
        json!({"metadata": {"name": "things.example.com"}, "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Value), expected: &[&str]) {
        let mut object = right();
        change(&mut object);
        Definition.default(&mut object);
        let messages: Vec<String> = validate(&object).iter().map(Cause::text).collect();
        assert_eq!(messages, expected);
    }

    #[test]
    fn faults_of_a_definition_have_the_words_of_the_real_server() {
        check(|_| {}, &[]);
        check(
            |object| object.put("metadata.name", "x"),
            &["metadata.name: Invalid value: \"x\": must be spec.names.plural+\".\"+spec.group"],
        );
        check(
            |object| object.put("spec.scope", "World"),
            &["spec.scope: Unsupported value: \"World\": supported values: \"Cluster\", \"Namespaced\""],
        );
        check(
            |object| object.items("spec.versions")[0].put("schema", json!({})),
            &["spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"],
        );
        check(
            |object| object.put("spec.names.listKind", "Thing"),
            &["spec.names.listKind: Invalid value: \"Thing\": kind and listKind may not be the same"],
        );
        check(
            |object| {
                object.put("metadata.name", "things.x.k8s.io");
                object.put("spec.group", "x.k8s.io");
            },
            &[
                "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111",
            ],
        );
        check(
            |object| {
                object.items("spec.versions")[0].put(
                    "subresources",
                    json!({"scale": {
                "specReplicasPath": ".replicas", "statusReplicasPath": ".status.replicas"}}),
                )
            },
            &[
                "spec.versions[0].subresources.scale.specReplicasPath: Invalid value: \".replicas\": should be a json path under .spec",
            ],
        );
        let mut object = right();
        object.items("spec.versions")[0].put("storage", false);
        Definition.default(&mut object);
        let causes = validate(&object);
        assert!(
            causes[0].message.ends_with("must have exactly one version marked as storage version"),
            "{causes:?}"
        );
    }
}
