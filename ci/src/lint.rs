//! `cargo xtask lint`: all checks that do not need to run the program.

use crate::process::{is_installed, program, root, run, say};
use crate::tidy;
use anyhow::{Result, bail};

/// Versions of tools that are in no lock file; the workflow and documents name the same (`tidy` compares them).
const DENY: &str = "cargo install --locked cargo-deny@0.20.2";
const SHELLCHECK: &str = "Debian's package shellcheck";

/// The options of `lint`.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Options {
    /// Fail if a tool is missing or the advisory database cannot be fetched. By default such checks are
    /// skipped and listed
    #[arg(long)]
    complete: bool,
}

/// Runs every check; `accepts` reports faults in arguments of `cargo xtask`.
///
/// # Errors
/// A check failed, or was skipped although all were requested.
pub(crate) fn lint(options: Options, accepts: impl Fn(&[&str]) -> Result<(), String>) -> Result<()> {
    run("cargo", &["fmt", "--all", "--check"], &[])?;
    tidy::check(&root(), accepts)?;
    run("cargo", &["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])?;
    let docs = ["doc", "--locked", "--workspace", "--no-deps", "--document-private-items"];
    run("cargo", &docs, &[("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links")])?;
    coverage()?;
    let mut skipped = dependencies(is_installed("cargo", &["deny", "--version"]), &|arguments| {
        run("cargo", &[&["deny", "--locked"][..], arguments].concat(), &[])
    })?;
    if is_installed("shellcheck", &["--version"]) {
        let scripts = tidy::shell_scripts(&root())?;
        let scripts: Vec<&str> = std::iter::once("-x").chain(scripts.iter().map(String::as_str)).collect();
        run("shellcheck", &scripts, &[])?;
    } else {
        skipped.push(format!("shell scripts: shellcheck is not installed ({SHELLCHECK})"));
    }
    judge(&skipped, options.complete)
}

/// Checks which rows of the contract have checks.
///
/// # Errors
/// A row has neither check nor reason.
pub(crate) fn coverage() -> Result<()> {
    run(&program("ccm-conformance")?.display().to_string(), &["coverage"], &[])
}

/// Checks licences, bans, sources and advisories of all dependencies with cargo-deny; returns what was
/// skipped and why. The advisory database has to be fetched, and a missing network is not a failure.
fn dependencies(installed: bool, deny: &dyn Fn(&[&str]) -> Result<()>) -> Result<Vec<String>> {
    if !installed {
        return Ok(vec![format!(
            "licences, bans, sources and advisories of dependencies: cargo-deny is not installed ({DENY})"
        )]);
    }
    deny(&["check", "licenses", "bans", "sources"])?;
    if deny(&["fetch", "db"]).is_err() {
        return Ok(vec!["advisories about dependencies: their database could not be fetched".to_owned()]);
    }
    deny(&["check", "advisories"])?;
    Ok(Vec::new())
}

/// Lists what was skipped.
fn judge(skipped: &[String], complete: bool) -> Result<()> {
    if complete && !skipped.is_empty() {
        bail!("--complete, and not checked:\n  {}", skipped.join("\n  "));
    }
    for what in skipped {
        say(&format!("not checked: {what}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// The calls of cargo-deny, which fails if its arguments begin in this way, and the result.
    fn asked(fails: &str) -> (Vec<String>, Result<Vec<String>>) {
        let asked = RefCell::new(Vec::new());
        let skipped = dependencies(true, &|arguments| {
            let line = arguments.join(" ");
            asked.borrow_mut().push(line.clone());
            if !fails.is_empty() && line.starts_with(fails) { bail!("{line} failed") } else { Ok(()) }
        });
        (asked.into_inner(), skipped)
    }

    #[test]
    fn all_four_checks_are_made_where_the_database_can_be_fetched() {
        let (asked, skipped) = asked("");
        assert_eq!(asked, ["check licenses bans sources", "fetch db", "check advisories"]);
        assert!(skipped.expect("fine").is_empty());
    }

    #[test]
    fn without_a_network_the_advisories_alone_are_skipped() {
        let (asked, skipped) = asked("fetch");
        assert_eq!(asked, ["check licenses bans sources", "fetch db"]);
        let skipped = skipped.expect("no failure");
        assert_eq!(skipped, ["advisories about dependencies: their database could not be fetched"]);
        judge(&skipped, false).expect("listed");
        let why = judge(&skipped, true).expect_err("all were asked for").to_string();
        assert!(
            why.ends_with(
                "not checked:\n  advisories about dependencies: their database could not be fetched"
            )
        );
    }

    #[test]
    fn refused_dependencies_are_errors() {
        assert!(asked("check licenses").1.is_err());
        assert!(asked("check advisories").1.is_err());
    }

    #[test]
    fn a_missing_tool_is_listed_with_the_way_to_install_it() {
        let skipped = dependencies(false, &|_| bail!("nothing is run")).expect("no failure");
        assert!(
            skipped[0].ends_with("not installed (cargo install --locked cargo-deny@0.20.2)"),
            "{skipped:?}"
        );
        assert!(judge(&skipped, true).is_err());
    }
}
