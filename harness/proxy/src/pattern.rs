//! Patterns for paths and texts in rules.

use percent_encoding::percent_decode_str;

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Not `METHOD /path`.
    #[error("'{0}' is not of the form 'METHOD /path', e.g. 'GET /v1/servers/{{id}}'")]
    Call(String),
    /// A segment of the path has braces without a valid name.
    #[error("invalid path segment '{0}': expected a word, '{{NAME}}' or a final '**'")]
    Segment(String),
    /// Two segments of the path have the same name.
    #[error("the path contains '{{{0}}}' twice")]
    Twice(String),
    /// A value comes from a segment that the path does not have.
    #[error("the path has no '{{{0}}}'")]
    NoSuchPart(String),
    /// Not exactly one source.
    #[error("name one of path, query, form, filter, header, json and xpath")]
    Source,
    /// Not a JSON pointer.
    #[error(
        "'{0}' is not a JSON pointer: it must begin with '/', e.g. '/server/name'; '*' matches every item of a list"
    )]
    Pointer(String),
    /// An unsupported XPath.
    #[error("unsupported XPath '{0}': expected '/a/b', '//b' or '//b/@c', with names without prefixes")]
    Xpath(String),
    /// A pattern without `{}`.
    #[error("'{0}' must contain '{{}}' once, in place of the value")]
    Pattern(String),
    /// A body where there cannot be one.
    #[error("a {0} request has no body")]
    NoBody(String),
    /// A value that only answers have.
    #[error("an answer has only a body: use json or xpath")]
    Answer,
}

/// A segment of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Word(String),
    Value(String),
    Rest,
}

/// The paths that a rule matches: `/v1/servers/{id}`, or `/v1/**`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathPattern(Vec<Segment>);

impl PathPattern {
    pub(crate) fn parse(text: &str) -> Result<PathPattern, RuleError> {
        let parts = text.strip_prefix('/').ok_or_else(|| RuleError::Call(text.to_owned()))?;
        let count = parts.split('/').count();
        let mut segments: Vec<Segment> = Vec::new();
        for (at, part) in parts.split('/').enumerate() {
            let name = part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            segments.push(match name {
                Some(name) if !name.is_empty() && !name.contains(['{', '}']) => {
                    let value = Segment::Value(name.to_owned());
                    if segments.contains(&value) {
                        return Err(RuleError::Twice(name.to_owned()));
                    }
                    value
                }
                None if part == "**" && at + 1 == count => Segment::Rest,
                None if !part.contains(['{', '}', '*', '?', '#']) => Segment::Word(part.to_owned()),
                _ => return Err(RuleError::Segment(part.to_owned())),
            });
        }
        Ok(PathPattern(segments))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|segment| matches!(segment, Segment::Value(known) if known == name))
    }

    pub(crate) fn fits(&self, path: &str) -> bool {
        self.walk(path, |_, _| {})
    }

    /// The decoded segment with that name.
    pub(crate) fn value(&self, path: &str, name: &str) -> Option<String> {
        let mut found = None;
        let fits = self.walk(path, |known, part| {
            if known == name {
                found = Some(decode(part));
            }
        });
        found.filter(|value| fits && !value.is_empty())
    }

    fn walk<'a>(&'a self, path: &'a str, mut value: impl FnMut(&'a str, &'a str)) -> bool {
        let mut parts = path.strip_prefix('/').unwrap_or(path).split('/');
        for segment in &self.0 {
            match (segment, parts.next()) {
                (Segment::Rest, _) => return true,
                (Segment::Value(name), Some(part)) => value(name, part),
                (Segment::Word(word), Some(part)) if word == part || *word == decode(part) => {}
                _ => return false,
            }
        }
        parts.next().is_none()
    }

    /// Whether the other pattern matches all paths that this one matches.
    pub(crate) fn is_within(&self, other: &PathPattern) -> bool {
        for (at, wide) in other.0.iter().enumerate() {
            match (self.0.get(at), wide) {
                (_, Segment::Rest) => return true,
                (Some(Segment::Word(own)), Segment::Word(word)) if own == word => {}
                (Some(Segment::Word(_) | Segment::Value(_)), Segment::Value(_)) => {}
                _ => return false,
            }
        }
        self.0.len() == other.0.len()
    }

    /// Whether both patterns match some path.
    pub(crate) fn meets(&self, other: &PathPattern) -> bool {
        let mut at = 0;
        loop {
            match (self.0.get(at), other.0.get(at)) {
                (Some(Segment::Rest), _) | (_, Some(Segment::Rest)) | (None, None) => return true,
                (Some(Segment::Word(a)), Some(Segment::Word(b))) if a != b => return false,
                (Some(_), Some(_)) => at += 1,
                _ => return false,
            }
        }
    }
}

fn decode(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}

/// A value within a text: `kubernetes-uid={}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextPattern {
    before: String,
    after: String,
}

impl TextPattern {
    pub(crate) fn parse(text: &str) -> Result<TextPattern, RuleError> {
        match text.split_once("{}") {
            Some((before, after)) if !after.contains("{}") => {
                Ok(TextPattern { before: before.to_owned(), after: after.to_owned() })
            }
            _ => Err(RuleError::Pattern(text.to_owned())),
        }
    }

    pub(crate) fn value<'a>(&self, text: &'a str) -> Option<&'a str> {
        text.strip_prefix(&*self.before)?.strip_suffix(&*self.after).filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> PathPattern {
        PathPattern::parse(text).expect("a path")
    }

    #[test]
    fn a_path_has_words_values_and_a_rest() {
        let one = path("/v1/servers/{id}");
        assert_eq!(one.value("/v1/servers/a%20b", "id").as_deref(), Some("a b"));
        for other in ["/v1/servers", "/v1/servers/1/actions", "/v2/servers/1"] {
            assert!(!one.fits(other), "{other}");
        }
        assert!(path("/v1/**").fits("/v1/a/b") && path("/").fits("/") && !path("/").fits("/x"));
        assert_eq!(one.value("/v1/servers/", "id"), None);
    }

    #[test]
    fn paths_are_compared_by_what_they_mean() {
        let (one, named, rest) = (path("/v1/a/{id}"), path("/v1/a/b"), path("/v1/**"));
        assert!(named.is_within(&one) && one.is_within(&rest) && !one.is_within(&named));
        assert!(one.meets(&named) && !named.meets(&path("/v1/a/c")) && !one.meets(&path("/v1/a")));
        let (left, right) = (path("/{a}/x"), path("/y/{b}"));
        assert!(left.meets(&right) && !left.is_within(&right) && !right.is_within(&left));
    }

    #[test]
    fn invalid_paths_are_refused() {
        assert_eq!(PathPattern::parse("v1"), Err(RuleError::Call("v1".to_owned())));
        assert_eq!(PathPattern::parse("/{id}/{id}"), Err(RuleError::Twice("id".to_owned())));
        for bad in ["/v1/{id", "/v1/{}", "/**/x", "/a?b", "/a*"] {
            assert!(matches!(PathPattern::parse(bad), Err(RuleError::Segment(_))), "{bad}");
        }
    }

    #[test]
    fn a_value_stands_in_a_text() {
        let pattern = TextPattern::parse("uid={}").expect("a pattern");
        assert_eq!(
            (pattern.value("uid=7"), pattern.value("uid="), pattern.value("x")),
            (Some("7"), None, None)
        );
        assert!(TextPattern::parse("{}{}").is_err() && TextPattern::parse("x").is_err());
    }
}
