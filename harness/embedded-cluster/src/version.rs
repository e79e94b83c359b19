//! The versions of Kubernetes that a cluster can have.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The minor versions of Kubernetes 1 whose messages and defaults are known.
const MINORS: std::ops::RangeInclusive<u32> = 20..=36;

/// A version of Kubernetes that a cluster can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KubernetesVersion {
    minor: u32,
    patch: u32,
}

/// The text is not a version that a cluster can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a version from 1.{} to 1.{}, such as v1.36.2 or 1.31", MINORS.start(), MINORS.end())]
pub struct UnknownVersion {
    text: String,
}

impl KubernetesVersion {
    /// The newest known version of this minor, or that without patches; `None` if it is unknown.
    #[must_use]
    pub fn of_minor(minor: u32) -> Option<KubernetesVersion> {
        let newest = KubernetesVersion::default();
        let patch = if minor == newest.minor { newest.patch } else { 0 };
        MINORS.contains(&minor).then_some(KubernetesVersion { minor, patch })
    }

    /// The minor version: 36 of v1.36.2.
    #[must_use]
    pub fn minor(self) -> u32 {
        self.minor
    }

    /// The patch version: 2 of v1.36.2.
    #[must_use]
    pub fn patch(self) -> u32 {
        self.patch
    }
}

impl Default for KubernetesVersion {
    /// The version whose answers were recorded, which is the newest.
    fn default() -> KubernetesVersion {
        let embedded_apiserver::Version { minor, patch } = embedded_apiserver::Version::default();
        KubernetesVersion { minor, patch }
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v1.{}.{}", self.minor, self.patch)
    }
}

impl TryFrom<String> for KubernetesVersion {
    type Error = UnknownVersion;

    fn try_from(text: String) -> Result<KubernetesVersion, UnknownVersion> {
        text.parse()
    }
}

impl From<KubernetesVersion> for String {
    fn from(version: KubernetesVersion) -> String {
        version.to_string()
    }
}

impl From<KubernetesVersion> for embedded_apiserver::Version {
    fn from(KubernetesVersion { minor, patch }: KubernetesVersion) -> embedded_apiserver::Version {
        embedded_apiserver::Version { minor, patch }
    }
}

impl From<KubernetesVersion> for embedded_controllers::KubernetesVersion {
    fn from(
        KubernetesVersion { minor, patch }: KubernetesVersion,
    ) -> embedded_controllers::KubernetesVersion {
        embedded_controllers::KubernetesVersion { minor, patch }
    }
}

impl FromStr for KubernetesVersion {
    type Err = UnknownVersion;

    /// Reads `v1.36.2`, `1.36.2` or `1.36`.
    fn from_str(text: &str) -> Result<KubernetesVersion, UnknownVersion> {
        let unknown = || UnknownVersion { text: text.to_owned() };
        let numbers = text.trim();
        let numbers = numbers.strip_prefix('v').unwrap_or(numbers).split('.');
        let numbers: Result<Vec<u32>, _> = numbers.map(str::parse).collect();
        match numbers.map_err(|_| unknown())?[..] {
            [1, minor] if MINORS.contains(&minor) => Ok(KubernetesVersion { minor, patch: 0 }),
            [1, minor, patch] if MINORS.contains(&minor) => Ok(KubernetesVersion { minor, patch }),
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_others_refused() {
        for (text, version) in [("v1.36.2", "v1.36.2"), ("1.31", "v1.31.0"), ("1.20.2", "v1.20.2")] {
            assert_eq!(text.parse::<KubernetesVersion>().map(|v| v.to_string()), Ok(version.to_owned()));
        }
        for text in ["", "1", "2.1", "v1.19.0", "1.99", "v1.36.0-rc.1", "latest", "1.36.2.1", "1.-3"] {
            assert!(text.parse::<KubernetesVersion>().is_err(), "{text}");
        }
    }
}
