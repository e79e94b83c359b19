//! `cargo xtask rehearse`: a release from its tag to what users verify and run, without GitHub.
//!
//! A bare clone and a server on a loopback address stand in for GitHub and a registry, a key that is made for
//! the rehearsal for the identity of the workflow. Everything else is real: the commands of the workflow, of
//! `docs/release.md`, and of the Action.

mod action;
mod pages;
mod place;
mod publication;
mod server;
#[cfg(test)]
mod tests;
mod user;

use super::version::Version;
use crate::process::{root, run, say};
use crate::python::target;
use anyhow::{Result, ensure};
use place::Place;
use publication::Publication;
use std::path::{Path, PathBuf};

/// What need not be built, and what remains.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Program for this machine that is already built, of this version [default: one built from the tag]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Bill of materials that is already written [default: one written by cargo-cyclonedx]
    #[arg(long, value_name = "PATH")]
    bill: Option<PathBuf>,
    /// Checks that the Action runs on the embedded cluster
    #[arg(long, value_name = "ID", default_value = "SVC-UPD-01.node-port")]
    only: String,
    /// Keep the folder `release-rehearsal` in the target folder
    #[arg(long)]
    keep: bool,
}

/// Rehearses the release of the commit that is checked out.
///
/// # Errors
/// A step fails, or something that has to be refused is accepted.
pub(crate) fn rehearse(options: &Options) -> Result<()> {
    let version = Version::here()?;
    if version.commit.ends_with("-dirty") {
        say("note: changes that are not committed are not part of the rehearsal");
    }
    let place = Place::new(&target().join("release-rehearsal"), options.keep)?;
    let sources = root();
    let assemble = |checkout: &Path, out: &Path| {
        let manifest = checkout.join("Cargo.toml").display().to_string();
        let (image, repository) = (place.image(), place.repository());
        let out = out.display().to_string();
        let mut words =
            vec!["run", "--locked", "--quiet", "--package", "xtask", "--manifest-path", &manifest];
        words.extend(["--", "release", "--out", &out, "--image", &image, "--repository", &repository]);
        let program = options.program.as_ref().map(std::path::absolute).transpose()?;
        let bill = options.bill.as_ref().map(std::path::absolute).transpose()?;
        let paths = [("--program", program), ("--bill", bill)];
        let paths = paths.map(|(name, path)| Some((name, path?.display().to_string())));
        for (name, path) in paths.iter().flatten() {
            words.extend([*name, path]);
        }
        run("cargo", &words, &[("CARGO_TARGET_DIR", &target().display().to_string())])
    };
    let rehearsal =
        Rehearsal { place: &place, sources: &sources, version: &version.cargo, only: &options.only };
    rehearsal.run(&assemble)
}

/// A rehearsal of the release of `sources`.
struct Rehearsal<'a> {
    place: &'a Place,
    /// A repository; the commit that it has checked out is released.
    sources: &'a Path,
    /// The version of that commit.
    version: &'a str,
    /// The checks that the Action runs.
    only: &'a str,
}

impl Rehearsal<'_> {
    /// All steps. `assemble` writes the assets of the release into its second argument, from the checkout of the
    /// tag in its first.
    fn run(&self, assemble: &dyn Fn(&Path, &Path) -> Result<()>) -> Result<()> {
        let Rehearsal { place, version, .. } = self;
        let tag = format!("v{version}");
        let commit = self.tagged(&tag)?;
        say(&format!("tag {tag} of {commit} in a bare clone, served at {}", place.url()));
        let checkout = place.path("checkout");
        place
            .git(&place.path(""), &["clone", "--quiet", "--branch", &tag, &place.repository(), "checkout"])?;

        let out = place.path("release-files");
        assemble(&checkout, &out)?;
        let publication = Publication { place, checkout: &checkout, tag: &tag, commit: &commit };
        publication.publish(&out)?;
        say("published: image, provenance, assets");

        let program = user::download_and_verify(place, &checkout, version)?;
        user::packages(place, version)?;
        let (major, minor) = moving(version);
        for reference in [&tag, &major, &minor, &commit] {
            action::uses(place, reference, &tag, self.only)?;
        }
        pages::publish_and_read_back(place, &checkout, &program)?;
        say("the rehearsal succeeded");
        Ok(())
    }

    /// Makes the bare clone with the tags of the release, and returns the commit.
    fn tagged(&self, tag: &str) -> Result<String> {
        let Rehearsal { place, sources, version, .. } = self;
        let shallow = place.git(sources, &["rev-parse", "--is-shallow-repository"])?;
        ensure!(
            shallow.trim() == "false",
            "{} is a shallow clone, from which nothing can be cloned over HTTP: git fetch --unshallow",
            sources.display()
        );
        let commit = place.git(sources, &["rev-parse", "HEAD"])?.trim().to_owned();
        let bare = place.path("www").join(place::REPOSITORY);
        let (from, to) = (sources.display().to_string(), bare.display().to_string());
        place.git(sources, &["clone", "--quiet", "--bare", &from, &to])?;
        place.git(&bare, &["tag", "--force", "--annotate", "--message", "rehearsal", tag, &commit])?;
        let (major, minor) = moving(version);
        for name in [&major, &minor] {
            place.git(&bare, &["tag", "--force", name, &commit])?;
        }
        place.git(&bare, &["update-server-info"])?;
        Ok(commit)
    }
}

/// The tags that maintainers move to each new release: `v1` and `v1.2` for 1.2.3.
fn moving(version: &str) -> (String, String) {
    let mut parts = version.split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    (format!("v{major}"), format!("v{major}.{minor}"))
}
