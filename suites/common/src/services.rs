//! Matchers for Services that checks of several areas use.

use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use std::sync::Arc;

/// Matches a Service without finalizer and address, and without any call about it.
pub fn left_alone() -> Matcher<(Option<Arc<core::Service>>, Vec<Entry>)> {
    let clean = both(lacks_finalizer(), no_calls());
    let empty = publishes_nothing();
    matcher("is not touched", move |seen: &(Option<Arc<core::Service>>, Vec<Entry>)| {
        match empty.matches(&seen.0) {
            Observation::Matched(()) => clean.matches(seen),
            other => other,
        }
    })
    .expecting("no finalizer, no ingress, no call about it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_finalizer_or_an_address_is_a_touch() {
        let of = |value| serde_json::from_value::<core::Service>(value).ok().map(Arc::new);
        assert_eq!(left_alone().matches(&(of(json!({})), Vec::new())), Observation::Matched(()));
        let ingress = json!({"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}}});
        for touched in [of(json!({"metadata": {"finalizers": [F_LB]}})), of(ingress), None] {
            assert_eq!(left_alone().matches(&(touched, Vec::new())), Observation::when(false));
        }
    }
}
