//! Files of a folder, and archives of files.

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The files of a folder by their names.
///
/// # Errors
/// The folder or a file cannot be read.
pub(super) fn read(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_file() {
            let name =
                path.file_name().and_then(|name| name.to_str()).context("a file's name is not UTF-8")?;
            let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
            files.insert(name.to_owned(), bytes);
        }
    }
    Ok(files)
}

/// Packs files so that equal files give equal archives: sorted, without times and owners. One of them can be
/// a program.
///
/// # Errors
/// The archive cannot be written.
pub(super) fn pack(files: &BTreeMap<String, Vec<u8>>, program: Option<&str>, to: &Path) -> Result<()> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len().try_into().context("a file that is too large")?);
        header.set_mode(if program == Some(name) { 0o755 } else { 0o644 });
        archive.append_data(&mut header, name, bytes.as_slice()).with_context(|| name.clone())?;
    }
    let packed = archive.into_inner().and_then(GzEncoder::finish).context("packing")?;
    fs::write(to, packed).with_context(|| to.display().to_string())
}
