//! Builds the program for each machine that it is released for.

use super::assets::Built;
use super::names::PROGRAM;
use super::version::Version;
use crate::process::{is_installed, root, run, said};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// Rust's name for this machine.
///
/// # Errors
/// rustc cannot be run, or does not print it.
pub(super) fn host() -> Result<String> {
    let text = said("rustc", &["-vV"])?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("rustc does not name its host")?.to_owned())
}

/// Builds the program for a target with this Cargo profile.
///
/// # Errors
/// Rust's library or a linker for the target is missing, or the program does not compile.
pub(super) fn build(target: &str, host: &str, profile: &str, version: &Version) -> Result<Built> {
    let mut environment = vec![("CCM_CONFORMANCE_COMMIT".to_owned(), version.commit.clone())];
    if target != host {
        let linker = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
        let own = linkable(target)?;
        if std::env::var_os(&linker).is_none() {
            environment.push((linker, own));
        }
    }
    let environment: Vec<(&str, &str)> =
        environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let what = ["--package", "ccm-conformance", "--bin", PROGRAM, "--target", target];
    run("cargo", &[&["build", "--locked", "--profile", profile][..], &what].concat(), &environment)?;
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    // The folders of these two profiles have other names.
    let profile = match profile {
        "bench" => "release",
        "dev" => "debug",
        other => other,
    };
    Ok(Built { target: target.to_owned(), path: folder.join(target).join(profile).join(PROGRAM) })
}

/// Finds the linker for programs for another machine, which are built here if Rust's library for that machine
/// is installed.
fn linkable(target: &str) -> Result<String> {
    let library = said("rustc", &["--print", "target-libdir", "--target", target])?;
    if !Path::new(library.trim()).is_dir() {
        bail!(
            "{target} cannot be built here: Rust's library for it is missing; 'rustup target add {target}' gets it"
        );
    }
    let architecture = target.split('-').next().unwrap_or(target);
    let linker = format!("{architecture}-linux-gnu-gcc");
    if !is_installed(&linker, &["--version"]) {
        bail!(
            "{target} cannot be linked here: there is no {linker} (Debian: gcc-{}-linux-gnu and the C library's \
             development files for it)",
            architecture.replace('_', "-"),
        );
    }
    Ok(linker)
}
