//! The logs of the CCM's replicas, as the API server reads them from the kubelets.

use super::{CheckCx, Replica, Subject};
use harness_clouds::Entry;
use harness_core::check::{CheckError, SubjectName, chain};
use harness_core::probe::{Matcher, Observation, Observed, ReadError, ReadSource, matcher};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, LogParams};

/// The log of a replica's Pod.
#[derive(Clone)]
pub struct Log<'a> {
    cx: &'a CheckCx,
    namespace: String,
    pod: String,
}

/// Whether a log could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRead(Result<(), String>);

impl Observed for LogRead {
    fn observed(&self) -> String {
        match &self.0 {
            Ok(()) => "its log".to_owned(),
            Err(why) => format!("no log: {why}"),
        }
    }
}

/// The log can be read.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(replica: &Replica<'_>) -> Verdict {
/// replica.log()?.becomes(can_be_read()).when("at the address of its Node").await
/// # }
/// ```
pub fn can_be_read() -> Matcher<LogRead> {
    matcher("can be read", |read: &LogRead| match &read.0 {
        Ok(()) => Observation::Matched(()),
        Err(_) => Observation::Pending(String::new()),
    })
    .expecting("an answer of its node's kubelet to GET /api/v1/namespaces/NAMESPACE/pods/POD/log")
}

impl<'a> Replica<'a> {
    /// Its Pod's log.
    ///
    /// # Errors
    /// [`CheckError::Error`] when it has no Pod.
    pub fn log(&self) -> Result<Log<'a>, CheckError> {
        let pods = self.cx.session.ccm().pods_of_replica(self.name());
        let pod = pods.into_iter().find(|pod| pod.metadata.deletion_timestamp.is_none());
        let pod = pod.ok_or_else(|| CheckError::Error(format!("replica {} has no Pod", self.name())))?;
        Ok(Log { cx: self.cx, namespace: pod.namespace().unwrap_or_default(), pod: pod.name_any() })
    }
}

impl Subject for Log<'_> {
    type Snapshot = LogRead;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        SubjectName { kind: "the log of Pod", name: format!("{}/{}", self.namespace, self.pod), uid: None }
    }

    async fn read(&self, _: ReadSource) -> Result<LogRead, ReadError> {
        let api: Api<Pod> = Api::namespaced(self.cx.pods_client(), &self.namespace);
        let last = LogParams { tail_lines: Some(1), ..LogParams::default() };
        Ok(LogRead(api.logs(&self.pod, &last).await.map(drop).map_err(|error| chain(&error))))
    }

    fn concerns(&self, _: &Entry) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_a_kubelet_does_not_hand_out_is_not_read() {
        assert_eq!(can_be_read().matches(&LogRead(Ok(()))), Observation::Matched(()));
        let refused = LogRead(Err("dial tcp 198.51.100.1:10250: no route to host".to_owned()));
        assert_eq!(can_be_read().matches(&refused), Observation::when(false));
        assert!(refused.observed().starts_with("no log: dial tcp"));
    }
}
