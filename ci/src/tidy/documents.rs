//! The targets of references in documents exist: links and their anchors, paths of the repository, commands
//! of this program, pages of the book.

use super::markdown::{self, Page};
use std::collections::{BTreeMap, BTreeSet};

/// The book's list of pages.
const SUMMARY: &str = "docs/SUMMARY.md";
/// The largest number of lines of the README, so that it is read to its end.
const README: (&str, usize) = ("README.md", 120);

/// The documents of the repository.
#[derive(Debug)]
pub(super) struct Documents {
    pages: BTreeMap<String, Page>,
    /// Every file and folder of the repository.
    paths: BTreeSet<String>,
}

impl Documents {
    /// `texts` are the Markdown files by path, `files` the paths of all files.
    pub(super) fn read(texts: &BTreeMap<String, String>, files: &[String]) -> Self {
        let folders =
            files.iter().flat_map(|file| file.match_indices('/').map(|(end, _)| file[..end].to_owned()));
        Self {
            pages: texts.iter().map(|(path, text)| (path.clone(), markdown::read(text))).collect(),
            paths: files.iter().cloned().chain(folders).collect(),
        }
    }

    /// Checks all of them; `accepts` returns the faults in arguments of `cargo xtask`.
    pub(super) fn check(&self, accepts: impl Fn(&[&str]) -> Result<(), String>, findings: &mut Vec<String>) {
        for (path, page) in &self.pages {
            for link in page.links.iter().filter(|link| link.is_relative()) {
                let lost = self.follow(path, &link.target).err();
                findings.extend(lost.map(|why| format!("{path}:{}: {why}", link.line)));
            }
            for (line, code) in &page.code {
                let wrong = self.lost_path(code).or_else(|| refused(code, &accepts));
                findings.extend(wrong.map(|why| format!("{path}:{line}: {why}")));
            }
        }
        self.check_book(findings);
    }

    /// Checks that every page in `docs` is in the book.
    fn check_book(&self, findings: &mut Vec<String>) {
        let listed = self.pages.get(SUMMARY).into_iter().flat_map(|page| &page.links);
        let listed: BTreeSet<_> = listed.filter_map(|link| self.follow(SUMMARY, &link.target).ok()).collect();
        let ours = self.pages.keys().filter(|path| path.starts_with("docs/") && *path != SUMMARY);
        findings.extend(
            ours.filter(|path| !listed.contains(*path))
                .map(|path| format!("{path}: is not a page of the book; name it in {SUMMARY}")),
        );
    }

    /// The file that a relative link leads to.
    fn follow(&self, from: &str, target: &str) -> Result<String, String> {
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let file = if path.is_empty() { from.to_owned() } else { relative_to(from, path) };
        if !self.paths.contains(&file) {
            return Err(format!("the link {target} leads nowhere: there is no {file}"));
        }
        match self.pages.get(&file) {
            Some(page) if !anchor.is_empty() && !page.anchors.iter().any(|known| known == anchor) => {
                Err(format!("the link {target} leads nowhere: {file} has no heading '#{anchor}'"))
            }
            _ => Ok(file),
        }
    }

    /// The fault in code that looks like a path of the repository.
    fn lost_path(&self, code: &str) -> Option<String> {
        let path = code.split_whitespace().next()?.trim_end_matches('/');
        let (top, _) = path.split_once('/')?;
        let is_plain = path.chars().all(|sign| sign.is_ascii_alphanumeric() || "._/-".contains(sign));
        let is_ours = is_plain && self.paths.contains(top);
        (is_ours && !self.paths.contains(path)).then(|| format!("there is no {path}"))
    }

    /// Finds pages that a source file names and that do not exist.
    pub(super) fn named(&self, path: &str, text: &str, findings: &mut Vec<String>) {
        for (line, number) in text.lines().zip(1_usize..) {
            for (at, _) in line.match_indices("docs/") {
                let is_path = |sign: char| sign.is_ascii_alphanumeric() || "._/-".contains(sign);
                let name = line[at..].split(|sign| !is_path(sign)).next().unwrap_or_default();
                let is_page = name.ends_with(".md") && !line[..at].ends_with(is_path);
                if is_page && !self.paths.contains(name) {
                    findings.push(format!("{path}:{number}: names {name}, which is not there"));
                }
            }
        }
    }
}

/// Checks that the README stays short.
pub(super) fn length(texts: &BTreeMap<String, String>, findings: &mut Vec<String>) {
    let (path, most) = README;
    let lines = texts.get(path).map_or(0, |text| text.lines().count());
    if lines > most {
        findings.push(format!("{path}: {lines} lines, more than {most}: move details to docs/"));
    }
}

/// The fault in code that is a command of `cargo xtask`.
fn refused(code: &str, accepts: impl Fn(&[&str]) -> Result<(), String>) -> Option<String> {
    let rest = code.trim_start().strip_prefix("cargo xtask ")?;
    let rest: Vec<&str> =
        rest.split_whitespace().take_while(|word| !["#", "|", "&&", ";"].contains(word)).collect();
    accepts(&rest).err().map(|why| format!("'cargo xtask {}' is refused: {why}", rest.join(" ")))
}

/// A path relative to the folder of a file, as one of the repository.
pub(crate) fn relative_to(file: &str, path: &str) -> String {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[&str] = &["README.md", "docs/SUMMARY.md", "docs/a.md", "docs/sub/b.md", "ci/src/main.rs"];

    /// The findings for a page `docs/a.md` with this text.
    fn findings(text: &str) -> Vec<String> {
        let texts = [
            ("docs/SUMMARY.md", "[A](a.md) [B](sub/b.md)"),
            ("docs/sub/b.md", "# B\n\n[up](../a.md)\n"),
            ("docs/a.md", text),
        ];
        let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        let files: Vec<String> = FILES.iter().map(|&path| path.to_owned()).collect();
        let mut findings = Vec::new();
        let accepts =
            |words: &[&str]| if words == ["lint"] { Ok(()) } else { Err("no such task".to_owned()) };
        Documents::read(&texts, &files).check(accepts, &mut findings);
        findings
    }

    #[test]
    fn links_lead_to_files_folders_and_headings_that_are_there() {
        let sound = "# A a\n\n[b](sub/b.md#b) [a](#a-a) [r](../README.md) [f](../ci/src/) [w](https://w.example/x#y)\n";
        assert_eq!(findings(sound), [""; 0]);
        let found = findings("\n[b](sub/c.md)\n\n[b](sub/b.md#c) [a](#b)\n");
        assert_eq!(
            found,
            [
                "docs/a.md:2: the link sub/c.md leads nowhere: there is no docs/sub/c.md",
                "docs/a.md:4: the link sub/b.md#c leads nowhere: docs/sub/b.md has no heading '#c'",
                "docs/a.md:4: the link #b leads nowhere: docs/a.md has no heading '#b'",
            ]
        );
    }

    #[test]
    fn paths_of_the_repository_in_code_are_there() {
        assert_eq!(findings("`ci/src/main.rs` `ci/src/` `ci/<name>/x` `src/x.rs` `other/x`\n"), [""; 0]);
        assert_eq!(findings("`ci/src/mian.rs`\n"), ["docs/a.md:1: there is no ci/src/mian.rs"]);
        assert_eq!(findings("```sh\nci/setup # first\n```\n"), ["docs/a.md:2: there is no ci/setup"]);
    }

    #[test]
    fn commands_of_xtask_are_held_against_its_own() {
        assert_eq!(findings("```sh\ncargo xtask lint   # all\n```\n"), [""; 0]);
        assert_eq!(
            findings("`cargo xtask lnit`\n"),
            ["docs/a.md:1: 'cargo xtask lnit' is refused: no such task"]
        );
    }

    #[test]
    fn a_page_that_the_book_does_not_name_is_found() {
        let texts = [("docs/SUMMARY.md", "[B](sub/b.md)"), ("docs/a.md", ""), ("docs/sub/b.md", "")];
        let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        let files: Vec<String> = FILES.iter().map(|&path| path.to_owned()).collect();
        let mut findings = Vec::new();
        Documents::read(&texts, &files).check(|_| Ok(()), &mut findings);
        assert_eq!(findings, ["docs/a.md: is not a page of the book; name it in docs/SUMMARY.md"]);
    }

    #[test]
    fn a_page_that_a_source_names_is_there() {
        let files: Vec<String> = FILES.iter().map(|&path| path.to_owned()).collect();
        let mut found = Vec::new();
        let text = "see docs/a.md.\nhttps://x.example/docs/z.md\n(docs/z.md)";
        Documents::read(&BTreeMap::new(), &files).named("x.rs", text, &mut found);
        assert_eq!(found, ["x.rs:3: names docs/z.md, which is not there"]);
    }

    #[test]
    fn a_readme_that_is_too_long_is_found() {
        let mut findings = Vec::new();
        let of = |lines: usize| BTreeMap::from([("README.md".to_owned(), "x\n".repeat(lines))]);
        length(&of(120), &mut findings);
        assert_eq!(findings, [""; 0]);
        length(&of(121), &mut findings);
        assert_eq!(findings.len(), 1);
    }
}
