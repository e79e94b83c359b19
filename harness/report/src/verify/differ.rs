//! The differences between two values, and how they are shown.

use crate::wording::{one_line, whole_words};
use serde_json::Value;
use std::collections::BTreeSet;

/// The number of common characters that are shown before the difference.
const IN_COMMON: usize = 40;
/// Lists and keys up to this number of characters are shown, longer ones are counted.
const SHORT: usize = 60;

/// A place in which two values differ.
pub(super) struct Difference<'a> {
    /// Keys and positions from the top, with dots between them. A check is named by its id.
    pub(super) path: String,
    /// The first value; `None` if it is absent.
    pub(super) one: Option<&'a Value>,
    /// The second value; `None` if it is absent.
    pub(super) other: Option<&'a Value>,
}

/// All places in which two values differ. Complete values are compared; lists of different lengths differ in one place.
pub(super) fn differences<'a>(one: &'a Value, other: &'a Value) -> Vec<Difference<'a>> {
    let mut found = Vec::new();
    walk(String::new(), Some(one), Some(other), &mut found);
    found
}

fn walk<'a>(path: String, one: Option<&'a Value>, other: Option<&'a Value>, found: &mut Vec<Difference<'a>>) {
    if one == other {
        return;
    }
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (one, other) {
        (Some(Value::Object(of_one)), Some(Value::Object(of_other))) => {
            for key in of_one.keys().chain(of_other.keys()).collect::<BTreeSet<_>>() {
                walk(below(key), of_one.get(key), of_other.get(key), found);
            }
        }
        (Some(Value::Array(of_one)), Some(Value::Array(of_other))) if of_one.len() == of_other.len() => {
            for (at, (one, other)) in of_one.iter().zip(of_other).enumerate() {
                let id = one["id"].as_str().filter(|id| other["id"].as_str() == Some(id));
                walk(below(&id.map_or_else(|| at.to_string(), str::to_owned)), Some(one), Some(other), found);
            }
        }
        _ => found.push(Difference { path, one, other }),
    }
}

/// Two different values, each in one line that shows the difference.
pub(super) fn apart(one: Option<&Value>, other: Option<&Value>) -> (String, String) {
    let plain = |value: Option<&Value>| match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    let summary = |value: Option<&Value>| match value {
        Some(Value::Array(items)) => Some(format!("a list of {}", items.len())),
        Some(Value::Object(keys)) => Some(format!("{} keys", keys.len())),
        Some(Value::String(text)) if text.is_empty() => Some("an empty text".to_owned()),
        _ => None,
    };
    let short = |value| {
        let text = plain(value);
        summary(value).filter(|_| text.is_empty() || text.len() > SHORT).unwrap_or_else(|| quoted(&text))
    };
    let (say, other_say) = (short(one), short(other));
    if say != other_say && [one, other].iter().any(|value| summary(*value).is_some()) {
        return (say, other_say);
    }
    let (mut one, mut other) = (plain(one), plain(other));
    if one_line(&one) == one_line(&other) {
        let common = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
        let from = common.saturating_sub(IN_COMMON);
        // The difference may be in blanks, line ends or control characters.
        let end = |text: &str| text.chars().skip(from).collect::<String>().escape_debug().to_string();
        let end = |text: &str| if from > 0 { format!("...{}", end(text)) } else { end(text) };
        (one, other) = (end(&one), end(&other));
    }
    (quoted(&one), quoted(&other))
}

fn quoted(text: &str) -> String {
    if text.is_empty() { "nothing".to_owned() } else { format!("'{}'", whole_words(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn paths(one: &Value, other: &Value) -> Vec<String> {
        differences(one, other).into_iter().map(|one| one.path).collect()
    }

    #[test]
    fn values_differ_wherever_they_do() {
        let one = json!({"a": 1, "checks": [{"id": "A-01", "reason": "x"}, {"id": "A-02"}], "n": null});
        assert_eq!(paths(&one, &one), [""; 0]);
        let other = json!({"a": "1", "checks": [{"id": "A-01", "reason": "y"}, {"id": "A-03"}]});
        assert_eq!(paths(&one, &other), ["a", "checks.A-01.reason", "checks.1.id", "n"]);
        assert_eq!(paths(&json!([1, 2]), &json!([1, 2, 2])), [""]);
    }

    #[test]
    fn late_differences_and_blanks_are_shown() {
        let long = "x".repeat(500);
        let (one, other) = (json!(format!("{long} 1")), json!(format!("{long} 2")));
        let (one, other) = apart(Some(&one), Some(&other));
        assert!(
            one.ends_with("x 1'") && other.ends_with("x 2'") && one.starts_with("'...x"),
            "{one} {other}"
        );
        let (one, other) = apart(Some(&json!("a  b")), Some(&json!("a b\n")));
        assert_eq!((one.as_str(), other.as_str()), ("'a b'", "'a b\\n'"));
        assert_eq!(apart(None, Some(&json!(["a"]))), ("nothing".to_owned(), "'[\"a\"]'".to_owned()));
    }
}
