//! Keeps a cache up to date: lists, watches from there, and lists again when the server no longer has that version.
//!
//! kube's own watcher reopens a watch silently and swallows bookmarks, so readers of the cache could not distinguish a
//! quiet watch from a broken one.

use super::cache::{Cache, Change};
use futures::TryStreamExt;
use harness_core::check::chain;
use harness_core::probe::{Pulse, pause};
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::{Resource, ResourceExt};
use std::fmt::Debug;
use std::time::Duration;
use tokio::time::Instant;

/// Pause before the first retry after a failure; doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Maximum pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);
/// Objects in one page of a list.
const PAGE: u32 = 500;
/// The server ends a watch after this time; below the 295 s that kube allows.
const WATCH_S: u32 = 290;

/// Why a watch ended.
enum End {
    /// The server ended it as expected: it continues from here.
    Over,
    /// The server no longer has this version.
    Forgotten,
    /// Any other reason, as text.
    Broken(String),
}

impl From<kube::Error> for End {
    fn from(error: kube::Error) -> End {
        match error {
            kube::Error::Api(status) if status.code == 410 => End::Forgotten,
            error => End::Broken(chain(&error)),
        }
    }
}

/// Fills `cache` with the objects that match the field selector `fields` until it is aborted; beats `pulse` on each
/// change.
pub(super) async fn follow<K>(api: Api<K>, fields: Option<&'static str>, cache: Cache<K>, pulse: Pulse)
where
    K: Resource + Clone + Debug + serde::de::DeserializeOwned + Send + Sync + 'static,
{
    let mut place: Option<String> = None;
    let mut failures = 0;
    loop {
        let began = Instant::now();
        let outcome = match &mut place {
            Some(version) => watch(&api, fields, version, &cache, &pulse).await,
            None => match list(&api, fields).await {
                Ok((objects, version)) => {
                    cache.listed(objects);
                    place = Some(version);
                    pulse.beat();
                    continue;
                }
                Err(error) => Err(End::Broken(chain(&error))),
            },
        };
        // A watch that worked for a while was not a failed attempt.
        failures = if began.elapsed() > LONGEST_PAUSE { 0 } else { failures + 1 };
        match outcome {
            Ok(()) | Err(End::Over) => {}
            Err(End::Forgotten) => place = None,
            Err(End::Broken(why)) => {
                tracing::debug!(why, "a watch broke and is being reopened");
                cache.broke(&why);
                pulse.beat();
            }
        }
        if failures > 0 {
            pause((FIRST_PAUSE * 2_u32.pow(failures.min(6) - 1)).min(LONGEST_PAUSE)).await;
        }
    }
}

/// All objects, and the version from which to watch.
async fn list<K>(api: &Api<K>, fields: Option<&str>) -> Result<(Vec<K>, String), kube::Error>
where
    K: Resource + Clone + Debug + serde::de::DeserializeOwned,
{
    let mut params = ListParams { limit: Some(PAGE), ..ListParams::default() };
    params.field_selector = fields.map(str::to_owned);
    let mut objects = Vec::new();
    loop {
        let page = api.list(&params).await?;
        objects.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok((objects, page.metadata.resource_version.unwrap_or_default())),
        }
    }
}

/// Applies the events after `version`, and updates that.
async fn watch<K>(
    api: &Api<K>,
    fields: Option<&str>,
    version: &mut String,
    cache: &Cache<K>,
    pulse: &Pulse,
) -> Result<(), End>
where
    K: Resource + Clone + Debug + serde::de::DeserializeOwned,
{
    let mut params = WatchParams::default().timeout(WATCH_S);
    params.field_selector = fields.map(str::to_owned);
    let mut events = std::pin::pin!(api.watch(&params, version).await?);
    cache.heard();
    while let Some(event) = events.try_next().await? {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                *version = object.resource_version().unwrap_or_default();
                cache.changed(Change::Applied, object);
                pulse.beat();
            }
            WatchEvent::Deleted(object) => {
                *version = object.resource_version().unwrap_or_default();
                cache.changed(Change::Deleted, object);
                pulse.beat();
            }
            WatchEvent::Bookmark(bookmark) => {
                *version = bookmark.metadata.resource_version;
                cache.heard();
            }
            WatchEvent::Error(status) if status.code == 410 => return Err(End::Forgotten),
            WatchEvent::Error(status) => {
                return Err(End::Broken(format!("the API server: {}", status.message)));
            }
        }
    }
    Err(End::Over)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream::{self, BoxStream, StreamExt};
    use harness_core::probe::{ReadError, poll};
    use http::{Request, Response};
    use http_body::Frame;
    use k8s_openapi::api::core::v1::Node;
    use kube::Client;
    use kube::client::Body;
    use serde_json::{Value, json};
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    type Bytes = BoxStream<'static, Result<Frame<bytes::Bytes>, std::io::Error>>;
    type StreamBody<S> = http_body_util::StreamBody<S>;

    /// The answers of an API server, one request after another; further requests get no answer.
    #[derive(Clone, Default)]
    struct Script {
        answers: Arc<Mutex<VecDeque<Answer>>>,
        asked: Arc<Mutex<Vec<String>>>,
    }

    enum Answer {
        /// A list of Nodes, with name and version, at a version.
        List(&'static [(&'static str, &'static str)], &'static str),
        /// Events of a watch that then ends.
        Watch(Vec<Value>),
        /// A watch that sends nothing and stays open.
        Silence,
        /// Only a status.
        Status(u16),
    }

    fn node(name: &str, version: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "resourceVersion": version}})
    }

    fn event(kind: &str, object: Value) -> Value {
        json!({"type": kind, "object": object})
    }

    fn gone() -> Value {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410,
                            "message": "too old", "reason": "Expired", "metadata": {}});
        event("ERROR", status)
    }

    impl Script {
        fn then(self, answer: Answer) -> Script {
            self.answers.lock().expect("fine").push_back(answer);
            self
        }

        fn answer(answer: Answer) -> Response<StreamBody<Bytes>> {
            let (status, text, open) = match answer {
                Answer::List(nodes, version) => {
                    let items: Vec<Value> = nodes.iter().map(|(name, version)| node(name, version)).collect();
                    let list = json!({"apiVersion": "v1", "kind": "NodeList", "items": items,
                                      "metadata": {"resourceVersion": version}});
                    (200, list.to_string(), false)
                }
                Answer::Watch(events) => {
                    (200, events.iter().map(|event| format!("{event}\n")).collect(), false)
                }
                Answer::Silence => (200, String::new(), true),
                Answer::Status(code) => {
                    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                                        "code": code, "message": "not now", "reason": "", "metadata": {}});
                    (code, status.to_string(), false)
                }
            };
            let text = stream::iter([Ok(Frame::data(text.into()))]);
            let body = if open { text.chain(stream::pending()).boxed() } else { text.boxed() };
            Response::builder().status(status).body(StreamBody::new(body)).expect("a response")
        }

        /// Follows Nodes as this server shows them.
        fn follow(&self) -> (Cache<Node>, tokio::task::JoinHandle<()>) {
            let script = self.clone();
            let service = tower::service_fn(move |request: Request<Body>| {
                let script = script.clone();
                async move {
                    let query = request.uri().query().unwrap_or_default().to_owned();
                    script.asked.lock().expect("fine").push(query);
                    let answer = script.answers.lock().expect("fine").pop_front();
                    match answer {
                        Some(answer) => Ok::<_, std::io::Error>(Script::answer(answer)),
                        None => std::future::pending().await,
                    }
                }
            });
            let cache = Cache::of("Nodes");
            let api: Api<Node> = Api::all(Client::new(service, "default"));
            let task = tokio::spawn(follow(api, None, cache.clone(), Pulse::default()));
            (cache, task)
        }

        /// The versions at which watches were opened, in order.
        fn watched_from(&self) -> Vec<String> {
            let asked = self.asked.lock().expect("fine");
            let version = |query: &String| {
                let part = query.split('&').find_map(|part| part.strip_prefix("resourceVersion="));
                query.contains("watch=true").then(|| part.unwrap_or_default().to_owned())
            };
            asked.iter().filter_map(version).collect()
        }
    }

    /// Waits until `look` is true for the cache.
    async fn until(cache: &Cache<Node>, look: impl Fn(&Cache<Node>) -> bool) {
        let seen = async |seen: &mut String| {
            *seen = format!("{cache:?}");
            Ok::<_, ReadError>(look(cache).then_some(()))
        };
        poll("the cache shows it", Duration::from_secs(60), Duration::from_millis(10), seen)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_continues_where_it_ended_and_a_broken_one_is_reported() {
        let moved = vec![
            event("MODIFIED", node("a", "2")),
            event(
                "BOOKMARK",
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"resourceVersion": "9"}}),
            ),
        ];
        let script = Script::default()
            .then(Answer::List(&[("a", "1")], "1"))
            .then(Answer::Watch(moved))
            .then(Answer::Status(503))
            .then(Answer::Status(503))
            .then(Answer::Silence);
        let (cache, task) = script.follow();
        until(&cache, |cache| cache.has_caught_up("", "a", "2")).await;
        until(&cache, |cache| cache.current().is_err()).await;
        let error = cache.current().map(|_| ()).expect_err("the watch is broken").text;
        assert!(error.starts_with("the watch on Nodes has been broken for 0."), "{error}");
        assert!(error.contains("not now"), "{error}");
        // Its contents can still be read where they need not be current.
        assert!(cache.find("", "a").is_some());
        until(&cache, |cache| cache.current().is_ok()).await;
        assert_eq!(script.watched_from(), ["1", "9", "9", "9"]);
        task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn objects_deleted_during_lost_history_are_gone() {
        let script = Script::default()
            .then(Answer::List(&[("a", "1"), ("b", "1")], "1"))
            .then(Answer::Watch(vec![event("DELETED", node("b", "2")), gone()]))
            .then(Answer::List(&[("c", "7")], "7"))
            .then(Answer::Silence);
        let (cache, task) = script.follow();
        until(&cache, |cache| cache.find("", "c").is_some()).await;
        assert!(cache.find("", "a").is_none() && cache.find("", "b").is_none());
        let changes: Vec<Change> = cache.history("", "b").iter().map(|version| version.change).collect();
        assert_eq!(changes, [Change::Applied, Change::Deleted]);
        until(&cache, |cache| cache.current().is_ok()).await;
        assert_eq!(script.watched_from(), ["1", "7"]);
        task.abort();
    }
}
