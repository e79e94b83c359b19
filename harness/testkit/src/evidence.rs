//! Evidence of a failed check, taken before anything is cleaned up.
//!
//! The only code that writes to the output folder during a check. For anything that cannot be read it writes the reason
//! instead.

mod causes;

use crate::CheckCx;
use causes::{Traces, causes};
use harness_core::check::chain;
use harness_core::files;
use harness_core::output;
use harness_session::ccm::{Form, LOG_BYTES, LogEnd, containers_of, last_lines, log_end};
use harness_session::{Session, show_entry};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of log lines for each replica.
const LOG_LINES: i64 = 2_000;
/// Maximum number of the cluster's Events that are searched.
const EVENTS: u32 = 5_000;

/// Writes everything known about a failed check to `folder`. `began` is when it began, RFC 3339, and `connects` is
/// whether it is about the CCM's ports. Returns the likely causes, one line each: a hint that does not affect the
/// verdict.
///
/// # Errors
/// A message, when the folder cannot be written; the verdict is still valid.
pub async fn take(
    cx: &CheckCx,
    verdict: &str,
    (began, connects): (&str, bool),
    folder: &Path,
) -> Result<Vec<String>, String> {
    let session = cx.session();
    let write = |name: &str, text: String| {
        output::file(&folder.join(name), text)
            .map_err(|error| format!("writing {name}: {}", files::why(&error)))
    };
    std::fs::create_dir_all(folder)
        .map_err(|error| format!("creating {}: {}", folder.display(), files::why(&error)))?;
    write("verdict.txt", format!("{}\n{verdict}\n", cx.id()))?;
    if !session.has_cluster() {
        // The verdict already contains all output of a plugin.
        write("cloud-journal.txt", journal(cx))?;
        return Ok(Vec::new());
    }
    write("objects.yaml", objects(cx))?;
    let mut lines = events(session, cx.prefix()).await;
    write("events.txt", lines.clone())?;
    let calls = journal(cx);
    write("cloud-journal.txt", calls.clone())?;
    write("cloud-inventory.json", inventory(cx).await)?;
    let pods = pods_of_ccm(cx);
    for pod in &pods {
        let log = log(session, pod).await;
        lines.push_str(&log);
        write(&format!("ccm-{}.log", pod.name_any()), log)?;
    }
    let webhooks = session.ccm().in_the_way().await;
    let traces = Traces { since: began, connects, lines: lines.lines().collect(), journal: &calls, webhooks };
    Ok(causes(&traces, &pods, &session.world().nodes.all()))
}

/// The Pods of the CCM: those of the run, and those that the check runs by itself.
fn pods_of_ccm(cx: &CheckCx) -> Vec<Arc<Pod>> {
    let of_run = [Form::Replicas, Form::AsShipped].into_iter().flat_map(|form| cx.session().ccm().pods(form));
    of_run.chain(cx.trial_pods()).collect()
}

/// Writes what is known when the CCM as a whole does not start.
pub async fn of_ccm(session: &Session) -> String {
    let mut text = String::new();
    for form in [Form::Replicas, Form::AsShipped] {
        for pod in session.ccm().pods(form) {
            text.push_str(&last_lines(session.ccm_site().client(), &pod, 20).await);
        }
    }
    text
}

/// Objects of this check, the real Nodes, the CCM's Pods and its Lease, without managed fields.
fn objects(cx: &CheckCx) -> String {
    let (session, world) = (cx.session(), cx.session().world());
    let mine = |name: &str| name.starts_with(cx.prefix());
    let real = session.real_nodes();
    let mut text = String::new();
    for node in world.nodes.all() {
        if mine(&node.name_any()) || real.contains(&node.name_any()) {
            add(&mut text, "Node", node.as_ref());
        }
    }
    for service in world.services.all() {
        if mine(&service.namespace().unwrap_or_default()) {
            add(&mut text, "Service", service.as_ref());
        }
    }
    for pod in world.pods.all() {
        if mine(&pod.namespace().unwrap_or_default()) {
            add(&mut text, "Pod", pod.as_ref());
        }
    }
    for pod in pods_of_ccm(cx) {
        add(&mut text, "Pod", pod.as_ref());
    }
    if let Some(lease) = session.ccm().find_lease() {
        add(&mut text, "Lease", lease.as_ref());
    }
    text
}

fn add<K: Serialize>(text: &mut String, kind: &str, object: &K) {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(meta) = value.get_mut("metadata").and_then(|m| m.as_object_mut()) {
        meta.remove("managedFields");
    }
    match harness_config::yaml::to_string(&value) {
        Ok(yaml) => text.push_str(&format!("---\n# {kind}\n{yaml}\n")),
        Err(error) => text.push_str(&format!("---\n# {kind} cannot be shown: {}\n", chain(&error))),
    }
}

/// Events about this check's objects; those of Nodes are in the namespace `default`.
async fn events(session: &Session, prefix: &str) -> String {
    let hosting = session.state().management.as_ref().map(|_| session.ccm_site().client());
    let (mut items, mut more) = (Vec::new(), false);
    for client in std::iter::once(session.client()).chain(hosting) {
        let api: Api<Event> = Api::all(client.clone());
        match api.list(&ListParams::default().limit(EVENTS)).await {
            Ok(list) => {
                items.extend(list.items);
                more |= list.metadata.continue_.is_some_and(|more| !more.is_empty());
            }
            Err(error) => return format!("events cannot be listed: {}\n", chain(&error)),
        }
    }
    let ccm: Vec<String> = [Form::Replicas, Form::AsShipped]
        .into_iter()
        .flat_map(|form| session.ccm().pods(form))
        .map(|pod| pod.name_any())
        .collect();
    let mut lines: Vec<String> = items
        .iter()
        .filter(|event| {
            let name = event.involved_object.name.as_deref().unwrap_or_default();
            let namespace = event.involved_object.namespace.as_deref().unwrap_or_default();
            name.starts_with(prefix) || namespace.starts_with(prefix) || ccm.iter().any(|pod| pod == name)
        })
        .map(|event| {
            let at = event.last_timestamp.as_ref().map(|t| t.0.to_string());
            let at = at.or_else(|| event.event_time.as_ref().map(|t| t.0.to_string())).unwrap_or_default();
            format!(
                "{at} {} {} {}/{} x{}: {}",
                event.type_.as_deref().unwrap_or_default(),
                event.reason.as_deref().unwrap_or_default(),
                event.involved_object.kind.as_deref().unwrap_or_default(),
                event.involved_object.name.as_deref().unwrap_or_default(),
                event.count.unwrap_or(1),
                event.message.as_deref().unwrap_or_default(),
            )
        })
        .collect();
    lines.sort();
    if more {
        lines.push(format!("the cluster has more than {EVENTS} events; only these were searched"));
    }
    if lines.is_empty() {
        "no events about this check's objects\n".to_owned()
    } else {
        lines.join("\n") + "\n"
    }
}

/// The cloud's journal since the check began. Other checks may have run at the same time, so lines about this check's own
/// objects are marked.
fn journal(cx: &CheckCx) -> String {
    let (gone, entries) = match cx.journal() {
        Ok(read) => read,
        Err(error) => return format!("{error}\n"),
    };
    let lines: Vec<String> = entries
        .iter()
        .map(|entry| {
            let own = entry.request.contains(cx.prefix())
                || entry.resource.as_deref().is_some_and(|r| r.contains(cx.prefix()));
            format!("{} {}", if own { "*" } else { " " }, show_entry(entry))
        })
        .collect();
    let gone = match gone {
        0 => String::new(),
        gone => format!("{gone} earlier calls are no longer in memory; events.jsonl contains them\n"),
    };
    gone + &lines.join("\n") + "\n"
}

async fn inventory(cx: &CheckCx) -> String {
    match cx.inventory().await {
        Ok(inventory) => serde_json::to_string_pretty(&inventory).unwrap_or_default(),
        Err(error) => format!("the inventory cannot be read: {error}"),
    }
}

async fn log(session: &Session, pod: &Pod) -> String {
    let api: Api<Pod> =
        Api::namespaced(session.ccm_site().client().clone(), &pod.namespace().unwrap_or_default());
    let mut text = String::new();
    let containers = containers_of(pod);
    for (container, previous) in containers.iter().flat_map(|name| [(*name, true), (*name, false)]) {
        let when = if previous { "before the last restart" } else { "now" };
        let whose = if containers.len() > 1 { format!("container {container} ") } else { String::new() };
        match log_end(&api, (&pod.name_any(), Some(container)), LOG_LINES, previous, true).await {
            Ok(log) => {
                text.push_str(&format!("===== {whose}{when}{} =====\n{}\n", note_on_cuts(&log), log.text));
            }
            // A container that was never restarted has no earlier log, which is normal.
            Err(_) if previous => {}
            Err(error) => text.push_str(&format!("===== {whose}{when}: no log: {} =====\n", chain(&error))),
        }
    }
    text
}

/// A note on what was cut from a log; empty if nothing was.
fn note_on_cuts(log: &LogEnd) -> String {
    let whole = i64::try_from(log.text.lines().count()).unwrap_or(i64::MAX) < log.lines;
    match (log.cut, whole) {
        (true, _) => format!(", its last line cut after {} KiB", LOG_BYTES >> 10),
        (false, true) => String::new(),
        (false, false) => format!(", its last {} lines; earlier lines were cut", log.lines),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_was_cut_says_so() {
        let of = |text: &str, lines, cut| note_on_cuts(&LogEnd { text: text.to_owned(), lines, cut });
        assert_eq!(of("a\nb\n", 3, false), "");
        assert_eq!(of("a\nb\nc\n", 3, false), ", its last 3 lines; earlier lines were cut");
        assert_eq!(of("a", 1, true), ", its last line cut after 1024 KiB");
    }
}
