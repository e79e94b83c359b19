//! Finds circles of files: one file uses another, that a third, and so on back to the first.
//!
//! A name counts as used where the path to it, followed through re-exports, ends in another file. Calls of
//! methods are not seen: only the compiler knows which type they belong to.

use super::resolve::Uses;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Known circles that still have to be removed, one per line: the files of each, in order. This list may only
/// get shorter.
const KNOWN: &str = include_str!("circles.txt");

/// Compares the rings of all crates with the known ones.
pub(super) fn check(rings: Vec<Ring>, findings: &mut Vec<String>) {
    compare(KNOWN, rings, findings);
}

fn compare(known: &str, rings: Vec<Ring>, findings: &mut Vec<String>) {
    let lines = known.lines().filter(|line| !line.starts_with('#'));
    let mut known: BTreeSet<Vec<String>> =
        lines.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect();
    findings.extend(rings.into_iter().filter(|ring| !known.remove(&ring.files)).map(|ring| ring.finding));
    findings.extend(known.iter().map(|files| {
        format!("ci/src/tidy/circles.txt names a circle that is gone, or another now: {}", files.join(" "))
    }));
}

/// Files that all use one another, directly or indirectly.
#[derive(Debug)]
pub(super) struct Ring {
    /// The files, sorted.
    files: Vec<String>,
    finding: String,
}

/// The rings of a crate.
pub(super) fn rings(uses: &Uses) -> Vec<Ring> {
    let ring = |files: Vec<String>| Ring { finding: finding(uses, &files), files };
    file_sets(uses).into_iter().map(ring).collect()
}

/// The sets of files that all use one another, directly or indirectly.
fn file_sets(uses: &Uses) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        uses.keys().map(|file| (file, reachable(uses, file))).collect();
    let mut rings: BTreeSet<Vec<String>> = BTreeSet::new();
    for (file, seen) in &reached {
        let back = |other: &&&String| reached.get(**other).is_some_and(|theirs| theirs.contains(file));
        let ring: Vec<String> = seen.iter().filter(back).map(|other| (*other).clone()).collect();
        if !ring.is_empty() {
            rings.insert(ring);
        }
    }
    rings.into_iter().collect()
}

/// Every file that this one uses, directly or indirectly.
fn reachable<'a>(uses: &'a Uses, from: &'a String) -> BTreeSet<&'a String> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        for next in uses.get(file).into_iter().flat_map(BTreeMap::keys) {
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    seen
}

/// The shortest circle among these files, file by file with the line of each import.
fn finding(uses: &Uses, files: &[String]) -> String {
    let shortest =
        files.iter().filter_map(|file| circle_of(uses, file)).min_by_key(Vec::len).unwrap_or_default();
    let steps = shortest.windows(2).map(|step| {
        let line = uses.get(&step[0]).and_then(|of_file| of_file.get(&step[1])).copied().unwrap_or_default();
        format!("{}:{line} uses {}", step[0], step[1])
    });
    let steps: Vec<String> = steps.collect();
    let others: Vec<&str> =
        files.iter().filter(|file| !shortest.contains(file)).map(String::as_str).collect();
    let more = match others.as_slice() {
        [] => String::new(),
        others => format!(" (and with these hang together {})", others.join(" ")),
    };
    format!("circle of files: {}{more}; move what they share into a file of its own", steps.join(", "))
}

/// The shortest path from this file back to itself, including both ends.
fn circle_of(uses: &Uses, file: &str) -> Option<Vec<String>> {
    let mut open = VecDeque::from([vec![file.to_owned()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = open.pop_front() {
        for next in uses.get(way.last()?).into_iter().flat_map(BTreeMap::keys) {
            if next == file || seen.insert(next.clone()) {
                let mut longer = way.clone();
                longer.push(next.clone());
                if next == file {
                    return Some(longer);
                }
                open.push_back(longer);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::modules;
    use crate::tidy::resolve::uses;
    use std::fs;

    /// The rings of a crate with these files, and the finding for the first.
    fn rings_of(files: &[(&str, &str)]) -> (Vec<Vec<String>>, Option<String>) {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder above")).expect("folders");
            fs::write(path, text).expect("written");
        }
        let modules =
            modules::read(folder.path(), &folder.path().join("lib.rs")).expect("a crate that parses");
        let mut rings = rings(&uses(&modules)).into_iter();
        let first = rings.next();
        let finding = first.as_ref().map(|ring| ring.finding.clone());
        (first.into_iter().chain(rings).map(|ring| ring.files).collect(), finding)
    }

    #[test]
    fn a_circle_is_found_with_the_line_of_each_import() {
        let (rings, finding) = rings_of(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "\nuse crate::b::B;\npub struct A(B);"),
            ("b.rs", "use super::c;\npub struct B;\nfn f() -> c::C { c::C }"),
            ("c.rs", "use crate::{\n    a::A,\n};\npub struct C; impl C { fn a(_: A) {} }"),
        ]);
        assert_eq!(rings, [["a.rs", "b.rs", "c.rs"]]);
        let finding = finding.expect("a finding");
        assert!(finding.contains("a.rs:2 uses b.rs, b.rs:3 uses c.rs, c.rs:2 uses a.rs"), "{finding}");
    }

    #[test]
    fn a_module_that_only_passes_names_on_makes_no_circle() {
        let (rings, _) = rings_of(&[
            ("lib.rs", "pub mod words; pub use words::Outer;"),
            ("words/mod.rs", "mod inner; mod outer; pub use inner::Inner; pub use outer::*;"),
            ("words/inner.rs", "pub struct Inner;"),
            ("words/outer.rs", "use super::Inner; pub struct Outer(Inner);"),
        ]);
        assert!(rings.is_empty(), "{rings:?}");
    }

    #[test]
    fn a_module_that_defines_what_its_parts_use_and_uses_them_is_a_circle() {
        let (rings, _) = rings_of(&[
            ("lib.rs", "mod words;"),
            ("words/mod.rs", "mod part; pub use part::Part; pub struct Whole(Part);"),
            ("words/part.rs", "use super::*; pub struct Part(Option<Box<Whole>>);"),
        ]);
        assert_eq!(rings, [["words/mod.rs", "words/part.rs"]]);
        let (rings, _) = rings_of(&[
            ("lib.rs", "mod words;"),
            ("words/mod.rs", "mod part; pub use part::Part; pub struct Whole;"),
            ("words/part.rs", "use super::Whole; pub struct Part(Whole);"),
        ]);
        assert!(rings.is_empty(), "passing a name on does not use it: {rings:?}");
    }

    #[test]
    fn names_within_macros_functions_and_inline_modules_count_and_those_of_tests_do_not() {
        let (rings, _) = rings_of(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub fn f() { println!(\"{}\", crate::b::f()); }"),
            ("b.rs", "pub fn f() -> u8 { use super::a::f as other; other(); 1 }"),
        ]);
        assert_eq!(rings.len(), 1);
        let (rings, _) = rings_of(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub fn f() {}\n#[cfg(test)]\nmod tests { use crate::b; fn t() { b::g() } }"),
            ("b.rs", "mod inline { pub fn f() { super::super::a::f() } }\npub fn g() { inline::f() }"),
        ]);
        assert!(rings.is_empty(), "{rings:?}");
    }

    #[test]
    fn imports_in_a_ring_and_names_of_other_crates_lead_nowhere() {
        let (rings, _) = rings_of(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub use crate::b::X; use std::fmt; use ::serde::X as Y; pub struct A;"),
            ("b.rs", "pub use crate::a::X; pub struct B(crate::a::A, fmt::Error);"),
        ]);
        assert!(rings.is_empty(), "{rings:?}");
    }

    #[test]
    fn the_list_of_known_circles_may_only_shrink() {
        let ring = |files: &str| Ring {
            files: files.split(' ').map(str::to_owned).collect(),
            finding: files.to_owned(),
        };
        let compared = |known: &str, rings| {
            let mut findings = Vec::new();
            compare(known, rings, &mut findings);
            findings
        };
        assert!(compared("# for now\na b\n", vec![ring("a b")]).is_empty());
        assert_eq!(compared("", vec![ring("a b")]), ["a b"]);
        assert_eq!(compared("a b", Vec::new()).len(), 1, "one that is gone is taken off the list");
        assert_eq!(compared("a b", vec![ring("a b c")]).len(), 2, "it has grown");
    }
}
