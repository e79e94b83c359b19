//! The capabilities and facilities that checks of boots need, and their sources.

use harness_testkit::prelude::*;

/// The least that the CCM has to be able to do.
pub(super) const INSTANCES: &[Capability] = &[Capability::Instances];
/// The only facility that the cloud has to offer.
pub(super) const MACHINES: &[Facility] = &[Facility::Machines];
/// The facilities needed to make a cluster cold and to boot it.
pub(super) const COLD: &[Facility] =
    &[Facility::CcmControl, Facility::KubeletControl, Facility::PodNetworkControl];
/// The facility needed to see the boot of a CCM that runs in the cluster that waits for it.
pub(super) const INSIDE: &[Facility] = &[Facility::BootsInside];
