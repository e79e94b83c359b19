//! A Node that the cluster's own controllers have already processed.

use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1::Node;
use std::sync::Arc;

/// Matches a Node that the cluster's node lifecycle controller has seen as Ready.
pub(crate) fn looked_at() -> Matcher<Option<Arc<Node>>> {
    holds("is seen to be Ready", |node: &Option<Arc<Node>>| {
        node.as_ref().is_some_and(|node| !has_taint(node, T_NOT_READY))
    })
}

pub(crate) fn no_controller_looked(_: CheckError) -> CheckError {
    CheckError::Error(format!("no controller removes {T_NOT_READY} from a Ready Node"))
}
