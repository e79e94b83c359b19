//! Rules about the text of a file alone.

use std::path::PathBuf;

/// The largest number of lines of a source file. Tables may be longer and are listed here.
const LONGEST: usize = 450;
/// Files that are tables or test tables rather than logic.
const TABLES: &[&str] = &["fake-cloud/driver/src/types.rs", "harness/embedded-objects/src/kinds/table.rs"];

/// Checks one file.
pub(super) fn check(path: &str, text: &str, findings: &mut Vec<String>) {
    length(path, text, findings);
    opening(path, text, findings);
    waiting(path, text, findings);
    printing(path, text, findings);
    providers(path, text, findings);
}

fn length(path: &str, text: &str, findings: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > LONGEST && !TABLES.contains(&path) && !is_test(path) {
        findings.push(format!("{path}: {lines} lines, more than {LONGEST}: split it by responsibility"));
    }
}

fn opening(path: &str, text: &str, findings: &mut Vec<String>) {
    if !text.starts_with("//!") {
        findings.push(format!("{path}:1: opens without saying what the file is for (//!)"));
    }
}

fn waiting(path: &str, text: &str, findings: &mut Vec<String>) {
    // A CCM is an ordinary program: its back-off sleeps.
    if ["harness/core/src/probe/", "ci/", "fixtures/"].iter().any(|exempt| path.starts_with(exempt)) {
        return;
    }
    let mut allowed_until = 0;
    for (line, number) in text.lines().zip(1_usize..) {
        if line.contains("disallowed_methods") {
            allowed_until = number + 4;
        }
        let sleeps = line.contains("time::sleep(") || line.contains("thread::sleep(");
        if sleeps && number > allowed_until && !line.trim_start().starts_with("//") {
            findings.push(format!("{path}:{number}: sleeps; only the probe module lets time pass"));
        }
    }
}

/// Checks that all output of the harness goes through the module that removes secrets.
fn printing(path: &str, text: &str, findings: &mut Vec<String>) {
    // The screen only prints what the output module has made harmless. A build script communicates with Cargo
    // through its output.
    let exempt = ["harness/core/build.rs", "harness/core/src/output.rs", "harness/core/src/screen.rs"];
    if !is_of_the_harness(path) || exempt.contains(&path) {
        return;
    }
    for (line, number) in text.lines().zip(1_usize..) {
        let prints = ["io::stdout", "io::stderr", "println!("].iter().any(|name| line.contains(name));
        if prints && !line.trim_start().starts_with("//") {
            findings.push(format!(
                "{path}:{number}: prints by itself; harness_core::output is where text leaves"
            ));
        }
    }
}

/// Whether a file belongs to the harness itself, and not to an independent library in its folder.
fn is_of_the_harness(path: &str) -> bool {
    let library =
        |name: &str| name == "proxy" || ["bootstrap", "embedded-"].iter().any(|of| name.starts_with(of));
    path.strip_prefix("harness/").and_then(|rest| rest.split('/').next()).is_some_and(|name| !library(name))
}

fn providers(path: &str, text: &str, findings: &mut Vec<String>) {
    if !path.starts_with("suites/") {
        return;
    }
    for name in ["hcloud", "digitalocean", "openstack", "linode", "aws", "azure", "gcp"] {
        let named =
            |line: &str| line.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
        if let Some((_, number)) = text.lines().zip(1..).find(|(line, _)| named(line)) {
            findings
                .push(format!("{path}:{number}: names the provider {name}; suites know capabilities only"));
        }
    }
}

fn is_test(path: &str) -> bool {
    PathBuf::from(path).components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
}
