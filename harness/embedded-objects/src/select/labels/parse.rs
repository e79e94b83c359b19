//! The grammar of label selectors.

use super::requirement::{Operator, Requirement};
use crate::cause::Cause;
use crate::rules::names;

/// The requirements of a selector.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    Parser { tokens: scan(text), at: 0 }.requirements()
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
    /// The next token; `in` and `notin` are words unless an operator is expected.
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
