//! The part of JSONPath that printer columns use: members, items by position, all items, and items by the
//! value of a member.

use serde_json::Value;

use embedded_objects::value::PathAccess as _;

/// The values at a path such as `.status.conditions[?(@.type=="Ready")].status`; empty if the path is not valid.
pub(super) fn find<'a>(path: &str, object: &'a Value) -> Vec<&'a Value> {
    let mut found = vec![object];
    let mut rest = path;
    while !rest.is_empty() && !found.is_empty() {
        let (step, after) = if let Some(inside) = rest.strip_prefix('[') {
            let Some(end) = closing(inside) else { return Vec::new() };
            (Step::of(&inside[..end]), &inside[end + 1..])
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            (Step::Member(&name[..end]), &name[end..])
        };
        found = found.into_iter().flat_map(|value| step.take(value)).collect();
        rest = after;
    }
    found.retain(|value| !value.is_null());
    found
}

/// The position of the closing bracket for this content: brackets inside quotes do not count.
fn closing(inside: &str) -> Option<usize> {
    let mut quote = None;
    for (at, ch) in inside.char_indices() {
        match (quote, ch) {
            (None, '"' | '\'') => quote = Some(ch),
            (Some(open), ch) if open == ch => quote = None,
            (None, ']') => return Some(at),
            _ => {}
        }
    }
    None
}

enum Step<'p> {
    Member(&'p str),
    Item(usize),
    All,
    Where(&'p str, &'p str),
    Nothing,
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}

impl<'p> Step<'p> {
    fn of(inside: &'p str) -> Step<'p> {
        let condition = inside.strip_prefix("?(@.").and_then(|rest| rest.strip_suffix(')'));
        if let Some((member, value)) = condition.and_then(|text| text.split_once("==")) {
            return Step::Where(member.trim(), unquoted(value));
        }
        match inside {
            "*" => Step::All,
            _ if inside.starts_with(['"', '\'']) => Step::Member(unquoted(inside)),
            _ => inside.parse().map_or(Step::Nothing, Step::Item),
        }
    }

    fn take<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
        match self {
            Step::Member(name) => value.get(*name).into_iter().collect(),
            Step::Item(at) => items.get(*at).into_iter().collect(),
            Step::All => items.iter().collect(),
            Step::Where(member, is) => {
                let matches = |item: &Value| {
                    let text = item.at(member);
                    text.as_str().map_or_else(|| text.to_string(), str::to_owned) == **is
                };
                items.iter().filter(|item| matches(item)).collect()
            }
            Step::Nothing => Vec::new(),
        }
    }
}
