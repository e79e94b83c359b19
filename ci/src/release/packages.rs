//! What package managers read: a Homebrew formula and a krew manifest. Both name the archives of a release by
//! URL and by their SHA-256.

use super::names::PROGRAM;
use super::version::Version;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The names of machines in file names of a release, in Homebrew and in krew.
const MACHINES: &[(&str, &str, &str)] =
    &[("linux-amd64", "on_intel", "amd64"), ("linux-arm64", "on_arm", "arm64")];
/// Fits in one line of `brew search` and `kubectl krew search`.
const SHORT: &str = "Test a cloud controller manager";
const LONG: &str = "\
Conformance tests for Kubernetes cloud controller managers: end to end, with real
kubelets or on a simulated cluster, and without a cloud account.
";

/// The archives of a release, and where they can be downloaded.
pub(super) struct Downloads<'a> {
    /// The URL of the repository.
    pub(super) repository: &'a str,
    /// The version of the release.
    pub(super) version: &'a Version,
    /// The SHA-256 of each asset, by its name.
    pub(super) sums: &'a BTreeMap<String, String>,
}

/// The archive for one machine.
struct Archive<'a> {
    brew: &'a str,
    krew: &'a str,
    url: String,
    sha256: &'a str,
}

impl<'a> Downloads<'a> {
    /// The archive of each machine that the release is for.
    fn archives(&self) -> Result<Vec<Archive<'a>>> {
        let Downloads { repository, version, sums } = self;
        let archive = |(machine, brew, krew): &(&str, &'a str, &'a str)| {
            let file = archive_name(version, machine);
            let sha256 = sums.get(&file)?;
            let url = format!("{repository}/releases/download/v{}/{file}", version.name);
            Some(Archive { brew, krew, url, sha256 })
        };
        let archives: Vec<Archive<'_>> = MACHINES.iter().filter_map(archive).collect();
        ensure!(!archives.is_empty(), "SHA256SUMS lists no archive of the program");
        Ok(archives)
    }

    /// The Homebrew formula.
    ///
    /// # Errors
    /// The release has no archive.
    pub(super) fn formula(&self) -> Result<String> {
        let Downloads { repository, version, .. } = self;
        let mut machines = String::new();
        for Archive { brew, url, sha256, .. } in self.archives()? {
            machines.push_str(&format!("  {brew} do\n    url \"{url}\"\n    sha256 \"{sha256}\"\n  end\n\n"));
        }
        Ok(format!(
            r##"# Written by 'cargo xtask release'. Do not edit.
class CcmConformance < Formula
  desc "{SHORT}"
  homepage "{repository}"
  version "{name}"
  license "Apache-2.0"

  depends_on :linux

{machines}  def install
    bin.install "{PROGRAM}"
    generate_completions_from_executable(bin/"{PROGRAM}", "completions", shells: [:bash, :zsh, :fish])
    (buildpath/"man").mkpath
    system bin/"{PROGRAM}", "man", "--out", buildpath/"man"
    man1.install Dir["man/*.1"]
  end

  test do
    assert_match "{PROGRAM} {cargo}", shell_output("#{{bin}}/{PROGRAM} --version")
  end
end
"##,
            name = version.name,
            cargo = version.cargo,
        ))
    }

    /// The krew manifest.
    ///
    /// # Errors
    /// The release has no archive.
    pub(super) fn krew(&self) -> Result<String> {
        let platform = |archive: &Archive<'_>| {
            json!({
                "selector": {"matchLabels": {"os": "linux", "arch": archive.krew}},
                "uri": archive.url,
                "sha256": archive.sha256,
                "bin": PROGRAM,
                "files": [{"from": PROGRAM, "to": "."}, {"from": "LICENSE", "to": "."}],
            })
        };
        let platforms: Vec<Value> = self.archives()?.iter().map(platform).collect();
        let manifest = json!({
            "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
            "kind": "Plugin",
            "metadata": {"name": PROGRAM},
            "spec": {
                "version": format!("v{}", self.version.name),
                "homepage": self.repository,
                "shortDescription": SHORT,
                "description": LONG,
                "platforms": platforms,
            },
        });
        // URLs stay on their lines.
        let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
        let text = serde_saphyr::to_string_with_options(&manifest, options);
        let text = text.context("writing the krew manifest")?;
        Ok(format!("# Written by 'cargo xtask release'. Do not edit.\n{text}"))
    }
}

/// The name of the archive of the program for a machine. krew accepts nothing but archives.
pub(super) fn archive_name(version: &Version, machine: &str) -> String {
    format!("{PROGRAM}-{}-{machine}.tar.gz", version.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version() -> Version {
        Version { cargo: "1.2.3".to_owned(), name: "1.2.3".to_owned(), commit: "abc".to_owned() }
    }

    #[test]
    fn machines_without_an_archive_are_left_out() {
        let version = version();
        let sums = BTreeMap::from([("ccm-conformance-1.2.3-linux-arm64.tar.gz".to_owned(), "12".to_owned())]);
        let downloads = Downloads { repository: "https://h.example/o/n", version: &version, sums: &sums };
        let formula = downloads.formula().expect("a formula");
        assert!(
            formula.contains("on_arm do\n    url \"https://h.example/o/n/releases/download/v1.2.3/"),
            "{formula}"
        );
        assert!(!formula.contains("on_intel"), "{formula}");
        let krew: Value = serde_saphyr::from_str(&downloads.krew().expect("a manifest")).expect("YAML");
        assert_eq!(krew["spec"]["platforms"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn a_release_without_archives_has_no_packages() {
        let version = version();
        let sums = BTreeMap::from([("extras.tar.gz".to_owned(), "12".to_owned())]);
        let downloads = Downloads { repository: "https://h.example/o/n", version: &version, sums: &sums };
        assert!(downloads.formula().is_err() && downloads.krew().is_err());
    }
}
