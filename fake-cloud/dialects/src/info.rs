//! A dialect as a line of the table: what is known of it without speaking it.

use fake_cloud_driver::{InstanceIds, Shown};
use fake_cloud_kit::Dialect;

/// A dialect that can be spoken.
#[derive(Clone, Copy)]
pub struct DialectInfo {
    /// Its name, as in the command line and in profiles.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// Which ids its instances may have.
    pub instance_ids: InstanceIds,
    /// Which addresses of an instance it shows.
    pub shown: Shown,
    /// Whether the cloud has a metadata service, which its machines ask about themselves.
    pub metadata: bool,
    /// Makes one for a cloud of its own.
    pub(super) new: fn() -> Box<dyn Dialect>,
}

impl DialectInfo {
    /// Makes one for a cloud of its own.
    pub fn make(&self) -> Box<dyn Dialect> {
        (self.new)()
    }
}

impl std::fmt::Debug for DialectInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DialectInfo").field("name", &self.name).finish_non_exhaustive()
    }
}
