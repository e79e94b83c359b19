//! Changes a value in the middle of a text, in the style in which the text is written.

use bootstrap_manifests::manifest::{Node, Style};
use std::ops::Range;

/// A range of a text and its replacement.
pub(super) type Patch = (Range<usize>, String);

/// Applies patches that do not overlap.
pub(super) fn apply(text: &str, mut patches: Vec<Patch>) -> Option<String> {
    patches.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut text = text.to_owned();
    for (range, new) in patches {
        if !text.is_char_boundary(range.start) || !text.is_char_boundary(range.end) || range.end > text.len()
        {
            return None;
        }
        text.replace_range(range, &new);
    }
    Some(text)
}

/// Sets a key of a map to a scalar.
pub(super) fn set(text: &str, map: &Node, key: &str, value: &str) -> Option<Patch> {
    if map.borrowed {
        return None;
    }
    match map.entry(key) {
        Some(entry) if entry.value.borrowed => None,
        Some(entry) if entry.value.is_null() => {
            let colon = text.get(entry.key_bytes.end..)?.find(':')? + entry.key_bytes.end + 1;
            let end = entry.value.bytes.end.max(colon);
            Some((colon..end, format!(" {}", scalar(map, text, value))))
        }
        Some(entry) => Some((entry.value.bytes.clone(), scalar(map, text, value))),
        None => add_entry(text, map, key, &scalar(map, text, value)),
    }
}

/// Adds what is missing of nested maps: `keys` leads to a value, which may have several lines. `None` if nothing is missing, or
/// if the maps are in brackets.
pub(super) fn insert(text: &str, map: &Node, keys: &[String], value: &str) -> Option<Patch> {
    let (key, inner) = keys.split_first()?;
    match map.entry(key) {
        Some(entry) if entry.value.borrowed => None,
        Some(entry) if entry.value.items().is_empty() && entry.value.entries().is_empty() => {
            if map.style == Style::Flow || entry.value.scalar().is_some_and(|text| !text.is_empty()) {
                return None;
            }
            let colon = text.get(entry.key_bytes.end..)?.find(':')? + entry.key_bytes.end + 1;
            let indent = " ".repeat(entry.column as usize - 1);
            Some((
                colon..entry.value.bytes.end.max(colon),
                nested(inner, value).replace('\n', &format!("\n{indent}")),
            ))
        }
        Some(entry) => insert(text, &entry.value, inner, value),
        None if map.borrowed || map.style == Style::Flow => None,
        None => add_entry(text, map, key, &nested(inner, value)),
    }
}

/// A value below nested keys; a value of one line stays on the line of its key.
fn nested(keys: &[String], value: &str) -> String {
    let (inner, is_line) = match keys.split_first() {
        None => (value.to_owned(), !value.contains('\n')),
        Some((key, rest)) => (format!("{key}: {}", nested(rest, value)), false),
    };
    if is_line {
        return inner;
    }
    inner.lines().fold(String::new(), |text, line| format!("{text}\n  {}", line.trim_end()))
}

/// Adds a key to a map. `value` is one line for maps in brackets; for block maps it may have several lines, indented from
/// 0.
fn add_entry(text: &str, map: &Node, key: &str, value: &str) -> Option<Patch> {
    if map.style == Style::Flow {
        let key = if json(map, text) { format!("\"{key}\"") } else { key.to_owned() };
        return flow(text, map, &format!("{key}: {value}"));
    }
    let first = map.entries().iter().find(|entry| !entry.value.borrowed)?;
    let indent = " ".repeat(first.column as usize - 1);
    let mut lines = value.lines();
    let mut new = format!("{indent}{key}: {}", lines.next().unwrap_or_default()).trim_end().to_owned();
    new.push('\n');
    for line in lines {
        new.push_str(&format!("{indent}{line}\n"));
    }
    Some(below(text, map, new))
}

/// Adds an item, a map of strings, to the list under a key of a map; creates the list if there is none.
pub(super) fn append(text: &str, map: &Node, key: &str, item: &[(&str, &str)]) -> Option<Patch> {
    if map.borrowed {
        return None;
    }
    let block = |dash: &str| {
        let mut lines = String::new();
        for (number, (key, value)) in item.iter().enumerate() {
            let lead = if number == 0 { "- " } else { "  " };
            lines.push_str(&format!("{dash}{lead}{key}: {value}\n"));
        }
        lines
    };
    let in_line = |json: bool| {
        let quote = if json { "\"" } else { "" };
        let pairs: Vec<String> =
            item.iter().map(|(key, value)| format!("{quote}{key}{quote}: {quote}{value}{quote}")).collect();
        format!("{{{}}}", pairs.join(", "))
    };
    match map.get(key) {
        Some(list) if list.borrowed => None,
        Some(list) if !list.items().is_empty() && list.style == Style::Flow => {
            flow(text, list, &in_line(json(map, text)))
        }
        Some(list) if !list.items().is_empty() => {
            let first = list.items().first()?.bytes.start;
            let lead = text.get(..first)?.rsplit('\n').next()?;
            // The text in front of the first item on its line is the dash; without one the style is unknown.
            let dash = lead.find('-').filter(|_| lead.chars().all(|c| c == ' ' || c == '-'))?;
            Some(below(text, list, block(&" ".repeat(dash))))
        }
        Some(empty) if map.style == Style::Flow || json(map, text) => {
            Some((empty.bytes.clone(), format!("[{}]", in_line(json(map, text)))))
        }
        Some(empty) => {
            let entry = map.entry(key)?;
            let colon = text.get(entry.key_bytes.end..)?.find(':')? + entry.key_bytes.end + 1;
            let indent = " ".repeat(entry.column as usize + 1);
            let lines = format!("\n{}", block(&indent));
            let end = empty.bytes.end.max(colon);
            // The rest of the line, such as a comment, stays in front of the new lines.
            Some((colon..end, lines.trim_end().to_owned()))
        }
        None if map.style == Style::Flow => {
            add_entry(text, map, key, &format!("[{}]", in_line(json(map, text))))
        }
        None => add_entry(text, map, key, &format!("\n{}", block("  "))),
    }
}

/// Removes an item of a list, or an entry of a map, given its beginning and end.
pub(super) fn remove_lines(text: &str, from: usize, to: usize) -> Option<Patch> {
    let start = text.get(..from)?.rfind('\n').map_or(0, |at| at + 1);
    // Other text on the line, as in brackets, is left unchanged.
    let lead = text.get(start..from)?;
    if !lead.chars().all(|c| c == ' ' || c == '-') {
        return None;
    }
    let end = match text.get(to..)?.find('\n') {
        _ if text.get(..to)?.ends_with('\n') => to,
        Some(at) => to + at + 1,
        None => text.len(),
    };
    Some((start..end, String::new()))
}

/// Inserts lines below a collection.
fn below(text: &str, node: &Node, lines: String) -> Patch {
    let end = node.bytes.end.min(text.len());
    if text[..end].ends_with('\n') {
        return (end..end, lines);
    }
    match text[end..].find('\n') {
        Some(at) => (end + at + 1..end + at + 1, lines),
        None => (text.len()..text.len(), format!("\n{}", lines.trim_end_matches('\n'))),
    }
}

/// Adds to a collection in brackets.
fn flow(text: &str, node: &Node, new: &str) -> Option<Patch> {
    let last = match (node.items().last(), node.entries().last()) {
        (Some(item), _) => Some(item.bytes.end),
        (_, Some(entry)) => Some(entry.value.bytes.end.max(entry.key_bytes.end)),
        _ => None,
    };
    match last {
        Some(end) => Some((end..end, format!(", {new}"))),
        None => {
            let start = node.bytes.start + 1;
            text.is_char_boundary(start).then(|| (start..start, new.to_owned()))
        }
    }
}

/// Whether a map is written as JSON.
fn json(map: &Node, text: &str) -> bool {
    map.style == Style::Flow
        && map.entries().first().is_some_and(|entry| {
            text.get(..=entry.key_bytes.start).is_some_and(|before| before.ends_with('"'))
        })
}

/// Writes a scalar as YAML.
fn scalar(map: &Node, text: &str, value: &str) -> String {
    let bare = ["true", "false"].contains(&value) || value.parse::<i64>().is_ok();
    if json(map, text) && !bare { format!("\"{value}\"") } else { value.to_owned() }
}
