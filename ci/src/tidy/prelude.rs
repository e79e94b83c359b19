//! Every item of the preludes for authors of checks has an example, or names the item whose example shows it.

use std::collections::BTreeMap;
use syn::{Attribute, Expr, ExprLit, Item, Lit, Meta, UseTree, Visibility};

/// The crates with a prelude.
const CRATES: [&str; 2] = ["testkit", "component-testkit"];
/// Where an item is defined that its crate re-exports.
const BASE: &str = "harness/core/src/";
/// The line of an item that has no example of its own; the other item follows in brackets and backticks.
const LINK: &str = "Example: see [`";

/// Documentation by the name of an item.
type Documented = BTreeMap<String, String>;

/// Checks the preludes and the documentation of their items.
pub(super) fn check(sources: &BTreeMap<String, String>, findings: &mut Vec<String>) {
    for name in CRATES {
        let own = format!("harness/{name}/src/");
        match sources.get(&format!("{own}prelude.rs")) {
            Some(prelude) => check_one(&own, prelude, sources, findings),
            None => findings.push(format!(
                "{own}prelude.rs does not exist; if it has moved, change ci/src/tidy/prelude.rs"
            )),
        }
    }
}

/// Checks the prelude of the crate whose sources are in the folder `own`.
fn check_one(own: &str, prelude: &str, sources: &BTreeMap<String, String>, findings: &mut Vec<String>) {
    let mut crates: BTreeMap<String, Documented> = BTreeMap::new();
    for export in exports(prelude).iter().filter(|export| !has_example(&export.docs)) {
        let folders = [export.folder(own), BASE.to_owned()];
        for folder in &folders {
            crates.entry(folder.clone()).or_insert_with(|| documented_in(sources, folder));
        }
        // A module may have the name of an item of the other crate.
        let docs_of = |name: &str| {
            let mut found = folders.iter().filter_map(|folder| crates[folder].get(name));
            let first = found.next();
            first.filter(|docs| docs.contains(LINK) || has_example(docs)).or_else(|| found.next()).or(first)
        };
        let Some(docs) = docs_of(&export.name) else {
            findings.push(format!(
                "{own}prelude.rs: {} is defined neither in {} nor in {BASE}; write an example for it here",
                export.name, folders[0]
            ));
            continue;
        };
        let linked = docs.split_once(LINK).and_then(|(_, rest)| rest.split('`').next()).and_then(docs_of);
        if !has_example(docs) && !linked.is_some_and(|docs| has_example(docs)) {
            findings.push(format!(
                "{own}prelude.rs: {} has no example; write one in its documentation, or '{LINK}NAME`]' with an item that has one",
                export.name
            ));
        }
    }
}

fn has_example(docs: &str) -> bool {
    docs.contains("```")
}

/// An item that the prelude re-exports.
struct Export {
    /// The name of its crate, or `crate`.
    of: String,
    name: String,
    /// What the prelude itself says about it.
    docs: String,
}

impl Export {
    /// The folder with the sources of its crate; `own` is that of the prelude.
    fn folder(&self, own: &str) -> String {
        match self.of == "crate" {
            true => own.to_owned(),
            false => format!("harness/{}/src/", self.of.trim_start_matches("harness_")),
        }
    }
}

fn exports(prelude: &str) -> Vec<Export> {
    let mut exports = Vec::new();
    for item in items(prelude) {
        if let Item::Use(item) = item {
            let (mut of, mut names) = (String::new(), Vec::new());
            leaves(&item.tree, &mut of, &mut names);
            let docs = docs(&item.attrs);
            exports.extend(names.into_iter().map(|name| Export { of: of.clone(), name, docs: docs.clone() }));
        }
    }
    exports
}

/// The first part of the paths of a `use`, and the names at their ends.
fn leaves(tree: &UseTree, of: &mut String, names: &mut Vec<String>) {
    match tree {
        UseTree::Path(path) => {
            if of.is_empty() {
                *of = path.ident.to_string();
            }
            leaves(&path.tree, of, names);
        }
        UseTree::Name(name) => names.push(name.ident.to_string()),
        UseTree::Rename(name) => names.push(name.ident.to_string()),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, of, names)),
        // The other prelude, which is checked as well.
        UseTree::Glob(_) => {}
    }
}

/// The public items and the modules that the files of a folder define.
fn documented_in(sources: &BTreeMap<String, String>, folder: &str) -> Documented {
    let files = || sources.iter().filter_map(|(path, text)| Some((path.strip_prefix(folder)?, text)));
    let mut all = Documented::new();
    for item in files().flat_map(|(_, text)| items(text)) {
        if let Some((name, docs)) = documented(&item) {
            all.entry(name).or_insert(docs);
        }
    }
    for (path, text) in files() {
        let name = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix(".rs")).unwrap_or(path);
        // A private module may have the name of an item of another crate.
        if let Some(docs) =
            syn::parse_file(text).ok().map(|file| docs(&file.attrs)).filter(|docs| has_example(docs))
        {
            all.entry(name.to_owned()).or_insert(docs);
        }
    }
    all
}

/// The name and the documentation of an item, if it is public.
fn documented(item: &Item) -> Option<(String, String)> {
    let (visible, name, attributes) = match item {
        Item::Const(item) => (&item.vis, &item.ident, &item.attrs),
        Item::Enum(item) => (&item.vis, &item.ident, &item.attrs),
        Item::Fn(item) => (&item.vis, &item.sig.ident, &item.attrs),
        Item::Struct(item) => (&item.vis, &item.ident, &item.attrs),
        Item::Trait(item) => (&item.vis, &item.ident, &item.attrs),
        Item::Type(item) => (&item.vis, &item.ident, &item.attrs),
        // A macro around an item, which adds to it.
        Item::Macro(item) => {
            return syn::parse2(item.mac.tokens.clone()).ok().and_then(|item| documented(&item));
        }
        _ => return None,
    };
    matches!(visible, Visibility::Public(_)).then(|| (name.to_string(), docs(attributes)))
}

/// The items of a file; none of a file that the compiler will refuse.
fn items(text: &str) -> Vec<Item> {
    syn::parse_file(text).map(|file| file.items).unwrap_or_default()
}

fn docs(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes {
        if let Meta::NameValue(pair) = &attribute.meta
            && pair.path.is_ident("doc")
            && let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value
        {
            lines.push(text.value());
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "/// Text.\n///\n/// ```\n/// let a = 1;\n/// ```\n";

    fn found(prelude: &str, testkit: &str, core: &str) -> Vec<String> {
        let sources = [
            ("harness/component-testkit/src/prelude.rs", "pub use harness_testkit::prelude::*;"),
            ("harness/testkit/src/prelude.rs", prelude),
            ("harness/testkit/src/a.rs", testkit),
            ("harness/core/src/words.rs", core),
            ("harness/core/src/secrets/mod.rs", "//! Text.\n//!\n//! ```\n//! let a = 1;\n//! ```"),
        ];
        let sources = sources.map(|(path, text)| (path.to_owned(), text.to_owned()));
        let mut findings = Vec::new();
        check(&BTreeMap::from(sources), &mut findings);
        findings
    }

    #[test]
    fn an_item_without_an_example_is_reported_wherever_it_is_defined() {
        const PRELUDE: &str =
            "pub use crate::{a, B};\npub use harness_core::C;\npub use harness_session::k8s::D;";
        let text = |bare: &str, items: [(&str, &str); 2]| -> String {
            let one = |(name, item): (&str, &str)| {
                if name == bare { item.to_owned() } else { format!("{EXAMPLE}{item}") }
            };
            items.map(one).join("\n")
        };
        for bare in ["", "a", "B", "C", "D"] {
            let testkit = text(bare, [("a", "pub fn a() {}"), ("B", "pub struct B;")]);
            let core = text(bare, [("C", "pub type C = u8;"), ("D", "pub const D: u8 = 1;")]);
            let findings = found(PRELUDE, &testkit, &core);
            let expected = usize::from(!bare.is_empty());
            let named = findings.iter().filter(|finding| finding.contains(&format!("{bare} has no example")));
            assert_eq!((findings.len(), named.count()), (expected, expected), "{bare}: {findings:?}");
        }
    }

    #[test]
    fn an_example_of_the_prelude_of_a_module_or_of_a_linked_item_is_enough() {
        let shown = format!("{EXAMPLE}pub use harness_clouds::Op;");
        assert_eq!(found(&shown, "", "pub enum Op {}"), Vec::<String>::new());
        assert!(found("pub use harness_core::secrets;", "", "pub mod secrets;").is_empty());
        let linked = |to: &str| {
            format!("/// Example: see [`{to}`](super::{to}).\npub const A: u8 = 1;\npub fn none() {{}}\n")
        };
        let core = linked("label") + EXAMPLE + "pub fn label() {}";
        assert!(found("pub use harness_session::k8s::A;", "", &core).is_empty());
        for to in ["none", "missing"] {
            let findings = found("pub use harness_session::k8s::A;", "", &linked(to));
            assert!(matches!(findings.as_slice(), [one] if one.contains("A has no example")), "{findings:?}");
        }
    }

    #[test]
    fn an_item_in_a_macro_is_found() {
        let item = format!("named! {{ {EXAMPLE} pub enum A {{ B = \"b\" }} }}");
        assert_eq!(found("pub use crate::A;", &item, ""), [""; 0]);
    }

    #[test]
    fn an_item_that_is_not_found_and_a_prelude_that_is_not_there_are_reported() {
        let findings = found("pub use crate::gone;", "fn gone() {}", "");
        assert!(
            matches!(findings.as_slice(), [one] if one.contains("gone is defined neither")),
            "{findings:?}"
        );
        let mut findings = Vec::new();
        check(&BTreeMap::new(), &mut findings);
        assert_eq!(findings.len(), CRATES.len());
    }
}
