//! Reads a JSON text once and compares it with the schema.

use std::collections::BTreeSet;

use crate::schema::{self, Shape, TypeId};

/// How deep a text may be nested; serde_json allows no more.
const DEPTH: usize = 127;
/// How many problems are reported.
const MOST: usize = 100;

/// The unknown and duplicate fields of a text.
pub(super) fn scan(ty: Option<TypeId>, text: &str) -> Result<Vec<String>, String> {
    let mut scanner = Scanner { text, at: 0, found: Vec::new() };
    let shape = ty.map(Shape::Struct);
    scanner.value(shape.as_ref(), &mut String::new(), 0)?;
    scanner.space();
    match scanner.peek() {
        None => Ok(scanner.found),
        Some(_) => Err(scanner.unexpected("after top-level value")),
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    found: Vec<String>,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn unexpected(&self, context: &str) -> String {
        match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            None => "unexpected end of JSON input".to_owned(),
            Some('\'') => format!("invalid character '\\'' {context}"),
            Some('"') => format!("invalid character '\"' {context}"),
            Some(ch) => {
                let quoted = crate::cause::quoted(&ch.to_string());
                format!("invalid character '{}' {context}", quoted.trim_matches('"'))
            }
        }
    }

    fn tell(&mut self, what: &str, path: &str) {
        let finding = format!("{what} field {path:?}");
        if self.found.len() < MOST && !self.found.contains(&finding) {
            self.found.push(finding);
        }
    }

    fn value(&mut self, shape: Option<&Shape>, path: &mut String, depth: usize) -> Result<(), String> {
        if depth > DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.object(shape, path, depth),
            Some(b'[') => self.array(shape, path, depth),
            Some(b'"') => self.string().map(drop),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn object(&mut self, shape: Option<&Shape>, path: &mut String, depth: usize) -> Result<(), String> {
        let shape = shape.map(Shape::bare);
        let ty = match shape {
            Some(Shape::Struct(ty)) => Some(schema::get(*ty)),
            _ => None,
        };
        let map = match shape {
            Some(Shape::Map(inner)) => Some(inner.as_ref()),
            _ => None,
        };
        let mut seen: BTreeSet<String> = BTreeSet::new();
        self.at += 1;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("looking for beginning of object key string"));
            }
            let name = self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("after object key"));
            }
            self.at += 1;
            let length = path.len();
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&name);
            let typed = ty.is_some_and(|ty| ty.typed) && (name == "apiVersion" || name == "kind");
            let field = ty.and_then(|ty| ty.field(&name));
            if ty.is_some_and(|ty| !ty.open) && field.is_none() && !typed {
                self.tell("unknown", path);
            } else if (ty.is_some() || map.is_some() || shape.is_none()) && !seen.insert(name) {
                self.tell("duplicate", path);
            }
            let inner = field.map(|field| &field.shape).or(map);
            self.value(inner, path, depth + 1)?;
            path.truncate(length);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.unexpected("after object key:value pair")),
            }
        }
    }

    fn array(&mut self, shape: Option<&Shape>, path: &mut String, depth: usize) -> Result<(), String> {
        let inner = match shape.map(Shape::bare) {
            Some(Shape::List(inner)) => Some(inner.as_ref()),
            _ => None,
        };
        self.at += 1;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        let length = path.len();
        for index in 0.. {
            path.push_str(&format!("[{index}]"));
            self.value(inner, path, depth + 1)?;
            path.truncate(length);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.unexpected("after array element")),
            }
        }
        Ok(())
    }

    fn string(&mut self) -> Result<String, String> {
        let begin = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err("unexpected end of JSON input".to_owned()),
                Some(b'"') => {
                    self.at += 1;
                    let raw = self.text.get(begin..self.at).unwrap_or_default();
                    return Ok(serde_json::from_str(raw).unwrap_or_else(|_| raw.trim_matches('"').to_owned()));
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => self.at += 1,
                        Some(b'u') => {
                            self.at += 1;
                            for _ in 0..4 {
                                if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                                    return Err(self.unexpected("in \\u hexadecimal character escape"));
                                }
                                self.at += 1;
                            }
                        }
                        _ => return Err(self.unexpected("in string escape code")),
                    }
                }
                Some(byte) if byte < 0x20 => return Err(self.unexpected("in string literal")),
                Some(_) => self.at += 1,
            }
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                return Err(self.unexpected(&format!("in literal {word} (expecting '{}')", expected as char)));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn digits(&mut self, context: &str) -> Result<(), String> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.unexpected(context));
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }
}
