//! Which versions of Kubernetes an embedded cluster can be.

use crate::cluster::version::Version;
use crate::config::Kubernetes;
use std::fmt;
use std::str::FromStr;

/// The versions of Kubernetes 1 whose words and defaults are known.
const MINORS: std::ops::RangeInclusive<u32> = 20..=36;

/// A version of Kubernetes that an embedded cluster can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddedVersion {
    minor: u32,
    patch: u32,
}

impl Default for EmbeddedVersion {
    /// The version whose answers were recorded.
    fn default() -> EmbeddedVersion {
        let embedded_apiserver::Version { minor, patch } = embedded_apiserver::Version::default();
        EmbeddedVersion { minor, patch }
    }
}

impl fmt::Display for EmbeddedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v1.{}.{}", self.minor, self.patch)
    }
}

impl FromStr for EmbeddedVersion {
    type Err = String;

    /// Reads `v1.36.2`, `1.36.2` or `1.36`.
    fn from_str(text: &str) -> Result<EmbeddedVersion, String> {
        let wrong = || {
            format!("not a version from 1.{} to 1.{}, such as v1.36.2 or 1.31", MINORS.start(), MINORS.end())
        };
        let full = if text.matches('.').count() == 1 { format!("{text}.0") } else { text.to_owned() };
        let Version { major, minor, patch, pre } = full.parse().map_err(|()| wrong())?;
        let known = major == 1 && MINORS.contains(&minor) && pre.is_empty();
        if known { Ok(EmbeddedVersion { minor, patch }) } else { Err(wrong()) }
    }
}

impl EmbeddedVersion {
    /// The version that is asked for; the newest is the one whose answers were recorded.
    ///
    /// # Errors
    /// Why it cannot be: a node image, or a version nobody knows.
    pub(super) fn of(wanted: &Kubernetes) -> Result<EmbeddedVersion, String> {
        match wanted {
            Kubernetes::Newest => Ok(EmbeddedVersion::default()),
            Kubernetes::Image(image) => Err(format!("{image} is a node image, which only kind takes")),
            Kubernetes::Version { minor, patch } => {
                let newest = EmbeddedVersion::default();
                let patch = patch.unwrap_or(if *minor == newest.minor { newest.patch } else { 0 });
                format!("1.{minor}.{patch}").parse()
            }
        }
    }

    /// Its minor and patch numbers.
    pub(super) fn numbers(self) -> (u32, u32) {
        (self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_others_refused() {
        for (text, version) in [("v1.36.2", "v1.36.2"), ("1.31", "v1.31.0"), ("1.20.2", "v1.20.2")] {
            assert_eq!(text.parse::<EmbeddedVersion>().map(|v| v.to_string()), Ok(version.to_owned()));
        }
        for text in ["", "1", "2.1", "v1.19.0", "1.99", "v1.36.0-rc.1", "latest"] {
            assert!(text.parse::<EmbeddedVersion>().is_err(), "{text}");
        }
    }
}
