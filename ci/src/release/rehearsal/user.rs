//! What a user does with a published release: downloads it, checks it with the commands of the book, and
//! installs it with a package manager.

use super::place::{Place, REPOSITORY};
use crate::process::{is_installed, say};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The page with the commands of a user, and their section.
const PAGE: (&str, &str) = ("docs/release.md", "\n## Check a download\n");

/// Downloads every asset, checks them as the book describes, and returns the program. Changed assets have to be
/// refused.
///
/// # Errors
/// A command of the book fails, or accepts a changed file.
pub(super) fn download_and_verify(place: &Place, checkout: &Path, version: &str) -> Result<PathBuf> {
    let folder = place.path("user");
    fs::create_dir(&folder)?;
    download(place, version, "SHA256SUMS", &folder)?;
    let sums = fs::read_to_string(folder.join("SHA256SUMS"))?;
    let names: Vec<&str> = sums.lines().filter_map(|line| line.get(66..)).collect();
    for name in &names {
        download(place, version, name, &folder)?;
    }
    let page = fs::read_to_string(checkout.join(PAGE.0)).context(PAGE.0)?;
    let commands = commands(&page, place, version)?;
    for command in &commands {
        place.run(&folder, &["bash", "-c", command], &[]).context("a command of the book")?;
        say(&format!("as a user: {command}"));
    }
    bill_of_materials(&folder, version)?;

    let program = names.iter().find(|name| is_program_of_this_machine(name)).copied();
    let program = program.context("the release has no program for this machine")?;
    let changed = place.path("changed");
    fs::create_dir(&changed)?;
    for name in ["SHA256SUMS", program] {
        fs::copy(folder.join(name), changed.join(name))?;
    }
    fs::OpenOptions::new().append(true).open(changed.join(program))?.write_all(b"x")?;
    let verifies = ["gh", "attestation", "verify", program, "--repo", REPOSITORY];
    let sums = ["sha256sum", "--check", "--ignore-missing", "SHA256SUMS"];
    for refuses in [&sums[..], &verifies[..]] {
        let (accepted, _) = place.attempt(&changed, refuses, &[])?;
        ensure!(!accepted, "'{}' accepts a program that was changed", refuses.join(" "));
    }
    let (accepted, _) = place.attempt(
        &folder,
        &["gh", "attestation", "verify", program, "--repo", "another/repository"],
        &[],
    )?;
    ensure!(!accepted, "the provenance of {program} is accepted for another repository");
    say("as a user: a changed program and another repository are refused");

    let program = folder.join(program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    let said = place.run(&folder, &[&program.display().to_string(), "--version"], &[])?;
    ensure!(said.contains(version), "the program says it is {said}");
    Ok(program)
}

/// Downloads an asset of the release.
fn download(place: &Place, version: &str, name: &str, folder: &Path) -> Result<()> {
    let url = format!("{}/releases/download/v{version}/{name}", place.repository());
    fetch(place, &url, folder)
}

fn fetch(place: &Place, url: &str, folder: &Path) -> Result<()> {
    let words = ["curl", "--fail", "--silent", "--show-error", "--remote-name", url];
    place.run(folder, &words, &[]).map(drop)
}

/// The commands of the book for this release.
fn commands(page: &str, place: &Place, version: &str) -> Result<Vec<String>> {
    let section = page.split_once(PAGE.1).map(|(_, rest)| rest);
    let block =
        section.and_then(|rest| rest.split_once("```sh\n")).and_then(|(_, rest)| rest.split_once("```"));
    let (block, _) =
        block.with_context(|| format!("{} has no commands after '{}'", PAGE.0, PAGE.1.trim()))?;
    let adapt = |line: &str| {
        line.replace("ghcr.io/OWNER/REPO", &place.image())
            .replace("OWNER/REPO", REPOSITORY)
            .replace("VERSION", version)
    };
    let commands: Vec<String> = block.lines().map(adapt).collect();
    for part in ["sha256sum --check", "gh attestation verify oci://"] {
        ensure!(commands.iter().any(|one| one.starts_with(part)), "{} has no command '{part}'", PAGE.0);
    }
    Ok(commands)
}

/// Whether a file of the release is the program for this machine.
fn is_program_of_this_machine(name: &str) -> bool {
    let machine = if cfg!(target_arch = "x86_64") { "-linux-amd64" } else { "-linux-arm64" };
    name.ends_with(machine)
}

/// Checks that the bill of materials lists crates.
fn bill_of_materials(folder: &Path, version: &str) -> Result<()> {
    let file = folder.join(format!("ccm-conformance-{version}.cdx.json"));
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let bill: Value = serde_json::from_str(&text).context("the bill of materials")?;
    ensure!(bill["bomFormat"] == "CycloneDX", "{} is not in CycloneDX format", file.display());
    let components = bill["components"].as_array().map_or(0, Vec::len);
    ensure!(components > 0, "{} lists no component", file.display());
    say(&format!("as a user: the bill of materials lists {components} components"));
    Ok(())
}

/// Downloads what the formula and the krew manifest name, and renders the chart if Helm is installed.
///
/// # Errors
/// A download is missing or another file than described, or the chart is not valid.
pub(super) fn packages(place: &Place, version: &str) -> Result<()> {
    let folder = place.path("user");
    let formula = fs::read_to_string(folder.join("ccm-conformance.rb")).context("the formula")?;
    let quoted = |word: &str| {
        let lines = formula.lines().filter(|line| line.trim().starts_with(&format!("{word} \"")));
        lines.filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut downloads: Vec<(String, String)> = quoted("url").into_iter().zip(quoted("sha256")).collect();
    let krew: Value = serde_saphyr::from_str(&fs::read_to_string(folder.join("krew.yaml"))?)?;
    for platform in krew["spec"]["platforms"].as_array().into_iter().flatten() {
        let text = |key: &str| platform[key].as_str().unwrap_or_default().to_owned();
        downloads.push((text("uri"), text("sha256")));
    }
    ensure!(downloads.len() >= 2, "formula and krew manifest name {} downloads", downloads.len());
    let managers = place.path("managers");
    fs::create_dir(&managers)?;
    for (url, sha256) in &downloads {
        fetch(place, url, &managers)?;
        let name = url.rsplit('/').next().unwrap_or_default();
        let found: String =
            Sha256::digest(fs::read(managers.join(name))?).iter().map(|byte| format!("{byte:02x}")).collect();
        if found != *sha256 {
            bail!("{url} has the SHA-256 {found}, and the package says {sha256}");
        }
    }
    say(&format!("packages: {} downloads are as the formula and the krew manifest say", downloads.len()));
    chart(place, &folder, version)
}

/// Renders the chart.
fn chart(place: &Place, folder: &Path, version: &str) -> Result<()> {
    if !is_installed("helm", &["version"]) {
        say("packages: helm is not installed, so the chart was not rendered");
        return Ok(());
    }
    let chart = format!("ccm-conformance-{version}.tgz");
    place.run(folder, &["helm", "lint", "--strict", &chart], &[])?;
    let own = ["--set", "profile=acme", "--set", "args={--quick}", "--set", "results.claim=mine"];
    for (values, claims) in [(&[][..], 1), (&own[..], 0)] {
        let words = [&["helm", "template", "one", &chart, "--namespace", "place"][..], values].concat();
        let made = place.run(folder, &words, &[])?;
        let documents: Vec<Value> = serde_saphyr::from_multiple(&made).with_context(|| made.clone())?;
        let count = |kind: &str| documents.iter().filter(|one| one["kind"] == kind).count();
        ensure!(
            (count("Pod"), count("ClusterRole"), count("PersistentVolumeClaim")) == (1, 1, claims),
            "the chart with {values:?} is\n{made}"
        );
    }
    say("packages: helm accepts and renders the chart");
    Ok(())
}
