//! What a node needs so that its kubelet runs a plugin: the program, a recorder in front of it, the configuration, and
//! the registry's address for the container runtime.

use super::configuration::{Provider, Variable};
use super::recorder::RECORDER;
use harness_core::files;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Port of the registry on the node; no Kubernetes component uses it.
pub const REGISTRY_PORT: u16 = 5047;
/// The folder of all these files on the node, without the first '/'.
pub const NODE_FOLDER: &str = "opt/ccm-conformance-credentials";
/// Maximum size of a file that is copied to a node, in bytes.
const LARGEST: u64 = 1 << 30;

/// The version of requests that kubelets of a minor version use and the plugin supports, which is also that of the
/// configuration file. `None` if there is none.
pub fn version_for(minor: u32, known: &[String]) -> Option<&'static str> {
    let served: &[&str] = match minor {
        26.. => &["v1", "v1beta1", "v1alpha1"],
        24.. => &["v1beta1", "v1alpha1"],
        _ => &["v1alpha1"],
    };
    let is_known = |version: &&&str| known.contains(&format!("credentialprovider.kubelet.k8s.io/{version}"));
    served.iter().find(is_known).copied()
}

/// Whether kubelets of a minor version pass service account tokens to plugins by default.
pub fn gives_tokens(minor: u32) -> bool {
    minor >= 34
}

/// A plugin to be installed on a node.
#[derive(Debug)]
pub struct OnNode<'a> {
    /// Its part of the configuration.
    pub provider: &'a Provider,
    /// Minor version of the kubelet.
    pub minor: u32,
    /// The version of its requests: the last part of its name.
    pub version: &'static str,
    /// Its program and first arguments.
    pub line: Vec<String>,
    /// The folder of its program, if that is a separate one.
    pub folder: Option<PathBuf>,
    /// Its variables in addition to the configuration's.
    pub environment: BTreeMap<String, String>,
    /// The registries that are replaced by the harness's on the node.
    pub registries: BTreeSet<String>,
    /// The harness's program.
    pub own_program: &'a Path,
}

/// The files for a node, and the settings of its kubelet for them.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeSetup {
    /// A tar archive of files below '/'.
    pub archive: PathBuf,
    /// The path of the harness's program on the node.
    pub program: String,
    /// Additional flags of its kubelet.
    pub kubelet_flags: Vec<String>,
    /// The registries that are replaced by the harness's on the node.
    pub registries: Vec<String>,
}

impl std::fmt::Debug for NodeSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeSetup").field("kubelet_flags", &self.kubelet_flags).finish_non_exhaustive()
    }
}

impl OnNode<'_> {
    /// Writes the archive, which contains secrets of the run.
    ///
    /// # Errors
    /// A program cannot be read, or the archive not be written.
    pub fn write(&self, archive: PathBuf) -> io::Result<NodeSetup> {
        let mut out = tar::Builder::new(private(&archive)?);
        let mut put = |path: &str, mode: u32, bytes: &[u8]| {
            let mut header = tar::Header::new_gnu();
            header.set_mode(mode);
            header.set_size(bytes.len() as u64);
            out.append_data(&mut header, path, bytes)
        };
        let program = format!("{NODE_FOLDER}/program");
        put(&program, 0o755, &files::bytes(self.own_program, LARGEST)?)?;
        let line = self.program(&program, &mut put)?;
        let script = recorded(&format!("/{program}"), &line);
        put(&format!("{NODE_FOLDER}/bin/{}", self.provider.name), 0o755, script.as_bytes())?;
        put(&format!("{NODE_FOLDER}/config.json"), 0o600, self.configuration().to_string().as_bytes())?;
        let hosts = format!(
            "server = \"{url}\"\n[host.\"{url}\"]\n  capabilities = [\"pull\", \"resolve\"]\n",
            url = registry_url()
        );
        for registry in &self.registries {
            put(&format!("etc/containerd/certs.d/{registry}/hosts.toml"), 0o644, hosts.as_bytes())?;
        }
        out.into_inner()?;
        let mut kubelet_flags = vec![
            format!("--image-credential-provider-config=/{NODE_FOLDER}/config.json"),
            format!("--image-credential-provider-bin-dir=/{NODE_FOLDER}/bin"),
        ];
        // Before 1.24 it is disabled by default.
        if self.minor < 24 {
            kubelet_flags.push("--feature-gates=KubeletCredentialProviders=true".to_owned());
        }
        let registries = self.registries.iter().cloned().collect();
        Ok(NodeSetup { archive, program: format!("/{program}"), kubelet_flags, registries })
    }

    /// Adds the plugin's program; returns its command line.
    fn program(
        &self,
        own: &str,
        put: &mut impl FnMut(&str, u32, &[u8]) -> io::Result<()>,
    ) -> io::Result<Vec<String>> {
        let mut line = self.line.clone();
        let path = PathBuf::from(&line[0]);
        if path == self.own_program {
            line[0] = format!("/{own}");
            return Ok(line);
        }
        // A program without a path is looked up on the node.
        if !path.is_absolute() || !path.is_file() {
            return Ok(line);
        }
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let neighbours =
            self.folder.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        let mut all: BTreeSet<PathBuf> =
            neighbours.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        all.insert(path.clone());
        for file in all {
            let mode = std::fs::metadata(&file)?.permissions().mode() & 0o777;
            put(&format!("{NODE_FOLDER}/plugin/{}", name(&file)), mode, &files::bytes(&file, LARGEST)?)?;
        }
        line[0] = format!("/{NODE_FOLDER}/plugin/{}", name(&path));
        Ok(line)
    }

    fn configuration(&self) -> Value {
        let Provider { name, match_images, default_cache_duration, args, env, token_attributes, .. } =
            self.provider;
        let own = self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let env: BTreeMap<&str, &str> =
            env.iter().map(|Variable { name, value }| (name.as_str(), value.as_str())).chain(own).collect();
        let env: Vec<Value> = env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        let mut provider = json!({
            "name": name,
            "apiVersion": format!("credentialprovider.kubelet.k8s.io/{}", self.version),
            "matchImages": match_images,
            "defaultCacheDuration": default_cache_duration,
            "args": args,
            "env": env,
        });
        if let Some(attributes) =
            token_attributes.as_ref().filter(|_| gives_tokens(self.minor) && self.version == "v1")
        {
            provider["tokenAttributes"] = json!(attributes);
        }
        json!({
            "apiVersion": format!("kubelet.config.k8s.io/{}", self.version),
            "kind": "CredentialProviderConfig",
            "providers": [provider],
        })
    }
}

/// A new file that only its owner can read.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)
}

fn registry_url() -> String {
    format!("http://127.0.0.1:{REGISTRY_PORT}")
}

/// The script that a kubelet runs as the plugin. Arguments from the configuration come last.
fn recorded(program: &str, line: &[String]) -> String {
    let quoted: Vec<String> = line.iter().map(|part| format!("'{}'", part.replace('\'', r"'\''"))).collect();
    format!("#!/bin/sh\nexec {program} {RECORDER} --to {} -- {} \"$@\"\n", registry_url(), quoted.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_asks_in_the_newest_version_that_both_know() {
        let known = |versions: &[&str]| -> Vec<String> {
            versions.iter().map(|one| format!("credentialprovider.kubelet.k8s.io/{one}")).collect()
        };
        let both = known(&["v1", "v1alpha1"]);
        assert_eq!(
            [36, 25, 20].map(|minor| version_for(minor, &both)),
            [Some("v1"), Some("v1alpha1"), Some("v1alpha1")]
        );
        assert_eq!([36, 25].map(|minor| version_for(minor, &known(&["v1"]))), [Some("v1"), None]);
    }

    #[test]
    fn a_node_gets_program_recorder_configuration_and_registries() {
        let folder = tempfile::tempdir().expect("a folder");
        let (own, bin) = (folder.path().join("own"), folder.path().join("bin"));
        std::fs::write(&own, "own").expect("written");
        std::fs::create_dir(&bin).expect("a folder");
        std::fs::write(bin.join("acme"), "plugin").expect("written");
        std::fs::write(bin.join("acme.conf"), "next to it").expect("written");
        let provider = Provider {
            name: "acme".into(),
            match_images: vec!["registry.acme.example".into()],
            default_cache_duration: Some("10m".into()),
            args: vec!["--it's".into()],
            token_attributes: Some(Default::default()),
            ..Provider::default()
        };
        let on_node = OnNode {
            provider: &provider,
            minor: 36,
            version: "v1",
            line: vec![bin.join("acme").display().to_string(), "get it".into()],
            folder: Some(bin),
            environment: [("ACME_TOKEN".to_owned(), "t".to_owned())].into(),
            registries: ["registry.acme.example:5000".to_owned()].into(),
            own_program: &own,
        };
        let setup = on_node.write(folder.path().join("setup.tar")).expect("an archive");
        assert_eq!(setup.kubelet_flags.len(), 2);
        let mode = std::fs::metadata(&setup.archive).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "there are secrets in it");
        let mut archive = tar::Archive::new(File::open(&setup.archive).expect("a file"));
        let mut found = BTreeMap::new();
        for entry in archive.entries().expect("entries") {
            let mut entry = entry.expect("an entry");
            let path = entry.path().expect("a path").display().to_string();
            let mut text = String::new();
            io::Read::read_to_string(&mut entry, &mut text).expect("a text");
            found.insert(path.replace(NODE_FOLDER, "@"), text);
        }
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        let hosts = "etc/containerd/certs.d/registry.acme.example:5000/hosts.toml";
        assert_eq!(
            names,
            ["@/bin/acme", "@/config.json", "@/plugin/acme", "@/plugin/acme.conf", "@/program", hosts]
        );
        assert!(found["@/bin/acme"].ends_with("/plugin/acme' 'get it' \"$@\"\n"), "{}", found["@/bin/acme"]);
        let config: Value = serde_json::from_str(&found["@/config.json"]).expect("JSON");
        assert_eq!(config["providers"][0]["env"], json!([{"name": "ACME_TOKEN", "value": "t"}]));
        assert!(config["providers"][0]["tokenAttributes"].is_object());
        let old = OnNode { minor: 23, version: "v1alpha1", ..on_node };
        assert!(old.configuration()["providers"][0].get("tokenAttributes").is_none());
        assert_eq!(old.write(folder.path().join("old.tar")).expect("an archive").kubelet_flags.len(), 3);
    }
}
