//! A rehearsal with a program that stands in for ccm-conformance, from the tag to the site, in seconds.

use super::place::Place;
use super::{Rehearsal, moving};
use crate::process::root;
use crate::release::tests::{assembled_into, fine};
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn moving_tags_are_the_beginnings_of_the_version() {
    assert_eq!(moving("1.2.3"), ("v1".to_owned(), "v1.2".to_owned()));
}

/// A repository with what a release and the Action need.
fn repository(folder: &Path) {
    let from = root();
    for path in ["ci/action", "ci/publish", "ci/in-cluster", "docs/release.md", "action.yml"] {
        let to = folder.join(path);
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        fine(Command::new("cp").arg("-r").arg(from.join(path)).arg(to));
    }
    fs::write(folder.join("Cargo.toml"), "[workspace.package]\nversion = \"1.2.3\"\n").expect("a file");
    let git = |words: &[&str]| {
        let who = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
        fine(Command::new("git").current_dir(folder).args(who).args(words))
    };
    git(&["init", "--quiet"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", "sources"]);
}

#[test]
fn a_release_is_published_verified_used_and_leaves_nothing() {
    let outer = tempfile::tempdir().expect("a folder");
    let sources = outer.path().join("sources");
    fs::create_dir(&sources).expect("a folder");
    repository(&sources);
    let folder = outer.path().join("rehearsal");
    let place = Place::new(&folder, false).expect("a folder");
    let rehearsal =
        Rehearsal { place: &place, sources: &sources, version: "1.2.3", only: "SVC-UPD-01.node-port" };
    let (image, url) = (place.image(), place.repository());
    rehearsal
        .run(&|checkout, out| {
            assert!(checkout.join("action.yml").is_file());
            assembled_into(out, &image, &url);
            Ok(())
        })
        .expect("a rehearsal");
    drop(place);
    assert!(!folder.exists(), "the rehearsal deletes its folder");
}

#[test]
fn a_changed_asset_is_not_published_and_ends_the_rehearsal() {
    let outer = tempfile::tempdir().expect("a folder");
    let sources = outer.path().join("sources");
    fs::create_dir(&sources).expect("a folder");
    repository(&sources);
    let place = Place::new(&outer.path().join("rehearsal"), false).expect("a folder");
    let rehearsal =
        Rehearsal { place: &place, sources: &sources, version: "1.2.3", only: "SVC-UPD-01.node-port" };
    let (image, url) = (place.image(), place.repository());
    let error = rehearsal
        .run(&|_, out| {
            assembled_into(out, &image, &url);
            fs::write(out.join("krew.yaml"), "changed\n")?;
            Ok(())
        })
        .expect_err("a changed asset");
    assert!(format!("{error:#}").contains("krew.yaml: FAILED"), "{error:#}");
}
