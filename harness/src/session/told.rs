//! What the stream of events is told of the watched objects.

use super::record::{Facts, object_changed};
use crate::ccm::{REPLICA_LABEL, log_end, shown_lines};
use crate::events::{Events, Payload};
use crate::k8s::ChangeObserver;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt};

/// How many lines are told.
const LINES: i64 = 5;

/// Each change of an object.
pub(super) fn tells<K: Facts>(events: &Events) -> ChangeObserver<K> {
    let events = events.clone();
    Box::new(move |old, new| {
        if let Some(change) = object_changed(old, new) {
            events.emit(change);
        }
    })
}

/// Each change of a Pod, and what a replica wrote last before its process ended though no check made it: read at once, as its
/// kubelet keeps the log of one process before the present one, and later ends take its place.
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
                let last_lines = last_lines(&client, &pod).await;
                events.emit(Payload::ReplicaEnded { replica, last_lines });
            });
        }
    })
}

/// Those of the process that has ended: it is the present one as long as no other was started.
async fn last_lines(client: &Client, pod: &Pod) -> Vec<String> {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let is_down = statuses.filter_map(|status| status.state.as_ref()).any(|state| state.terminated.is_some());
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    for previous in [!is_down, is_down] {
        match log_end(&api, &pod.name_any(), LINES, previous, false).await {
            Ok(log) if !log.text.trim().is_empty() => return shown_lines(log.text),
            Ok(_) | Err(_) => {}
        }
    }
    Vec::new()
}
