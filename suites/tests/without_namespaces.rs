//! A machine that does not allow mount namespaces, like a container of Docker with its default seccomp profile.
//!
//! The tests simulate one: in a user namespace whose limit of mount namespaces is 0.

use harness_core::ledger::{Ledger, Outcome};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

const LIMITED: &str = "echo 0 > /proc/sys/user/max_mnt_namespaces && exec \"$0\" \"$@\"";
/// A CCM that has the usual path of its account's token built in and cannot run without it.
const CCM: &str =
    "#!/bin/sh\nexec 3< /var/run/secrets/kubernetes.io/serviceaccount/token || exit 1\nexec sleep 3600\n";

/// Runs a program on such a machine; `None` if user namespaces are not available.
fn on_such_a_machine(program: &str, arguments: &[&str]) -> Option<Output> {
    let make = |command: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "sh", "-c", LIMITED]).args(command);
        unshare.output().expect("unshare (util-linux)")
    };
    let has_none = make(&["unshare", "--mount", "true"]);
    let said = String::from_utf8_lossy(&has_none.stderr);
    if has_none.status.success() || !said.contains("No space left on device") {
        let _ = writeln!(std::io::stderr(), "no such machine can be made here: {said}");
        return None;
    }
    Some(make(&[&[program], arguments].concat()))
}

fn run(out: &Path, arguments: &[&str]) -> Option<(Output, String)> {
    let out = out.to_str().expect("a plain path");
    let usual = ["run", "--cluster", "embedded", "--out", out];
    let ended = on_such_a_machine(env!("CARGO_BIN_EXE_ccm-conformance"), &[&usual, arguments].concat())?;
    let said =
        format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    Some((ended, said))
}

/// A profile of a CCM whose Pods do not get the path of their token.
fn described_in(folder: &Path) -> String {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/ccms/reference");
    let (from, to) = (reference.join("manifests"), folder.join("manifests"));
    std::fs::create_dir(&to).expect("a folder");
    for file in std::fs::read_dir(from).expect("manifests") {
        let file = file.expect("a manifest");
        let text = std::fs::read_to_string(file.path()).expect("a manifest");
        let changed = text.replace("value: /var/run/secrets/kubernetes.io/serviceaccount", "value: /nowhere");
        std::fs::write(to.join(file.file_name()), changed).expect("written");
    }
    let profile = folder.join("profile.yaml");
    std::fs::copy(reference.join("profile.yaml"), &profile).expect("copied");
    profile.to_str().expect("a plain path").to_owned()
}

#[test]
fn a_ccm_without_its_mounts_is_not_blamed_and_the_remedy_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let ccm = folder.path().join("ccm");
    std::fs::write(&ccm, CCM).expect("written");
    std::fs::set_permissions(&ccm, PermissionsExt::from_mode(0o755)).expect("its mode");
    let out = folder.path().join("out");
    let (binary, profile) = (ccm.to_str().expect("a plain path"), described_in(folder.path()));
    let Some((ended, said)) = run(&out, &["--profile", &profile, "--binary", binary]) else { return };
    assert_eq!(ended.status.code(), Some(3), "{said}");
    for expected in [
        "mount namespaces",
        "/var/run/secrets/kubernetes.io/serviceaccount",
        "user.max_mnt_namespaces=0",
        "sysctl -w user.max_mnt_namespaces=",
        "the CCM is not sandboxed",
        "ccm-conformance doctor",
    ] {
        assert!(said.contains(expected), "{expected}:\n{said}");
    }
    assert!(!said.contains("NOT CONFORMANT"), "{said}");
    let doctor = on_such_a_machine(env!("CARGO_BIN_EXE_ccm-conformance"), &["doctor"]).expect("as before");
    let said = String::from_utf8_lossy(&doctor.stdout);
    for expected in
        ["programs are not sandboxed", "user.max_mnt_namespaces=0", "sysctl -w user.max_mnt_namespaces="]
    {
        assert!(said.contains(expected), "{expected}:\n{said}");
    }
}

#[test]
fn the_reference_ccm_is_judged_there_as_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let only = ["--profile", "reference", "--only", "NODE-INIT-01,SVC-CREATE-02,AUTH-12,HA-01"];
    let Some((ended, said)) = run(folder.path(), &only) else { return };
    assert_eq!(ended.status.code(), Some(0), "{said}");
    let report = folder.path().join("report.yaml");
    let text = std::fs::read_to_string(&report).expect("a report");
    let Ledger { entries, .. } = harness_report::parse(&text, &report).expect("a report of this version");
    let judged = |id: &str| entries.iter().find(|entry| entry.id == id).map(|entry| &entry.outcome);
    for id in ["NODE-INIT-01", "SVC-CREATE-02", "HA-01"] {
        assert_eq!(judged(id), Some(&Outcome::Pass), "{id}\n{said}");
    }
}
