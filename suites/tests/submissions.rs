//! Reports that were submitted: each is accepted by the checks of the version that made it, whatever has changed since.

use std::path::Path;
use std::process::Command;

#[test]
fn what_was_submitted_is_verified_and_in_the_table() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reports");
    let list = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"))
        .args(["submission", "list"])
        .arg(&folder)
        .output()
        .expect("the program runs");
    let table = String::from_utf8_lossy(&list.stdout);
    assert!(list.status.success(), "{table}{}", String::from_utf8_lossy(&list.stderr));
    let page = std::fs::read_to_string(folder.join("README.md")).expect("the page is there");
    assert!(
        page.contains(table.trim()),
        "docs/reports/README.md has another table; 'submission list docs/reports --write docs/reports/README.md' writes it"
    );
}
