//! Assembles a release from a small program with the real code, and then uses it: it is downloaded by the
//! Action, checked by `sha256sum`, and published with programs that stand in for skopeo and gh.

use super::assets::{Built, Release};
use super::build::host;
use super::version::Version;
use crate::process::root;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];
const NAME: &str = "registry.example/owner/ccm-conformance";
const REPOSITORY: &str = "https://h.example/owner/name";

fn ran(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

pub(super) fn fine(command: &mut Command) -> String {
    let output = ran(command);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out.into_owned()
}

/// The program that stands in for ccm-conformance, compiled once.
fn stand_in() -> &'static [u8] {
    static PROGRAM: OnceLock<Vec<u8>> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("stand-in");
        let source = root().join("ci/src/release/stand-in.rs");
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition=2024", "-C", "target-feature=+crt-static", "-C", "strip=symbols", "-o"]);
        fine(rustc.arg(&program).arg(source));
        fs::read(program).expect("a program")
    })
}

/// The folder of a release for both machines, with this image; only this machine's program can run.
fn assembled(image: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    assembled_into(&folder.path().join("out"), image, REPOSITORY);
    folder
}

/// Writes the assets of a release for both machines.
pub(super) fn assembled_into(out: &Path, image: &str, repository: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("stand-in");
    fs::write(&program, stand_in()).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a file of ours");
    fs::create_dir(out).expect("a folder");
    let host = host().expect("rustc");
    let version = Version { cargo: "1.2.3".to_owned(), name: "1.2.3".to_owned(), commit: "abc".to_owned() };
    let built = TARGETS.map(|target| Built { target: target.to_owned(), path: program.clone() });
    let release = Release { out, version: &version, host: &host, image, repository: Some(repository) };
    let bill = "{\"bomFormat\": \"CycloneDX\", \"components\": [{\"name\": \"anyhow\"}]}\n";
    release.write(&built, |file| Ok(fs::write(file, bill)?)).expect("a release");
}

fn listed(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let files = entries.inspect(|path| assert!(path.is_file(), "{} is not a file", path.display()));
    files.map(|path| path.file_name().expect("a name").to_string_lossy().into_owned()).collect()
}

#[test]
fn a_release_is_files_with_their_checksums_and_every_schema() {
    let release = assembled(NAME);
    let out = release.path().join("out");
    let machine = if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" };
    let expected = BTreeSet::from([
        "ccm-conformance-1.2.3-linux-amd64".to_owned(),
        "ccm-conformance-1.2.3-linux-arm64".to_owned(),
        "ccm-conformance-1.2.3-linux-amd64.tar.gz".to_owned(),
        "ccm-conformance-1.2.3-linux-arm64.tar.gz".to_owned(),
        "ccm-conformance-1.2.3.tgz".to_owned(),
        "ccm-conformance.rb".to_owned(),
        "krew.yaml".to_owned(),
        format!("ccm-conformance-1.2.3-linux-{machine}.image.tar"),
        "ccm-conformance-1.2.3.cdx.json".to_owned(),
        "extras.tar.gz".to_owned(),
        "SHA256SUMS".to_owned(),
    ]);
    assert_eq!(listed(&out), expected);
    fine(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&out));
    let sums = fs::read_to_string(out.join("SHA256SUMS")).expect("a file");
    let summed: BTreeSet<String> = sums.lines().map(|line| line[66..].to_owned()).collect();
    assert_eq!(summed, expected.into_iter().filter(|name| name != "SHA256SUMS").collect());

    let extras =
        fine(Command::new("tar").args(["--list", "--gzip", "--file", "extras.tar.gz"]).current_dir(&out));
    for file in [
        "completions/_ccm-conformance",
        "completions/ccm-conformance.bash",
        "completions/ccm-conformance.fish",
        "in-cluster/job.yaml",
        "man/ccm-conformance.1",
        "schemas/events.schema.json",
        "schemas/profile.schema.json",
        "schemas/report.schema.json",
        "schemas/routes.schema.json",
        "schemas/run.schema.json",
    ] {
        assert!(extras.lines().any(|line| line == file), "{file} is missing of\n{extras}");
    }
    // The same twice, so that a second build can be compared.
    let again = assembled(NAME);
    let read = |folder: &TempDir| fs::read(folder.path().join("out/extras.tar.gz")).expect("a file");
    assert_eq!(read(&release), read(&again));
}

/// The SHA-256 of each asset according to the release.
fn sums(out: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(out.join("SHA256SUMS")).expect("a file");
    text.lines().map(|line| (line[66..].to_owned(), line[..64].to_owned())).collect()
}

/// Compares what a package manager downloads with the assets, and unpacks the archive for each machine.
fn is_an_asset(out: &Path, url: &str, sha256: &str, machine: &str) {
    let file = url.strip_prefix(&format!("{REPOSITORY}/releases/download/v1.2.3/"));
    let file = file.unwrap_or_else(|| panic!("{url} is not an asset of the release"));
    assert_eq!(file, format!("ccm-conformance-1.2.3-linux-{machine}.tar.gz"));
    assert_eq!(sums(out)[file], sha256, "{file}");
    let unpacked = tempfile::tempdir().expect("a folder");
    fine(Command::new("tar").arg("-xzf").arg(out.join(file)).arg("-C").arg(unpacked.path()));
    assert_eq!(listed(unpacked.path()), BTreeSet::from(["LICENSE".to_owned(), "ccm-conformance".to_owned()]));
    let said = fine(Command::new(unpacked.path().join("ccm-conformance")).arg("--version"));
    assert!(said.starts_with("ccm-conformance 1.2.3"), "{said}");
}

#[test]
fn the_formula_installs_the_archive_of_each_machine() {
    let release = assembled(NAME);
    let out = release.path().join("out");
    let formula = fs::read_to_string(out.join("ccm-conformance.rb")).expect("a file");
    let quoted = |line: &str| line.split('"').nth(1).unwrap_or_default().to_owned();
    for (machine, block) in [("amd64", "on_intel"), ("arm64", "on_arm")] {
        let mut lines = formula.lines().skip_while(|line| line.trim() != format!("{block} do")).skip(1);
        let url = lines.next().filter(|line| line.trim().starts_with("url ")).map(quoted);
        let sha256 = lines.next().filter(|line| line.trim().starts_with("sha256 ")).map(quoted);
        is_an_asset(&out, &url.expect("a URL"), &sha256.expect("a checksum"), machine);
    }
    for line in
        ["class CcmConformance < Formula", "  version \"1.2.3\"", "    bin.install \"ccm-conformance\""]
    {
        assert!(formula.lines().any(|one| one == line), "{line} is missing in\n{formula}");
    }
    let ends = formula.lines().filter(|line| line.trim() == "end").count();
    let begins = formula.lines().filter(|line| {
        let line = line.trim();
        line.starts_with("class ") || line.starts_with("def ") || line.ends_with(" do")
    });
    assert_eq!(begins.count(), ends, "{formula}");
}

#[test]
fn the_krew_manifest_installs_the_archive_of_each_machine() {
    let release = assembled(NAME);
    let out = release.path().join("out");
    let text = fs::read_to_string(out.join("krew.yaml")).expect("a file");
    let plugin: Value = serde_saphyr::from_str(&text).expect("YAML");
    assert!(text.contains("    uri: https://"), "URLs are readable: {text}");
    assert_eq!(plugin["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!(plugin["kind"], "Plugin");
    // The name of the file in krew's index.
    assert_eq!(plugin["metadata"]["name"], "ccm-conformance");
    assert_eq!(plugin["spec"]["version"], "v1.2.3");
    let short = plugin["spec"]["shortDescription"].as_str().expect("a text");
    assert!(!short.is_empty() && short.len() <= 50 && !short.ends_with('.'), "{short}");
    let platforms = plugin["spec"]["platforms"].as_array().expect("a list");
    assert_eq!(platforms.len(), 2);
    for (platform, machine) in platforms.iter().zip(["amd64", "arm64"]) {
        assert_eq!(platform["selector"]["matchLabels"], json!({"os": "linux", "arch": machine}));
        assert_eq!(platform["bin"], "ccm-conformance");
        let files: Vec<&str> = platform["files"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|file| file["from"].as_str())
            .collect();
        assert_eq!(files, ["ccm-conformance", "LICENSE"]);
        let text = |key: &str| platform[key].as_str().unwrap_or_default();
        is_an_asset(&out, text("uri"), text("sha256"), machine);
    }
}

#[test]
fn the_action_takes_a_release_as_it_was_written() {
    let release = assembled(NAME);
    fine(Command::new(root().join("ci/action/test")).arg(release.path().join("out")));
}

/// `ci/publish` with programs that stand in for skopeo and gh and record their arguments.
struct Publish {
    release: TempDir,
    bin: PathBuf,
}

impl Publish {
    fn of(image: &str) -> Publish {
        let release = assembled(image);
        let bin = release.path().join("bin");
        fs::create_dir(&bin).expect("a folder");
        let fake = |name: &str, more: &str| {
            let (path, asked) = (bin.join(name), release.path().join("asked"));
            let text = format!("#!/bin/sh\necho {name} \"$@\" >> '{}'\n{more}", asked.display());
            fs::write(&path, text).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a file of ours");
        };
        fake("skopeo", "printf 'sha256:%064d' 7 > \"$3\"\n");
        fake("gh", "");
        Publish { release, bin }
    }

    fn out(&self) -> PathBuf {
        self.release.path().join("out")
    }

    /// Whether it ended with 0, and its output on standard error.
    fn run(&self, what: &str, more: &[&str]) -> (bool, String) {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(root().join("ci/publish"));
        command.arg(what).arg(self.out()).args(more).stdin(Stdio::null());
        command.env("PATH", format!("{}:{path}", self.bin.display()));
        command.env("GITHUB_OUTPUT", self.release.path().join("outputs"));
        let output = ran(&mut command);
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.release.path().join(name)).unwrap_or_default()
    }
}

#[test]
fn the_image_is_pushed_where_the_manifests_look_for_it_and_every_asset_is_uploaded() {
    let publish = Publish::of(NAME);
    let (ended_well, said) = publish.run("image", &[]);
    assert!(ended_well, "{said}");
    let asked = publish.read("asked");
    let machine = if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" };
    assert!(asked.starts_with("skopeo copy --digestfile "), "{asked}");
    let pushed =
        format!(" oci-archive:ccm-conformance-1.2.3-linux-{machine}.image.tar docker://{NAME}:1.2.3\n");
    assert!(asked.ends_with(&pushed), "{asked}");
    assert_eq!(publish.read("outputs"), format!("name={NAME}\ndigest=sha256:{:064}\n", 7));

    let (ended_well, said) = publish.run("assets", &["v1.2.3"]);
    assert!(ended_well, "{said}");
    let asked = publish.read("asked");
    let uploaded = asked
        .lines()
        .find_map(|line| line.strip_prefix("gh release create v1.2.3 --verify-tag --generate-notes -- "));
    let uploaded: BTreeSet<String> = uploaded.expect("gh was asked").split(' ').map(str::to_owned).collect();
    assert_eq!(uploaded, listed(&publish.out()));
}

#[test]
fn an_incomplete_release_is_not_published() {
    let no_registry = Publish::of("ccm-conformance");
    let (ended_well, said) = no_registry.run("image", &[]);
    assert!(
        !ended_well && said.contains("have to name one image of a registry, and name: ccm-conformance:1.2.3"),
        "{said}"
    );

    let other_tag = Publish::of(NAME);
    let (ended_well, said) = other_tag.run("assets", &["v1.2.4"]);
    assert!(!ended_well && said.contains("the folder is not of the tag v1.2.4"), "{said}");

    let more = Publish::of(NAME);
    fs::write(more.out().join("notes.txt"), "").expect("a file");
    let (ended_well, said) = more.run("assets", &["v1.2.3"]);
    assert!(!ended_well && said.contains("notes.txt"), "{said}");

    let changed = Publish::of(NAME);
    let file = fs::OpenOptions::new().append(true).open(changed.out().join("extras.tar.gz"));
    file.and_then(|mut file| file.write_all(b"x")).expect("a file of ours");
    let (ended_well, said) = changed.run("image", &[]);
    assert!(!ended_well && said.contains("extras.tar.gz: FAILED"), "{said}");
    for publish in [no_registry, other_tag, more, changed] {
        assert_eq!(publish.read("asked"), "", "nothing was pushed or uploaded");
    }
}
