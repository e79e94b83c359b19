//! `schema`: the JSON Schemas of the harness's files, for editors and for other programs.

use harness_core::events::Event;
use harness_report::exit;
use serde_json::Value;
use std::process::ExitCode;

/// A file with a schema: its name, and the function that makes its JSON Schema (draft 2020-12).
type Described = (&'static str, fn() -> Value);

/// Every file with a schema.
const SCHEMAS: &[Described] = &[
    ("profile", harness_config::profile_schema),
    ("run", harness_config::run_schema),
    ("routes", harness_config::routes_schema),
    ("report", harness_report::schema),
    ("events", harness_config::schema::of_output::<Event>),
];

/// The names of all files with a schema.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SCHEMAS.iter().map(|(name, _)| *name)
}

pub(super) fn print(file: &str) -> ExitCode {
    let Some((_, schema)) = SCHEMAS.iter().find(|(name, _)| *name == file) else {
        return ExitCode::from(exit::USAGE);
    };
    // A closed standard output is not a failure.
    harness_core::output::out(&format!("{:#}\n", schema()));
    ExitCode::from(exit::CONFORMANT)
}

#[cfg(test)]
mod tests {
    use super::{SCHEMAS, names};

    #[test]
    fn every_schema_says_what_it_is_and_can_be_compiled() {
        for (name, schema) in SCHEMAS {
            let schema = schema();
            for key in ["$schema", "title", "description", "properties"] {
                assert!(schema.get(key).is_some(), "{name} has no {key}");
            }
            let mut compiler = boon::Compiler::new();
            compiler.add_resource("schema.json", schema).expect("JSON");
            let compiled = compiler.compile("schema.json", &mut boon::Schemas::new()).map(|_| ());
            assert!(compiled.is_ok(), "{name}: {compiled:?}");
        }
        assert_eq!(Vec::from_iter(names())[..2], ["profile", "run"]);
    }
}
