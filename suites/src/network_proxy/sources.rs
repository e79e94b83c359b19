//! Where the requirements come from.

pub(super) const SELECTOR: &str = "k8s.io/apiserver pkg/server/egressselector";
pub(super) const API: &str = "k8s.io/apiserver pkg/apis/apiserver/v1beta1";
pub(super) const METRICS: &str = "k8s.io/apiserver pkg/server/egressselector/metrics";
pub(super) const KEP: &str = "KEP-1281";
pub(super) const MODEL: &str = "the boot model";
