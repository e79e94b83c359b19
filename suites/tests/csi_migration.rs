//! The suite `csi-migration` as a user runs it, without a cluster: planned checks, and invalid profiles.

use std::path::Path;
use std::process::{Command, Output};

const PROFILE: &str = "apiVersion: ccm-conformance/v1\nkind: csi-migration\nname: acme\ncsiMigration:\n  drivers: [pxd.portworx.com]\n  manifests: [driver.yaml]\n";
const DRIVER: &str =
    "apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: pxd.portworx.com}\nspec: {}\n";

fn asked(command: &str, profile: &Path, more: &[&str]) -> Output {
    let mut asked = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"));
    asked.arg(command).arg("--profile").arg(profile).args(more);
    asked.output().expect("the command can be run")
}

fn folder(profile: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("profile.yaml"), profile).expect("written");
    std::fs::write(folder.path().join("driver.yaml"), DRIVER).expect("written");
    folder
}

#[test]
fn its_cluster_is_of_kind_and_has_workers() {
    let acme = folder(PROFILE);
    for profile in ["reference-csi-driver".into(), acme.path().join("profile.yaml")] {
        let output = asked("plan", &profile, &["--all"]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = |start: &str| said.lines().filter(|line| line.starts_with(start)).count();
        assert!(said.contains("cluster    kind, topology three-node"), "{said}");
        assert_eq!(lines("run   CSIM-"), 17, "{said}");
        // That check belongs to CCMs.
        assert_eq!(lines("skip  CSIM-09"), 1, "{said}");
    }
}

#[test]
fn no_other_cluster_shows_anything_of_it() {
    let output = asked("plan", Path::new("reference-csi-driver"), &["--cluster", "embedded"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("only on kind a kubelet"), "{said}");
}

#[test]
fn a_profile_that_is_wrong_is_refused_with_its_key() {
    for (profile, expected) in [
        (format!("{PROFILE}replicas: 3\n"), "replicas: has no meaning with 'kind: csi-migration'"),
        (PROFILE.replace("driver.yaml", "none"), "csiMigration.manifests[0]: there is no file or folder"),
        (PROFILE.replace("pxd.portworx.com", "pxd"), "csiMigration.drivers[0]"),
        (
            "apiVersion: ccm-conformance/v1\nkind: csi-migration\nname: acme\n".to_owned(),
            "csiMigration: is missing",
        ),
    ] {
        let folder = folder(&profile);
        let output = asked("run", &folder.path().join("profile.yaml"), &[]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(expected), "{expected}: {said}");
    }
}
