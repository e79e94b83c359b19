//! The command line: exit codes, the three outputs, the graph.

use super::{bootstrap, on_variant};
use serde_json::Value;

#[test]
fn exit_codes_say_what_happened() {
    assert_eq!(on_variant("check", "good-deployment", &[]).0, 0);
    assert_eq!(on_variant("check", "good-deployment", &["--strict"]).0, 0, "nothing to find");
    assert_eq!(on_variant("check", "mbt-01-no-uninitialized-toleration", &[]).0, 1);
    assert_eq!(on_variant("check", "webhook-before-its-own-pods", &[]).0, 1, "some order fails");
    // A finding that does not affect the boot.
    assert_eq!(on_variant("check", "mbt-08-no-election", &[]).0, 0);
    assert_eq!(on_variant("check", "mbt-08-no-election", &["--strict"]).0, 1);
    assert_eq!(bootstrap(&["check", "/nowhere/ccm.yaml"], "").0, 2);
    assert_eq!(bootstrap(&["check", "-"], "a: [").0, 2);
    assert_eq!(bootstrap(&["check"], "").0, 2);
    assert_eq!(on_variant("check", "good-deployment", &["--assume", "Secret"]).0, 2);
    assert_eq!(on_variant("check", "good-deployment", &["--ccm", "Deployment/other"]).0, 2);
    assert_eq!(on_variant("check", "good-deployment", &["--kubernetes", "banana"]).0, 2);
}

#[test]
fn fix_changes_the_files_on_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ccm.yaml");
    let variant = super::variants().join("mbt-01-no-uninitialized-toleration/ccm.yaml");
    std::fs::copy(variant, &path).expect("a copy");
    let (at, before) = (path.display().to_string(), std::fs::read_to_string(&path).expect("the manifest"));
    let (code, printed, _) = bootstrap(&["fix", "--write", &at], "");
    assert_eq!(code, 0, "{printed}");
    assert!(printed.starts_with("--- a/") && printed.contains("\n# done: "), "{printed}");
    let after = std::fs::read_to_string(&path).expect("the manifest");
    assert!(after.len() > before.len() && after.contains("node.cloudprovider.kubernetes.io/uninitialized"));
    assert_eq!(bootstrap(&["check", &at], "").0, 0);
    let (code, _, why) = bootstrap(&["fix", "--write", "-"], &before);
    assert_eq!((code, why.contains("come from standard input")), (2, true), "{why}");
}

#[test]
fn what_is_created_is_not_left_to_be_done_by_hand() {
    let (_, good, _) = on_variant("fix", "good-deployment", &[]);
    let without = good.replacen("kind: ServiceAccount", "kind: ConfigMap", 1);
    let (_, printed, _) = bootstrap(&["fix", "-"], &without);
    assert!(printed.contains("# done: ") && printed.contains("create ServiceAccount/"), "{printed}");
    assert!(!printed.contains("# by hand: BOOT-REF"), "{printed}");
}

#[test]
fn a_version_that_kubernetes_has_never_had_is_refused() {
    let text =
        std::fs::read_to_string(super::variants().join("good-deployment/ccm.yaml")).expect("a manifest");
    let (code, printed, _) = bootstrap(&["check", "-"], &text.replace("apps/v1", "apps/v2"));
    assert_eq!(code, 1, "{printed}");
    assert!(printed.contains("Kubernetes has no apiVersion apps/v2"), "{printed}");
    assert!(printed.contains("write apiVersion: apps/v1"), "{printed}");
}

#[test]
fn the_table_shows_every_cell_and_options_narrow_it() {
    let (_, all, _) = on_variant("check", "mbt-04-no-not-ready-toleration", &[]);
    let topologies =
        ["single-node", "single-control-plane", "control-plane-and-worker", "three-control-planes", "hosted"];
    for name in topologies.into_iter().chain(["startup-taint"]) {
        assert!(all.contains(name), "{name} is missing:\n{all}");
    }
    assert!(all.contains("8 of 20 cells do not boot"), "{all}");
    let options = ["--topology", "single-node", "--cni", "independent"];
    let (code, one, _) = on_variant("check", "mbt-04-no-not-ready-toleration", &options);
    assert_eq!(code, 0, "{one}");
    assert!(one.contains("the cell boots"), "{one}");
}

#[test]
fn an_explanation_names_objects_lines_and_the_smallest_change() {
    let options = ["--explain", "--topology", "control-plane-and-worker", "--cni", "waits-for-addresses"];
    let (_, text, _) = on_variant("check", "mbt-04-no-not-ready-toleration", &options);
    let wanted = [
        "Deployment/reference-ccm (",
        "ccm.yaml:",
        "is Pending, not scheduled to Node control-plane",
        "node.kubernetes.io/not-ready:NoSchedule",
        "the CNI waits for the addresses of Node control-plane",
        "the addresses of Node control-plane are set by Deployment/reference-ccm",
        "a cycle",
        "smallest change: Deployment/reference-ccm: tolerate node.kubernetes.io/not-ready:NoSchedule",
    ];
    for words in wanted {
        assert!(text.contains(words), "'{words}' is missing:\n{text}");
    }
}

#[test]
fn json_holds_cells_explanations_and_findings() {
    let (code, text, _) = on_variant("check", "mbt-11-selector-without-node", &["--output", "json"]);
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["exitCode"], code);
    let cells = value["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 20);
    assert_eq!(cells[0]["topology"], "single-node");
    assert_eq!(cells[0]["outcome"], "deadlock");
    assert!(cells[0]["states"].as_u64().is_some_and(|states| states > 0));
    assert!(cells[0]["explanation"]["steps"][0]["text"].is_string());
    assert!(cells[0]["explanation"]["changes"][0].is_string());
}

#[test]
fn sarif_has_what_the_schema_requires() {
    let (_, text, _) = on_variant("check", "vendor-hcloud", &["--output", "sarif"]);
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["version"], "2.1.0");
    let runs = value["runs"].as_array().expect("runs");
    let driver = &runs[0]["tool"]["driver"];
    assert!(driver["name"].is_string());
    let rules: Vec<&str> =
        driver["rules"].as_array().expect("rules").iter().filter_map(|rule| rule["id"].as_str()).collect();
    let results = runs[0]["results"].as_array().expect("results");
    assert!(results.len() > 3);
    for result in results {
        assert!(result["message"]["text"].as_str().is_some_and(|text| !text.is_empty()));
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap_or_default()));
        assert!(rules.contains(&result["ruleId"].as_str().unwrap_or_default()), "{result}");
        let location = &result["locations"][0]["physicalLocation"];
        let uri = location["artifactLocation"]["uri"].as_str().unwrap_or_default();
        assert!(uri.ends_with("/vendor-hcloud/ccm.yaml"), "{result}");
        assert!(location["region"]["startLine"].as_u64().is_some_and(|line| line >= 1));
    }
}

#[test]
fn the_graph_is_written_in_the_form_of_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, begins) in [("g.svg", "<svg "), ("g.dot", "digraph"), ("g.mmd", "flowchart TD")] {
        let path = folder.path().join(name);
        let option = path.display().to_string();
        let (_, out, _) = on_variant("check", "mbt-01-no-uninitialized-toleration", &["--graph", &option]);
        assert!(out.contains(&option), "{out}");
        let text = std::fs::read_to_string(&path).expect("the graph");
        assert!(text.starts_with(begins), "{text}");
        assert!(text.contains("Deployment/reference-ccm") && text.contains("#c62828"), "{text}");
    }
    let path = folder.path().join("g.png").display().to_string();
    let (code, _, err) = on_variant("check", "mbt-01-no-uninitialized-toleration", &["--graph", &path]);
    assert_eq!((code, err.contains(".svg")), (2, true), "{err}");
}

#[test]
fn standard_input_and_lists_are_read() {
    let path = super::variants().join("good-deployment/ccm.yaml");
    let text = std::fs::read_to_string(path).expect("the variant");
    assert_eq!(bootstrap(&["check", "-"], &text).0, 0);
    let indented: String = text
        .split("\n---\n")
        .map(|document| {
            let lines: Vec<String> = document.lines().map(|line| format!("    {line}\n")).collect();
            format!("  -\n{}", lines.concat())
        })
        .collect();
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{indented}");
    let (code, out, err) = bootstrap(&["check", "-"], &list);
    assert_eq!(code, 0, "{out}{err}");
}

#[test]
fn absent_objects_count_as_absent_unless_assumed() {
    let (code, out, _) = on_variant("check", "absent-secret", &[]);
    assert_eq!(code, 1);
    assert!(out.contains("BOOT-REF") && out.contains("Secret/kube-system/reference-ccm"), "{out}");
    let (code, out, _) = on_variant("check", "absent-secret", &["--assume", "Secret/reference-ccm"]);
    assert_eq!(code, 0, "{out}");
}
