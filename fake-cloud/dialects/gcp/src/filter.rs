//! The filters of lists: `field eq PATTERN`, with a pattern that has to match the whole value, and `field = value`.
//!
//! Several conditions, each in parentheses or joined by `AND`, have to be met all. A pattern can have `.`, `*` after a
//! character, and escaped characters; anything else is reported as unknown.

use serde_json::Value;

/// The conditions of a filter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Filter(Vec<Condition>);

#[derive(Clone, Debug, PartialEq)]
struct Condition {
    field: String,
    /// Whether the value has to match, or must not.
    wanted: bool,
    test: Test,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Pattern(Vec<Piece>),
    Value(String),
}

/// A character of a pattern (`None`: any), and whether it may occur any number of times.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece(Option<char>, bool);

impl Filter {
    /// Parses a filter; what it does not know is the error.
    pub(super) fn parse(text: &str) -> Result<Filter, String> {
        let unknown = || format!("the filter {text:.200}");
        let mut conditions = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (one, after) = match rest.strip_prefix('(') {
                Some(inside) => inside.split_once(')').ok_or_else(unknown)?,
                None => rest.split_once(" AND ").unwrap_or((rest, "")),
            };
            conditions.push(Condition::parse(one.trim()).ok_or_else(unknown)?);
            rest = after.trim();
            rest = rest.strip_prefix("AND ").unwrap_or(rest).trim();
        }
        Ok(Filter(conditions))
    }

    /// Whether a resource meets all conditions.
    pub(super) fn fits(&self, resource: &Value) -> bool {
        self.0.iter().all(|condition| {
            let value = condition.field.split('.').fold(resource, |value, key| &value[key]);
            let value = value.as_str().map_or_else(|| plain(value), str::to_owned);
            let fits = match &condition.test {
                Test::Pattern(pieces) => matches(pieces, &value.chars().collect::<Vec<_>>()),
                Test::Value(wanted) => *wanted == value,
            };
            fits == condition.wanted
        })
    }
}

fn plain(value: &Value) -> String {
    if value.is_null() { String::new() } else { value.to_string() }
}

impl Condition {
    fn parse(text: &str) -> Option<Condition> {
        let spaced = [(" eq ", true), (" ne ", false)].into_iter().find_map(|(operator, wanted)| {
            let (field, value) = text.split_once(operator)?;
            Some((field, wanted, value))
        });
        if let Some((field, wanted, value)) = spaced {
            let test = Test::Pattern(pattern(unquoted(value))?);
            return Some(Condition { field: field.trim().to_owned(), wanted, test });
        }
        let (field, wanted, value) = match text.split_once("!=") {
            Some((field, value)) => (field, false, value),
            None => text.split_once('=').map(|(field, value)| (field, true, value))?,
        };
        let test = Test::Value(unquoted(value).to_owned());
        Some(Condition { field: field.trim().to_owned(), wanted, test })
    }
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inside = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

fn pattern(text: &str) -> Option<Vec<Piece>> {
    let mut pieces: Vec<Piece> = Vec::new();
    let text = text.strip_prefix('^').unwrap_or(text);
    let mut characters = text.strip_suffix('$').unwrap_or(text).chars();
    while let Some(character) = characters.next() {
        match character {
            '*' => pieces.last_mut()?.1 = true,
            '.' => pieces.push(Piece(None, false)),
            '\\' => pieces.push(Piece(Some(characters.next()?), false)),
            '[' | ']' | '(' | ')' | '|' | '?' | '+' | '{' | '}' => return None,
            other => pieces.push(Piece(Some(other), false)),
        }
    }
    Some(pieces)
}

/// Whether the pieces match the whole text. The reachable places in the text are followed piece by piece, so the effort
/// is at most the product of both lengths.
fn matches(pieces: &[Piece], text: &[char]) -> bool {
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for Piece(wanted, repeated) in pieces {
        let fits = |at: usize| wanted.is_none_or(|wanted| text[at] == wanted);
        let mut next = if *repeated { reached.clone() } else { vec![false; text.len() + 1] };
        for at in 0..text.len() {
            let from = if *repeated { next[at] } else { reached[at] };
            if from && fits(at) {
                next[at + 1] = true;
            }
        }
        reached = next;
    }
    reached[text.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fits(filter: &str, resource: &Value) -> bool {
        Filter::parse(filter).expect("a filter").fits(resource)
    }

    #[test]
    fn patterns_match_the_whole_value() {
        let zone = json!({"name": "us-central1-a", "region": "https://host/regions/us-central1"});
        for good in [
            "region eq .*/regions/us-central1",
            "name eq us-.*",
            "name eq .*",
            "name ne b",
            "name = us-central1-a",
        ] {
            assert!(fits(good, &zone), "{good}");
        }
        for bad in [
            "region eq regions/us-central1",
            "name eq us-",
            "name ne us-central1-a",
            "name != \"us-central1-a\"",
        ] {
            assert!(!fits(bad, &zone), "{bad}");
        }
    }

    #[test]
    fn all_conditions_have_to_be_met() {
        let route = json!({"name": "kubernetes-1", "network": "n", "description": "k8s-node-route"});
        assert!(fits("(name eq kubernetes-.*) (network eq n) (description eq k8s-node-route)", &route));
        assert!(!fits("(name eq kubernetes-.*) (network eq m)", &route));
        assert!(!fits("name eq kubernetes-.* AND network eq m", &route));
    }

    #[test]
    fn what_is_not_known_is_reported() {
        for unknown in ["name eq a|b", "name", "(name eq a", "name eq [a-z]"] {
            assert!(Filter::parse(unknown).is_err(), "{unknown}");
        }
        assert_eq!(Filter::parse(" "), Ok(Filter::default()));
    }
}
