//! The input of the lint's rows.

use crate::check::Checked;
use crate::finding::Edit;
use bootstrap_manifests::manifest::{Object, Place};
use bootstrap_manifests::workload::{Role, Workload};

/// What the rows depend on in addition to the manifests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claims {
    /// Whether the CCM runs on another cluster; the rows about its place in this one are then skipped.
    pub(crate) hosted: bool,
    /// Whether the user wants to boot without a pod network, or with one that waits for the CCM.
    pub(crate) without_network: bool,
    /// Whether there is no kube-proxy.
    pub(crate) without_proxy: bool,
    /// Whether the cloud is reached by a DNS name.
    pub(crate) cloud_by_name: bool,
    /// Whether the CCM programs routes.
    pub(crate) routes: bool,
}

/// A workload under lint, with what the rows need.
pub(super) struct Linted<'a> {
    pub(super) checked: &'a Checked,
    pub(super) claims: Claims,
    pub(super) index: usize,
    pub(super) workload: &'a Workload,
    pub(super) object: &'a Object,
}

impl Linted<'_> {
    pub(super) fn is_ccm(&self) -> bool {
        self.workload.role == Role::Ccm
    }

    /// The path from the object to the Pod's specification.
    pub(super) fn spec(&self) -> Vec<String> {
        bootstrap_manifests::workload::spec_path(self.workload.kind)
            .iter()
            .map(|key| (*key).to_owned())
            .collect()
    }

    /// Sets a key of the Pod's specification.
    pub(super) fn set(&self, key: &str, value: &str) -> Option<Edit> {
        let object = self.workload.object?;
        Some(Edit::Set { object, path: self.spec(), key: key.to_owned(), value: value.to_owned() })
    }

    /// Adds what is missing of nested maps of the Pod's specification, or of one of its containers.
    pub(super) fn insert(&self, container: Option<usize>, keys: &[&str], value: &str) -> Option<Edit> {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        let object = self.workload.object?;
        Some(Edit::Insert { object, path: self.spec(), container, keys, value: value.to_owned() })
    }

    /// The place of a key of the Pod's specification, or of the specification.
    pub(super) fn at(&self, key: &str) -> Place {
        let spec = self.object.node.at(bootstrap_manifests::workload::spec_path(self.workload.kind));
        self.object.place_of(spec.unwrap_or(&self.object.node), key)
    }

    pub(super) fn title(&self) -> String {
        self.workload.title()
    }
}
