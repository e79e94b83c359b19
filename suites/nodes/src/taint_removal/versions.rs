//! The versions of a Node that were visible while it was initialised (contract NODE-INIT-04, -05, -10).

use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;

/// The first version of a Node, in the order of the watch, for which `fits` returns true.
pub(super) fn first_version(
    history: &[Version<core::Node>],
    fits: impl Fn(&core::Node) -> bool,
) -> Option<&Version<core::Node>> {
    history.iter().find(|version| version.change == Change::Applied && fits(&version.object))
}

/// Checks that the Node had everything that the cloud supplies in its first version without the taint.
pub(super) fn has_had_everything(machine: &Machine<'_>, node: &Node<'_>) -> Verdict {
    let history = node.history()?;
    let Some(version) = first_version(&history, |node| !has_taint(node, T_UNINIT)) else {
        return Err(CheckError::Error("the watch's history lost the version without the taint".to_owned()));
    };
    let claim = "has everything the cloud supplies in the first version without the taint";
    node.has_shown(&Some(version.object.clone()), initialised_as(claim, &machine.as_reported()))
}
