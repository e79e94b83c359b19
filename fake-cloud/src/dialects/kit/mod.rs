//! What all dialects are made with: how a call is read, how a list is cut into pages, how a refusal comes into the
//! dialect's own words. A dialect then is its routes, its wire and its rules.

mod answer;
mod dialect;
mod error;
mod plan;
mod query;
mod request;
mod texts;

pub(crate) use answer::Answer;
pub(crate) use dialect::{Dialect, Identity};
pub(crate) use error::{Denial, Error};
pub(crate) use plan::{Body, Plan, Run, Voice, about_the_asker, planned, planned_with};
pub(crate) use query::Query;
pub(crate) use request::{Asker, Call, Request};
pub(crate) use texts::{Text, TextMap, Texts};
