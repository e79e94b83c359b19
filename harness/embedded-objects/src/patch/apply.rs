//! Server-side apply: a manager sends the fields that it wants, owns them, and loses those that it no longer sends.
//!
//! Source: `sigs.k8s.io/structured-merge-diff/merge`, `k8s.io/apimachinery/pkg/util/managedfields`.

use serde_json::{Map, Value};

use super::managed::{self, Entry, Operation};
use super::owned::{self, Leaves, Set};
use crate::kinds::Kind;
use crate::schema::{self, Field, ListType, Shape, TypeId};
use crate::status::{self, Status};
use crate::value::{Edit as _, PathAccess as _};

/// The manager that applies, and its options.
#[derive(Clone, Copy, Debug)]
pub struct Applier<'a> {
    /// The field manager.
    pub manager: &'a str,
    /// Whether fields of other managers are taken over.
    pub force: bool,
    /// The subresource that is applied, if any.
    pub sub: Option<&'a str>,
    /// The current time, RFC 3339 with whole seconds in UTC.
    pub time: &'a str,
}

/// The object after an apply, with its managedFields. The caller continues with a creation if `live` is
/// `None`, otherwise with an update.
///
/// # Errors
/// The Status for conflicts with other managers, or for an object that does not fit the kind.
pub fn apply(kind: &Kind, live: Option<&Value>, applied: &Value, by: Applier<'_>) -> Result<Value, Status> {
    let Some(ty) = kind.type_id() else {
        return Err(status::unexplained(format!("no type for {}", kind.resource())));
    };
    fits(kind, ty, applied)?;
    let sub = by.sub.unwrap_or_default();
    let mut set: Set = owned::leaves(ty, applied).into_keys().collect();
    managed::strip(kind, sub, &mut set);

    let empty = Value::Object(Map::new());
    let live = live.unwrap_or(&empty);
    let mut plain = live.clone();
    plain.clear("metadata.managedFields");
    let mut entries = managed::read(live);
    if entries.is_empty() && live.has("metadata.uid") {
        entries.push(before_first_apply(kind, ty, &plain));
    }
    let mut merged = merge(&Shape::Struct(ty), None, &plain, applied);
    let before = owned::leaves(ty, &plain);
    let changed = changed(&before, &owned::leaves(ty, &merged));
    let own = |entry: &Entry| entry.is(by.manager, Operation::Apply, sub);

    let conflicts: Vec<(String, String)> = entries
        .iter()
        .filter(|entry| !own(entry))
        .flat_map(|entry| {
            let taken = entry.set.intersection(&changed);
            taken.map(|path| (entry.shown(), owned::shown(path))).collect::<Vec<_>>()
        })
        .collect();
    if !by.force && !conflicts.is_empty() {
        return Err(status::apply_conflict(&conflicts));
    }
    let last: Set =
        entries.iter().find(|entry| own(entry)).map(|entry| entry.set.clone()).unwrap_or_default();
    for entry in entries.iter_mut().filter(|entry| !own(entry)) {
        entry.set.retain(|path| !changed.contains(path));
    }
    let others: Set =
        entries.iter().filter(|entry| !own(entry)).flat_map(|entry| entry.set.clone()).collect();
    for path in last.difference(&set) {
        let kept = |of: &Set| of.range(path.clone()..).next().is_some_and(|found| found.starts_with(path));
        if !kept(&others) && !kept(&set) {
            remove(&Shape::Struct(ty), None, &mut merged, path);
        }
    }
    let after = owned::leaves(ty, &merged);
    for entry in entries.iter_mut().filter(|entry| !own(entry)) {
        entry.set.retain(|path| managed::still_there(path, &after));
    }
    let same = entries.iter().any(|entry| own(entry) && entry.set == set);
    if !same {
        entries.retain(|entry| !own(entry));
        entries.push(Entry {
            manager: by.manager.to_owned(),
            operation: Operation::Apply,
            api_version: kind.api_version(),
            sub: sub.to_owned(),
            time: by.time.to_owned(),
            set,
        });
    }
    managed::write(&mut merged, entries);
    Ok(merged)
}

/// Rejects an object that cannot be applied to this kind.
fn fits(kind: &Kind, ty: TypeId, applied: &Value) -> Result<(), Status> {
    let (version, name) = (applied.text("apiVersion"), applied.text("kind"));
    if version != kind.api_version() || name != kind.kind {
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        return Err(status::bad_request(format!("invalid object type: {group}/{version}, Kind={name}")));
    }
    if applied.has("metadata.managedFields") {
        return Err(status::bad_request("metadata.managedFields must be nil"));
    }
    let mut faults = Vec::new();
    check(&Shape::Struct(ty), None, applied, &mut String::new(), &mut faults);
    if !faults.is_empty() {
        let (namespace, name) = (applied.text("metadata.namespace"), applied.text("metadata.name"));
        let kind_text = format!("{}, Kind={}", gv_text(kind), kind.kind);
        let why = if faults.len() == 1 { faults.concat() } else { format!("errors:\n{}", indented(&faults)) };
        return Err(status::unexplained(format!(
            "failed to create typed patch object ({namespace}/{name}; {kind_text}): {why}"
        )));
    }
    Ok(())
}

/// The entry of the manager that owns everything from before the first apply.
fn before_first_apply(kind: &Kind, ty: TypeId, live: &Value) -> Entry {
    let mut set: Set = owned::leaves(ty, live).into_keys().collect();
    managed::strip(kind, "", &mut set);
    Entry {
        manager: "before-first-apply".to_owned(),
        operation: Operation::Update,
        api_version: kind.api_version(),
        sub: String::new(),
        time: live.text("metadata.creationTimestamp").to_owned(),
        set,
    }
}

fn gv_text(kind: &Kind) -> String {
    format!("{}/{}", kind.group, kind.version)
}

fn indented(faults: &[String]) -> String {
    faults.iter().map(|fault| format!("  {fault}")).collect::<Vec<_>>().join("\n")
}

fn changed(before: &Leaves, after: &Leaves) -> Set {
    after
        .iter()
        .filter(|(path, value)| before.get(*path) != Some(value))
        .map(|(path, _)| path.clone())
        .collect()
}

/// The faults of an applied object: unknown fields and duplicate keys.
pub(super) fn check(
    shape: &Shape,
    field: Option<&Field>,
    of: &Value,
    path: &mut String,
    faults: &mut Vec<String>,
) {
    let length = path.len();
    match (shape.bare(), of) {
        (Shape::Struct(ty), Value::Object(members)) => {
            let known = schema::get(*ty);
            for (name, member) in members {
                let head = known.typed && (name == "apiVersion" || name == "kind");
                path.push_str(&format!(".{name}"));
                match known.field(name) {
                    Some(field) => check(&field.shape, Some(field), member, path, faults),
                    None if head || known.open => {}
                    None => faults.push(format!("{path}: field not declared in schema")),
                }
                path.truncate(length);
            }
        }
        (Shape::Map(inner), Value::Object(members)) => {
            for (name, member) in members {
                path.push_str(&format!(".{name}"));
                check(inner, None, member, path, faults);
                path.truncate(length);
            }
        }
        (Shape::List(inner), Value::Array(items)) => {
            let keyed = field.is_some_and(|field| field.list_type == ListType::Map);
            let mut seen = Set::new();
            for (at, item) in items.iter().enumerate() {
                let step = if keyed { owned::step_of_item(field, item) } else { format!("v:{at}") };
                let shown = if keyed { owned::shown(&vec![step.clone()]) } else { format!("[{at}]") };
                if !seen.insert(vec![step]) {
                    faults.push(format!("{path}: duplicate entries for key {shown}"));
                }
                path.push_str(&shown);
                check(inner, None, item, path, faults);
                path.truncate(length);
            }
        }
        (_, Value::Null) => {}
        (Shape::Text(_) | Shape::Bytes, Value::String(_)) | (Shape::Bool, Value::Bool(_)) => {}
        (Shape::Int(..), Value::Number(_)) => {}
        (Shape::Text(_) | Shape::Bytes, _) => faults.push(misfit(path, "string", of)),
        (Shape::Bool, _) => faults.push(misfit(path, "boolean", of)),
        (Shape::Int(..), _) => faults.push(misfit(path, "numeric (int or float)", of)),
        (Shape::List(_), _) => faults.push(misfit(path, "list", of)),
        (Shape::Struct(_) | Shape::Map(_), _) => faults.push(misfit(path, "map", of)),
        _ => {}
    }
}

fn misfit(path: &str, expected: &str, of: &Value) -> String {
    let got = super::strategic::go(of);
    format!("{path}: expected {expected}, got &value.valueUnstructured{{Value:{got}}}")
}

/// The value with another one merged into it.
pub(super) fn merge(shape: &Shape, field: Option<&Field>, live: &Value, applied: &Value) -> Value {
    match (shape.bare(), live, applied) {
        (shape, Value::Object(_), Value::Object(_)) if owned::is_atomic(shape, field) => applied.clone(),
        (Shape::Struct(ty), Value::Object(before), Value::Object(change)) => {
            let mut out = before.clone();
            for (name, member) in change {
                let known = schema::get(*ty).field(name);
                let open = schema::get(*ty).open;
                let merged = match (known, before.get(name)) {
                    (Some(known), Some(before)) => merge(&known.shape, Some(known), before, member),
                    (None, Some(before)) if open => merge(&Shape::Raw, None, before, member),
                    _ => member.clone(),
                };
                out.insert(name.clone(), merged);
            }
            Value::Object(out)
        }
        (
            shape @ (Shape::Map(_) | Shape::Raw | Shape::JsonSchema(_)),
            Value::Object(before),
            Value::Object(change),
        ) => {
            let inner = owned::of_members(shape);
            let mut out = before.clone();
            for (name, member) in change {
                let merged = before.get(name).map(|before| merge(inner, None, before, member));
                out.insert(name.clone(), merged.unwrap_or_else(|| member.clone()));
            }
            Value::Object(out)
        }
        (Shape::List(inner), Value::Array(before), Value::Array(change)) => {
            match field.map(|field| field.list_type) {
                Some(ListType::Map) => Value::Array(merge_items(inner, field, before, change)),
                Some(ListType::Set) => {
                    let new = change.iter().filter(|item| !before.contains(item));
                    Value::Array(before.iter().chain(new).cloned().collect())
                }
                _ => applied.clone(),
            }
        }
        _ => applied.clone(),
    }
}

fn merge_items(inner: &Shape, field: Option<&Field>, before: &[Value], change: &[Value]) -> Vec<Value> {
    let mut out = before.to_vec();
    for item in change {
        let step = owned::step_of_item(field, item);
        match out.iter().position(|known| owned::step_of_item(field, known) == step) {
            Some(at) => out[at] = merge(inner, None, &out[at], item),
            None => out.push(item.clone()),
        }
    }
    out
}

/// Removes a field.
fn remove(shape: &Shape, field: Option<&Field>, of: &mut Value, path: &[String]) {
    let Some((step, rest)) = path.split_first() else { return };
    let Some((kind, name)) = step.split_once(':') else { return };
    match (kind, shape.bare(), of) {
        ("f", shape, Value::Object(members)) => {
            if rest.is_empty() {
                members.remove(name);
                return;
            }
            let (inner, known) = match shape {
                Shape::Struct(ty) => match schema::get(*ty).field(name) {
                    Some(field) => (&field.shape, Some(field)),
                    None if schema::get(*ty).open => (&Shape::Raw, None),
                    None => return,
                },
                map @ (Shape::Map(_) | Shape::Raw | Shape::JsonSchema(_)) => (owned::of_members(map), None),
                _ => return,
            };
            if let Some(member) = members.get_mut(name) {
                remove(inner, known, member, rest);
            }
        }
        ("k", Shape::List(inner), Value::Array(items)) => {
            let at = items.iter().position(|item| owned::step_of_item(field, item) == *step);
            match at {
                Some(at) if rest.is_empty() => {
                    items.remove(at);
                }
                Some(at) => remove(inner, None, &mut items[at], rest),
                None => {}
            }
        }
        ("v", _, Value::Array(items)) => {
            items.retain(|item| serde_json::from_str(name).ok().as_ref() != Some(item))
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds;
    use crate::patch::note_update;

    const NOW: &str = "2026-01-01T00:00:00Z";

    fn by(manager: &str) -> Applier<'_> {
        Applier { manager, force: false, sub: None, time: NOW }
    }

    fn map(data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}, "data": data})
    }

    fn kind(plural: &str) -> &'static Kind {
        kinds::find("", "v1", plural).expect("a kind of the core group")
    }

    #[test]
    fn fields_no_longer_applied_are_removed_and_those_of_others_stay() {
        let maps = kind("configmaps");
        let first = apply(maps, None, &map(json!({"a": "1", "b": "1"})), by("one"))
            .expect("no other manager owns it");
        let second =
            apply(maps, Some(&first), &map(json!({"a": "1", "c": "1"})), by("two")).expect("no conflict");
        assert_eq!(second["data"], json!({"a": "1", "b": "1", "c": "1"}));
        let third = apply(maps, Some(&second), &map(json!({})), by("one")).expect("nothing is changed");
        assert_eq!(third["data"], json!({"a": "1", "c": "1"}));
    }

    #[test]
    fn conflicts_have_the_words_of_the_real_server_and_can_be_forced() {
        let maps = kind("configmaps");
        let live = apply(maps, None, &map(json!({"k": "1", "l": "1"})), by("one"))
            .expect("no other manager owns it");
        let refused = apply(maps, Some(&live), &map(json!({"k": "2"})), by("two")).expect_err("a conflict");
        assert_eq!(refused.message, "Apply failed with 1 conflict: conflict with \"one\": .data.k");
        let refused = apply(maps, Some(&live), &map(json!({"k": "2", "l": "2"})), by("two"))
            .expect_err("two conflicts");
        assert_eq!(
            refused.message,
            "Apply failed with 2 conflicts: conflicts with \"one\":\n- .data.k\n- .data.l"
        );
        let force = Applier { force: true, ..by("two") };
        let forced = apply(maps, Some(&live), &map(json!({"k": "2"})), force).expect("it is forced");
        assert_eq!(forced["data"], json!({"k": "2", "l": "1"}));
        let again =
            apply(maps, Some(&forced), &map(json!({"k": "3"})), by("one")).expect_err("two owns it now");
        assert_eq!(again.details["causes"][0]["field"], ".data.k");
    }

    #[test]
    fn ordinary_writes_own_what_they_change() {
        let maps = kind("configmaps");
        let live = apply(maps, None, &map(json!({"k": "1"})), by("one")).expect("no other manager owns it");
        let mut new = live.clone();
        new["data"]["k"] = "2".into();
        note_update(maps, "edit", &live, &mut new, NOW, None);
        let refused = apply(maps, Some(&new), &map(json!({"k": "1"})), by("one")).expect_err("a conflict");
        assert_eq!(
            refused.message,
            "Apply failed with 1 conflict: conflict with \"edit\" using v1 at 2026-01-01T00:00:00Z: .data.k"
        );
    }

    #[test]
    fn lists_merge_by_their_keys() {
        let services = kind("services");
        let service = |ports: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": ports}});
        let live = apply(services, None, &service(json!([{"port": 80, "name": "a"}])), by("one"))
            .expect("it is new");
        let both = apply(services, Some(&live), &service(json!([{"port": 81, "name": "b"}])), by("two"))
            .expect("no conflict");
        assert_eq!(both["spec"]["ports"], json!([{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]));
        let wrong = apply(
            services,
            None,
            &json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "a", "namespace": "n"}, "spec": {"bogus": 1}}),
            by("one"),
        )
        .expect_err("unknown");
        assert_eq!(
            wrong.message,
            "failed to create typed patch object (n/a; /v1, Kind=Service): .spec.bogus: field not declared in schema"
        );
    }
}
