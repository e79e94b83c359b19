//! What all dialects are made with: how a call is read, how a list is cut into pages, how a refusal comes into the
//! dialect's own words. A dialect then is its routes, its wire and its rules.

mod answer;
mod dialect;
mod error;
mod plan;
mod query;
mod request;
mod texts;

pub use answer::Answer;
pub use dialect::{Dialect, Identity};
pub use error::{Denial, Error};
pub use plan::{Body, Plan, Run, SharedVoice, Voice, about_the_asker, planned, planned_with};
pub use query::Query;
pub use request::{Asker, Call, Request};
pub use texts::{Text, TextMap, Texts};
