//! `$(VAR)` in commands, arguments and environment. Pure functions.

use std::collections::BTreeMap;

/// Replaces each known `$(NAME)`; `$$` stands for `$`, and unknown names stay as they are.
pub(crate) fn expand(text: &str, known: &BTreeMap<String, String>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        result.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            result.push('$');
            rest = after;
        } else if let Some(inside) = rest.strip_prefix('(')
            && let Some(end) = inside.find(')')
        {
            let name = &inside[..end];
            match known.get(name) {
                Some(value) => result.push_str(value),
                None => {
                    result.push_str("$(");
                    result.push_str(name);
                    result.push(')');
                }
            }
            rest = &inside[end + 1..];
        } else {
            result.push('$');
        }
    }
    result.push_str(rest);
    result
}

/// Replaces each `${NAME}` in a program's own settings.
pub(crate) fn fill(text: &str, known: &BTreeMap<&str, String>) -> String {
    known.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_replaced_and_others_stay() {
        let known = BTreeMap::from([("A".to_owned(), "1".to_owned()), ("B".to_owned(), "$(A)".to_owned())]);
        let cases = [
            ("x$(A)y", "x1y"),
            ("$(B)", "$(A)"),
            ("$(C)", "$(C)"),
            ("$$(A)", "$(A)"),
            ("$(A", "$(A"),
            ("a$", "a$"),
            ("$A ${A}", "$A ${A}"),
            ("$()", "$()"),
            ("ü$(A)ß", "ü1ß"),
        ];
        for (text, expected) in cases {
            assert_eq!(expand(text, &known), expected, "{text}");
        }
    }
}
