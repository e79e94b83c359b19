//! Lists that merge: items by their key, plain values by themselves, and the resulting order.

use serde_json::{Map, Value};

use super::known::{DIRECTIVE, Known, Wrong, go, without_directives};
use crate::schema::TypeId;

/// A function that merges an item of a list: its type, its old value, the change.
type MergeObject =
    fn(Option<TypeId>, Map<String, Value>, &Map<String, Value>) -> Result<Map<String, Value>, Wrong>;

/// The most items that two merged lists may have: each is compared with each.
const MOST_ITEMS: usize = 5_000;

/// A list after a change.
pub(super) fn list(
    object: MergeObject,
    known: &Known<'_>,
    before: Vec<Value>,
    change: &[Value],
) -> Result<Vec<Value>, Wrong> {
    let items = before.len() + change.len();
    if items > MOST_ITEMS {
        return Err(Wrong::TooLarge(format!("lists of {items} items are not merged, at most {MOST_ITEMS}")));
    }
    let structs = change.iter().chain(&before).any(Value::is_object);
    if change.iter().chain(&before).any(Value::is_array) {
        // Lists of lists are not supported.
        return Err(Wrong::Fit);
    }
    if !structs {
        let mut merged: Vec<Value> = Vec::new();
        for item in before.iter().chain(change) {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        return Ok(in_order(merged, &before, change, None));
    }
    let Some(key) = known.merge_key() else { return Ok(change.to_vec()) };
    let (mut merged, change) = special_items(before, change, key)?;
    let stood = merged.clone();
    for item in &change {
        let value = keyed(item, key)?;
        match merged.iter().position(|known| known.get(key) == Some(value)) {
            Some(at) => {
                let before = merged[at].as_object().cloned().unwrap_or_default();
                let members = item.as_object().cloned().unwrap_or_default();
                merged[at] = Value::Object(object(known.inner(), before, &members)?);
            }
            None => merged.extend(without_directives(item)),
        }
    }
    Ok(in_order(merged, &stood, &change, Some(key)))
}

/// The key of an item of a merged list.
fn keyed<'a>(item: &'a Value, key: &str) -> Result<&'a Value, Wrong> {
    item.get(key)
        .ok_or_else(|| Wrong::Other(format!("map: {} does not contain declared merge key: {key}", go(item))))
}

/// The list without the items that directives delete, and the change without directives.
fn special_items(before: Vec<Value>, change: &[Value], key: &str) -> Result<(Vec<Value>, Vec<Value>), Wrong> {
    let (mut before, mut plain, mut replace) = (before, Vec::new(), false);
    for item in change {
        if !item.is_object() {
            return Err(Wrong::Other(format!("expected a map in the list, but received {}", go(item))));
        }
        match item.get(DIRECTIVE) {
            None => plain.push(item.clone()),
            Some(directive) => match directive.as_str() {
                Some("delete") => {
                    let value = keyed(item, key)?;
                    before.retain(|known| known.get(key) != Some(value));
                }
                Some("replace") => replace = true,
                Some("merge") => {
                    let why = "merging lists cannot yet be specified in the patch";
                    return Err(Wrong::Other(why.to_owned()));
                }
                _ => {
                    let (shown, whole) = (go(directive), go(item));
                    return Err(Wrong::Other(format!("unknown patch type: {shown} in map: {whole}")));
                }
            },
        }
    }
    Ok(if replace { (plain, Vec::new()) } else { (before, plain) })
}

/// Sorts items that are named in the order accordingly. Another item comes before the next of them only if
/// both existed and it came first; so new items come first.
pub(super) fn in_order(
    merged: Vec<Value>,
    before: &[Value],
    order: &[Value],
    key: Option<&str>,
) -> Vec<Value> {
    let same = |a: &Value, b: &Value| match key {
        Some(key) => a.get(key).is_some() && a.get(key) == b.get(key),
        None => a == b,
    };
    let place = |item: &Value| order.iter().position(|wanted| same(item, wanted));
    let (mut listed, others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(item).is_some());
    listed.sort_by_key(|item| place(item));
    let at_before = |item: &Value| before.iter().position(|old| same(old, item));
    let mut out: Vec<Value> = Vec::with_capacity(listed.len() + others.len());
    let (mut listed, mut others) = (listed.into_iter().peekable(), others.into_iter().peekable());
    loop {
        match (listed.peek(), others.peek()) {
            (Some(wanted), Some(other)) => {
                let other_first = match (at_before(other), at_before(wanted)) {
                    (Some(other), Some(wanted)) => other < wanted,
                    _ => false,
                };
                out.extend(if other_first { others.next() } else { listed.next() });
            }
            (Some(_), None) => out.extend(listed.next()),
            (None, Some(_)) => out.extend(others.next()),
            (None, None) => return out,
        }
    }
}
