//! A manifest as it is after the API server has changed the object. What stays keeps its place in the text.

use super::node::{Entry, Node, Style, Value};
use serde_json::Value as Json;

impl Node {
    /// This value after a change from `before` to `after`. Both may have fields that this one lacks: those in which they do
    /// not differ, such as defaults, are left out. Where the change adds something, its place is that of what surrounds it.
    #[must_use]
    pub(crate) fn changed(&self, before: &Json, after: &Json) -> Node {
        if before == after {
            return self.clone();
        }
        let value = match (&self.value, before, after) {
            (Value::Map(entries), Json::Object(before), Json::Object(after)) => {
                let stays =
                    |entry: &&Entry| after.contains_key(&entry.key) || !before.contains_key(&entry.key);
                let mut all: Vec<Entry> = entries.iter().filter(stays).cloned().collect();
                for entry in &mut all {
                    if let (Some(before), Some(after)) = (before.get(&entry.key), after.get(&entry.key)) {
                        entry.value = entry.value.changed(before, after);
                    }
                }
                let is_new = |(key, value): &(&String, &Json)| {
                    self.get(key).is_none() && before.get(*key) != Some(*value)
                };
                all.extend(after.iter().filter(is_new).map(|(key, value)| self.added(key, value)));
                Value::Map(all)
            }
            (Value::List(items), Json::Array(before), Json::Array(after)) => {
                let of_item = |(at, item): (usize, &Json)| {
                    let same = before.iter().position(|own| own == item).and_then(|own| items.get(own));
                    let edited = || Some(items.get(at)?.changed(before.get(at)?, item));
                    same.cloned().or_else(edited).unwrap_or_else(|| self.replaced(item))
                };
                Value::List(after.iter().enumerate().map(of_item).collect())
            }
            _ => return self.replaced(after),
        };
        Node { value, ..self.clone() }
    }

    /// Replaces the value at the end of a path of keys, if there is one.
    pub(crate) fn set(&mut self, path: &[&str], value: Node) {
        let Some((key, rest)) = path.split_first() else {
            *self = value;
            return;
        };
        if let Value::Map(entries) = &mut self.value
            && let Some(entry) = entries.iter_mut().find(|entry| entry.key == *key)
        {
            entry.value.set(rest, value);
        }
    }

    fn added(&self, key: &str, value: &Json) -> Entry {
        let (key, key_bytes) = (key.to_owned(), self.bytes.clone());
        Entry { key, key_bytes, line: self.line, column: self.column, value: self.replaced(value) }
    }

    /// Another value in the place of this one.
    fn replaced(&self, by: &Json) -> Node {
        let value = match by {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(whole) => Value::Int(whole),
                None => Value::Number(number.to_string()),
            },
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(items) => Value::List(items.iter().map(|item| self.replaced(item)).collect()),
            Json::Object(members) => {
                Value::Map(members.iter().map(|(key, value)| self.added(key, value)).collect())
            }
        };
        Node {
            value,
            bytes: self.bytes.clone(),
            line: self.line,
            column: self.column,
            style: Style::Flow,
            borrowed: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::manifest::{Objects, Source};
    use serde_json::json;

    #[test]
    fn what_stays_keeps_its_place() {
        let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  a: 1\n  items:\n  - name: x\n  - name: w\n";
        let objects = Objects::read(vec![Source::new("a.yaml", text)]);
        let spec = objects.all[0].node.get("spec").expect("it has a spec");
        let before = json!({"a": 1, "default": true, "items": [{"name": "x", "d": 1}, {"name": "w"}]});
        let after = json!({"default": true, "items": [{"name": "x", "d": 1, "new": "n"}, {"name": "w"}, {"name": "z"}]});
        let now = spec.changed(&before, &after);
        assert_eq!(now.json(), json!({"items": [{"name": "x", "new": "n"}, {"name": "w"}, {"name": "z"}]}));
        let lines: Vec<u32> =
            now.get("items").expect("it has items").items().iter().map(|item| item.line).collect();
        assert_eq!(lines, [7, 8, 7]);
    }
}
