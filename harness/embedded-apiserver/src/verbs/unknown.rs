//! Paths that are not served.

use embedded_objects::status;

use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};

/// The answer for a path that is not served: a Status below an existing group, plain text elsewhere.
pub(super) fn unknown(call: &Call) -> Outcome {
    let mut parts = call.attributes().path.trim_matches('/').split('/');
    let served = match (parts.next(), parts.next(), parts.next()) {
        (Some("api"), Some(_), _) => true,
        (Some("apis"), Some(group), version) => embedded_objects::kinds::ALL
            .iter()
            .chain(call.api.definitions.served().iter().copied())
            .any(|kind| kind.group == group && version.is_none_or(|version| kind.version == version)),
        _ => false,
    };
    if served {
        return Err(status::no_such_resource());
    }
    Ok(Reply::text("404 page not found\n").with_code(404))
}
