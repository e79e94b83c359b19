//! The capabilities that checks of routes need.

use harness_testkit::prelude::*;

/// The CCM programs routes.
pub(super) const ROUTES: &[Capability] = &[Capability::Routes];
/// The CCM programs routes and initialises Nodes.
pub(super) const NODES_AND_ROUTES: &[Capability] = &[Capability::Routes, Capability::Instances];
/// The CCM programs routes of both IP families.
pub(super) const ROUTES_OF_BOTH_FAMILIES: &[Capability] = &[Capability::Routes, Capability::DualStack];
