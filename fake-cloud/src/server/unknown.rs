//! The handling of calls that a dialect does not know.

/// What happens to a call that the dialect does not know, or that has unknown fields or parameters. In both
/// cases the journal ([`fake_cloud_driver::Entry::unknown`]) and the log record it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// It is rejected with 501, so that a caller which needs more than the dialect has reports that itself.
    #[default]
    Refused,
    /// The known part is carried out; a call without a known part gets an empty answer that reports success.
    /// This is for making a new caller work: its behaviour then proves nothing.
    PassedOver,
}
