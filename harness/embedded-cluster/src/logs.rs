//! Gives the API server access to the kubelets' logs.

use embedded_apiserver::{Container, Followed, LogLine, Logs};
use embedded_controllers::Pods;
use futures::stream::{self, StreamExt as _};

/// The kubelets' logs, for the API server.
pub(crate) struct KubeletLogs(pub(crate) Pods);

impl Logs for KubeletLogs {
    fn lines(&self, container: Container<'_>, previous: bool) -> Option<Vec<LogLine>> {
        let Container { namespace, pod, name } = container;
        let lines = if previous {
            self.0.previous_log(namespace, pod, name)
        } else {
            self.0.log(namespace, pod, name)
        };
        lines.map(lines_of)
    }

    fn follow(&self, container: Container<'_>) -> Option<Followed> {
        let Container { namespace, pod, name } = container;
        let mut reader = self.0.follow(namespace, pod, name)?;
        let kept = lines_of(reader.try_next());
        let coming = stream::unfold(reader, |mut reader| async move {
            let lines = lines_of(reader.next().await);
            (!lines.is_empty()).then_some((lines, reader))
        });
        Some(Followed { kept, coming: coming.boxed() })
    }
}

fn lines_of(lines: Vec<embedded_controllers::LogLine>) -> Vec<LogLine> {
    lines.into_iter().map(|line| LogLine { at: line.at, text: line.text }).collect()
}
