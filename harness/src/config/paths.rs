//! Where things are: the workspace, and what of a file's texts is a path.

use std::path::{Path, PathBuf};

/// The workspace this harness was built from: where built-in profiles, topologies and packages to build are.
pub fn workspace() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.parent().unwrap_or(crate_folder).to_owned()
}

/// Whether a text that may be a name or a path is a path: it has a slash, opens with a dot or ends like a YAML file.
pub(crate) fn looks_like_path(text: &str) -> bool {
    text.contains('/') || text.starts_with('.') || text.ends_with(".yaml") || text.ends_with(".yml")
}
