//! Recognises paths in the texts of a file.

/// Whether a text that may be a name or a path is a path: it contains a slash, begins with a dot or ends like
/// a YAML file.
pub(crate) fn looks_like_path(text: &str) -> bool {
    text.contains('/') || text.starts_with('.') || text.ends_with(".yaml") || text.ends_with(".yml")
}
