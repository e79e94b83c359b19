//! The rows BOOT-LINT-01 to -22 of the contract, checked on rendered manifests.

mod linted;
mod placement;
mod program;
mod references;
mod report;
mod tolerations;

pub(crate) use linted::Claims;

use crate::check::Checked;
use crate::finding::Finding;
use bootstrap_manifests::workload::Role;
use linted::Linted;
use report::Report;

/// All findings, in the order of files and lines.
pub(crate) fn lint(checked: &Checked, claims: Claims) -> Vec<Finding> {
    let mut report = Report::default();
    references::read(checked, &mut report);
    references::refused_objects(checked, &mut report);
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
