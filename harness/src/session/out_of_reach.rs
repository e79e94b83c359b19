//! Files of its Pod that the CCM's program cannot find, for which it is not to blame.

use super::Session;
use crate::ccm::{Form, untold_mounts};
use crate::check::Facility;
use crate::config::BackendKind;
use std::collections::BTreeSet;

impl Session {
    /// What its Pods mount at paths that are built into its program, where the machine gives programs no mount namespaces; `None`
    /// where they have some, or nothing is out of reach.
    pub(super) fn out_of_reach(&self, form: Form) -> Option<String> {
        let embedded = self.state.cluster.backend == BackendKind::Embedded;
        // Programs know the cloud by a name where they have files of their own.
        if !embedded || self.cluster.facilities().contains(&Facility::CloudName) {
            return None;
        }
        let paths: BTreeSet<String> = self.ccm.pods(form).iter().flat_map(|pod| untold_mounts(pod)).collect();
        let paths: Vec<String> = paths.into_iter().collect();
        (!paths.is_empty()).then(|| {
            format!(
                "this machine gives programs no mount namespaces, so the CCM does not find what its Pod mounts at {}; \
                 'ccm-conformance doctor' says how to mend that",
                paths.join(", ")
            )
        })
    }
}
