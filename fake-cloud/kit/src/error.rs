//! Why a call is not answered as its caller hoped. What went wrong is the same for all dialects; each says it in words
//! of its own.

use fake_cloud_model::Refusal;
use serde_json::Value;
use std::borrow::Cow;

/// Why a call is refused.
#[derive(Debug)]
pub enum Error {
    /// The model refuses.
    Refused(Refusal),
    /// The body is not what was asked for.
    Body(serde_json::Error),
    /// A parameter of the query is no number in its range.
    Number {
        /// The parameter.
        parameter: String,
        /// The greatest number it may be, if there is one; the least is 1.
        most: Option<u64>,
    },
    /// The server refuses, or has to.
    Denied(Denial),
    /// The dialect has a reason of its own.
    Said {
        /// HTTP status.
        status: u16,
        /// The vendor's word for it; empty where it follows from the status.
        code: &'static str,
        /// The text.
        message: Cow<'static, str>,
        /// Whatever the vendor says besides.
        details: Option<Value>,
    },
}

/// A refusal that does not come from the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// No credential, or one we do not know.
    Unauthenticated,
    /// The body is too long.
    TooLarge {
        /// Greatest number of bytes.
        limit_bytes: usize,
    },
    /// The dialect does not know the call, or not all of it, and is strict: a 501 that says so.
    Unknown {
        /// What it does not know.
        what: String,
    },
    /// A fault says so.
    Fault {
        /// 400 to 599.
        status: u16,
        /// Value of `Retry-After`, seconds.
        retry_after_s: Option<u64>,
    },
}

impl Error {
    /// A reason of the dialect's own, whose word follows from the status.
    pub fn new(status: u16, message: impl Into<Cow<'static, str>>) -> Error {
        Error::said(status, "", message)
    }

    /// A reason of the dialect's own with the vendor's word for it.
    pub fn said(status: u16, code: &'static str, message: impl Into<Cow<'static, str>>) -> Error {
        Error::Said { status, code, message: message.into(), details: None }
    }

    /// The same with what the vendor says besides.
    pub fn detailed(mut self, more: Value) -> Error {
        if let Error::Said { details, .. } = &mut self {
            *details = Some(more);
        }
        self
    }

    /// The status that most APIs answer with.
    pub fn status(&self) -> u16 {
        match self {
            Error::Refused(Refusal::NotFound(_)) => 404,
            Error::Refused(Refusal::Conflict(_)) => 409,
            Error::Refused(Refusal::Invalid(_)) | Error::Number { .. } => 422,
            Error::Body(error) if error.is_data() => 422,
            Error::Body(_) => 400,
            Error::Denied(Denial::Unauthenticated) => 401,
            Error::Denied(Denial::TooLarge { .. }) => 413,
            Error::Denied(Denial::Unknown { .. }) => 501,
            Error::Denied(Denial::Fault { status, .. }) | Error::Said { status, .. } => *status,
        }
    }

    /// What went wrong in plain words.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Error::Refused(refusal) => refusal.to_string().into(),
            Error::Body(error) => format!("the body is not as expected: {error}").into(),
            Error::Number { parameter, most: None } => format!("{parameter} must be a number from 1").into(),
            Error::Number { parameter, most: Some(most) } => {
                format!("{parameter} must be a number, from 1 to {most}").into()
            }
            Error::Denied(Denial::Unauthenticated) => "the token is missing or unknown".into(),
            Error::Denied(Denial::TooLarge { limit_bytes }) => {
                format!("the body is longer than {limit_bytes} bytes").into()
            }
            Error::Denied(Denial::Unknown { what }) => what.as_str().into(),
            Error::Denied(Denial::Fault { .. }) => "as the test has ordered".into(),
            Error::Said { message, .. } => message.as_ref().into(),
        }
    }

    /// When the caller may come again, seconds, where a fault says so.
    pub fn retry_after_s(&self) -> Option<u64> {
        match self {
            Error::Denied(Denial::Fault { retry_after_s, .. }) => *retry_after_s,
            _ => None,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        Error::Refused(refusal)
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Error {
        Error::Body(error)
    }
}
