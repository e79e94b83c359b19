//! What of a file's texts is a path.

/// Whether a text that may be a name or a path is a path: it has a slash, opens with a dot or ends like a YAML file.
pub(crate) fn looks_like_path(text: &str) -> bool {
    text.contains('/') || text.starts_with('.') || text.ends_with(".yaml") || text.ends_with(".yml")
}
