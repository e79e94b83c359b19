//! What checks of boots need, and where they come from.

use harness_testkit::prelude::*;

/// What the CCM must do at all.
pub(super) const INSTANCES: &[Capability] = &[Capability::Instances];
/// All that the cloud has to offer.
pub(super) const MACHINES: &[Facility] = &[Facility::Machines];
/// What it takes to make a cluster cold and to boot it.
pub(super) const COLD: &[Facility] =
    &[Facility::CcmControl, Facility::KubeletControl, Facility::PodNetworkControl];
/// What boots of a CCM show that has no place but the cluster that waits for it.
pub(super) const INSIDE: &[Facility] = &[Facility::BootsInside];
