//! What a strategic merge needs: the schema of members, directives, and the errors.

use serde_json::Value;

use crate::schema::{self, Field, Shape, TypeId};
use crate::status::{self, Status};

pub(super) const DIRECTIVE: &str = "$patch";

/// The fault of a patch: its form, or that it does not fit the object.
#[derive(Debug)]
pub(super) enum Wrong {
    Form(String),
    Fit,
    Other(String),
    TooLarge(String),
}

impl Wrong {
    pub(super) fn status(self) -> Status {
        match self {
            Wrong::Form(why) => status::bad_request(why),
            Wrong::Fit => status::unprocessable(),
            Wrong::Other(why) => status::unexplained(why),
            Wrong::TooLarge(why) => status::entity_too_large(&why),
        }
    }
}

/// The schema of one member.
pub(super) struct Known<'a> {
    field: Option<&'a Field>,
}

impl Known<'_> {
    pub(super) fn find(ty: Option<TypeId>, name: &str) -> Known<'static> {
        Known { field: ty.and_then(|ty| schema::get(ty).field(name)) }
    }

    /// The struct type of the member, or of the members if it is a map.
    pub(super) fn inner(&self) -> Option<TypeId> {
        let shape = self.field.map(|field| field.shape.bare());
        match shape {
            Some(Shape::Struct(ty)) => Some(*ty),
            Some(Shape::List(inner) | Shape::Map(inner)) => match inner.bare() {
                Shape::Struct(ty) => Some(*ty),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn has(&self, strategy: &str) -> bool {
        self.field.is_some_and(|field| field.patch_strategies.contains(&strategy))
    }

    pub(super) fn merge_key(&self) -> Option<&'static str> {
        self.field.and_then(|field| field.merge_key)
    }
}

/// A new value without directives and nulls; `None` if it is itself a directive.
pub(super) fn without_directives(value: &Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(DIRECTIVE) => None,
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, member)| !member.is_null());
            let kept = kept.filter_map(|(name, member)| Some((name.clone(), without_directives(member)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(items.iter().filter_map(without_directives).collect()),
        other => Some(other.clone()),
    }
}

/// A value as Go prints it with `%v`.
pub(crate) fn go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let listed: Vec<String> =
                members.iter().map(|(name, value)| format!("{name}:{}", go(value))).collect();
            format!("map[{}]", listed.join(" "))
        }
        other => other.to_string(),
    }
}
