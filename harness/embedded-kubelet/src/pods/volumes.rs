//! The files of a Pod's volumes: their content is computed, then written, readable by this user alone.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, KeyToPath, Pod, Volume};

use super::facts::{Facts, Refusal};

/// Folders of this computer that programs may see unchanged: certificates that all programs trust.
const SHARED: [&str; 5] = [
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
];
/// The default lifetime of a projected token, in seconds.
const TOKEN_LIFE: i64 = 3607;

/// Files by their path in a volume.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// The content of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// Files from the cluster; kept up to date.
    Files(Files),
    /// A folder that is empty at first.
    Empty,
    /// A path of the node's machine, below its own root folder.
    Machine { path: PathBuf, kind: String },
    /// A path of this computer that programs can see anyway.
    Visible,
}

/// A service account token that a Pod needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WantedToken {
    /// The audience; `None` is the API server's own.
    pub(crate) audience: Option<String>,
    /// The lifetime in seconds.
    pub(crate) life: i64,
}

/// The tokens that a Pod's volumes need.
pub(crate) fn wanted_tokens(pod: &Pod) -> Vec<WantedToken> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    let mut wanted: Vec<_> = volumes
        .iter()
        .filter_map(|volume| volume.projected.as_ref())
        .flat_map(|projected| projected.sources.iter().flatten())
        .filter_map(|source| source.service_account_token.as_ref())
        .map(|token| WantedToken {
            audience: token.audience.clone().filter(|audience| !audience.is_empty()),
            life: token.expiration_seconds.unwrap_or(TOKEN_LIFE),
        })
        .collect();
    wanted.sort();
    wanted.dedup();
    wanted
}

/// The content of a volume.
pub(crate) fn content(
    volume: &Volume,
    facts: &Facts<'_>,
    tokens: &BTreeMap<WantedToken, String>,
) -> Result<Content, Refusal> {
    if let Some(source) = &volume.config_map {
        return Ok(Content::Files(config_map(
            &source.name,
            source.items.as_deref(),
            source.optional,
            facts,
        )?));
    }
    if let Some(source) = &volume.secret {
        let name = source.secret_name.clone().unwrap_or_default();
        return Ok(Content::Files(secret(&name, source.items.as_deref(), source.optional, facts)?));
    }
    if let Some(source) = &volume.downward_api {
        return Ok(Content::Files(downward(source.items.as_deref().unwrap_or_default(), facts)?));
    }
    if let Some(projected) = &volume.projected {
        let mut files = Files::new();
        for source in projected.sources.iter().flatten() {
            if let Some(map) = &source.config_map {
                files.extend(config_map(&map.name, map.items.as_deref(), map.optional, facts)?);
            }
            if let Some(one) = &source.secret {
                files.extend(secret(&one.name, one.items.as_deref(), one.optional, facts)?);
            }
            if let Some(api) = &source.downward_api {
                files.extend(downward(api.items.as_deref().unwrap_or_default(), facts)?);
            }
            if let Some(token) = &source.service_account_token {
                let wanted = WantedToken {
                    audience: token.audience.clone().filter(|audience| !audience.is_empty()),
                    life: token.expiration_seconds.unwrap_or(TOKEN_LIFE),
                };
                let Some(text) = tokens.get(&wanted) else {
                    return Err(Refusal("failed to fetch token".to_owned()));
                };
                files.insert(inside(&token.path)?, text.clone().into_bytes());
            }
        }
        return Ok(Content::Files(files));
    }
    if volume.empty_dir.is_some() {
        return Ok(Content::Empty);
    }
    if let Some(host) = &volume.host_path {
        let path = Path::new(&host.path);
        if SHARED.iter().any(|shared| path.starts_with(shared)) {
            return Ok(Content::Visible);
        }
        return Ok(Content::Machine {
            path: PathBuf::from(inside(&host.path)?),
            kind: host.type_.clone().unwrap_or_default(),
        });
    }
    Err(Refusal("this kind of volume is not modelled by the embedded cluster".to_owned()))
}

/// A path that stays below the folder where it is created: without a root and without `..`.
pub(crate) fn inside(path: &str) -> Result<String, Refusal> {
    let mut clean = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(part) => clean.push(part),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => {
                return Err(Refusal(format!("path {path:?} must not contain \"..\"")));
            }
        }
    }
    Ok(clean.to_string_lossy().into_owned())
}

fn config_map(
    name: &str,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
    facts: &Facts<'_>,
) -> Result<Files, Refusal> {
    let Some(map) = facts.config_map(name, optional)? else { return Ok(Files::new()) };
    let mut all = Files::new();
    all.extend(map.data.iter().flatten().map(|(key, text)| (key.clone(), text.clone().into_bytes())));
    all.extend(map.binary_data.iter().flatten().map(|(key, bytes)| (key.clone(), bytes.0.clone())));
    chosen(all, items, optional)
}

fn secret(
    name: &str,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
    facts: &Facts<'_>,
) -> Result<Files, Refusal> {
    let Some(secret) = facts.secret(name, optional)? else { return Ok(Files::new()) };
    let all = secret.data.iter().flatten().map(|(key, bytes)| (key.clone(), bytes.0.clone())).collect();
    chosen(all, items, optional)
}

fn chosen(all: Files, items: Option<&[KeyToPath]>, optional: Option<bool>) -> Result<Files, Refusal> {
    let Some(items) = items.filter(|items| !items.is_empty()) else { return Ok(all) };
    let mut files = Files::new();
    for item in items {
        match all.get(&item.key) {
            Some(bytes) => {
                files.insert(inside(&item.path)?, bytes.clone());
            }
            None if optional == Some(true) => {}
            None => return Err(Refusal(format!("references non-existent config key: {}", item.key))),
        }
    }
    Ok(files)
}

fn downward(items: &[DownwardAPIVolumeFile], facts: &Facts<'_>) -> Result<Files, Refusal> {
    let mut files = Files::new();
    for item in items {
        let text = match (&item.field_ref, &item.resource_field_ref) {
            (Some(field), _) => facts.field(&field.field_path)?,
            (None, Some(resource)) => facts.resource(resource, None)?,
            (None, None) => String::new(),
        };
        files.insert(inside(&item.path)?, text.into_bytes());
    }
    Ok(files)
}

/// Creates a folder and its parents, for this user alone.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes the file completely or not at all, for this user alone.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    if std::fs::read(path).is_ok_and(|known| known == content) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let part = path.with_extension("part");
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    io::Write::write_all(&mut file, content)?;
    std::fs::rename(&part, path)
}

/// Updates a volume's folder to these files: writes changed ones and removes old ones.
pub(crate) fn write_files(folder: &Path, files: &Files) -> io::Result<()> {
    make_folder(folder)?;
    for (path, content) in files {
        write_file(&folder.join(path), content)?;
    }
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && !files.contains_key(&name) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn paths_never_leave_their_volume() {
        assert_eq!(inside("/etc/x"), Ok("etc/x".to_owned()));
        assert_eq!(inside("a/./b"), Ok("a/b".to_owned()));
        for bad in ["../x", "a/../../b", "/.."] {
            assert!(inside(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn files_are_private_and_follow_their_source() {
        let folder = tempfile::tempdir().expect("a folder");
        let volume = folder.path().join("v");
        let files = Files::from([("token".to_owned(), b"one".to_vec()), ("old".to_owned(), b"x".to_vec())]);
        write_files(&volume, &files).expect("written");
        let mode = |path: &Path| std::fs::metadata(path).expect("is there").permissions().mode() & 0o777;
        assert_eq!((mode(&volume), mode(&volume.join("token"))), (0o700, 0o600));
        write_files(&volume, &Files::from([("token".to_owned(), b"two".to_vec())])).expect("written");
        assert_eq!(std::fs::read(volume.join("token")).expect("is there"), b"two");
        assert!(!volume.join("old").exists());
    }
}
