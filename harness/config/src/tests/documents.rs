//! Tests that documents and schemas describe keys as the types do.

use super::{RUN_HEAD, folder, workspace};
use crate::schema::{self, paths, words};
use crate::{BackendKind, HumanDuration, Problems};
use crate::{Budget, LeaseTiming, Limits, Profile, profile_reading, run_file, yaml};
use harness_core::files;
use serde_json::Value;
use std::path::Path;

/// The variable with which the tables in documents are written again instead of compared.
const REWRITE: &str = "REWRITE_DOCUMENTS";

/// Compares the lines between the two markers of a table in a document with the expected ones.
#[track_caller]
fn check(document: &str, table: &str, wanted: &str) {
    let file = workspace().join(document);
    let text = std::fs::read_to_string(&file).expect("the document is in the workspace");
    let (begin, end) = (format!("<!-- {table}: generated -->\n"), format!("<!-- {table}: end -->\n"));
    let (before, rest) = text.split_once(&begin).expect("the document has the table's begin");
    let (found, after) = rest.split_once(&end).expect("the document has the table's end");
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(&file, format!("{before}{begin}{wanted}{end}{after}")).expect("the document is ours");
        return;
    }
    assert_eq!(
        found, wanted,
        "{document} is out of date; {REWRITE}=1 cargo test -p harness-config --lib documents"
    );
}

fn code(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => String::from("`\"\"`"),
        Value::String(text) => format!("`{text}`"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(spelt).collect();
            format!("`[{}]`", items.join(", "))
        }
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}: {}", spelt(value))).collect();
            format!("`{{{}}}`", entries.join(", "))
        }
        other => format!("`{other}`"),
    }
}

/// A value inside a list or a table: quoted if YAML would misread it.
fn spelt(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains(['{', '$', '=']) => format!("\"{text}\""),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn meaning(schema: &Value) -> String {
    let mut text = schema["description"].as_str().unwrap_or_default().to_owned();
    let described: Vec<String> = schema["oneOf"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|word| {
            let of_word = word["description"].as_str().unwrap_or_default().trim_end_matches('.');
            format!("`{}`: {of_word}", word["const"].as_str().unwrap_or_default())
        })
        .collect();
    if !described.is_empty() {
        text.push_str(&format!(" {}.", described.join("; ")));
    } else {
        let bare = words(schema);
        let bare = if bare.is_empty() { words(&schema["items"]) } else { bare };
        if !bare.is_empty() {
            text.push_str(&format!(" One of `{}`.", bare.join("`, `")));
        }
    }
    if let (Some(least), Some(most)) = (schema.get("minimum"), schema.get("maximum")) {
        text.push_str(&format!(" From {least} to {most}."));
    }
    text.trim_start().to_owned()
}

fn default(schema: &Value, required: bool) -> String {
    let empty =
        |value: &Value| *value == serde_json::json!([]) || *value == serde_json::json!({}) || value == "";
    let form_allows_nothing = schema["format"] == "zone";
    match (schema["x-default"].as_str(), schema.get("default")) {
        _ if required => String::from("required"),
        (Some(words), _) => words.to_owned(),
        (None, Some(value)) if empty(value) && !form_allows_nothing => String::from("none"),
        (None, Some(Value::Object(_))) => String::new(),
        (None, Some(value)) => code(value),
        (None, None) => String::new(),
    }
}

fn table(schema: &Value) -> String {
    let mut text = String::from("| Key | Meaning | Default | Example |\n|---|---|---|---|\n");
    for (path, of_key, required) in paths(schema) {
        let example = of_key.get("const").or_else(|| of_key["examples"].get(0)).map(code).unwrap_or_default();
        let cells = [format!("`{path}`"), meaning(of_key), default(of_key, required), example];
        for cell in cells.map(|cell| cell.replace('|', "\\|")) {
            text.push_str(&if cell.is_empty() { String::from("| ") } else { format!("| {cell} ") });
        }
        text.push_str("|\n");
    }
    text
}

#[test]
fn the_table_of_a_profiles_keys() {
    check("docs/profile-keys.md", "keys", &table(&profile_reading::SCHEMA));
}

#[test]
fn the_tables_of_a_run_files_keys_and_of_wait_budgets() {
    check("docs/run-file.md", "keys", &table(&run_file::SCHEMA));
    let schema = schema::of_file::<Budget>();
    let meanings = schema["oneOf"].as_array().expect("every budget has a meaning");
    let limits = Limits::new(LeaseTiming::DEFAULT);
    let mut text = String::from("| Budget | What it bounds | With default timing |\n|---|---|---|\n");
    for (budget, meaning) in Budget::ALL.iter().zip(meanings) {
        let value = HumanDuration(limits.budget(*budget));
        text.push_str(&format!(
            "| `{budget}` | {} | `{value}` |\n",
            meaning["description"].as_str().expect("a text")
        ));
    }
    check("docs/run-file.md", "budgets", &text);
}

/// The result of a validator for a file, with the schema as it is printed.
fn validated(schema: &Value, text: &str) -> Result<(), String> {
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.add_resource("schema.json", schema.clone()).expect("a schema");
    let index = compiler.compile("schema.json", &mut schemas).expect("a sound schema");
    let value: Value = yaml::from_str(text, Path::new("file.yaml")).expect("YAML");
    schemas.validate(&value, index).map_err(|error| error.to_string())
}

#[test]
fn the_workspaces_own_profiles_fit_the_printed_schema() {
    let names = Profile::built_in();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        let text =
            files::read(&files::built_in(&format!("{name}/profile.yaml"))).expect("a built-in profile");
        assert_eq!(validated(&profile_reading::SCHEMA, &text), Ok(()), "{name}");
        let misspelt = text.replace("\nname:", "\nnmae:");
        assert!(validated(&profile_reading::SCHEMA, &misspelt).is_err(), "{name}");
    }
}

#[test]
fn run_files_and_profiles_in_documents_fit_the_printed_schemas() {
    let (mut run_files, mut profiles) = (0, 0);
    let pages = std::fs::read_dir(workspace().join("docs")).expect("the workspace has documents");
    let pages = pages.map(|page| page.expect("a file of the workspace").path());
    let pages = pages.filter(|page| page.extension().is_some_and(|end| end == "md"));
    for page in pages.chain([workspace().join("README.md")]) {
        let text = std::fs::read_to_string(&page).expect("the document is in the workspace");
        for file in text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            let (schema, count) = match file {
                file if file.contains("kind: Conformance\n") => (&run_file::SCHEMA, &mut run_files),
                file if file.contains("kind: Profile\n")
                    || file.contains("kind: image-credentials")
                    || file.contains("kind: network-proxy")
                    || file.contains("kind: csi-migration") =>
                {
                    (&profile_reading::SCHEMA, &mut profiles)
                }
                _ => continue,
            };
            assert_eq!(validated(schema, file), Ok(()), "{}:\n{file}", page.display());
            *count += 1;
        }
    }
    assert!(run_files >= 1 && profiles >= 1, "{run_files} run files, {profiles} profiles");
    for (wrong, key) in
        [("jobs: 0", "jobs"), ("keep: no-way", "keep"), ("limits: {budgets: {nap: 1s}}", "nap")]
    {
        let refused = validated(&run_file::SCHEMA, &format!("{RUN_HEAD}{wrong}\n")).expect_err("refused");
        assert!(refused.contains(key), "{refused}");
    }
}

#[test]
fn defaults_in_the_schema_equal_the_meaning_of_absent_keys() {
    let default = |path: &str| run_file::SCHEMA.pointer(&format!("/properties/{path}/default")).cloned();
    let folder = folder(&[("run.yaml", RUN_HEAD)]);
    let file = folder.path().join("run.yaml");
    let plan = crate::plan(&crate::Source::File(file), crate::RunFile::default());
    let plan = plan.expect("an empty run file is sound");
    assert_eq!(default("jobs"), Some(plan.jobs.into()));
    assert_eq!(default("keep"), Some(plan.keep.as_str().into()));
    assert_eq!(default("profile"), Some(plan.profile.name.into()));
    let own = plan.cluster.desired().own().expect("a cluster of the harness's own is the default");
    assert_eq!(default("cluster/properties/topology"), Some(own.topology.name().into()));
    assert_eq!(default("cluster/properties/nodeIp"), Some(own.node_ip.as_str().into()));
    assert_eq!(default("cluster/properties/providerId"), Some(own.provider_id.as_str().into()));
    assert_eq!(
        default("cluster/properties/backend"),
        Some(plan.cluster.backend().map_or("auto", BackendKind::as_str).into())
    );
}

#[test]
fn mistakes_in_a_nested_list_have_their_line() {
    let mut problems = Problems::default();
    let text = format!("{RUN_HEAD}select:\n  only:\n  - HA-*\n  - [x]\n");
    crate::RunFile::read(&text, Path::new("run.yaml"), &mut problems);
    assert_eq!(problems.to_string(), "run.yaml:6: select.only[1]: text was expected, found a list");
}
