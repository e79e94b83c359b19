//! Values of flags: what programs in Go take for true or false, and which values are known.

/// The spellings of truth values in Go (`strconv.ParseBool`).
pub(super) const TRUTHS: &[&str] =
    &["1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"];

/// Whether a value is known: not one with a variable, a placeholder or what a shell replaces.
pub fn is_plain(value: &str) -> bool {
    !value.contains(['$', '`', '(', ')', '|', '&', '<', '>', '{', '@', '"', '\''])
}
