//! Small checks that several parts of a Pod spec share. Each adds its causes to a list.
//!
//! Source: `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use embedded_objects::cause::Cause;
use embedded_objects::rules::names::Faults;
use embedded_objects::value::PathAccess as _;

/// The message about permissions of a file.
const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// Adds the faults of a name at a path.
pub(super) fn faulty(causes: &mut Vec<Cause>, path: String, value: &str, faults: Faults) {
    causes.extend(faults.into_iter().map(|fault| Cause::invalid(path.clone(), value, fault)));
}

/// Checks a value of a fixed set; the empty one counts as missing.
pub(super) fn one_of(causes: &mut Vec<Cause>, path: String, value: &str, possible: &[&str]) {
    if value.is_empty() {
        causes.push(Cause::required(path, ""));
    } else {
        supported(causes, path, value, possible);
    }
}

/// Checks a value of a fixed set.
pub(super) fn supported(causes: &mut Vec<Cause>, path: String, value: &str, possible: &[&str]) {
    if !possible.contains(&value) {
        causes.push(Cause::not_supported(path, value, possible));
    }
}

/// Checks that a text is not empty.
pub(super) fn present(causes: &mut Vec<Cause>, path: String, value: &str) {
    if value.is_empty() {
        causes.push(Cause::required(path, ""));
    }
}

/// Checks that a number is not negative.
pub(super) fn not_negative(causes: &mut Vec<Cause>, path: String, number: i64) {
    if number < 0 {
        causes.push(Cause::invalid(path, number, "must be greater than or equal to 0"));
    }
}

/// Checks permissions of a file, if there are any.
pub(super) fn mode(causes: &mut Vec<Cause>, path: String, mode: &Value) {
    if let Some(mode) = mode.as_i64()
        && !(0..=0o777).contains(&mode)
    {
        causes.push(Cause::invalid(path, mode, MODE));
    }
}

/// Checks that no element of a file's path is `..`.
pub(super) fn no_backsteps(causes: &mut Vec<Cause>, path: String, target: &str) {
    if target.split('/').any(|element| element == "..") {
        causes.push(Cause::invalid(path, target, "must not contain '..'"));
    }
}

/// Checks that a file's path is relative and stays below its start.
pub(super) fn descending(causes: &mut Vec<Cause>, path: String, target: &str) {
    if target.starts_with('/') {
        causes.push(Cause::invalid(path.clone(), target, "must be a relative path"));
    }
    no_backsteps(causes, path, target);
}

/// Checks that a file's path is relative, stays below its start, and does not begin with two dots.
pub(super) fn not_reserved(causes: &mut Vec<Cause>, path: String, target: &str) {
    descending(causes, path.clone(), target);
    if target.starts_with("..") && !target.starts_with("../") {
        causes.push(Cause::invalid(path, target, "must not start with '..'"));
    }
}

/// Checks the keys of a Secret or ConfigMap that become files.
pub(super) fn items(source: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (at, item) in source.list("items").iter().enumerate() {
        let path = format!("{path}.items[{at}]");
        for name in ["key", "path"] {
            present(causes, format!("{path}.{name}"), item.text(name));
        }
        not_reserved(causes, format!("{path}.path"), item.text("path"));
        mode(causes, format!("{path}.mode"), item.at("mode"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(check: fn(&mut Vec<Cause>, String, &str), target: &str) -> Vec<String> {
        let mut causes = Vec::new();
        check(&mut causes, "p".to_owned(), target);
        causes.iter().map(Cause::text).collect()
    }

    #[test]
    fn paths_stay_below_their_start() {
        assert_eq!(said(not_reserved, "a/b..c"), Vec::<String>::new());
        assert_eq!(
            said(not_reserved, "/a/../b"),
            [
                "p: Invalid value: \"/a/../b\": must be a relative path",
                "p: Invalid value: \"/a/../b\": must not contain '..'"
            ]
        );
        assert_eq!(said(not_reserved, "..a"), ["p: Invalid value: \"..a\": must not start with '..'"]);
        assert_eq!(said(descending, "..a"), Vec::<String>::new());
        assert_eq!(said(no_backsteps, "/a"), Vec::<String>::new());
    }

    #[test]
    fn permissions_have_nine_bits() {
        let mut causes = Vec::new();
        mode(&mut causes, "p".to_owned(), &0o777.into());
        mode(&mut causes, "p".to_owned(), &Value::Null);
        assert_eq!(causes, Vec::new());
        mode(&mut causes, "p".to_owned(), &1000.into());
        assert_eq!(
            causes[0].text(),
            "p: Invalid value: 1000: must be a number between 0 and 0777 (octal), both inclusive"
        );
    }
}
