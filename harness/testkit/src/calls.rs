//! Calls to the cloud that a check examines: the journal since some moment, filtered.

use super::{CheckCx, Subject};
use harness_clouds::{Entry, Op};
use harness_core::check::{Facility, SubjectName};
use harness_core::probe::{Matcher, ReadError, ReadSource, holds};
use harness_session::{Reader, show_entry};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// How many calls about a subject a failure shows.
const LAST_CALLS: usize = 6;
/// How many calls that create a load balancer it shows in addition.
const CREATIONS: usize = 4;

/// Calls to the cloud since some moment, in the order of their arrival.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, web: &Service<'_>, node: &Node<'_>) -> Verdict {
/// let mark = cx.cloud().mark()?;
/// node.label("example.com/unrelated", Some("1")).await?;
/// web.calls().since(mark).writes().keeps(no_calls()).await
/// # }
/// ```
#[derive(Clone)]
pub struct Calls<'a> {
    cx: &'a CheckCx,
    about: SubjectName,
    since: u64,
    fits: Rc<dyn Fn(&Entry) -> bool + 'a>,
    /// How far it has read, with this start and these filters.
    reader: Rc<RefCell<Reader>>,
}

impl<'a> Calls<'a> {
    /// Calls about a subject since the check began.
    pub(super) fn about(
        cx: &'a CheckCx,
        about: SubjectName,
        fits: impl Fn(&Entry) -> bool + 'a,
    ) -> Calls<'a> {
        let reader = Rc::new(RefCell::new(Reader::after(cx.mark)));
        Calls { cx, about, since: cx.mark, fits: Rc::new(fits), reader }
    }

    /// Starts at this moment; see [`super::Cloud::mark`].
    pub fn since(mut self, mark: u64) -> Calls<'a> {
        self.since = mark;
        self.reader = Rc::new(RefCell::new(Reader::after(mark)));
        self
    }

    /// Selects these operations.
    pub fn of(self, ops: &'static [Op]) -> Calls<'a> {
        self.that(move |call| ops.contains(&call.op))
    }

    /// Selects calls that change the cloud.
    pub fn writes(self) -> Calls<'a> {
        self.that(|call| call.write)
    }

    /// Selects calls that also fit this predicate.
    pub fn that(mut self, fits: impl Fn(&Entry) -> bool + 'a) -> Calls<'a> {
        let before = self.fits;
        self.fits = Rc::new(move |call| before(call) && fits(call));
        self.reader = Rc::new(RefCell::new(Reader::after(self.since)));
        self
    }

    /// The calls that are known so far.
    ///
    /// # Errors
    /// While the cloud's journal cannot be read.
    pub fn now(&self) -> Result<Vec<Entry>, ReadError> {
        self.cx.heard().read(&mut self.reader.borrow_mut(), |call| (self.fits)(call))
    }

    /// The calls that the cloud has recorded so far.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn list(&self) -> Result<Vec<Entry>, ReadError> {
        self.read(ReadSource::Origin).await
    }
}

impl Subject for Calls<'_> {
    type Snapshot = Vec<Entry>;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        SubjectName {
            kind: "the calls about",
            name: format!("{} {}", self.about.kind, self.about.name),
            uid: self.about.uid.clone(),
        }
    }

    async fn read(&self, reach: ReadSource) -> Result<Vec<Entry>, ReadError> {
        match reach {
            ReadSource::Cache => {}
            // The last read of a window in which no call may happen, and all reads outside of a wait.
            ReadSource::Origin => self.cx.heard().catch_up().await?,
        }
        self.now()
    }

    fn concerns(&self, call: &Entry) -> bool {
        (self.fits)(call)
    }
}

/// There is at least one call.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, leader: &Replica<'_>) -> Verdict {
/// let mark = cx.cloud().mark()?;
/// leader.calls().since(mark).becomes(some_calls()).when("by the leader").await
/// # }
/// ```
pub fn some_calls() -> Matcher<Vec<Entry>> {
    holds("are at least one", |calls: &Vec<Entry>| !calls.is_empty())
}

/// There are no calls.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// web.rests().await?;
/// web.calls().writes().keeps(no_calls()).when("once it has its load balancer").await
/// # }
/// ```
pub fn no_calls() -> Matcher<Vec<Entry>> {
    holds("are none", |calls: &Vec<Entry>| calls.is_empty())
}

/// The replicas that made these calls, identified by the names of their credentials.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let calls = cx.cloud().calls().list().await?;
/// cx.record("replicas", callers(&calls).len());
/// # Ok(()) }
/// ```
pub fn callers(calls: &[Entry]) -> BTreeSet<String> {
    let name = |call: &Entry| call.credential.clone().unwrap_or_else(|| "unknown".to_owned());
    calls.iter().map(name).collect()
}

impl CheckCx {
    /// The last calls since the check began that are about something, newest last, one line each; if the journal cannot
    /// be read, the reason instead.
    pub(super) fn last_calls(&self, concerns: &dyn Fn(&Entry) -> bool) -> Vec<String> {
        let journal = self.session.journal();
        let creations = |call: &Entry| call.op == Op::LbCreate && concerns(call);
        let last = journal.last_since(self.mark, LAST_CALLS, concerns);
        match last.and_then(|last| Ok((last, journal.last_since(self.mark, CREATIONS, creations)?))) {
            Ok((last, creations)) => {
                // Each creation is shown, however long ago it was: two of them explain most.
                let by_number: BTreeMap<u64, Entry> =
                    last.into_iter().chain(creations).map(|call| (call.seq, call)).collect();
                by_number.values().map(show_entry).collect()
            }
            Err(error) => vec![error.text],
        }
    }

    /// Remembers where the journal is before the check edits a Service.
    pub(super) fn will_edit(&self) {
        let position = self.session.journal().mark().ok();
        *self.edit.lock().expect("no holder of this lock panics") = position;
    }

    /// What a failure says if the check edited a Service, and no call since then is about something.
    pub(super) fn silence(&self, concerns: &dyn Fn(&Entry) -> bool) -> Option<String> {
        let edit = (*self.edit.lock().expect("no holder of this lock panics"))?;
        let is_heard = self.session.cloud().facilities().contains(&Facility::Journal);
        let calls = self.session.journal().last_since(edit, 1, concerns).ok().filter(|_| is_heard)?;
        calls.is_empty().then(|| "no request since the edit".to_owned())
    }
}
