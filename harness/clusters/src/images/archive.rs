//! Images without a base image as one file, created without an engine.
//!
//! Pure: the same content gives the same bytes. The file is in the format of `docker save`, its images share their one
//! layer; both
//! `docker load` and `ctr images import` read.
//! Format: <https://github.com/moby/docker-image-spec/blob/main/v1.2.md#combined-image-json--filesystem-changeset-format>.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// The common contents of images that differ only in what they run.
#[derive(Clone, Copy, Debug)]
pub struct ImageContent<'a> {
    /// Their files, in any order; folders are added automatically.
    pub files: &'a [ImageFile<'a>],
    /// Environment variables as `NAME=value`.
    pub env: &'a [&'a str],
}

/// The distinguishing properties of an image.
#[derive(Clone, Debug)]
pub struct ImageRun {
    /// Its name with tag, e.g. `ccm-conformance.invalid/fake-cloud:0123456789ab`.
    pub reference: String,
    /// The program and its first arguments.
    pub entrypoint: Vec<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
}

/// A file of an image. It belongs to root.
#[derive(Clone, Copy, Debug)]
pub struct ImageFile<'a> {
    /// Absolute path; one that ends in `/` is an empty folder with these permissions.
    pub path: &'a str,
    /// Permission bits, e.g. `0o755`.
    pub mode: u32,
    /// Content.
    pub bytes: &'a [u8],
}

/// Images as one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageArchive {
    /// The tar file.
    pub bytes: Vec<u8>,
    /// What engines call each image's id: `sha256:` and the hash of its configuration.
    pub ids: Vec<String>,
}

/// Makes these images for this machine's processor architecture.
pub fn docker_archive(content: ImageContent<'_>, images: &[ImageRun]) -> ImageArchive {
    let layer = layer(content.files);
    let layer_hash = sha256(&layer);
    let layer_name = format!("{layer_hash}/layer.tar");
    let mut tar = Writer::new();
    tar.folder(&layer_hash);
    tar.file(&layer_name, 0o644, &layer);
    let (mut manifest, mut ids) = (Vec::new(), Vec::new());
    for image in images {
        let config = config(content, image, &layer_hash);
        let hash = sha256(&config);
        let name = format!("{hash}.json");
        tar.file(&name, 0o644, &config);
        manifest.push(json!({ "Config": name, "RepoTags": [image.reference], "Layers": [layer_name] }));
        ids.push(format!("sha256:{hash}"));
    }
    tar.file("manifest.json", 0o644, &bytes_of(&Value::Array(manifest)));
    ImageArchive { bytes: tar.finish(), ids }
}

/// A reference as containerd keeps it and as kubelets ask for it, which write a short one out.
fn full_name(reference: &str) -> String {
    match reference.split_once('/') {
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => reference.to_owned(),
        Some(_) => format!("docker.io/{reference}"),
        None => format!("docker.io/library/{reference}"),
    }
}

/// One image in the format of the Open Container Initiative, which `docker load` reads as well.
/// Format: <https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md>.
pub fn oci_archive(content: ImageContent<'_>, image: &ImageRun) -> ImageArchive {
    let layer = layer(content.files);
    let layer_hash = sha256(&layer);
    let config = config(content, image, &layer_hash);
    let blob = |kind: &str, bytes: &[u8]| {
        json!({
            "mediaType": format!("application/vnd.oci.image.{kind}"),
            "digest": format!("sha256:{}", sha256(bytes)), "size": bytes.len(),
        })
    };
    let manifest = bytes_of(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob("config.v1+json", &config),
        "layers": [blob("layer.v1.tar", &layer)],
    }));
    let mut described = blob("manifest.v1+json", &manifest);
    let tag = image.reference.rsplit_once(':').map_or("latest", |(_, tag)| tag);
    described["annotations"] = json!({ "org.opencontainers.image.ref.name": tag, "io.containerd.image.name": full_name(&image.reference) });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [described],
    });
    let place = |bytes: &[u8]| format!("blobs/sha256/{}", sha256(bytes));
    let loaded = json!([{
        "Config": place(&config), "RepoTags": [image.reference], "Layers": [place(&layer)],
    }]);
    let mut tar = Writer::new();
    ["blobs", "blobs/sha256"].into_iter().for_each(|folder| tar.folder(folder));
    for bytes in [&layer, &config, &manifest] {
        tar.file(&place(bytes), 0o644, bytes);
    }
    tar.file("index.json", 0o644, &bytes_of(&index));
    tar.file("manifest.json", 0o644, &bytes_of(&loaded));
    tar.file("oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#);
    ImageArchive { bytes: tar.finish(), ids: vec![format!("sha256:{}", sha256(&config))] }
}

/// What engines know of an image besides its files.
fn config(content: ImageContent<'_>, image: &ImageRun, layer_hash: &str) -> Vec<u8> {
    bytes_of(&json!({
        "architecture": architecture(),
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {
            "Entrypoint": image.entrypoint,
            "Env": content.env,
            "Labels": image.labels,
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer_hash}")] },
        "history": [{ "created": "1970-01-01T00:00:00Z", "created_by": "ccm-conformance" }],
    }))
}

/// The file system of the only layer.
fn layer(files: &[ImageFile<'_>]) -> Vec<u8> {
    let files: BTreeMap<&str, &ImageFile<'_>> =
        files.iter().map(|file| (file.path.trim_start_matches('/'), file)).collect();
    let above = |path: &&'_ str| -> Vec<usize> {
        path.trim_end_matches('/').match_indices('/').map(|(at, _)| at).collect()
    };
    let folders: BTreeSet<&str> =
        files.keys().flat_map(|path| above(path).into_iter().map(|at| &path[..at])).collect();
    let mut tar = Writer::new();
    for folder in folders {
        tar.folder(folder);
    }
    for (path, file) in files {
        if path.ends_with('/') {
            tar.entry(path, tar::EntryType::Directory, file.mode, &[]);
        } else {
            tar.file(path, file.mode, file.bytes);
        }
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
        let run = |name: &str| ImageRun {
            reference: format!("ccm-conformance.invalid/{name}:1"),
            entrypoint: vec!["/thing".to_owned(), name.to_owned()],
            labels: BTreeMap::from([("who".to_owned(), "test".to_owned())]),
        };
        docker_archive(ImageContent { files, env: &["PATH=/"] }, &[run("one"), run("other")])
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
        assert_ne!(image(&[THING]).ids, image(&[ImageFile { mode: 0o555, ..THING }]).ids);
    }

    #[test]
    fn kubelets_find_an_image_of_a_short_name_that_was_imported() {
        for (reference, full) in [
            ("thing:7", "docker.io/library/thing:7"),
            ("team/thing:7", "docker.io/team/thing:7"),
            ("localhost/thing:7", "localhost/thing:7"),
            ("registry.invalid:5000/thing:7", "registry.invalid:5000/thing:7"),
        ] {
            assert_eq!(full_name(reference), full);
        }
    }

    #[test]
    fn an_image_of_the_initiative_leads_from_index_to_layer_and_engines_find_their_own_manifest() {
        let run = ImageRun {
            reference: "ccm-conformance.invalid/thing:7".to_owned(),
            entrypoint: vec!["/thing".to_owned()],
            labels: BTreeMap::new(),
        };
        let temporary = ImageFile { path: "/tmp/", mode: 0o1777, bytes: b"" };
        let made = oci_archive(ImageContent { files: &[THING, temporary], env: &["PATH=/"] }, &run);
        let outer = entries(&made.bytes);
        let find = |name: &str| &outer.iter().find(|(path, ..)| path == name).expect("it is listed").2;
        let read = |name: &str| serde_json::from_slice::<Value>(find(name)).expect("JSON");
        let blob = |of: &Value| {
            let digest = of["digest"].as_str().expect("a digest").trim_start_matches("sha256:").to_owned();
            let bytes = find(&format!("blobs/sha256/{digest}"));
            assert_eq!((sha256(bytes), &of["size"]), (digest, &json!(bytes.len())));
            bytes.clone()
        };
        assert_eq!(read("oci-layout")["imageLayoutVersion"], "1.0.0");
        let described = &read("index.json")["manifests"][0];
        assert_eq!(described["annotations"]["org.opencontainers.image.ref.name"], "7");
        let manifest: Value = serde_json::from_slice(&blob(described)).expect("JSON");
        let config: Value = serde_json::from_slice(&blob(&manifest["config"])).expect("JSON");
        let layer = blob(&manifest["layers"][0]);
        assert_eq!(config["rootfs"]["diff_ids"][0], json!(format!("sha256:{}", sha256(&layer))));
        let inner: Vec<(String, u32)> =
            entries(&layer).into_iter().map(|(path, mode, _)| (path, mode)).collect();
        assert_eq!(inner, [("thing".to_owned(), 0o755), ("tmp/".to_owned(), 0o1777)]);
        let loaded = read("manifest.json");
        assert_eq!(find(loaded[0]["Layers"][0].as_str().expect("a name")), &layer);
        assert_eq!(made.ids, [manifest["config"]["digest"].as_str().expect("a digest")]);
    }

    #[test]
    fn the_manifest_leads_to_configuration_and_layer_and_their_hashes_hold() {
        let made = image(&[THING, NOTE]);
        let outer = entries(&made.bytes);
        let find = |name: &str| &outer.iter().find(|(path, ..)| path == name).expect("it is listed").2;
        let manifest: Value = serde_json::from_slice(find("manifest.json")).expect("JSON");
        let mut layers = Vec::new();
        for (at, name) in ["one", "other"].into_iter().enumerate() {
            assert_eq!(manifest[at]["RepoTags"], json!([format!("ccm-conformance.invalid/{name}:1")]));
            let config_bytes = find(manifest[at]["Config"].as_str().expect("a name"));
            assert_eq!(made.ids[at], format!("sha256:{}", sha256(config_bytes)));
            let layer = find(manifest[at]["Layers"][0].as_str().expect("a name"));
            let config: Value = serde_json::from_slice(config_bytes).expect("JSON");
            assert_eq!(config["rootfs"]["diff_ids"][0], json!(format!("sha256:{}", sha256(layer))));
            assert_eq!(config["config"]["Entrypoint"], json!(["/thing", name]));
            layers.push(layer);
        }
        assert!(std::ptr::eq(layers[0], layers[1]), "both are made of the same layer");
        let layer = layers[0];
        let inner: Vec<(String, u32)> =
            entries(layer).into_iter().map(|(path, mode, _)| (path, mode)).collect();
        let expected = [("etc/", 0o755), ("etc/thing/", 0o755), ("etc/thing/note", 0o644), ("thing", 0o755)];
        assert_eq!(inner, expected.map(|(path, mode)| (path.to_owned(), mode)));
    }
}
