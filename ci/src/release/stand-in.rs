//! Stands in for ccm-conformance when a test assembles a release: it answers the calls of `cargo xtask release`.

use std::fs;
use std::process::Command;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--version"] => println!("ccm-conformance 1.2.3 (commit abc; 0 checks, set 0)"),
        ["image", "--out", file, "--reference", name] => image(file, name),
        ["doctor"] => println!("nothing is missing"),
        ["run", ..] => ran(&words),
        ["submission", "site", _, "--out", folder] => {
            fs::create_dir(folder).unwrap();
            fs::write(format!("{folder}/index.html"), "<a href=\"a.html\">").unwrap();
            fs::write(format!("{folder}/a.html"), "").unwrap();
        }
        ["man", "--out", folder] => {
            fs::write(format!("{folder}/ccm-conformance.1"), ".TH ccm-conformance 1\n").unwrap()
        }
        ["completions", shell] => println!("completions for {shell}"),
        ["schema", "--help"] => {
            println!("  <FILE>  Which file [possible values: profile, run, routes, report, events]")
        }
        ["schema", file] => println!("{{\"title\": \"{file}\"}}"),
        _ => panic!("not asked for by a release: {words:?}"),
    }
}

/// Writes an image in OCI layout whose manifest only contains a name.
fn image(file: &str, name: &str) {
    let layout = format!("{file}.layout");
    let blobs = format!("{layout}/blobs/sha256");
    fs::create_dir_all(&blobs).unwrap();
    fs::write(format!("{blobs}/manifest"), format!("{{\"name\": \"{name}\"}}\n")).unwrap();
    let sum = Command::new("sha256sum").arg(format!("{blobs}/manifest")).output().unwrap().stdout;
    let digest = String::from_utf8(sum).unwrap()[..64].to_owned();
    fs::rename(format!("{blobs}/manifest"), format!("{blobs}/{digest}")).unwrap();
    let index = format!("{{\"manifests\": [{{\"digest\": \"sha256:{digest}\"}}]}}\n");
    fs::write(format!("{layout}/index.json"), index).unwrap();
    let packed = Command::new("tar").args(["-cf", file, "-C", &layout, "."]).status().unwrap();
    assert!(packed.success());
    fs::remove_dir_all(layout).unwrap();
}

/// Writes the results of a run into the folder that is named after '--out'.
fn ran(words: &[&str]) {
    let at = words.iter().position(|word| *word == "--out").unwrap();
    fs::create_dir_all(words[at + 1]).unwrap();
    for (name, text) in [("report.yaml", "verdict: partial\n"), ("report.html", "<!doctype html>\n")] {
        fs::write(format!("{}/{name}", words[at + 1]), text).unwrap();
    }
}
