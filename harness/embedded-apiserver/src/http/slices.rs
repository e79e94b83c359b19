//! Finds parts of a stored JSON text without parsing what is between them. This server wrote the texts, so
//! they are valid.

use serde_json::{Map, Value};

/// The members of an object in its text: names and values, unparsed. Empty if the text is not an object.
pub(super) struct Members<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Members<'a> {
    pub(super) fn of(text: &'a [u8]) -> Self {
        let at = if text.first() == Some(&b'{') { 1 } else { text.len() };
        Self { text, at }
    }
}

impl<'a> Iterator for Members<'a> {
    /// The name without its quotes, and the value.
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.text;
        if text.get(self.at) == Some(&b',') {
            self.at += 1;
        }
        let begin = self.at + 1;
        let end = end_of(text, self.at).filter(|_| text.get(self.at) == Some(&b'"'))?;
        let value = end + 1;
        let after = end_of(text, value).filter(|_| text.get(end) == Some(&b':'))?;
        self.at = after;
        Some((text.get(begin..end - 1)?, text.get(value..after)?))
    }
}

/// The items of a list in its text.
pub(super) fn items(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = if text.first() == Some(&b'[') { 1 } else { text.len() };
    std::iter::from_fn(move || {
        if text.get(at) == Some(&b',') {
            at += 1;
        }
        let begin = at;
        at = end_of(text, begin).filter(|end| *end > begin)?;
        text.get(begin..at)
    })
}

/// The value of a member of an object in its text.
pub(super) fn member<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    Members::of(text).find(|(is, _)| *is == name.as_bytes()).map(|(_, value)| value)
}

/// The end of the value that begins at this position.
fn end_of(text: &[u8], begin: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = begin;
    loop {
        match *text.get(at)? {
            b'"' => {
                at += 1;
                loop {
                    match *text.get(at)? {
                        b'\\' => at += 2,
                        b'"' => break,
                        _ => at += 1,
                    }
                }
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                // The end of the surrounding container is not part of the value.
                let Some(outer) = depth.checked_sub(1) else { return Some(at) };
                depth = outer;
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            b',' if depth == 0 => return Some(at),
            _ => at += 1,
        }
    }
}

/// Which parts of an object are wanted. Lists are searched as well.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// The whole value.
    Whole,
    /// These members only.
    Only(&'static [(&'static str, Part)]),
    /// All members except these.
    But(&'static [&'static str]),
}

/// The wanted part of a value in its text; `None` if the text is not valid.
pub(super) fn part(text: &[u8], wanted: Part) -> Option<Value> {
    Cursor { text, at: 0 }.value(wanted)
}

/// Reads a text once, from its beginning.
struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn value(&mut self, wanted: Part) -> Option<Value> {
        match *self.text.get(self.at)? {
            b'{' => self.object(wanted),
            b'[' => {
                let mut items = Vec::new();
                self.at += 1;
                while *self.text.get(self.at)? != b']' {
                    items.push(self.value(wanted)?);
                    self.comma()?;
                }
                self.at += 1;
                Some(Value::Array(items))
            }
            _ => {
                let text = self.skipped()?;
                match text {
                    // Most strings contain no escapes.
                    [b'"', plain @ .., b'"'] if !plain.contains(&b'\\') => {
                        std::str::from_utf8(plain).ok().map(Value::from)
                    }
                    _ => serde_json::from_slice(text).ok(),
                }
            }
        }
    }

    fn object(&mut self, wanted: Part) -> Option<Value> {
        let mut out = Map::new();
        self.at += 1;
        while *self.text.get(self.at)? != b'}' {
            let name = match self.skipped()? {
                [b'"', name @ .., b'"'] => name,
                _ => return None,
            };
            self.at += 1;
            let below = match wanted {
                Part::Whole => Some(Part::Whole),
                Part::Only(members) => {
                    members.iter().find(|(is, _)| is.as_bytes() == name).map(|(_, below)| *below)
                }
                Part::But(members) => {
                    let left_out = members.iter().any(|is| is.as_bytes() == name);
                    (!left_out).then_some(Part::Whole)
                }
            };
            match below {
                Some(below) => {
                    let value = self.value(below)?;
                    out.insert(key(name)?, value);
                }
                None => drop(self.skipped()?),
            }
            self.comma()?;
        }
        self.at += 1;
        Some(Value::Object(out))
    }

    /// The text of the current value; moves behind it.
    fn skipped(&mut self) -> Option<&'a [u8]> {
        let begin = self.at;
        self.at = end_of(self.text, begin).filter(|end| *end > begin)?;
        self.text.get(begin..self.at)
    }

    /// Moves behind a comma, or stops before the end of the surrounding container.
    fn comma(&mut self) -> Option<()> {
        match *self.text.get(self.at)? {
            b',' => self.at += 1,
            b'}' | b']' => {}
            _ => return None,
        }
        Some(())
    }
}

/// A member's name, which rarely contains escapes.
fn key(name: &[u8]) -> Option<String> {
    if name.contains(&b'\\') {
        return serde_json::from_slice(&[b"\"", name, b"\""].concat()).ok();
    }
    std::str::from_utf8(name).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_and_items_are_found_in_any_text() {
        let value = json!({"a": {"b": [1, {"c": "}]\\\" ,"}], "d": null}, "e": -1.5, "f": [], "g": "", "h\u{e9}": true});
        let text = value.to_string();
        let found: Map<String, Value> = Members::of(text.as_bytes())
            .map(|(name, value)| {
                let name = String::from_utf8(name.to_vec()).expect("text");
                (name, serde_json::from_slice(value).expect("JSON"))
            })
            .collect();
        assert_eq!(Value::Object(found), value);
        let list = json!([1, "a,b", [2, 3], {"x": "]"}, null, true]).to_string();
        let found: Vec<Value> =
            items(list.as_bytes()).map(|item| serde_json::from_slice(item).expect("JSON")).collect();
        assert_eq!(Value::Array(found).to_string(), list);
        assert_eq!(member(text.as_bytes(), "e"), Some(b"-1.5".as_slice()));
        assert_eq!(member(text.as_bytes(), "b"), None, "it is further in");
        for none in ["", "{", "[", "1", "{\"a", "{\"a\":", "{\"a\":1", "[1", "{}", "[]"] {
            assert_eq!(Members::of(none.as_bytes()).count(), 0, "{none}");
            assert!(items(none.as_bytes()).count() == 0, "{none}");
        }
    }

    #[test]
    fn only_the_wanted_part_is_read() {
        let text = json!({"metadata": {"name": "a", "labels": {"x": "y"}, "uid": "u"},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "r"}], "images": [1]}});
        let text = text.to_string();
        let wanted = Part::Only(&[
            ("metadata", Part::But(&["uid"])),
            ("status", Part::Only(&[("conditions", Part::Only(&[("type", Part::Whole)]))])),
        ]);
        let expected = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "status": {"conditions": [{"type": "Ready"}]}});
        assert_eq!(part(text.as_bytes(), wanted), Some(expected));
        assert_eq!(part(text.as_bytes(), Part::Whole).map(|whole| whole.to_string()), Some(text));
        let odd = json!({"a\\b": "c\"\u{e9}\n", "": [[], {}, [1.5e300, -7]], "x": null, "y": [false, "<&>"]});
        assert_eq!(part(odd.to_string().as_bytes(), Part::Whole), Some(odd.clone()));
        assert_eq!(
            part(odd.to_string().as_bytes(), Part::But(&["x"])).map(|part| part["x"].clone()),
            Some(Value::Null)
        );
        for none in ["", "{", "{\"a\":1", "{\"a\"}", "[1", "[1 2]", "{\"a\":1 \"b\":2}", "tru"] {
            assert_eq!(part(none.as_bytes(), Part::Whole), None, "{none}");
        }
    }
}
