//! The list of this version's checks in the program equals that of its suites, and all of them are in the contract.

use harness_config::contract::{Contract, coverage};
use harness_report::Golden;
use harness_testkit::Suite;
use std::path::Path;

#[test]
fn the_list_of_this_version_is_that_of_its_suites() {
    let now = harness_runner::golden(suites::ALL);
    let name = format!("{}.yaml", now.version);
    if std::env::var_os("REWRITE_DOCUMENTS").is_some() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../harness/golden").join(&name);
        let text = now.to_yaml().expect("plain data");
        return std::fs::write(file, text).expect("the list is ours");
    }
    let known = Golden::of(&now.version).expect("a sound list");
    let hint = format!(
        "harness/golden/{name} is out of date, and verify would refuse this version's reports; \
         REWRITE_DOCUMENTS=1 cargo test -p ccm-conformance --test golden"
    );
    assert!(known.as_ref() == Some(&now), "{hint}");
    assert!(Golden::versions().expect("sound lists").contains(&now.version));
}

#[test]
fn every_must_of_the_contract_has_its_check_or_a_reason_and_every_check_its_row() {
    let contract = Contract::built_in().expect("the contract");
    let checks: Vec<_> =
        suites::ALL.iter().flat_map(Suite::checks).map(|check| harness_runner::seen(check, &[])).collect();
    assert_eq!(coverage(&contract, &checks, &[]).objections, [""; 0]);
}

#[test]
fn the_readme_counts_checks_and_mutants_as_they_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect("a file of the repository");
    let readme = read("README.md");
    let mutants = read("fixtures/ccms/mutants/mutants.yaml").matches("mutant: M-").count();
    let checks: usize = suites::ALL.iter().map(|suite| suite.checks().count()).sum();
    let mut said =
        vec![format!("\n{checks} checks, each a claim"), format!("on purpose in {mutants} ways (")];
    said.extend(suites::ALL.iter().map(|suite| format!("| `{}` | {} |", suite.name, suite.checks().count())));
    for words in said {
        assert!(readme.contains(&words), "README.md does not say {:?}", words.trim());
    }
}
