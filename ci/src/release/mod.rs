//! `cargo xtask release`: all files of a release, in one folder.
//!
//! A static program for each target, its image without a base, an archive of files for shells, manuals,
//! editors and clusters, a Helm chart, what package managers read, a bill of materials and checksums. The version is Cargo's; the tag of a tagged
//! commit must be the same.

mod archive;
mod assets;
mod bare;
mod build;
mod chart;
mod elf;
mod names;
mod packages;
pub(crate) mod rehearsal;
mod sbom;
#[cfg(test)]
mod tests;
mod version;

use crate::process::{root, say};
use anyhow::{Context, Result};
use assets::{Built, Release};
use names::PROGRAM;
use std::fs;
use std::path::PathBuf;
use version::Version;

/// What is released, and whether it is tested.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Folder to write; its content is removed first
    #[arg(long, value_name = "DIR", default_value = "target/release-files")]
    out: PathBuf,
    /// Rust's name for a machine to build for; may be repeated [default: this machine]
    #[arg(long, value_name = "TRIPLE")]
    target: Vec<String>,
    /// Cargo profile
    #[arg(long, value_name = "NAME", default_value = "bench")]
    profile: String,
    /// Program for this machine that is already built
    #[arg(long, value_name = "PATH", conflicts_with = "target")]
    program: Option<PathBuf>,
    /// Bill of materials that is already written [default: one written by cargo-cyclonedx]
    #[arg(long, value_name = "PATH")]
    bill: Option<PathBuf>,
    /// Name of the image without a tag, for the image and for the manifests that run it inside a cluster
    #[arg(long, value_name = "NAME", default_value = PROGRAM)]
    image: String,
    /// URL of the repository that publishes the release, for the Homebrew formula and the krew manifest
    /// [default: these two are not written]
    #[arg(long, value_name = "URL", value_parser = url)]
    repository: Option<String>,
    /// Then use the program in a root folder with no other file: doctor, init, run, verify
    #[arg(long = "try")]
    tried: bool,
}

/// Makes the folder.
///
/// # Errors
/// A program could not be built, a tool is missing, a tag contradicts the version, or the result does not work.
pub(crate) fn release(options: &Options) -> Result<()> {
    let version = Version::here()?;
    let host = build::host()?;
    if options.bill.is_none() {
        sbom::tool()?;
    }
    let targets = if options.target.is_empty() { vec![host.clone()] } else { options.target.clone() };
    let built: Result<Vec<Built>> = match &options.program {
        Some(program) => Ok(vec![Built { target: host.clone(), path: program.clone() }]),
        None => {
            targets.iter().map(|target| build::build(target, &host, &options.profile, &version)).collect()
        }
    };
    let built = built?;
    let out = root().join(&options.out);
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("removing {}", out.display()))?;
    }
    fs::create_dir_all(&out).with_context(|| format!("making {}", out.display()))?;
    let release = Release {
        out: &out,
        version: &version,
        host: &host,
        image: &options.image,
        repository: options.repository.as_deref(),
    };
    release.write(&built, |file| match &options.bill {
        Some(bill) => sbom::copy(bill, file),
        None => sbom::write(file, &targets),
    })?;
    if options.tried {
        bare::try_out(&release.program(&host))?;
    }
    say(&format!("wrote {}", out.display()));
    Ok(())
}

/// A URL without the slash at its end.
fn url(text: &str) -> Result<String, String> {
    let is_url = text.starts_with("https://") || text.starts_with("http://");
    if is_url && !text.contains(['"', ' ', '#']) {
        Ok(text.trim_end_matches('/').to_owned())
    } else {
        Err("expected a URL such as https://github.com/OWNER/REPO".to_owned())
    }
}
