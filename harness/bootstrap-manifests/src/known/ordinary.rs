//! An ordinary Pod of a user, as it is created after the boot: in the namespace `default`, without requests, tolerations or
//! labels. What else such Pods have is not known.

use crate::manifest::{Object, Objects, Source};
use crate::workload::Workload;

/// No object of the manifests can have this name.
const NAME: &str = "(ordinary Pod)";

const MANIFEST: &str = "{apiVersion: v1, kind: Pod, metadata: {name: (ordinary Pod), namespace: default}, \
                        spec: {containers: [{name: ordinary, image: ordinary}]}}";

/// The object of such a Pod.
pub fn ordinary_pod() -> Option<Object> {
    Objects::read(vec![Source::new("an ordinary Pod", MANIFEST)]).all.pop()
}

/// Whether the workload is such a Pod.
pub fn is_ordinary(workload: &Workload) -> bool {
    workload.name == NAME
}
