//! The scripts of the GitHub Action (`ci/action`), with a program that only says what it was asked for.

use std::path::Path;
use std::process::Command;

#[test]
fn the_actions_scripts_ask_for_what_was_given_and_tell_what_came_of_it() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("action/test");
    let ran = Command::new(script).output().expect("bash is there");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stdout));
}
