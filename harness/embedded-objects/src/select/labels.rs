//! Label selectors, with the API server's grammar and its messages.
//!
//! Source: `k8s.io/apimachinery/pkg/labels/selector.go`.

mod parse;
mod requirement;

pub use requirement::Requirement;

use serde_json::Value;

use crate::value::PathAccess as _;
use requirement::Operator;

/// A label selector: all requirements must be met. The empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    requirements: Vec<Requirement>,
    nothing: bool,
}

impl Labels {
    /// Parses a selector.
    ///
    /// # Errors
    /// The API server's message about the fault.
    pub fn parse(text: &str) -> Result<Labels, String> {
        let mut requirements = parse::requirements(text)?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Labels { requirements, nothing: false })
    }

    /// The selector of an object of type LabelSelector: a missing one matches nothing, an empty one everything.
    pub fn of_object(selector: &Value) -> Labels {
        if !selector.is_object() {
            return Labels { requirements: Vec::new(), nothing: true };
        }
        let mut requirements: Vec<Requirement> = selector
            .map("matchLabels")
            .iter()
            .map(|(key, value)| Requirement {
                key: key.clone(),
                operator: Operator::In,
                values: vec![value.as_str().unwrap_or_default().to_owned()],
            })
            .collect();
        for expression in selector.list("matchExpressions") {
            let operator = match expression.text("operator") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                _ => Operator::DoesNotExist,
            };
            let values = expression.list("values").iter();
            let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
            requirements.push(Requirement { key: expression.text("key").to_owned(), operator, values });
        }
        Labels { requirements, nothing: false }
    }

    /// The selector for all labels of a map, like that of a Service.
    pub fn of_map(labels: &Value) -> Labels {
        Labels::of_object(&serde_json::json!({ "matchLabels": labels }))
    }

    /// Whether the selector has no requirements.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty() && !self.nothing
    }

    /// Whether the selector matches these labels (an object with string values, or null).
    pub fn matches(&self, labels: &Value) -> bool {
        !self.nothing && self.requirements.iter().all(|requirement| requirement.matches(labels))
    }

    /// The selector as text, as a Scale's status shows it.
    pub fn text(&self) -> String {
        let one = |requirement: &Requirement| {
            let Requirement { key, operator, values } = requirement;
            let mut values = values.clone();
            values.sort();
            let listed = values.join(",");
            match operator {
                Operator::In if values.len() == 1 => format!("{key}={listed}"),
                Operator::In => format!("{key} in ({listed})"),
                Operator::NotIn if values.len() == 1 => format!("{key}!={listed}"),
                Operator::NotIn => format!("{key} notin ({listed})"),
                Operator::Exists => key.clone(),
                Operator::DoesNotExist => format!("!{key}"),
                Operator::GreaterThan => format!("{key}>{listed}"),
                Operator::LessThan => format!("{key}<{listed}"),
            }
        };
        let mut sorted = self.requirements.clone();
        sorted.sort_by(|a, b| a.key.cmp(&b.key));
        sorted.iter().map(one).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(selector: &str, labels: Value, expected: bool) {
        let parsed = Labels::parse(selector).expect("the selector is right");
        assert_eq!(parsed.matches(&labels), expected, "{selector} against {labels}");
    }

    #[test]
    fn selectors_match_as_the_server_does() {
        check("", json!(null), true);
        check("a=b", json!({"a": "b"}), true);
        check("a==b,c", json!({"a": "b"}), false);
        check("a!=b", json!({}), true);
        check("a in (b,c), !d", json!({"a": "c"}), true);
        check("a notin (b)", json!({"a": "b"}), false);
        check("a in ()", json!({"a": ""}), true);
        check("in in (in)", json!({"in": "in"}), true);
        check("n > 3", json!({"n": "4"}), true);
        check("n<3", json!({"n": "4"}), false);
        check("a=", json!({"a": ""}), true);
    }

    #[test]
    fn unreadable_selectors_have_the_words_of_the_real_server() {
        let wrong = |selector: &str| Labels::parse(selector).expect_err("the selector is wrong");
        assert_eq!(wrong("==bad"), "found '==', expected: !, identifier, or 'end of string'");
        assert_eq!(wrong("a,"), "found '', expected: identifier after ','");
        assert_eq!(
            wrong("a b"),
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"
        );
        assert_eq!(wrong("a in b"), "unable to parse requirement: found 'b' expected: '('");
        assert!(
            wrong("-=x").starts_with("unable to parse requirement: <nil>: Invalid value: \"-\": name part")
        );
    }

    #[test]
    fn object_selectors_match_and_are_shown() {
        let selector = json!({"matchLabels": {"app": "x"}, "matchExpressions": [
            {"key": "t", "operator": "In", "values": ["b", "a"]}, {"key": "gone", "operator": "DoesNotExist"}]});
        let parsed = Labels::of_object(&selector);
        assert!(parsed.matches(&json!({"app": "x", "t": "a"})));
        assert!(!parsed.matches(&json!({"app": "x", "t": "a", "gone": ""})));
        assert_eq!(parsed.text(), "app=x,!gone,t in (a,b)");
        assert!(!Labels::of_object(&Value::Null).matches(&json!({})));
    }
}
