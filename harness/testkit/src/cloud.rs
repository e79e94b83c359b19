//! The cloud as a check sees it: its inventory and its journal.

use super::{Calls, CheckCx, Subject};
use harness_clouds::{CloudError, Entry, Inventory};
use harness_core::check::{CheckError, SubjectName, Verdict};
use harness_core::probe::{ReadError, ReadSource};

/// The cloud as a whole.
#[derive(Clone, Copy)]
pub struct Cloud<'a> {
    pub(super) cx: &'a CheckCx,
}

impl<'a> Cloud<'a> {
    /// The current position in the journal, for [`Calls::since`].
    ///
    /// # Errors
    /// While the cloud's journal cannot be read.
    pub fn mark(&self) -> Result<u64, ReadError> {
        self.cx.heard().mark()
    }

    /// Like [`Cloud::mark`], but asks the cloud itself: all calls that have arrived so far are before the mark, however
    /// far behind the mirror of the journal is.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn mark_now(&self) -> Result<u64, ReadError> {
        self.cx.heard().catch_up().await?;
        self.mark()
    }

    /// All calls since the check began.
    pub fn calls(&self) -> Calls<'a> {
        Calls::about(self.cx, self.name(), |_| true)
    }

    /// Whether the cloud can have machines without a providerID.
    pub fn shows_missing_ids(&self) -> bool {
        self.cx.cloud.shown().provider_ids
    }

    /// Whether the cloud also says when clients should retry, if it asks them to retry later.
    pub fn tells_when_to_come_back(&self) -> bool {
        self.cx.cloud.shown().retry_after
    }

    /// Whether there can be a route to a network that contains, or is part of, the network of another route.
    pub fn has_nested_routes(&self) -> bool {
        self.cx.cloud.shown().nested_routes
    }

    /// Whether the pages of its lists have numbers, so that a deletion moves other items to pages that were perhaps read.
    pub fn has_page_numbers(&self) -> bool {
        self.cx.cloud.shown().page_numbers
    }

    /// Whether the name of a machine may have dots.
    pub fn has_dotted_names(&self) -> bool {
        self.cx.cloud.shown().dotted_names
    }

    /// What a check of a network to which another machine's route leads already requires.
    ///
    /// # Errors
    /// [`CheckError::NotObservable`] where several routes can lead to the same network.
    pub fn has_one_route_for_a_network(&self) -> Verdict {
        match self.cx.cloud.shown().shared_routes {
            false => Ok(()),
            true => Err(CheckError::NotObservable(
                "several routes of the cloud can lead to the same network, so none of them is in the way"
                    .to_owned(),
            )),
        }
    }
}

impl Subject for Cloud<'_> {
    type Snapshot = Inventory;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        SubjectName { kind: "the cloud", name: "under test".to_owned(), uid: None }
    }

    async fn read(&self, _: ReadSource) -> Result<Inventory, ReadError> {
        self.cx.inventory().await
    }

    fn concerns(&self, _: &Entry) -> bool {
        true
    }
}

impl CheckCx {
    /// The cloud.
    pub fn cloud(&self) -> Cloud<'_> {
        Cloud { cx: self }
    }

    /// Everything in the cloud.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub(crate) async fn inventory(&self) -> Result<Inventory, ReadError> {
        self.cloud.inventory().await.map_err(passing)
    }

    /// Calls to the cloud since this check began that are in memory, in order of arrival, and the number of earlier ones
    /// that are not.
    ///
    /// # Errors
    /// While the cloud's journal cannot be read.
    pub(crate) fn journal(&self) -> Result<(u64, Vec<Entry>), ReadError> {
        self.session.journal().kept_since(self.mark)
    }
}

pub(super) fn passing(error: CloudError) -> ReadError {
    ReadError::passing(harness_core::check::chain(&error))
}

/// A deletion of something that does not exist counts as successful.
pub(super) fn absent_is_fine(outcome: Result<(), CloudError>) -> Result<(), String> {
    match outcome {
        Ok(()) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(harness_core::check::chain(&error)),
    }
}
