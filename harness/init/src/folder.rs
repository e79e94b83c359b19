//! A folder that `init` writes.

use std::path::Path;

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
