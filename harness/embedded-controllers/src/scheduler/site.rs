//! The Nodes as the scheduler sees them.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};

use embedded_runtime::selectors::Labels;
use embedded_runtime::settings::Resources;

/// A Node and what is on it.
pub(crate) struct Site {
    pub(crate) node: Arc<Node>,
    /// Pods on it that have not ended.
    pub(crate) pods: Vec<Arc<Pod>>,
}

/// Every Node, as the scheduler sees them at one moment.
pub(crate) struct Sites {
    pub(crate) all: Vec<Site>,
    /// The labels of each namespace.
    pub(crate) namespaces: HashMap<String, Labels>,
    pub(crate) resources: Resources,
}
