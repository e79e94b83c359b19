//! Events about the watched objects.

use super::record::{Facts, object_changed};
use crate::ccm::{REPLICA_LABEL, SEARCHED, ends_of, log_end, shown_end, statuses_of};
use crate::k8s::ChangeObserver;
use harness_core::events::{Events, Payload};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt};

/// Number of log lines in an event.
const LINES: usize = 5;

/// Records each change of an object.
pub(super) fn tells<K: Facts>(events: &Events) -> ChangeObserver<K> {
    let events = events.clone();
    Box::new(move |old, new| {
        if let Some(change) = object_changed(old, new) {
            events.emit(change);
        }
    })
}

/// Records each change of a Pod, and the last log lines of a replica whose process exited without a check causing it. The
/// log is read at once, as the kubelet keeps only one previous log, and later exits replace it.
pub(super) fn tells_of_ends(events: &Events, client: &Client) -> ChangeObserver<Pod> {
    let (events, client, tells) = (events.clone(), client.clone(), tells(events));
    Box::new(move |old, new| {
        let replica = new.and_then(|pod| pod.labels().get(REPLICA_LABEL).cloned());
        let before = events.unmade_ends();
        tells(old, new);
        if let (Some(pod), Some(replica)) = (new, replica)
            && events.unmade_ends() > before
        {
            let (events, client, pod) = (events.clone(), client.clone(), pod.clone());
            tokio::spawn(async move {
                let ended = ends_of(&pod).into_iter().next();
                let container = ended.map(|end| end.container).unwrap_or_default();
                let last_lines = last_lines_of(&client, &pod, &container, LINES).await;
                events.emit(Payload::ReplicaEnded { replica, last_lines });
            });
        }
    })
}

/// The last lines of the container's process that exited, and the reason of a crash before them. It is the current process
/// unless another was started.
pub(super) async fn last_lines_of(client: &Client, pod: &Pod, container: &str, lines: usize) -> Vec<String> {
    let its_own = statuses_of(pod).find(|status| status.name == container);
    let runs = its_own.and_then(|status| status.state.as_ref()).is_some_and(|state| state.running.is_some());
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    // It may have been restarted since the Pod was read.
    for previous in [runs, !runs] {
        match log_end(&api, (&pod.name_any(), Some(container)), SEARCHED, previous, false).await {
            Ok(log) if !log.text.trim().is_empty() => return shown_end(log.text, lines),
            Ok(_) | Err(_) => {}
        }
    }
    Vec::new()
}
