//! A folder that `init` writes.

use std::path::{Component, Path};

/// Writes files into a folder, which must not exist yet.
pub(super) fn put(folder: &Path, files: &[(String, String)]) -> std::io::Result<()> {
    for (name, text) in files {
        let path = folder.join(name);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, text)?;
    }
    Ok(())
}

/// The refusal of a folder that would be overwritten.
pub(super) fn exists(folder: &Path) -> String {
    format!("{} exists already; name another folder with '--out'", folder.display())
}

/// Whether a shell and this program take it for a path, and not for the name of something.
pub(super) fn is_a_path(folder: &Path) -> bool {
    matches!(folder.components().next(), Some(Component::RootDir | Component::CurDir | Component::ParentDir))
}
