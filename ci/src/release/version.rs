//! The version of a release.

use crate::process::said;
use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// Cargo's version, which reports contain.
    pub(super) cargo: String,
    /// The version in file names: Cargo's if the commit has that tag, otherwise with the commit.
    pub(super) name: String,
    /// The commit, with `-dirty` if files differ from it.
    pub(super) commit: String,
}

impl Version {
    /// The version of the checkout.
    ///
    /// # Errors
    /// A tag contradicts Cargo's version, or git or cargo fails.
    pub(super) fn here() -> Result<Version> {
        let metadata = said("cargo", &["metadata", "--no-deps", "--format-version=1", "--offline"])?;
        let metadata: Value =
            serde_json::from_str(&metadata).context("reading what 'cargo metadata' says")?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let mut versions =
            packages.filter(|one| one["name"] == "ccm-conformance").filter_map(|one| one["version"].as_str());
        let cargo = versions.next().context("there is no package 'ccm-conformance'")?;
        let commit = said("git", &["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])?;
        let tags = said("git", &["tag", "--points-at", "HEAD", "--list", "v*"])?;
        Version::of(cargo, commit.trim(), tags.lines())
    }

    fn of<'a>(cargo: &str, commit: &str, tags: impl Iterator<Item = &'a str>) -> Result<Version> {
        let tags: Vec<&str> = tags.collect();
        let own = format!("v{cargo}");
        let clean = !commit.ends_with("-dirty");
        let name = match tags.as_slice() {
            [] => format!("{cargo}-g{commit}"),
            tags if !tags.contains(&own.as_str()) => {
                bail!(
                    "the commit is tagged {}, and Cargo.toml says {cargo}: give 'version' of [workspace.package] the tag's \
                     number, and write the list of its checks (REWRITE_DOCUMENTS=1 cargo test -p ccm-conformance --test golden)",
                    tags.join(" and ")
                )
            }
            _ if clean => cargo.to_owned(),
            _ => bail!(
                "the commit is tagged {own}, and there are changes that are not in it; commit or stash them"
            ),
        };
        Ok(Version { cargo: cargo.to_owned(), name, commit: commit.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_must_match_the_version_of_cargo() {
        let of = |commit, tags: &[&'static str]| Version::of("1.2.0", commit, tags.iter().copied());
        assert_eq!(of("abc", &[]).expect("untagged").name, "1.2.0-gabc");
        assert_eq!(of("abc-dirty", &[]).expect("untagged").name, "1.2.0-gabc-dirty");
        assert_eq!(of("abc", &["v1.2.0"]).expect("tagged").name, "1.2.0");
        let other = of("abc", &["v1.3.0"]).expect_err("another version").to_string();
        assert!(other.contains("tagged v1.3.0, and Cargo.toml says 1.2.0"), "{other}");
        assert!(of("abc-dirty", &["v1.2.0"]).is_err());
    }
}
