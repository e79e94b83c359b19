//! Matchers for Leases that checks of several areas use.

use harness_testkit::prelude::*;
use k8s_openapi::api::coordination::v1::Lease;
use std::sync::Arc;

/// Matches a Lease with the same holder and the same duration as `before`.
pub fn unchanged(before: &Lease) -> Matcher<Option<Arc<Lease>>> {
    let (holder, transitions) = (holder_of(before), transitions_of(before));
    let expected = format!("{} with {transitions} transitions", holder.as_deref().unwrap_or("none"));
    matcher("stays with its holder", move |lease: &Option<Arc<Lease>>| match lease {
        Some(lease) => Observation::when(holder_of(lease) == holder && transitions_of(lease) == transitions),
        None => Observation::Pending("no Lease".to_owned()),
    })
    .expecting(expected)
}
