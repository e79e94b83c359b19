//! The site with the results of submitted reports: written by the released program, pushed to a repository that
//! stands in for GitHub Pages, and read back.

use super::place::Place;
use crate::process::say;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;

/// Publishes the site and reads it.
///
/// # Errors
/// A step fails, or what is read is not what was written.
pub(super) fn publish_and_read_back(place: &Place, checkout: &Path, program: &Path) -> Result<()> {
    let (program, site, bare) =
        (program.display().to_string(), place.path("site"), place.path("www/pages.git"));
    let (to, remote) = (site.display().to_string(), bare.display().to_string());
    place.run(checkout, &[&program, "submission", "site", "docs/reports", "--out", &to], &[])?;

    place.git(&place.path(""), &["init", "--quiet", "--bare", &remote])?;
    place.git(&site, &["init", "--quiet"])?;
    place.git(&site, &["add", "--all"])?;
    place.git(&site, &["commit", "--quiet", "--message", "site"])?;
    place.git(&site, &["push", "--quiet", &remote, "HEAD:refs/heads/pages"])?;
    place.git(&bare, &["update-server-info"])?;

    let url = format!("{}/pages.git", place.url());
    place.git(&place.path(""), &["clone", "--quiet", "--branch", "pages", &url, "pages"])?;
    let pages = place.path("pages");
    place.run(
        &place.path(""),
        &["diff", "--recursive", "--brief", "--exclude=.git", "site", "pages"],
        &[],
    )?;
    let index = fs::read_to_string(pages.join("index.html")).context("the site has no index.html")?;
    let links = links(&index);
    for link in &links {
        ensure!(pages.join(link).exists(), "index.html links to '{link}', which is not part of the site");
    }
    say(&format!("site: pushed and read back; {} links of its first page lead to files", links.len()));
    Ok(())
}

/// The links of a page to files of the site.
fn links(page: &str) -> Vec<&str> {
    let targets = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let files = targets.filter(|target| !target.contains(':') && !target.starts_with('#'));
    files.map(|target| target.split('#').next().unwrap_or(target)).collect()
}

#[cfg(test)]
mod tests {
    use super::links;

    #[test]
    fn links_to_files_of_the_site_are_found() {
        let page =
            "<a href=\"a/b.html#c\"> <a href=\"https://h.example\"> <a href=\"#top\"> <link href=\"s.css\">";
        assert_eq!(links(page), ["a/b.html", "s.css"]);
    }
}
