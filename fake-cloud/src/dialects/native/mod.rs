//! The fake cloud's own dialect; see `README.md` beside this file.

mod errors;
mod routes;
mod wire;

use super::{Answer, Dialect, Meaning, Request};
use crate::model::{Millis, Model};

/// The dialect `native`.
#[derive(Clone, Copy, Debug)]
pub struct Native;

impl Dialect for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn token<'a>(&self, request: &'a Request) -> Option<&'a str> {
        request.headers.get(http::header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
    }

    fn meaning(&self, request: &Request) -> Meaning {
        routes::meaning(request)
    }

    fn answer(&self, request: &Request, meaning: &Meaning, model: &mut Model, now: Millis) -> Answer {
        routes::answer(request, meaning, model, now).unwrap_or_else(|failure| failure.answer())
    }

    fn error(&self, status: u16, message: &str) -> Answer {
        errors::answer(status, message)
    }
}
