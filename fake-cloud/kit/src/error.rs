//! Errors of calls. The causes are the same for all dialects; each dialect describes them in its own words.

use fake_cloud_model::Refusal;
use serde_json::Value;
use std::borrow::Cow;

/// The reason why a call is rejected.
#[derive(Debug)]
pub enum Error {
    /// The model rejects it.
    Refused(Refusal),
    /// The body does not have the required form.
    Body(serde_json::Error),
    /// A parameter of the query is not a number in its range.
    Number {
        /// The parameter.
        parameter: String,
        /// The largest allowed number, if there is one; the smallest is 1.
        most: Option<u64>,
    },
    /// The server rejects it.
    Denied(Denial),
    /// The dialect rejects it.
    Said {
        /// HTTP status.
        status: u16,
        /// The vendor's error code; empty if it follows from the status.
        code: &'static str,
        /// The text.
        message: Cow<'static, str>,
        /// The vendor's other fields.
        details: Option<Value>,
    },
}

/// A rejection that does not come from the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// No credential, or an unknown one.
    Unauthenticated,
    /// The dialect rejects the credential in words that depend on the call.
    Credential {
        /// HTTP status.
        status: u16,
        /// The complete body, in JSON.
        body: String,
    },
    /// The body is too large.
    TooLarge {
        /// The largest number of bytes.
        limit_bytes: usize,
    },
    /// The dialect does not know the call, or a part of it, and is strict: the answer is a 501 that says so.
    Unknown {
        /// The unknown part.
        what: String,
    },
    /// A fault requires it.
    Fault {
        /// 400 to 599.
        status: u16,
        /// The value of `Retry-After`, in seconds.
        retry_after_s: Option<u64>,
    },
}

impl Error {
    /// A reason of the dialect, whose code follows from the status.
    pub fn new(status: u16, message: impl Into<Cow<'static, str>>) -> Error {
        Error::said(status, "", message)
    }

    /// A reason of the dialect with the vendor's error code.
    pub fn said(status: u16, code: &'static str, message: impl Into<Cow<'static, str>>) -> Error {
        Error::Said { status, code, message: message.into(), details: None }
    }

    /// The same with the vendor's other fields.
    pub fn detailed(mut self, more: Value) -> Error {
        if let Error::Said { details, .. } = &mut self {
            *details = Some(more);
        }
        self
    }

    /// The status that most APIs use.
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
            Error::Denied(Denial::Fault { status, .. } | Denial::Credential { status, .. })
            | Error::Said { status, .. } => *status,
        }
    }

    /// The error in plain words.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Error::Refused(refusal) => refusal.to_string().into(),
            Error::Body(error) => format!("the body is not as expected: {error}").into(),
            Error::Number { parameter, most: None } => format!("{parameter} must be a number from 1").into(),
            Error::Number { parameter, most: Some(most) } => {
                format!("{parameter} must be a number, from 1 to {most}").into()
            }
            Error::Denied(Denial::Unauthenticated) => "the token is missing or unknown".into(),
            Error::Denied(Denial::Credential { .. }) => "the credential is rejected".into(),
            Error::Denied(Denial::TooLarge { limit_bytes }) => {
                format!("the body is longer than {limit_bytes} bytes").into()
            }
            Error::Denied(Denial::Unknown { what }) => what.as_str().into(),
            Error::Denied(Denial::Fault { .. }) => "as the test has ordered".into(),
            Error::Said { message, .. } => message.as_ref().into(),
        }
    }

    /// After how many seconds the caller may retry, if a fault sets it.
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
