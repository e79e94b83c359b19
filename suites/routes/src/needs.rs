//! What checks of routes need.

use harness_testkit::prelude::*;

/// It programs routes.
pub(super) const ROUTES: &[Capability] = &[Capability::Routes];
/// It does so, and initialises Nodes.
pub(super) const NODES_AND_ROUTES: &[Capability] = &[Capability::Routes, Capability::Instances];
/// It does so for both IP families.
pub(super) const ROUTES_OF_BOTH_FAMILIES: &[Capability] = &[Capability::Routes, Capability::DualStack];
