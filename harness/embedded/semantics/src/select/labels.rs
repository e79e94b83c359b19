//! Label selectors, with the API server's grammar and its words for what does not fit it.
//!
//! Source: `k8s.io/apimachinery/pkg/labels/selector.go`.

use serde_json::Value;

use crate::cause::Cause;
use crate::rules::names;
use crate::value::Look as _;

/// What one requirement asks of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

impl Requirement {
    fn matches(&self, labels: &Value) -> bool {
        let value = labels.get(&self.key).and_then(Value::as_str);
        match self.operator {
            Operator::In => value.is_some_and(|value| self.values.iter().any(|wanted| wanted == value)),
            Operator::NotIn => {
                value.is_none_or(|value| !self.values.iter().any(|unwanted| unwanted == value))
            }
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let limit = self.values.first().and_then(|limit| limit.parse::<i64>().ok());
                let value = value.and_then(|value| value.parse::<i64>().ok());
                match (value, limit) {
                    (Some(value), Some(limit)) if self.operator == Operator::GreaterThan => value > limit,
                    (Some(value), Some(limit)) => value < limit,
                    _ => false,
                }
            }
        }
    }
}

/// A label selector: all requirements hold. The empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    requirements: Vec<Requirement>,
    nothing: bool,
}

impl Labels {
    /// Reads a selector.
    ///
    /// # Errors
    /// The API server's text about what it cannot read.
    pub fn parse(text: &str) -> Result<Labels, String> {
        let mut parser = Parser { tokens: scan(text), at: 0 };
        let mut requirements = parser.requirements()?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Labels { requirements, nothing: false })
    }

    /// The selector of an object of type LabelSelector; absent it matches nothing, empty everything.
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

    /// The selector that asks for all labels of a map, as a Service's does.
    pub fn of_map(labels: &Value) -> Labels {
        Labels::of_object(&serde_json::json!({ "matchLabels": labels }))
    }

    /// Whether it asks for anything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty() && !self.nothing
    }

    /// Whether an object with these labels (an object of texts, or null) is meant.
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

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    Comma,
    Bang,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    In,
    NotIn,
    Identifier,
    Unknown,
    End,
}

const SPECIAL: &str = "=!(),><";

fn special(literal: &str) -> Option<Token> {
    Some(match literal {
        ")" => Token::Close,
        "," => Token::Comma,
        "!" => Token::Bang,
        "==" => Token::DoubleEquals,
        "=" => Token::Equals,
        ">" => Token::Greater,
        "<" => Token::Less,
        "!=" => Token::NotEquals,
        "(" => Token::Open,
        _ => return None,
    })
}

fn scan(text: &str) -> Vec<(Token, String)> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let Some(first) = rest.chars().next().filter(|first| *first != '\0') else { break };
        if SPECIAL.contains(first) {
            let two = rest.get(..2).and_then(|literal| special(literal).map(|token| (token, literal)));
            let (token, literal) = match two {
                Some(found) => found,
                None => (special(&rest[..1]).unwrap_or(Token::Unknown), &rest[..1]),
            };
            tokens.push((token, literal.to_owned()));
            rest = &rest[literal.len()..];
        } else {
            let end =
                rest.find(|ch: char| SPECIAL.contains(ch) || " \t\r\n\0".contains(ch)).unwrap_or(rest.len());
            let word = &rest[..end];
            let token = match word {
                "in" => Token::In,
                "notin" => Token::NotIn,
                _ => Token::Identifier,
            };
            tokens.push((token, word.to_owned()));
            rest = &rest[end..];
        }
    }
    tokens.push((Token::End, String::new()));
    tokens
}

struct Parser {
    tokens: Vec<(Token, String)>,
    at: usize,
}

impl Parser {
    /// The token at hand; `in` and `notin` are words unless an operator is due.
    fn peek(&self, operator_due: bool) -> (Token, String) {
        let (token, literal) = self.tokens.get(self.at).cloned().unwrap_or((Token::End, String::new()));
        match token {
            Token::In | Token::NotIn if !operator_due => (Token::Identifier, literal),
            other => (other, literal),
        }
    }

    fn next(&mut self, operator_due: bool) -> (Token, String) {
        let token = self.peek(operator_due);
        self.at += 1;
        token
    }

    fn requirements(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            let (token, literal) = self.peek(false);
            match token {
                Token::Identifier | Token::Bang => {
                    let requirement =
                        self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
                    requirements.push(requirement);
                    match self.next(false) {
                        (Token::End, _) => return Ok(requirements),
                        (Token::Comma, _) => {
                            let (token, literal) = self.peek(false);
                            if !matches!(token, Token::Identifier | Token::Bang) {
                                return Err(format!("found '{literal}', expected: identifier after ','"));
                            }
                        }
                        (_, literal) => {
                            return Err(format!("found '{literal}', expected: ',' or 'end of string'"));
                        }
                    }
                }
                Token::End => return Ok(requirements),
                _ => return Err(format!("found '{literal}', expected: !, identifier, or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (mut token, mut literal) = self.next(false);
        let negated = token == Token::Bang;
        if negated {
            (token, literal) = self.next(false);
        }
        if token != Token::Identifier {
            return Err(format!("found '{literal}', expected: identifier"));
        }
        let key = literal;
        let faults = names::qualified(&key);
        if !faults.is_empty() {
            return Err(Cause::invalid("<nil>", key, faults.join("; ")).text());
        }
        let ends = matches!(self.peek(false).0, Token::End | Token::Comma);
        if negated || ends {
            let operator = if negated { Operator::DoesNotExist } else { Operator::Exists };
            return Ok(Requirement { key, operator, values: Vec::new() });
        }
        let (token, literal) = self.next(true);
        let (operator, many) = match token {
            Token::In => (Operator::In, true),
            Token::NotIn => (Operator::NotIn, true),
            Token::Equals | Token::DoubleEquals => (Operator::In, false),
            Token::NotEquals => (Operator::NotIn, false),
            Token::Greater => (Operator::GreaterThan, false),
            Token::Less => (Operator::LessThan, false),
            _ => return Err(format!("found '{literal}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        let mut values = if many { self.values()? } else { vec![self.value()?] };
        values.sort();
        values.dedup();
        check_values(&key, &operator, &values)?;
        Ok(Requirement { key, operator, values })
    }

    fn value(&mut self) -> Result<String, String> {
        if matches!(self.peek(false).0, Token::End | Token::Comma) {
            return Ok(String::new());
        }
        match self.next(false) {
            (Token::Identifier, literal) => Ok(literal),
            (_, literal) => Err(format!("found '{literal}', expected: identifier")),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        let (token, literal) = self.next(false);
        if token != Token::Open {
            return Err(format!("found '{literal}' expected: '('"));
        }
        let (token, literal) = self.peek(false);
        match token {
            Token::Identifier | Token::Comma => {
                let values = self.identifiers()?;
                match self.next(false).0 {
                    Token::Close => Ok(values),
                    _ => Err(format!("found '{literal}', expected: ')'")),
                }
            }
            Token::Close => {
                self.at += 1;
                Ok(vec![String::new()])
            }
            _ => Err(format!("found '{literal}', expected: ',', ')' or identifier")),
        }
    }

    fn identifiers(&mut self) -> Result<Vec<String>, String> {
        let mut values = Vec::new();
        loop {
            match self.next(false) {
                (Token::Identifier, literal) => {
                    values.push(literal);
                    match self.peek(false) {
                        (Token::Comma, _) => {}
                        (Token::Close, _) => return Ok(values),
                        (_, literal) => return Err(format!("found '{literal}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    match self.peek(false).0 {
                        Token::Close => {
                            values.push(String::new());
                            return Ok(values);
                        }
                        Token::Comma => values.push(String::new()),
                        _ => {}
                    }
                }
                (_, literal) => return Err(format!("found '{literal}', expected: ',', or identifier")),
            }
        }
    }
}

fn check_values(key: &str, operator: &Operator, values: &[String]) -> Result<(), String> {
    if matches!(operator, Operator::GreaterThan | Operator::LessThan)
        && values.iter().any(|value| value.parse::<i64>().is_err())
    {
        let value = values.first().cloned().unwrap_or_default();
        let why = "for 'Gt', 'Lt' operators, the value must be an integer";
        return Err(Cause::invalid("values[0]", value, why).text());
    }
    for value in values {
        let faults = names::label_value(value);
        if !faults.is_empty() {
            let field = format!("values[0][{key}]");
            return Err(Cause::invalid(field, value.as_str(), faults.join("; ")).text());
        }
    }
    Ok(())
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
    fn what_cannot_be_read_is_told_in_the_servers_words() {
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
