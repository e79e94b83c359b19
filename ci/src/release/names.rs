//! Names that several parts of a release share.

/// The program's name.
pub(super) const PROGRAM: &str = "ccm-conformance";
/// The folder of the manifests that run the image inside a cluster.
pub(super) const IN_CLUSTER: &str = "ci/in-cluster";
