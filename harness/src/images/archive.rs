//! An image from an empty base as one file, made without an engine.
//!
//! Pure: the same content gives the same bytes. The file is in the format of `docker save` (one layer), which both
//! `docker load` and `ctr images import` read.
//! Format: <https://github.com/moby/docker-image-spec/blob/main/v1.2.md#combined-image-json--filesystem-changeset-format>.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// What an image holds.
#[derive(Clone, Debug)]
pub struct ImageContent<'a> {
    /// Its name with tag, e.g. `ccm-conformance.invalid/fake-cloud:0123456789ab`.
    pub reference: &'a str,
    /// Its files, in any order; folders come by themselves.
    pub files: &'a [ImageFile<'a>],
    /// The program and its first arguments.
    pub entrypoint: &'a [&'a str],
    /// Environment variables as `NAME=value`.
    pub env: &'a [&'a str],
    /// Labels.
    pub labels: &'a BTreeMap<String, String>,
}

/// A file of an image. It belongs to root.
#[derive(Clone, Copy, Debug)]
pub struct ImageFile<'a> {
    /// Absolute path.
    pub path: &'a str,
    /// Permission bits, e.g. `0o755`.
    pub mode: u32,
    /// Content.
    pub bytes: &'a [u8],
}

/// An image as one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageArchive {
    /// The tar file.
    pub bytes: Vec<u8>,
    /// What engines call the image's id: `sha256:` and the hash of its configuration.
    pub id: String,
}

/// Makes the image for this machine's processor architecture.
pub fn docker_archive(content: &ImageContent<'_>) -> ImageArchive {
    let layer = layer(content.files);
    let layer_hash = sha256(&layer);
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {
            "Entrypoint": content.entrypoint,
            "Env": content.env,
            "Labels": content.labels,
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer_hash}")] },
        "history": [{ "created": "1970-01-01T00:00:00Z", "created_by": "ccm-conformance" }],
    });
    let config = bytes_of(&config);
    let config_hash = sha256(&config);
    let (config_name, layer_name) = (format!("{config_hash}.json"), format!("{layer_hash}/layer.tar"));
    let manifest =
        json!([{ "Config": &config_name, "RepoTags": [content.reference], "Layers": [&layer_name] }]);

    let mut tar = Writer::new();
    tar.file(&config_name, 0o644, &config);
    tar.folder(&layer_hash);
    tar.file(&layer_name, 0o644, &layer);
    tar.file("manifest.json", 0o644, &bytes_of(&manifest));
    ImageArchive { bytes: tar.finish(), id: format!("sha256:{config_hash}") }
}

/// The file system of the image's only layer.
fn layer(files: &[ImageFile<'_>]) -> Vec<u8> {
    let files: BTreeMap<&str, &ImageFile<'_>> =
        files.iter().map(|file| (file.path.trim_start_matches('/'), file)).collect();
    let folders: BTreeSet<&str> =
        files.keys().flat_map(|path| path.match_indices('/').map(|(at, _)| &path[..at])).collect();
    let mut tar = Writer::new();
    for folder in folders {
        tar.folder(folder);
    }
    for (path, file) in files {
        tar.file(path, file.mode, file.bytes);
    }
    tar.finish()
}

/// Go's name for this machine's architecture, as images carry it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn bytes_of(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// The hash in the hexadecimal form images use.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A tar file with nothing of this machine and this moment in it.
struct Writer {
    builder: tar::Builder<Vec<u8>>,
}

impl Writer {
    fn new() -> Writer {
        Writer { builder: tar::Builder::new(Vec::new()) }
    }

    fn folder(&mut self, path: &str) {
        self.entry(&format!("{path}/"), tar::EntryType::Directory, 0o755, &[]);
    }

    fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) {
        self.entry(path, tar::EntryType::Regular, mode, bytes);
    }

    fn entry(&mut self, path: &str, kind: tar::EntryType, mode: u32, bytes: &[u8]) {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(bytes.len() as u64);
        self.builder.append_data(&mut header, path, bytes).expect("writing to memory cannot fail");
    }

    fn finish(self) -> Vec<u8> {
        self.builder.into_inner().expect("writing to memory cannot fail")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn image(files: &[ImageFile<'_>]) -> ImageArchive {
        let labels = BTreeMap::from([("who".to_owned(), "test".to_owned())]);
        docker_archive(&ImageContent {
            reference: "ccm-conformance.invalid/thing:1",
            files,
            entrypoint: &["/thing"],
            env: &["PATH=/"],
            labels: &labels,
        })
    }

    const THING: ImageFile<'_> = ImageFile { path: "/thing", mode: 0o755, bytes: b"program" };
    const NOTE: ImageFile<'_> = ImageFile { path: "/etc/thing/note", mode: 0o644, bytes: b"text" };

    /// Path, permission bits and content of everything in a tar file.
    fn entries(bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut archive = tar::Archive::new(bytes);
        let entries = archive.entries().expect("a tar file");
        entries
            .map(|entry| {
                let mut entry = entry.expect("a sound entry");
                let header = entry.header();
                assert_eq!(
                    (header.mtime().ok(), header.uid().ok(), header.gid().ok()),
                    (Some(0), Some(0), Some(0))
                );
                let (mode, path) =
                    (header.mode().expect("a mode"), entry.path().expect("a path").display().to_string());
                let mut content = Vec::new();
                entry.read_to_end(&mut content).expect("content");
                (path, mode, content)
            })
            .collect()
    }

    #[test]
    fn the_same_content_gives_the_same_bytes_in_whatever_order_it_is_given() {
        assert_eq!(image(&[THING, NOTE]), image(&[NOTE, THING]));
        assert_ne!(image(&[THING]).id, image(&[ImageFile { mode: 0o555, ..THING }]).id);
    }

    #[test]
    fn the_manifest_leads_to_configuration_and_layer_and_their_hashes_hold() {
        let made = image(&[THING, NOTE]);
        let outer = entries(&made.bytes);
        let find = |name: &str| &outer.iter().find(|(path, ..)| path == name).expect("it is listed").2;
        let manifest: Value = serde_json::from_slice(find("manifest.json")).expect("JSON");
        assert_eq!(manifest[0]["RepoTags"], json!(["ccm-conformance.invalid/thing:1"]));
        let config_bytes = find(manifest[0]["Config"].as_str().expect("a name"));
        assert_eq!(made.id, format!("sha256:{}", sha256(config_bytes)));
        let layer = find(manifest[0]["Layers"][0].as_str().expect("a name"));
        let config: Value = serde_json::from_slice(config_bytes).expect("JSON");
        assert_eq!(config["rootfs"]["diff_ids"][0], json!(format!("sha256:{}", sha256(layer))));
        assert_eq!(config["config"]["Entrypoint"], json!(["/thing"]));
        let inner: Vec<(String, u32)> =
            entries(layer).into_iter().map(|(path, mode, _)| (path, mode)).collect();
        let expected = [("etc/", 0o755), ("etc/thing/", 0o755), ("etc/thing/note", 0o644), ("thing", 0o755)];
        assert_eq!(inner, expected.map(|(path, mode)| (path.to_owned(), mode)));
    }
}
