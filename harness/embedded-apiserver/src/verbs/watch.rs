//! Watches: the changes of a kind as they happen, filtered by a selection.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use embedded_objects::{typed, wire};
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::list::{namespace_of_list, wait_for};
use super::list_options::ListOptions;
use crate::http::accept::{Encoding, Form, Shape};
use crate::http::call::Call;
use crate::http::closed;
use crate::http::encode;
use crate::http::reply::{Content, Outcome, Reply, not_acceptable, reshape};
use embedded_state::store::{Change, Cursor, Event, Next, Record, Walk};
use embedded_state::{Api, Ending, Selection, Share, View, collection_of, from_stored, is_stored_form};

/// How often bookmarks are sent to clients that want them, as by a real server.
const BOOKMARKS: Duration = Duration::from_secs(60);

/// After how many seconds a watch without a timeout ends: a real server takes half an hour to one hour.
const TIMEOUT_SECONDS: i64 = 2700;

/// How many existing objects are taken at a time.
const INITIAL: usize = 256;

/// About how many bytes are written at a time. Nothing more is written until the client has taken them. So an
/// unread watch uses this much memory, plus the buffers of a connection.
const FRAME: usize = 16 << 10;

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
    let namespace = namespace_of_list(&call, kind);
    let view = api.lag.view_of(&call.user);
    // What a client that wants the latest state gets is never behind.
    let behind = view
        .as_ref()
        .and_then(View::until)
        .filter(|_| revision == Some(0) || (revision.is_none() && options.initial_events != Some(true)));
    let walk = (initial || matches!(revision, None | Some(0))).then(|| match behind {
        Some(revision) => api.store.walk_at(collection, namespace, revision),
        None => api.store.walk(collection, namespace),
    });
    let from = walk.as_ref().map_or(revision.unwrap_or_default(), Walk::revision);
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
        namespace: namespace.map(str::to_owned),
        cursor,
        initial: walk.filter(|_| initial),
        pending: VecDeque::new(),
        written: VecDeque::new(),
        share: call.share,
        marks_end: options.initial_events == Some(true) && options.bookmarks,
        bookmarks: options.bookmarks.then(|| now + BOOKMARKS),
        deadline: now + Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX).min(1 << 31)),
        closing: api.closing.clone(),
        ending,
        view,
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

/// Something that was taken and is not written yet.
enum Pending {
    /// An object that existed when the watch began.
    Initial(Arc<Record>),
    /// A change.
    Event(Arc<Event>),
}

/// One event as it is sent.
enum Line {
    /// Written for this watch alone.
    Own(Bytes),
    /// In parts that all watches share in memory.
    Shared(Vec<Bytes>),
}

/// One watch, between two frames of its stream.
struct Watcher {
    api: Arc<Api>,
    kind: &'static Kind,
    form: Form,
    selection: Selection,
    namespace: Option<String>,
    cursor: Cursor,
    /// The existing objects that were not taken yet.
    initial: Option<Walk>,
    /// What was taken and is not written yet: little, and without copies.
    pending: VecDeque<Pending>,
    /// What was written and is not sent yet: at most one event.
    written: VecDeque<Bytes>,
    /// The user's share, to which the memory of written data is counted.
    share: Option<Share>,
    /// Whether a bookmark marks the end of the existing objects.
    marks_end: bool,
    bookmarks: Option<Instant>,
    deadline: Instant,
    closing: tokio::sync::watch::Receiver<bool>,
    ending: Option<Ending>,
    /// Up to which revision its user sees changes.
    view: Option<View>,
    /// Whether the columns of a table were sent.
    headed: bool,
}

impl Watcher {
    /// The next bytes of the stream; `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.write()? {
                return Some(bytes);
            }
            if self.initial.is_some() {
                self.take_initial()?;
                continue;
            }
            // It is never long in the past: a due bookmark is sent and its time moves on.
            let bookmark = self.bookmarks.unwrap_or(self.deadline).min(self.deadline);
            let mut closing = self.closing.clone();
            let held = self.is_held();
            let next = tokio::select! {
                biased;
                () = closed(&mut closing) => return None,
                () = Ending::comes(&mut self.ending) => return None,
                () = tokio::time::sleep_until(self.deadline) => return None,
                () = view_changes(&mut self.view) => continue,
                next = self.cursor.next(), if !held => Some(next),
                () = tokio::time::sleep_until(bookmark), if !held => None,
            };
            let Some(next) = next else {
                self.bookmarks = Some(self.bookmarks? + BOOKMARKS);
                let revision = self.api.store.progress(&mut self.cursor);
                return self.bookmark(revision, false);
            };
            match next {
                Next::Events(events) => self.pending.extend(events.into_iter().map(Pending::Event)),
                // A real server drops a watcher that does not keep up, without a message.
                Next::Lost(_) => return None,
            }
        }
    }

    /// Whether the next change is one that its user must not see yet.
    fn is_held(&self) -> bool {
        let until = self.view.as_ref().and_then(View::until);
        let next = match self.pending.front() {
            Some(Pending::Event(event)) => event.record.revision(),
            _ => return false,
        };
        until.is_some_and(|until| next > until)
    }

    /// Takes some more of the existing objects; `None` if they are no longer available, because the client
    /// paused for too long.
    fn take_initial(&mut self) -> Option<()> {
        let walk = self.initial.as_mut()?;
        let records = walk.next(INITIAL).ok()?;
        if records.is_empty() {
            let revision = walk.revision();
            self.initial = None;
            if self.marks_end {
                let mark = self.bookmark(revision, true);
                self.written.extend(mark);
            }
        }
        self.pending.extend(records.into_iter().map(Pending::Initial));
        Some(())
    }

    /// Writes some of what was taken: about [`FRAME`] bytes, or a part of one large object. `Some(None)`:
    /// there is nothing to write; `None`: the user has too much data in progress.
    fn write(&mut self) -> Option<Option<Bytes>> {
        if let Some(rest) = self.written.pop_front() {
            return Some(Some(rest));
        }
        let (mut bytes, mut large) = (BytesMut::new(), 0);
        while bytes.len() < FRAME
            && !self.is_held()
            && let Some(next) = self.pending.pop_front()
        {
            let line = match &next {
                Pending::Initial(record) if self.selection.matches(record) => {
                    self.object("ADDED", record, record.revision())
                }
                Pending::Initial(_) => None,
                Pending::Event(event) => self.event(event),
            };
            match line {
                None => {}
                Some(Line::Own(line)) if line.len() < FRAME => bytes.extend_from_slice(&line),
                Some(Line::Own(line)) => {
                    large = line.len();
                    self.written.push_back(line);
                }
                Some(Line::Shared(parts)) => match parts.as_slice() {
                    [line] if line.len() < FRAME => bytes.extend_from_slice(line),
                    _ => self.written.extend(parts),
                },
            }
            if !self.written.is_empty() {
                break;
            }
        }
        // It is counted until the client takes the data that follows.
        if let Some(share) = &mut self.share
            && share.hold(large).is_err()
        {
            return None;
        }
        Some(if bytes.is_empty() { self.written.pop_front() } else { Some(bytes.freeze()) })
    }

    /// The event for this watcher: an object that enters or leaves its selection is added or deleted.
    fn event(&mut self, event: &Event) -> Option<Line> {
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
            // It left the selection: the event has the object as it last matched, at the revision of the change.
            (Some(previous), false) => self.object("DELETED", previous, record.revision()),
            (None, false) => None,
        }
    }

    /// An event that is the same JSON line for every watcher of the kind: written once.
    fn shared(&mut self, event: &Event, what: &'static str) -> Option<Line> {
        let plain = self.form.encoding == Encoding::Json && self.form.shape == Shape::Object;
        if !plain || !is_stored_form(self.kind) {
            return self.object(what, &event.record, event.record.revision());
        }
        let write = || line(what, &encode::json(self.kind, &event.record));
        Some(Line::Shared(vec![event.line(write).clone()]))
    }

    fn object(&mut self, what: &'static str, record: &Arc<Record>, revision: u64) -> Option<Line> {
        if self.form.encoding == Encoding::Json
            && self.form.shape == Shape::Object
            && revision == record.revision()
        {
            if record.json().len() < FRAME || !is_stored_form(self.kind) {
                return Some(Line::Own(line(what, &encode::json(self.kind, record))));
            }
            let [head, json] = encode::json_parts(self.kind, record);
            let begin = Bytes::from([line_head(what).as_bytes(), &head].concat());
            return Some(Line::Shared(vec![begin, json, Bytes::from_static(LINE_END)]));
        }
        let mut object = from_stored(self.kind, record.value());
        object["metadata"]["resourceVersion"] = Value::String(revision.to_string());
        self.value(what, object).map(Line::Own)
    }

    fn value(&mut self, what: &'static str, object: Value) -> Option<Bytes> {
        let mut shown = reshape(Some(self.kind), object, self.form);
        if self.form.shape == Shape::Table {
            // The columns are sent once.
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

/// Waits until a user sees more or less than before; never returns for one who always sees everything.
async fn view_changes(view: &mut Option<View>) {
    match view {
        Some(view) => view.changes().await,
        None => std::future::pending().await,
    }
}

/// The end of a line of a JSON stream.
const LINE_END: &[u8] = b"}\n";

/// The beginning of a line; the object follows.
fn line_head(what: &str) -> String {
    format!(r#"{{"type":"{what}","object":"#)
}

/// One event of a JSON stream.
fn line(what: &str, object: &[u8]) -> Bytes {
    [line_head(what).as_bytes(), object, LINE_END].concat().into()
}

/// One event in the stream's encoding: a line of JSON, or protobuf after its length.
fn frame(form: Form, what: &str, object: &Value) -> Result<Bytes, Status> {
    match form.encoding {
        Encoding::Protobuf => {
            wire::encode_watch_event(what, object).map(Bytes::from).map_err(|why| status::internal(&why))
        }
        _ => Ok(line(what, wire::json(object).trim_end().as_bytes())),
    }
}
