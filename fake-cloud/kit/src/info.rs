//! An entry in the table of dialects.

use crate::Dialect;
use fake_cloud_driver::{InstanceIds, Shown};

/// A dialect that the fake cloud can speak.
#[derive(Clone, Copy)]
pub struct DialectInfo {
    /// Its name in the command line and in profiles.
    pub name: &'static str,
    /// A short description.
    pub title: &'static str,
    /// Which ids its instances may have.
    pub instance_ids: InstanceIds,
    /// Which addresses of an instance it shows.
    pub shown: Shown,
    /// Whether the cloud has a metadata service, where machines get information about themselves.
    pub metadata: bool,
    /// Hosts of the vendor for which the cloud answers as the HTTPS proxy of its clients; one that begins with a
    /// dot stands for all hosts below it. None: its clients are configured with the cloud's own address.
    pub hosts: &'static [&'static str],
    /// Creates the dialect for a new cloud.
    pub new: fn() -> Box<dyn Dialect>,
}

impl DialectInfo {
    /// Creates the dialect for a new cloud.
    pub fn make(&self) -> Box<dyn Dialect> {
        (self.new)()
    }
}

impl std::fmt::Debug for DialectInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DialectInfo").field("name", &self.name).finish_non_exhaustive()
    }
}
