//! The assets of a release: one flat folder of files, each of which is uploaded under its own name, with
//! their checksums.

use super::archive::{pack, read};
use super::chart::chart;
use super::elf::is_static;
use super::names::{IN_CLUSTER, PROGRAM};
use super::packages::{Downloads, archive_name};
use super::version::Version;
use crate::process::{root, run, said, say};
use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The archive with the files for shells, manuals, editors and clusters.
const EXTRAS: &str = "extras.tar.gz";
/// The file with the SHA-256 of each other asset, in the form of `sha256sum --check`.
const CHECKSUMS: &str = "SHA256SUMS";
/// What Homebrew reads; it requires the name of the formula.
const FORMULA: &str = "ccm-conformance.rb";
/// What krew reads.
const KREW: &str = "krew.yaml";
/// Shells that get completions, and the names of their files.
const SHELLS: &[(&str, &str)] =
    &[("bash", "ccm-conformance.bash"), ("zsh", "_ccm-conformance"), ("fish", "ccm-conformance.fish")];
/// The licence, which archives of the program contain.
const LICENSE: &str = "LICENSE";

/// A built program, and Rust's name of its machine.
#[derive(Clone, Debug)]
pub(super) struct Built {
    /// Rust's name of the machine.
    pub(super) target: String,
    /// The path of the program.
    pub(super) path: PathBuf,
}

/// The release, and where it is made.
pub(super) struct Release<'a> {
    /// An empty folder.
    pub(super) out: &'a Path,
    /// Its version.
    pub(super) version: &'a Version,
    /// Rust's name of this machine.
    pub(super) host: &'a str,
    /// The image's name without a tag.
    pub(super) image: &'a str,
    /// The URL of the repository that publishes it, if it is known.
    pub(super) repository: Option<&'a str>,
}

impl Release<'_> {
    /// The file of the program for a machine.
    pub(super) fn program(&self, target: &str) -> PathBuf {
        self.out.join(format!("{PROGRAM}-{}-{}", self.version.name, machine(target)))
    }

    /// Writes all assets; `bill` writes the bill of materials into the given file.
    ///
    /// # Errors
    /// A program is not static or does not describe itself, or a file cannot be written.
    pub(super) fn write(&self, programs: &[Built], bill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        for Built { target, path } in programs {
            let program = self.program(target);
            fs::copy(path, &program).with_context(|| format!("copying {}", path.display()))?;
            is_static(&program)?;
            self.archive(&program, target)?;
            if target == self.host {
                self.describe(&program)?;
            } else {
                let name = program.file_name().unwrap_or_default().display();
                say(&format!(
                    "{target} does not run here: its image is made where it does, by '{name} image'"
                ));
            }
        }
        bill(&self.out.join(format!("{PROGRAM}-{}.cdx.json", self.version.name)))?;
        let reference = self.reference();
        let chart = chart(self.version, &reference, self.repository)?;
        pack(&chart, None, &self.out.join(format!("{PROGRAM}-{}.tgz", self.version.name)))?;
        self.packages()?;
        write_checksums(self.out)
    }

    /// The name of the image.
    fn reference(&self) -> String {
        format!("{}:{}", self.image, self.version.name)
    }

    /// Writes the archive of a program.
    fn archive(&self, program: &Path, target: &str) -> Result<()> {
        let licence = root().join(LICENSE);
        let mut files = BTreeMap::new();
        for (name, path) in [(PROGRAM, program), (LICENSE, licence.as_path())] {
            files.insert(name.to_owned(), fs::read(path).with_context(|| path.display().to_string())?);
        }
        pack(&files, Some(PROGRAM), &self.out.join(archive_name(self.version, &machine(target))))
    }

    /// Writes what package managers read.
    fn packages(&self) -> Result<()> {
        let Some(repository) = self.repository else {
            say("no Homebrew formula and no krew manifest: '--repository URL' names what they download from");
            return Ok(());
        };
        let sums = checksums(self.out)?;
        let downloads = Downloads { repository, version: self.version, sums: &sums };
        fs::write(self.out.join(FORMULA), downloads.formula()?)?;
        fs::write(self.out.join(KREW), downloads.krew()?)?;
        Ok(())
    }

    /// Writes the image of a program that runs here, and the archive of its own descriptions.
    fn describe(&self, program: &Path) -> Result<()> {
        let name = program.to_str().context("the folder's name is not UTF-8")?;
        let reference = self.reference();
        run(name, &["image", "--out", &format!("{name}.image.tar"), "--reference", &reference], &[])?;
        let mut extras = manifests(&reference)?;
        let pages = tempfile::tempdir().context("making a folder")?;
        run(name, &["man", "--out", &pages.path().to_string_lossy()], &[])?;
        for (file, bytes) in read(pages.path())? {
            extras.insert(format!("man/{file}"), bytes);
        }
        for (shell, file) in SHELLS {
            extras.insert(format!("completions/{file}"), said(name, &["completions", shell])?.into_bytes());
        }
        for schema in schemas(&said(name, &["schema", "--help"])?)? {
            extras.insert(
                format!("schemas/{schema}.schema.json"),
                said(name, &["schema", &schema])?.into_bytes(),
            );
        }
        pack(&extras, None, &self.out.join(EXTRAS))?;
        let says = said(name, &["--version"])?;
        say(says.trim());
        ensure!(
            says.contains(&self.version.cargo),
            "{name} says '{}', and the version is {}",
            says.trim(),
            self.version.cargo
        );
        Ok(())
    }
}

/// The files that have a schema, from the help of `schema`.
fn schemas(help: &str) -> Result<Vec<String>> {
    let listed = help.split_once("[possible values: ").and_then(|(_, rest)| rest.split_once(']'));
    let (listed, _) = listed.context("'schema --help' does not list the files that have a schema")?;
    Ok(listed.split(',').map(|name| name.trim().to_owned()).collect())
}

/// The manifests that run the image inside a cluster, with its name in them, by their path in the archive.
fn manifests(reference: &str) -> Result<BTreeMap<String, Vec<u8>>> {
    let (own, released) = (format!("image: {PROGRAM}:latest\n"), format!("image: {reference}\n"));
    let files = read(&root().join(IN_CLUSTER))?;
    let manifests = files.into_iter().filter(|(name, _)| name.ends_with(".yaml")).map(|(name, bytes)| {
        let text = String::from_utf8(bytes).with_context(|| format!("{IN_CLUSTER}/{name}"))?;
        Ok((format!("in-cluster/{name}"), text.replace(&own, &released).into_bytes()))
    });
    manifests.collect()
}

/// The SHA-256 of each file, by its name. Fails for a folder, which cannot be uploaded and would be missing
/// from the release.
fn checksums(out: &Path) -> Result<BTreeMap<String, String>> {
    for entry in fs::read_dir(out)? {
        let path = entry?.path();
        if !path.is_file() {
            bail!("{} is not a file, and only files can be assets of a release", path.display());
        }
    }
    let files = read(out)?.into_iter().filter(|(name, _)| name != CHECKSUMS);
    let sum = |bytes: &[u8]| Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(files.map(|(name, bytes)| (name, sum(&bytes))).collect())
}

/// Writes the file with the SHA-256 of each other file.
fn write_checksums(out: &Path) -> Result<()> {
    let lines = checksums(out)?.into_iter().map(|(name, sum)| format!("{sum}  {name}\n"));
    fs::write(out.join(CHECKSUMS), lines.collect::<String>())?;
    Ok(())
}

/// The name of a machine outside of Rust.
fn machine(target: &str) -> String {
    let architecture = match target.split('-').next().unwrap_or(target) {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("linux-{architecture}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_have_the_names_that_images_give_them() {
        assert_eq!(machine("x86_64-unknown-linux-gnu"), "linux-amd64");
        assert_eq!(machine("aarch64-unknown-linux-musl"), "linux-arm64");
    }

    #[test]
    fn manifests_name_the_image_of_the_release() {
        let made = manifests("registry.example/owner/name:1.2.3").expect("manifests");
        for file in ["job.yaml", "sharded-job.yaml", "merge.yaml", "sonobuoy-plugin.yaml"] {
            let text = String::from_utf8_lossy(&made[&format!("in-cluster/{file}")]).into_owned();
            assert!(text.contains("image: registry.example/owner/name:1.2.3\n"), "{file}");
            assert!(!text.contains(":latest"), "{file}");
        }
        assert!(made.contains_key("in-cluster/base.yaml") && !made.contains_key("in-cluster/try"));
    }

    #[test]
    fn every_schema_of_the_program_is_released() {
        let help = "Arguments:\n  <FILE>  Which file [possible values: profile, run, routes]\n";
        assert_eq!(schemas(help).expect("a list"), ["profile", "run", "routes"]);
        assert!(schemas("Usage: schema <FILE>").is_err());
    }

    #[test]
    fn checksums_are_of_every_file_sorted_and_of_files_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("b"), "x").expect("a file");
        fs::write(folder.path().join("a"), "").expect("a file");
        write_checksums(folder.path()).expect("sums");
        write_checksums(folder.path()).expect("sums again, without the sum of the sums");
        let text = fs::read_to_string(folder.path().join(CHECKSUMS)).expect("a file");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a");
        assert!(lines[1].ends_with("  b") && lines.len() == 2, "{text}");
        fs::create_dir(folder.path().join("c")).expect("a folder");
        let why = checksums(folder.path()).expect_err("a folder is not an asset").to_string();
        assert!(why.contains("/c is not a file"), "{why}");
    }
}
