//! The kinds of custom resources, made from their definitions.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use serde_json::{Value, json};
use sha2::Digest as _;

use super::kind::{Custom, Kind, NameForm, Scale, Subresource, dotted};
use crate::structural;
use crate::value::PathAccess as _;

/// The verbs of custom resources, in discovery's order.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const OF_SUBRESOURCES: [&str; 3] = ["get", "patch", "update"];

/// The most bytes of text that the definitions of one server may have together.
const MOST: usize = 16 << 20;
/// The most bytes of memory that their patterns may use.
const MOST_PATTERNS: usize = 64 << 20;

/// There are too many definitions: see [`defined`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the definitions of custom resources in this server have more than {MOST} bytes together, or their patterns take more \
     than {MOST_PATTERNS}"
)]
pub struct TooMany;

/// How much of the 16 MiB of text the definitions of one server have used. A kind exists as long as the
/// program, because everything refers to it by reference. So a deleted definition gives nothing back, and a
/// definition with the same text as another, of this or an earlier server, is the same.
#[derive(Debug, Default)]
pub struct Budget {
    /// Addresses of the kinds that are already counted.
    known: HashSet<usize>,
    bytes: usize,
    patterns: usize,
}

static INTERNED: Mutex<Option<HashMap<String, &'static Kind>>> = Mutex::new(None);

/// The kinds of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defined {
    /// The kind of the version in which objects are stored.
    pub stored: &'static Kind,
    /// The served kinds, in the order of the versions.
    pub served: Vec<&'static Kind>,
}

/// The kinds of a valid CustomResourceDefinition, with the names in its status.
///
/// # Errors
/// [`TooMany`] if the budget is used up.
pub fn defined(definition: &Value, budget: &mut Budget) -> Result<Defined, TooMany> {
    let versions = definition.list("spec.versions");
    let storage = versions.iter().find(|version| version.truth("storage")).unwrap_or(&Value::Null);
    let stored = interned(definition, storage, None, budget)?;
    let served = versions.iter().filter(|version| version.truth("served"));
    let kind_of = |version: &Value| {
        if version.truth("storage") {
            Ok(stored)
        } else {
            interned(definition, version, Some(stored), budget)
        }
    };
    Ok(Defined { stored, served: served.map(kind_of).collect::<Result<_, TooMany>>()? })
}

fn interned(
    definition: &Value,
    version: &Value,
    stored_as: Option<&'static Kind>,
    budget: &mut Budget,
) -> Result<&'static Kind, TooMany> {
    let spec = definition.at("spec");
    let storage = stored_as.map(std::ptr::from_ref).unwrap_or_else(std::ptr::null);
    let key = format!(
        "{storage:p} {}",
        json!([spec.at("group"), definition.at("status.acceptedNames"), spec.at("scope"), version])
    );
    let mut interned = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
    let interned = interned.get_or_insert_default();
    let known = interned.get(&key).copied();
    if let Some(kind) = known
        && budget.known.contains(&std::ptr::from_ref(kind).addr())
    {
        return Ok(kind);
    }
    if budget.bytes + key.len() > MOST {
        return Err(TooMany);
    }
    let made = if known.is_some() { None } else { Some(kind(definition, version, stored_as)) };
    let custom = known.or(made.as_ref()).and_then(|kind| kind.custom.as_ref());
    let patterns = custom.map_or(0, |custom| custom.patterns.weight());
    if budget.patterns + patterns > MOST_PATTERNS {
        return Err(TooMany);
    }
    budget.bytes += key.len();
    budget.patterns += patterns;
    let Some(kind) = known.or_else(|| made.map(|kind| &*Box::leak(Box::new(kind)))) else {
        return Err(TooMany);
    };
    budget.known.insert(std::ptr::from_ref(kind).addr());
    interned.insert(key, kind);
    Ok(kind)
}

fn kept(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

fn kind(definition: &Value, version: &Value, stored_as: Option<&'static Kind>) -> Kind {
    let (group, names) = (kept(definition.text("spec.group")), definition.at("status.acceptedNames"));
    let (name, plural) = (kept(names.text("kind")), kept(names.text("plural")));
    let list = |field: &str| names.list(field).iter().filter_map(Value::as_str).map(kept).collect();
    let version_name = kept(version.text("name"));
    Kind {
        group,
        version: version_name,
        kind: name,
        list_kind: names.text("listKind").to_owned(),
        plural,
        singular: kept(names.text("singular")),
        short_names: list("shortNames"),
        categories: list("categories"),
        namespaced: definition.text("spec.scope") == "Namespaced",
        verbs: VERBS.to_vec(),
        subresources: subresources(version, name),
        storage_hash: stored_as
            .map_or_else(|| kept(&hash(group, version_name, name)), |kind| kind.storage_hash),
        name_form: NameForm::Subdomain,
        returns_deleted: false,
        unconditional_update: false,
        create_on_update: false,
        type_name: "",
        collection: dotted(plural, group),
        custom: Some(custom(group, name, version, stored_as)),
    }
}

fn subresources(version: &Value, kind: &'static str) -> Vec<Subresource> {
    let verbs = OF_SUBRESOURCES.to_vec();
    let mut subs = Vec::new();
    if version.has("subresources.status") {
        subs.push(Subresource { name: "status", group: "", version: "", kind, verbs: verbs.clone() });
    }
    if version.has("subresources.scale") {
        let (group, kind) = ("autoscaling", "Scale");
        subs.push(Subresource { name: "scale", group, version: "v1", kind, verbs });
    }
    subs
}

fn custom(group: &str, kind: &str, version: &Value, stored_as: Option<&'static Kind>) -> Custom {
    let schema = version.at("schema.openAPIV3Schema").clone();
    let path = |text: &str| text.trim_start_matches('.').to_owned();
    let scale = version.at("subresources.scale");
    let fields = version.list("selectableFields").iter();
    let api_version = format!("{group}/{}", version.text("name"));
    Custom {
        type_id: structural::root_type(&schema),
        patterns: structural::Patterns::of(&schema),
        schema,
        columns: version.list("additionalPrinterColumns").to_vec(),
        selectable: fields.map(|field| path(field.text("jsonPath"))).collect(),
        scale: scale.is_object().then(|| Scale {
            wanted: path(scale.text("specReplicasPath")),
            there: path(scale.text("statusReplicasPath")),
            selector: scale.at("labelSelectorPath").as_str().map(path),
        }),
        deprecation: version.truth("deprecated").then(|| match version.at("deprecationWarning").as_str() {
            Some(text) => text.to_owned(),
            None => format!("{api_version} {kind} is deprecated"),
        }),
        stored_as,
    }
}

fn hash(group: &str, version: &str, kind: &str) -> String {
    let digest = sha2::Sha256::digest(format!("{group}/{version}/{kind}"));
    base64::engine::general_purpose::STANDARD.encode(&digest[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_define_the_same_kinds() {
        let schema =
            |ty: &str| json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": ty}}}});
        let definition = |ty: &str| {
            json!({"spec": {"group": "intern.example.com", "scope": "Namespaced", "versions": [
                {"name": "v1beta1", "served": true, "storage": false, "schema": schema("object")},
                {"name": "v1alpha1", "served": false, "storage": false, "schema": schema("object")},
                {"name": "v1", "served": true, "storage": true, "schema": schema(ty), "subresources": {"status": {}}}]},
                "status": {"acceptedNames": {"plural": "things", "singular": "thing", "kind": "Thing",
                    "listKind": "ThingList", "shortNames": ["th"]}}})
        };
        let mut budget = Budget::default();
        let first = defined(&definition("object"), &mut budget).expect("there is room").served;
        assert_eq!(first.iter().map(|kind| kind.version).collect::<Vec<_>>(), ["v1beta1", "v1"]);
        let again = defined(&definition("object"), &mut budget).expect("there is room").served;
        assert!(first.iter().zip(&again).all(|(a, b)| std::ptr::eq(*a, *b)));
        let changed = defined(&definition("string"), &mut budget).expect("there is room").served;
        assert!(!std::ptr::eq(first[1], changed[1]) && first[1].collection == changed[1].collection);
        let stored = first[0].custom.as_ref().and_then(|custom| custom.stored_as);
        assert!(stored.is_some_and(|kind| std::ptr::eq(kind, first[1])));
        assert_eq!(first[1].subresources.len(), 1);
        assert_eq!(first[0].resource(), "things.intern.example.com");
    }

    #[test]
    fn definitions_of_one_server_do_not_count_for_another() {
        let definition = |name: usize| {
            let schema = json!({"openAPIV3Schema": {"type": "object", "description": "x".repeat(MOST / 4)}});
            json!({"spec": {"group": format!("budget-{name}.example.com"), "scope": "Namespaced", "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": schema}]},
                "status": {"acceptedNames": {"plural": "things", "kind": "Thing", "listKind": "ThingList"}}})
        };
        let mut first = Budget::default();
        let made = (0..4).filter(|name| defined(&definition(*name), &mut first).is_ok()).count();
        assert_eq!(made, 3);
        assert!(defined(&definition(2), &mut first).is_ok(), "the same words cost nothing");
        assert_eq!(defined(&definition(3), &mut first), Err(TooMany));
        assert!(defined(&definition(3), &mut Budget::default()).is_ok(), "another server pays for itself");
    }
}
