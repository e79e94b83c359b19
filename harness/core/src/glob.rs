//! Names with `*`, for selecting checks and for matching the labels of a registry's host. No crate does this: those for
//! globs of files also give `?`, `[` and `{` a meaning, and treat `/` apart.

/// Whether `glob` matches the whole of `name`; `*` matches any number of characters.
pub fn fits(glob: &str, name: &str) -> bool {
    let mut parts = glob.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}
