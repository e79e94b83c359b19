//! What the unit tests of several parts share.

use serde_json::Value;

use embedded_objects::cause::Cause;

/// A check of a spec has exactly these causes.
#[track_caller]
pub(super) fn says(check: fn(&Value, &str, &mut Vec<Cause>), spec: Value, expected: &[&str]) {
    let mut causes = Vec::new();
    check(&spec, "spec", &mut causes);
    let texts: Vec<String> = causes.iter().map(Cause::text).collect();
    assert_eq!(texts, expected);
}
