//! The parts of a Markdown file that can be checked: headings, links, code.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::collections::BTreeMap;
use std::ops::Range;

/// A parsed document.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// The anchors of its headings, as GitHub and mdBook name them.
    pub(crate) anchors: Vec<String>,
    /// Links and pictures.
    pub(crate) links: Vec<Link>,
    /// Code, with its line number: code within a line, and each line of a shell block.
    pub(crate) code: Vec<(usize, String)>,
}

/// A link or a picture.
#[derive(Debug)]
pub(crate) struct Link {
    /// The line number, from 1.
    pub(crate) line: usize,
    /// Its target.
    pub(crate) target: String,
    /// Its position in the text.
    pub(crate) place: Range<usize>,
}

impl Link {
    /// Whether it leads to a file of the repository, or to a heading.
    pub(crate) fn is_relative(&self) -> bool {
        !self.target.contains("://") && !self.target.starts_with("mailto:")
    }
}

/// Parses a document.
pub(crate) fn read(text: &str) -> Page {
    let mut page = Page::default();
    let (mut heading, mut is_shell) = (None::<String>, false);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (event, place) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        let line = text[..place.start].matches('\n').count() + 1;
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let name = anchor(&heading.take().unwrap_or_default());
                let before = seen.entry(name.clone()).or_default();
                page.anchors.push(if *before == 0 { name } else { format!("{name}-{before}") });
                *before += 1;
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push(Link { line, target: dest_url.into_string(), place });
            }
            Event::Start(Tag::CodeBlock(kind)) => {
                is_shell =
                    matches!(&kind, CodeBlockKind::Fenced(name) if ["sh", "console"].contains(&&**name));
            }
            Event::End(TagEnd::CodeBlock) => is_shell = false,
            Event::Text(block) if is_shell => {
                page.code.extend((line..).zip(block.lines().map(str::to_owned)));
            }
            Event::Text(part) | Event::Code(part) if heading.is_some() => {
                heading.get_or_insert_default().push_str(&part);
            }
            Event::Code(part) => page.code.push((line, part.into_string())),
            _ => {}
        }
    }
    page
}

fn anchor(heading: &str) -> String {
    let of_sign = |sign: char| match sign {
        sign if sign.is_alphanumeric() || sign == '-' || sign == '_' => Some(sign),
        sign if sign.is_whitespace() => Some('-'),
        _ => None,
    };
    heading.to_lowercase().chars().filter_map(of_sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_links_and_code_are_found_with_their_lines() {
        let page = read(
            "# What `run` does\n\nSee [it](a.md#b), ![p](p.svg) and `ci/src`.\n\n## What run does\n\n| a |\n|---|\n| [t](t.md) |\n\n\
             ```sh\nfirst\nsecond # why\n```\n\n```yaml\nthird\n```\n\n## 1. End: a, b?\n",
        );
        assert_eq!(page.anchors, ["what-run-does", "what-run-does-1", "1-end-a-b"]);
        let links: Vec<_> = page.links.iter().map(|link| (link.line, &*link.target)).collect();
        assert_eq!(links, [(3, "a.md#b"), (3, "p.svg"), (9, "t.md")]);
        let code: Vec<_> = page.code.iter().map(|(line, code)| (*line, &**code)).collect();
        assert_eq!(code, [(3, "ci/src"), (12, "first"), (13, "second # why")]);
    }
}
