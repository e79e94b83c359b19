//! What becomes of calls that a dialect does not know.

/// What becomes of a call that the dialect does not know, or which has fields or parameters it does not know. Either way
/// the journal says so ([`fake_cloud_driver::Entry::unknown`]), and the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// Refused with 501: a caller that needs more than the dialect has says so itself.
    #[default]
    Refused,
    /// What is known of it is carried out; a call of which nothing is gets an empty answer that says success. For bringing
    /// a new caller up: nothing it does then proves anything.
    PassedOver,
}
