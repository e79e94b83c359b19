//! `cargo xtask release`: everything that is given to others, in one folder.
//!
//! A static program for each target, its image from an empty base, what shells, manuals and editors want to know of it, a
//! bill of materials and checksums. The version is Cargo's, and a commit that is tagged has to be tagged with it.

mod bare;
mod sbom;
mod version;

use crate::process::{is_installed, root, run, said, say};
use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use version::Version;

/// The program's name.
const PROGRAM: &str = "ccm-conformance";
/// Shells that get completions, and what their files are called.
const SHELLS: &[(&str, &str)] =
    &[("bash", "ccm-conformance.bash"), ("zsh", "_ccm-conformance"), ("fish", "ccm-conformance.fish")];
/// Where the manifests are that run the image inside a cluster.
const IN_CLUSTER: &str = "ci/in-cluster";
/// Files with a JSON Schema.
const SCHEMAS: &[&str] = &["profile", "run", "report", "events"];

/// What is released, and whether it is tried.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// The folder to write; what is in it goes.
    #[arg(long, value_name = "DIR", default_value = "target/release-files")]
    out: PathBuf,
    /// Rust's name for a machine to build for; may be repeated. Without it this machine's.
    #[arg(long, value_name = "TRIPLE")]
    target: Vec<String>,
    /// Cargo's profile.
    #[arg(long, value_name = "NAME", default_value = "bench")]
    profile: String,
    /// A program for this machine that is built already.
    #[arg(long, value_name = "PATH", conflicts_with = "target")]
    program: Option<PathBuf>,
    /// Then use it as somebody would who has nothing else: doctor, init, run, verify in a root folder with no other file.
    #[arg(long = "try")]
    tried: bool,
}

/// Makes the folder.
///
/// # Errors
/// A program could not be built, a tool is missing, a tag contradicts the version, or what was made does not work.
pub(crate) fn release(options: &Options) -> Result<()> {
    let version = Version::here()?;
    let host = host()?;
    let targets = if options.target.is_empty() { vec![host.clone()] } else { options.target.clone() };
    let out = root().join(&options.out);
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("removing {}", out.display()))?;
    }
    fs::create_dir_all(&out).with_context(|| format!("making {}", out.display()))?;
    for target in &targets {
        let built = match &options.program {
            Some(program) => program.clone(),
            None => build(target, &host, &options.profile, &version)?,
        };
        let name = format!("{PROGRAM}-{}-{}", version.name, machine(target));
        fs::copy(&built, out.join(&name)).with_context(|| format!("copying {}", built.display()))?;
        let program = out.join(&name);
        is_static(&program)?;
        if *target == host {
            describe(&program, &name, &version, &out)?;
        } else {
            say(&format!("{target} does not run here: its image is made where it does, by '{name} image'"));
        }
    }
    sbom::write(&out.join(format!("{PROGRAM}-{}.cdx.json", version.name)), &targets)?;
    checksums(&out)?;
    if options.tried {
        bare::try_out(&out.join(format!("{PROGRAM}-{}-{}", version.name, machine(&host))))?;
    }
    say(&format!("wrote {}", out.display()));
    Ok(())
}

/// Builds the program for a target.
fn build(target: &str, host: &str, profile: &str, version: &Version) -> Result<PathBuf> {
    let mut environment = vec![("CCM_CONFORMANCE_COMMIT".to_owned(), version.commit.clone())];
    if target != host {
        let linker = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
        let own = linkable(target)?;
        if std::env::var_os(&linker).is_none() {
            environment.push((linker, own));
        }
    }
    let arguments = [
        "build",
        "--locked",
        "--profile",
        profile,
        "--package",
        "suites",
        "--bin",
        PROGRAM,
        "--target",
        target,
    ];
    let environment: Vec<(&str, &str)> =
        environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    run("cargo", &arguments, &environment)?;
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    // Cargo's names of these two are not those of their folders.
    let profile = match profile {
        "bench" => "release",
        "dev" => "debug",
        other => other,
    };
    Ok(folder.join(target).join(profile).join(PROGRAM))
}

/// The linker for programs for another machine, which are made here where Rust's library for it is here, too.
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

/// The image, completions, manuals and schemas of a program that runs here.
fn describe(program: &Path, name: &str, version: &Version, out: &Path) -> Result<()> {
    let program = program.to_str().context("the folder's name is not UTF-8")?;
    let image = out.join(format!("{name}.image.tar"));
    let reference = format!("{PROGRAM}:{}", version.name);
    run(program, &["image", "--out", &image.to_string_lossy(), "--reference", &reference], &[])?;
    in_cluster(&reference, &out.join("in-cluster"))?;
    run(program, &["man", "--out", &out.join("man").to_string_lossy()], &[])?;
    let (completions, schemas) = (out.join("completions"), out.join("schemas"));
    fs::create_dir(&completions)?;
    fs::create_dir(&schemas)?;
    for (shell, file) in SHELLS {
        fs::write(completions.join(file), said(program, &["completions", shell])?)?;
    }
    for schema in SCHEMAS {
        fs::write(schemas.join(format!("{schema}.schema.json")), said(program, &["schema", schema])?)?;
    }
    let says = said(program, &["--version"])?;
    say(says.trim());
    if !says.contains(&version.cargo) {
        bail!("{program} says '{}', and the version is {}", says.trim(), version.cargo);
    }
    Ok(())
}

/// The manifests that run the image inside a cluster, with its name in them.
fn in_cluster(reference: &str, out: &Path) -> Result<()> {
    fs::create_dir(out)?;
    let folder = root().join(IN_CLUSTER);
    for file in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let file = file?;
        if file.path().extension().is_none_or(|end| end != "yaml") {
            continue;
        }
        let text = fs::read_to_string(file.path()).with_context(|| file.path().display().to_string())?;
        fs::write(
            out.join(file.file_name()),
            text.replace(&format!("image: {PROGRAM}:latest"), &format!("image: {reference}")),
        )?;
    }
    Ok(())
}

/// SHA-256 of each file, in the form that `sha256sum --check` reads.
fn checksums(out: &Path) -> Result<()> {
    let mut files = Vec::new();
    list(out, &mut files)?;
    files.sort();
    let mut text = String::new();
    for file in files {
        let bytes = fs::read(&file).with_context(|| file.display().to_string())?;
        let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        text.push_str(&format!("{hash}  {}\n", file.strip_prefix(out)?.display()));
    }
    fs::write(out.join("SHA256SUMS"), text)?;
    Ok(())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { list(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

/// A program that asks for another file to be loaded with it is not given to others.
fn is_static(program: &Path) -> Result<()> {
    let bytes = fs::read(program).with_context(|| program.display().to_string())?;
    match interpreter(&bytes) {
        Some(false) => Ok(()),
        Some(true) => bail!("{} is not static: it names an interpreter", program.display()),
        None => bail!("{} is no ELF program of 64 bits", program.display()),
    }
}

/// Whether a program of 64 bits has a header of the kind `PT_INTERP` (elf(5)).
fn interpreter(bytes: &[u8]) -> Option<bool> {
    const INTERPRETER: u32 = 3;
    let number = |at: usize, length: usize| -> Option<u64> {
        let mut all = [0; 8];
        all[..length].copy_from_slice(bytes.get(at..at + length)?);
        Some(u64::from_le_bytes(all))
    };
    if bytes.get(..6)? != [0x7f, b'E', b'L', b'F', 2, 1] {
        return None;
    }
    let place = |at, length| usize::try_from(number(at, length)?).ok();
    let (table, size, count) = (place(32, 8)?, place(54, 2)?, place(56, 2)?);
    let kinds = (0..count).map(|index| number(table + index * size, 4));
    Some(kinds.flatten().any(|kind| kind == u64::from(INTERPRETER)))
}

/// Rust's name for this machine.
fn host() -> Result<String> {
    let text = said("rustc", &["-vV"])?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("rustc does not name its host")?.to_owned())
}

/// A machine as others call it.
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
    fn a_program_that_needs_others_is_told_from_one_that_does_not() {
        let mut program = vec![0; 64 + 2 * 56];
        program[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        (program[32], program[54], program[56]) = (64, 56, 2);
        assert_eq!(interpreter(&program), Some(false));
        program[64 + 56] = 3;
        assert_eq!(interpreter(&program), Some(true));
        assert_eq!(interpreter(b"#!/bin/sh\n"), None);
    }

    #[test]
    fn manifests_name_the_image_of_the_release() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("in-cluster");
        in_cluster("ccm-conformance:1.2.3", &out).expect("manifests");
        for file in ["job.yaml", "sharded-job.yaml", "merge.yaml", "sonobuoy-plugin.yaml"] {
            let text = fs::read_to_string(out.join(file)).expect("a manifest");
            assert!(text.contains("image: ccm-conformance:1.2.3\n") && !text.contains(":latest"), "{file}");
        }
        assert!(out.join("base.yaml").is_file());
    }

    #[test]
    fn checksums_are_of_every_file_and_sorted() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("b")).expect("a folder");
        fs::write(folder.path().join("b/c"), "x").expect("a file");
        fs::write(folder.path().join("a"), "").expect("a file");
        checksums(folder.path()).expect("sums");
        let text = fs::read_to_string(folder.path().join("SHA256SUMS")).expect("a file");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a");
        assert!(lines[1].ends_with("  b/c") && lines.len() == 2, "{text}");
    }
}
