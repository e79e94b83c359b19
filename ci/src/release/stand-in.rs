//! Stands in for ccm-conformance when a test assembles a release: it answers the calls of `cargo xtask release`.

use std::fs;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--version"] => println!("ccm-conformance 1.2.3 (commit abc; 0 checks, set 0)"),
        ["image", "--out", file, "--reference", name] => fs::write(file, format!("image {name}\n")).unwrap(),
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
