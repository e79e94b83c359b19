//! The rows BOOT-LINT-01 to -22 of the contract, on rendered manifests.

mod placement;
mod program;
mod references;
mod report;
mod tolerations;

pub(crate) use program::mended_image;
pub use report::{Finding, Level};

use crate::check::Checked;
use crate::fix::Edit;
use crate::manifest::{Object, Place};
use crate::workload::{Role, Workload};
use report::Report;

/// What the rows depend on besides the manifests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claims {
    /// Whether the CCM runs on another cluster; the rows about its place in this one are skipped.
    pub(crate) hosted: bool,
    /// Whether booting without a pod network, or with one that waits for the CCM, was asked for.
    pub(crate) without_network: bool,
    /// Whether there is no kube-proxy.
    pub(crate) without_proxy: bool,
    /// Whether the cloud is reached by a DNS name.
    pub(crate) cloud_by_name: bool,
    /// Whether the CCM programs routes.
    pub(crate) routes: bool,
}

/// A workload under the lint, with what the rows look at.
struct Linted<'a> {
    checked: &'a Checked,
    claims: Claims,
    index: usize,
    workload: &'a Workload,
    object: &'a Object,
}

/// Every finding, in the order of files and lines.
pub(crate) fn lint(checked: &Checked, claims: Claims) -> Vec<Finding> {
    let mut report = Report::default();
    references::read(checked, &mut report);
    for (index, workload) in checked.set.workloads.iter().enumerate() {
        let Some(object) = workload.object.map(|object| &checked.objects.all[object]) else { continue };
        let linted = Linted { checked, claims, index, workload, object };
        references::refused(&linted, &mut report);
        references::missing(&linted, &mut report);
        if !matches!(workload.role, Role::Ccm | Role::NodeManager) {
            continue;
        }
        tolerations::lint(&linted, &mut report);
        placement::lint(&linted, &mut report);
        program::lint(&linted, &mut report);
        references::rights(&linted, &mut report);
    }
    placement::ports_between(checked, claims, &mut report);
    references::webhooks(checked, &mut report);
    report.finish()
}

impl Linted<'_> {
    fn is_ccm(&self) -> bool {
        self.workload.role == Role::Ccm
    }

    /// The path from the object to the Pod's specification.
    fn spec(&self) -> Vec<String> {
        crate::workload::spec_path(self.workload.kind).iter().map(|key| (*key).to_owned()).collect()
    }

    /// Sets a key of the Pod's specification.
    fn set(&self, key: &str, value: &str) -> Option<Edit> {
        let object = self.workload.object?;
        Some(Edit::Set { object, path: self.spec(), key: key.to_owned(), value: value.to_owned() })
    }

    /// Where a key of the Pod's specification is, or the specification.
    fn at(&self, key: &str) -> Place {
        let spec = self.object.node.at(crate::workload::spec_path(self.workload.kind));
        self.object.place_of(spec.unwrap_or(&self.object.node), key)
    }

    fn title(&self) -> String {
        self.workload.title()
    }
}
