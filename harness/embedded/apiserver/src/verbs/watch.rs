//! Watches: the changes of a kind as they happen, as seen through a selection.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use embedded_semantics::kinds::Kind;
use embedded_semantics::status::{self, Status};
use embedded_semantics::{typed, wire};
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::list::{namespace_of_list, wait_for};
use super::list_options::ListOptions;
use crate::api::{Api, Ending, Selection, collection_of, from_stored, is_stored_form};
use crate::http::accept::{Encoding, Form, Shape};
use crate::http::call::Call;
use crate::http::closed;
use crate::http::encode;
use crate::http::reply::{Content, Outcome, Reply, not_acceptable, reshape};
use crate::store::{Change, Cursor, Event, Next, Record, Snapshot};

/// Bookmarks come this often where they are welcome, as a real server's.
const BOOKMARKS: Duration = Duration::from_secs(60);

/// A watch that names no end ends after this, in seconds: a real server's half to one hour.
const TIMEOUT_SECONDS: i64 = 2700;

/// Objects that are there already, sent at a time.
const INITIAL: usize = 256;

/// Answers a watch.
pub(super) async fn watch(call: Call, kind: &'static Kind) -> Outcome {
    let form = call.form()?;
    if form.encoding == Encoding::Yaml {
        return Err(not_acceptable());
    }
    let form = Form { pretty: false, ..form };
    let options = ListOptions::parse(&call.query, true)?;
    let by_path = call.attributes().path.contains("/watch/") && !call.name().is_empty();
    let selection = Selection::parse(kind, &call.query, by_path.then(|| call.name()))?;
    let revision = options.revision().map_err(status::unexplained)?;
    let api = Arc::clone(&call.api);
    let ending = api.interruption.admits(&call.user).await;
    let collection = collection_of(kind);
    if options.initial_events == Some(true)
        && let Some(revision) = revision
    {
        wait_for(&api, revision).await?;
    }
    let initial = match options.initial_events {
        Some(initial) => initial,
        None => matches!(revision, None | Some(0)),
    };
    let snapshot = (initial || matches!(revision, None | Some(0))).then(|| api.store.snapshot(collection));
    let from = snapshot.as_ref().map_or(revision.unwrap_or_default(), Snapshot::revision);
    let cursor = match api.store.watch(collection, from) {
        Ok(cursor) => cursor,
        Err(expired) => {
            let status = status::expired(expired.to_string());
            let line = frame(form, "ERROR", &status.body())?;
            return Ok(reply(form, stream::iter([Ok::<_, Infallible>(Frame::data(line))])));
        }
    };
    let seconds = options.timeout_seconds.filter(|seconds| *seconds > 0).unwrap_or(TIMEOUT_SECONDS);
    let now = Instant::now();
    let watcher = Watcher {
        kind,
        form,
        selection,
        namespace: namespace_of_list(&call, kind).map(str::to_owned),
        cursor,
        initial: snapshot.filter(|_| initial).map(|snapshot| (snapshot, None)),
        marks_end: options.initial_events == Some(true) && options.bookmarks,
        bookmarks: options.bookmarks.then(|| now + BOOKMARKS),
        deadline: now + Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX).min(1 << 31)),
        closing: api.closing.clone(),
        ending,
        headed: false,
        api,
    };
    let frames = stream::unfold(watcher, |mut watcher| async move {
        let bytes = watcher.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(bytes)), watcher))
    });
    Ok(reply(form, frames))
}

fn reply(
    form: Form,
    frames: impl stream::Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + 'static,
) -> Reply {
    let media_type = match form.encoding {
        Encoding::Json => form.encoding.media_type().to_owned(),
        other => format!("{};stream=watch", other.media_type()),
    };
    let body = StreamBody::new(frames).boxed_unsync();
    Reply { code: 200, content: Content::Stream(media_type, body), warnings: Vec::new() }
}

/// One watch, between two frames of its stream.
struct Watcher {
    api: Arc<Api>,
    kind: &'static Kind,
    form: Form,
    selection: Selection,
    namespace: Option<String>,
    cursor: Cursor,
    /// The objects that were there, and the last of them that was sent.
    initial: Option<(Snapshot, Option<crate::store::Key>)>,
    /// Whether a bookmark says where the objects that were there end.
    marks_end: bool,
    bookmarks: Option<Instant>,
    deadline: Instant,
    closing: tokio::sync::watch::Receiver<bool>,
    ending: Option<Ending>,
    /// Whether a table's columns were sent.
    headed: bool,
}

impl Watcher {
    /// The next bytes of the stream; `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.next_initial() {
                return Some(bytes);
            }
            // Never in the past for long: a bookmark that is due is sent and moves on.
            let bookmark = self.bookmarks.unwrap_or(self.deadline).min(self.deadline);
            let mut closing = self.closing.clone();
            let next = tokio::select! {
                biased;
                () = closed(&mut closing) => return None,
                () = Ending::comes(&mut self.ending) => return None,
                () = tokio::time::sleep_until(self.deadline) => return None,
                next = self.cursor.next() => Some(next),
                () = tokio::time::sleep_until(bookmark) => None,
            };
            let Some(next) = next else {
                self.bookmarks = Some(self.bookmarks? + BOOKMARKS);
                let revision = self.api.store.progress(&mut self.cursor);
                return self.bookmark(revision, false);
            };
            match next {
                Next::Events(events) => {
                    let mut bytes = BytesMut::new();
                    for event in &events {
                        if let Some(line) = self.event(event) {
                            bytes.extend_from_slice(&line);
                        }
                    }
                    if !bytes.is_empty() {
                        return Some(bytes.freeze());
                    }
                }
                // A real server drops a watcher that does not keep up, without a word.
                Next::Lost(_) => return None,
            }
        }
    }

    fn next_initial(&mut self) -> Option<Bytes> {
        let (snapshot, after) = self.initial.as_ref()?;
        let chunk: Vec<Arc<Record>> =
            snapshot.iter(self.namespace.as_deref(), after.as_ref()).take(INITIAL).cloned().collect();
        let Some(last) = chunk.last() else {
            let revision = snapshot.revision();
            self.initial = None;
            return if self.marks_end { self.bookmark(revision, true) } else { None };
        };
        let last = last.key().clone();
        if let Some((_, after)) = &mut self.initial {
            *after = Some(last);
        }
        let mut bytes = BytesMut::new();
        for record in &chunk {
            if !self.selection.matches(record) {
                continue;
            }
            if let Some(line) = self.object("ADDED", record, record.revision()) {
                bytes.extend_from_slice(&line);
            }
        }
        if bytes.is_empty() { self.next_initial() } else { Some(bytes.freeze()) }
    }

    /// What a change is to this watcher: an object that enters or leaves its selection comes or goes.
    fn event(&mut self, event: &Event) -> Option<Bytes> {
        let record = &event.record;
        if self.namespace.as_deref().is_some_and(|namespace| namespace != record.key().namespace()) {
            return None;
        }
        let before = event.previous.as_ref().filter(|previous| self.selection.matches(previous));
        let after = event.change == Change::Put && self.selection.matches(record);
        match (before, after) {
            (None, true) if event.previous.is_none() => self.shared(event, "ADDED"),
            (None, true) => self.object("ADDED", record, record.revision()),
            (Some(_), true) => self.shared(event, "MODIFIED"),
            (Some(_), false) if event.change == Change::Removed => self.shared(event, "DELETED"),
            // It left the selection: told with the object as it last belonged to it, at the revision of the change.
            (Some(previous), false) => self.object("DELETED", previous, record.revision()),
            (None, false) => None,
        }
    }

    /// An event that is the same line for every watcher of the kind in JSON: written once.
    fn shared(&mut self, event: &Event, what: &'static str) -> Option<Bytes> {
        let plain = self.form.encoding == Encoding::Json && self.form.shape == Shape::Object;
        if !plain || !is_stored_form(self.kind) {
            return self.object(what, &event.record, event.record.revision());
        }
        let write = || line(what, &encode::json(self.kind, &event.record));
        Some(event.line(write).clone())
    }

    fn object(&mut self, what: &'static str, record: &Arc<Record>, revision: u64) -> Option<Bytes> {
        if self.form.encoding == Encoding::Json
            && self.form.shape == Shape::Object
            && revision == record.revision()
        {
            return Some(line(what, &encode::json(self.kind, record)));
        }
        let mut object = from_stored(self.kind, record.value());
        object["metadata"]["resourceVersion"] = Value::String(revision.to_string());
        self.value(what, object)
    }

    fn value(&mut self, what: &'static str, object: Value) -> Option<Bytes> {
        let mut shown = reshape(Some(self.kind), object, self.form);
        if self.form.shape == Shape::Table {
            // The columns are told once.
            if self.headed {
                shown["columnDefinitions"] = Value::Null;
            }
            self.headed = true;
        }
        match frame(self.form, what, &shown) {
            Ok(bytes) => Some(bytes),
            Err(status) => {
                tracing::warn!(kind = self.kind.kind, %status, "an object has no form for this watch");
                None
            }
        }
    }

    fn bookmark(&mut self, revision: u64, end_of_initial: bool) -> Option<Bytes> {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if end_of_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let bare =
            json!({"kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": metadata});
        let object = typed::decode_object(&bare).unwrap_or(bare);
        self.value("BOOKMARK", object)
    }
}

/// One event of a JSON stream.
fn line(what: &str, object: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(object.len() + 40);
    bytes.extend_from_slice(b"{\"type\":\"");
    bytes.extend_from_slice(what.as_bytes());
    bytes.extend_from_slice(b"\",\"object\":");
    bytes.extend_from_slice(object);
    bytes.extend_from_slice(b"}\n");
    bytes.freeze()
}

/// One event in the stream's encoding: a line of JSON, or protobuf behind its length.
fn frame(form: Form, what: &str, object: &Value) -> Result<Bytes, Status> {
    match form.encoding {
        Encoding::Protobuf => {
            wire::encode_watch_event(what, object).map(Bytes::from).map_err(|why| status::internal(&why))
        }
        _ => Ok(line(what, wire::json(object).trim_end().as_bytes())),
    }
}
