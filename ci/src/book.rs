//! The book: the pages of `docs`, built by mdBook. Links out of the book lead to the repository.

use crate::process::{is_installed, root, run, say};
use crate::tidy::{documents, markdown, texts};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fs;
use std::path::Path;

/// The book's folder.
const PAGES: &str = "docs/";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// URL of the repository's files, before their paths [default: links out of the book lead into this checkout]
    #[arg(long, value_name = "URL")]
    source: Option<String>,
}

/// Builds the book into `target/book`.
pub(crate) fn build(options: &Options) -> Result<()> {
    build_into(options, &root().join("target/book"))
}

/// Builds it into a folder.
pub(crate) fn build_into(options: &Options, book: &Path) -> Result<()> {
    if !is_installed("mdbook", &["--version"]) {
        bail!("mdbook is not installed: cargo install --locked mdbook@0.5.4");
    }
    let root = root();
    let source = options.source.clone().unwrap_or_else(|| format!("file://{}", root.display()));
    let staged = root.join("target/book-pages");
    // An earlier build may have left files that are not pages any more.
    if staged.exists() {
        fs::remove_dir_all(&staged).context("removing the pages of an earlier build")?;
    }
    for (path, text) in texts(&root, "")?.iter().filter(|(path, _)| path.starts_with(PAGES)) {
        let text = if path.ends_with(".md") { page(path, text, &source) } else { text.clone() };
        write(&staged.join(index(&path[PAGES.len()..])), &text)?;
    }
    run("mdbook", &["build", &staged.display().to_string(), "--dest-dir", &book.display().to_string()], &[])?;
    say(&format!("{}", book.join("index.html").display()));
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

/// The name of a folder's README in the book: mdBook turns it into `index.html`, but does not change links to it.
fn index(path: &str) -> String {
    match path.strip_suffix("README.md") {
        Some(folder) => format!("{folder}index.md"),
        None => path.to_owned(),
    }
}

/// A page whose links out of the book lead to `source`.
fn page(path: &str, text: &str, source: &str) -> String {
    let mut page = text.to_owned();
    // From the last to the first, so that earlier positions do not change.
    for link in markdown::read(text).links.into_iter().rev().filter(|link| link.is_relative()) {
        let (to, anchor) = link.target.split_once('#').unwrap_or((&link.target, ""));
        let file = documents::relative_to(path, to);
        let url = match to {
            "" => continue,
            inside if file.starts_with(PAGES) => index(inside),
            _ => format!("{}/{file}", source.trim_end_matches('/')),
        };
        let url = if anchor.is_empty() { url } else { format!("{url}#{anchor}") };
        let inside =
            page[link.place.clone()].replacen(&format!("]({})", link.target), &format!("]({url})"), 1);
        page.replace_range(link.place, &inside);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::page;

    #[test]
    fn links_that_leave_the_book_lead_to_the_source_and_others_stay() {
        let text = "[a](b.md#c) [r](../README.md#e) [top](#d) [w](https://w.example) [x](../../ci/x.rs) and [`y`](../../y.md#z), [f](../../ci/)\n";
        assert_eq!(
            page("docs/sub/a.md", text, "https://h.example/tree/"),
            "[a](b.md#c) [r](../index.md#e) [top](#d) [w](https://w.example) [x](https://h.example/tree/ci/x.rs) and \
             [`y`](https://h.example/tree/y.md#z), [f](https://h.example/tree/ci)\n"
        );
    }
}
