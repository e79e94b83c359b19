//! Versions of Kubernetes and kind, in their common format: `v1.36.2`, `v0.33.0-alpha`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A version of Kubernetes or kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) patch: u32,
    /// The text after the first hyphen, e.g. `rc.1`; empty for a release.
    pub(crate) pre: String,
}

impl Version {
    pub(crate) const fn release(major: u32, minor: u32, patch: u32) -> Version {
        Version { major, minor, patch, pre: String::new() }
    }

    /// Whether it is `major.minor` or later, including its pre-releases.
    pub(crate) fn is_at_least(&self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }
}

impl FromStr for Version {
    type Err = ();

    /// Parses `v1.36.2`, with or without the `v`, a pre-release and build data.
    fn from_str(text: &str) -> Result<Version, ()> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = text.split('+').next().unwrap_or(text);
        let (numbers, pre) = text.split_once('-').unwrap_or((text, ""));
        let mut numbers = numbers.split('.').map(|number| number.parse::<u32>().map_err(|_| ()));
        let mut next = || numbers.next().unwrap_or(Err(()));
        let version = Version { major: next()?, minor: next()?, patch: next()?, pre: pre.to_owned() };
        if numbers.next().is_some() { Err(()) } else { Ok(version) }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version { major, minor, patch, pre } = self;
        write!(f, "v{major}.{minor}.{patch}")?;
        if pre.is_empty() { Ok(()) } else { write!(f, "-{pre}") }
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Version) -> Ordering {
        let rank = |version: &Version| (version.major, version.minor, version.patch, version.pre.is_empty());
        rank(self).cmp(&rank(other)).then_with(|| self.pre.cmp(&other.pre))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Version) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_they_are_written() {
        for text in ["v1.36.2", "v0.33.0-alpha", "v1.37.0-rc.1"] {
            assert_eq!(text.parse::<Version>().expect(text).to_string(), text);
        }
        assert_eq!("1.20.2+build7".parse(), Ok(Version::release(1, 20, 2)));
        for text in ["", "v1", "v1.2", "latest", "v1.2.3.4", "v1.2.x"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_release_is_newer_than_its_candidates() {
        let order = ["v1.9.9", "v1.20.2", "v1.36.0-alpha.1", "v1.36.0-rc.1", "v1.36.0", "v1.36.2"];
        let versions: Vec<Version> = order.iter().map(|text| text.parse().expect("a version")).collect();
        assert!(versions.is_sorted());
    }
}
