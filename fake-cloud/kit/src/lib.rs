//! The common parts of all dialects: reading calls, cutting lists into pages, and converting errors to the
//! dialect's own words. A dialect then consists of its routes, its wire format and its rules.

mod answer;
mod dialect;
mod error;
mod info;
mod plan;
mod query;
mod request;
mod texts;

pub use answer::Answer;
pub use dialect::{Dialect, Identity};
pub use error::{Denial, Error};
pub use info::DialectInfo;
pub use plan::{Body, Plan, Run, SharedVoice, Voice, about_the_asker, planned, planned_with};
pub use query::Query;
pub use request::{Asker, Call, Request};
pub use texts::{Text, TextMap, Texts};
