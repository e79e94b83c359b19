//! The path of a value. It is only written out for a message, as names may be as long as an object.

use std::fmt::{Display, Formatter, Result};

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    /// Literal text.
    Text(&'a str),
    /// A member of an object.
    Member(&'a str),
    /// An item of a list.
    Item(usize),
    /// A named part of a schema.
    Named(&'static str, &'a str),
}

/// The path of a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path<'a> {
    before: Option<&'a Path<'a>>,
    step: Step<'a>,
}

impl<'a> Path<'a> {
    pub(super) fn root(text: &'a str) -> Self {
        Self { before: None, step: Step::Text(text) }
    }

    pub(super) fn member(&'a self, name: &'a str) -> Path<'a> {
        Self { before: Some(self), step: Step::Member(name) }
    }

    pub(super) fn item(&'a self, at: usize) -> Path<'a> {
        Self { before: Some(self), step: Step::Item(at) }
    }

    pub(super) fn named(&'a self, part: &'static str, name: &'a str) -> Path<'a> {
        Self { before: Some(self), step: Step::Named(part, name) }
    }

    pub(super) fn is_root(&self) -> bool {
        self.before.is_none()
    }

    /// Whether it is empty: a member of the root is shown by its name alone.
    fn is_empty(&self) -> bool {
        self.before.is_none() && matches!(self.step, Step::Text(""))
    }
}

impl Display for Path<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        if let Some(before) = self.before {
            before.fmt(out)?;
        }
        match self.step {
            Step::Text(text) => out.write_str(text),
            Step::Member(name) if self.before.is_some_and(Path::is_empty) => out.write_str(name),
            Step::Member(name) => write!(out, ".{name}"),
            Step::Item(at) => write!(out, "[{at}]"),
            Step::Named(part, name) => write!(out, ".{part}[{name}]"),
        }
    }
}
