//! Events in the form in which controllers, scheduler and kubelets write them; repetitions increase a count.
//!
//! Events are written in the background: the caller does not wait, and an Event that cannot be written is dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde_json::json;

use crate::tasks::Tasks;

/// Normal or Warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Something expected happened.
    Normal,
    /// Something went wrong.
    Warning,
}

/// The source of an Event.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// E.g. `default-scheduler`, `kubelet`.
    pub component: &'a str,
    /// The node of a kubelet.
    pub host: Option<&'a str>,
}

/// How many repeated Events are remembered.
const REMEMBERED: usize = 4096;

/// Writes Events.
#[derive(Clone)]
pub struct Recorder {
    tasks: Tasks,
    known: Arc<Mutex<HashMap<String, (String, i32)>>>,
}

impl Recorder {
    /// A recorder that writes in these tasks.
    pub fn new(tasks: Tasks) -> Recorder {
        Recorder { tasks, known: Arc::default() }
    }

    /// Writes an Event about the object.
    pub fn tell<K: Resource<DynamicType = ()>>(
        &self,
        client: &Client,
        source: Source<'_>,
        object: &K,
        weight: Weight,
        reason: &str,
        message: String,
    ) {
        let meta = object.meta();
        let name = meta.name.clone().unwrap_or_default();
        // Events of cluster-scoped objects are in `default`, and refer to a Node by its name.
        let namespace = meta.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let uid = if meta.namespace.is_some() { meta.uid.clone() } else { meta.name.clone() };
        let same = format!("{} {uid:?} {reason} {message}", source.component);
        let now = Time(Timestamp::now());
        let (event_name, count) = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= REMEMBERED {
                known.clear();
            }
            let nanoseconds = now.0.as_nanosecond();
            let entry = known.entry(same).or_insert_with(|| (format!("{name}.{nanoseconds:x}"), 0));
            entry.1 = entry.1.saturating_add(1);
            entry.clone()
        };
        let event = Event {
            metadata: ObjectMeta {
                name: Some(event_name.clone()),
                namespace: Some(namespace.clone()),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some(K::api_version(&()).into_owned()),
                kind: Some(K::kind(&()).into_owned()),
                name: Some(name),
                namespace: meta.namespace.clone(),
                uid,
                resource_version: meta.resource_version.clone().filter(|_| meta.namespace.is_some()),
                ..ObjectReference::default()
            },
            reason: Some(reason.to_owned()),
            message: Some(message),
            type_: Some(if weight == Weight::Normal { "Normal" } else { "Warning" }.to_owned()),
            source: Some(EventSource {
                component: Some(source.component.to_owned()),
                host: source.host.map(str::to_owned),
            }),
            reporting_component: Some(source.component.to_owned()),
            reporting_instance: source.host.map(str::to_owned),
            first_timestamp: Some(now.clone()),
            last_timestamp: Some(now.clone()),
            count: Some(count),
            ..Event::default()
        };
        let api: Api<Event> = Api::namespaced(client.clone(), &namespace);
        self.tasks.spawn(async move {
            let written = if count == 1 {
                api.create(&PostParams::default(), &event).await
            } else {
                let again = Patch::Merge(json!({"count": count, "lastTimestamp": now}));
                match api.patch(&event_name, &PatchParams::default(), &again).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => {
                        api.create(&PostParams::default(), &event).await
                    }
                    other => other,
                }
            };
            if let Err(error) = written {
                tracing::debug!(event = event_name, %error, "an Event was not written");
            }
        });
    }
}
