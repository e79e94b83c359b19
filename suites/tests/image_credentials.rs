//! The suite `image-credentials` as a user runs it: the reference plugin, harmful plugins, invalid profiles.

use harness_core::ledger::{Conformance, Entry, Ledger, Outcome, SkipReason};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

const CONFIG: &str = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: plugin\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n  matchImages: [registry.acme.example]\n  defaultCacheDuration: 10m\n";
const PROFILE: &str = "apiVersion: ccm-conformance/v1\nkind: image-credentials\nname: acme\nimageCredentials:\n  config: config.yaml\n  binDir: bin\n  images: [registry.acme.example/team/app]\n";
const ANSWER: &str = r#"{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Registry","auth":{"registry.acme.example":{"username":"u","password":"acme-password-1"}}}"#;

fn command(profile: &Path, out: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"));
    command.arg("run").arg("--profile").arg(profile).arg("--out").arg(out).args(arguments);
    command.output().expect("the command can be run")
}

fn ledger(out: &Path, output: &Output) -> Ledger {
    let report = out.join("report.yaml");
    let text = std::fs::read_to_string(&report)
        .unwrap_or_else(|error| panic!("no report ({error}):\n{}", String::from_utf8_lossy(&output.stderr)));
    harness_report::parse(&text, &report).expect("a report of this version")
}

/// A profile of a plugin with this file as its program.
fn folder(plugin: &[u8], mode: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).expect("a folder");
    std::fs::write(folder.path().join("config.yaml"), CONFIG).expect("written");
    std::fs::write(folder.path().join("profile.yaml"), PROFILE).expect("written");
    std::fs::write(bin.join("plugin"), plugin).expect("written");
    std::fs::set_permissions(bin.join("plugin"), PermissionsExt::from_mode(mode)).expect("its mode");
    folder
}

/// The outcomes of the checks of a plugin.
fn judged(plugin: &[u8], mode: u32, arguments: &[&str]) -> (Output, Ledger) {
    let folder = folder(plugin, mode);
    let out = folder.path().join("out");
    let output = command(&folder.path().join("profile.yaml"), &out, arguments);
    let ledger = ledger(&out, &output);
    (output, ledger)
}

fn of_plugins(ledger: &Ledger) -> impl Iterator<Item = &Entry> {
    ledger.entries.iter().filter(|entry| entry.id.starts_with("CREDP-"))
}

#[test]
fn the_reference_plugin_passes_all_that_needs_no_kubelet_without_a_cluster_in_seconds() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = command(Path::new("reference-credential-provider"), folder.path(), &[]);
    let ledger = ledger(folder.path(), &output);
    let without_kubelet =
        |entry: &Entry| matches!(&entry.outcome, Outcome::Skip { reason: SkipReason::NotObservable, .. });
    let unseen: Vec<&str> =
        of_plugins(&ledger).filter(|entry| without_kubelet(entry)).map(|entry| entry.id.as_str()).collect();
    assert_eq!(unseen, ["CREDP-06.pulls", "CREDP-08.pulls", "CREDP-12", "CREDP-13", "CREDP-15"]);
    let failed: Vec<String> = of_plugins(&ledger)
        .filter(|entry| entry.outcome != Outcome::Pass && !without_kubelet(entry))
        .map(|entry| format!("{}: {:?}", entry.id, entry.outcome))
        .collect();
    assert_eq!(failed, [""; 0]);
    assert_eq!(of_plugins(&ledger).count(), 29);
    let others = ledger.entries.iter().filter(|entry| !entry.id.starts_with("CREDP-"));
    let undeclared =
        |entry: &Entry| matches!(entry.outcome, Outcome::Skip { reason: SkipReason::NotDeclared, .. });
    assert!(others.clone().count() > 300 && others.clone().all(undeclared));
    assert_eq!((ledger.subject.backend.as_str(), ledger.subject.simulated), ("none", false));
    assert_eq!(ledger.conformance(), Conformance::Partial);
    assert_eq!(output.status.code(), Some(0));
    let verified = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"))
        .arg("verify")
        .arg(folder.path().join("report.yaml"))
        .output()
        .expect("the command can be run");
    assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&verified.stdout));
}

#[test]
fn answers_of_a_plugin_appear_in_no_output() {
    // The plugin prints its answer to its log, and fails.
    let plugin = format!("#!/bin/sh\ncat >/dev/null\necho '{ANSWER}' >&2\necho '{ANSWER}'\n");
    let folder = folder(plugin.as_bytes(), 0o755);
    let out = folder.path().join("out");
    let output =
        command(&folder.path().join("profile.yaml"), &out, &["--only", "CREDP-16", "--only", "CREDP-01"]);
    let ledger = ledger(&out, &output);
    let of = |id: &str| ledger.entries.iter().find(|entry| entry.id == id).expect("a check").outcome.clone();
    assert_eq!(of("CREDP-01"), Outcome::Pass);
    let Outcome::Fail { message } = of("CREDP-16") else { panic!("{:?}", of("CREDP-16")) };
    assert!(message.contains("the password for registry.acme.example does"), "{message}");
    let mut texts = vec![output.stdout, output.stderr];
    for entry in std::fs::read_dir(&out).expect("results").flatten().filter(|entry| entry.path().is_file()) {
        texts.push(std::fs::read(entry.path()).expect("a file"));
    }
    let shows = |text: &Vec<u8>| String::from_utf8_lossy(text).contains("acme-password-1");
    assert!(!texts.iter().any(shows));
}

#[test]
fn a_plugin_that_does_harm_fails_with_the_cause_and_leaves_nothing() {
    let detached = "#!/bin/sh\nsetsid sleep 86399 </dev/null >/dev/null 2>&1 &\necho nonsense\n";
    for (plugin, mode, cause) in [
        (
            b"#!/bin/sh\ncat /dev/zero\n".to_vec(),
            0o755,
            "it wrote more than 1 MiB to standard output and was killed",
        ),
        (detached.as_bytes().to_vec(), 0o755, "(9 bytes, 1 lines) is not a single JSON object"),
        (b"#!/bin/sh\nkill -9 $$\n".to_vec(), 0o755, "it was killed by signal 9"),
        (b"#!/bin/sh\nexit 0\n".to_vec(), 0o755, "it wrote nothing to standard output"),
        (b"#!/bin/sh\n".to_vec(), 0o644, "it cannot be executed"),
        (
            b"\x7fELF of another machine".to_vec(),
            0o755,
            "it is a program for another architecture than this machine's",
        ),
        (b"#!/nowhere/interpreter\n".to_vec(), 0o755, "it cannot be executed"),
    ] {
        let (output, ledger) = judged(&plugin, mode, &["--only", "CREDP-0*"]);
        assert_eq!(output.status.code(), Some(1), "{cause}");
        for id in ["CREDP-01", "CREDP-02", "CREDP-04"] {
            let entry = ledger.entries.iter().find(|entry| entry.id == id).expect("a check");
            let Outcome::Fail { message } = &entry.outcome else { panic!("{id}: {:?}", entry.outcome) };
            assert!(message.contains(cause), "{cause}: {message}");
        }
    }
    let left = Command::new("pgrep").args(["-f", "sleep 86399"]).output().expect("pgrep can be run");
    assert_eq!(String::from_utf8_lossy(&left.stdout), "", "what it started stays");
}

#[test]
fn a_profile_that_is_wrong_is_refused_with_its_keys() {
    let refused = |profile: &str, arguments: &[&str]| {
        let folder = folder(b"#!/bin/sh\n", 0o755);
        let file = folder.path().join("profile.yaml");
        std::fs::write(&file, profile).expect("written");
        let output = command(&file, &folder.path().join("out"), arguments);
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (profile, arguments, part) in [
        (
            PROFILE.replace("binDir: bin", "binDir: other"),
            &[][..],
            "imageCredentials.binDir: there is no folder",
        ),
        (
            PROFILE.replace("  binDir: bin\n", ""),
            &[],
            "imageCredentials: names no program; write 'binDir' or 'command'",
        ),
        (format!("{PROFILE}  command: [a]\n"), &[], "imageCredentials: has both 'binDir' and 'command'"),
        (
            PROFILE.replace("config.yaml", "none.yaml"),
            &[],
            "imageCredentials.config: there is no file or folder",
        ),
        (
            PROFILE.replace("team/app", "team/app:v1"),
            &[],
            "has a tag or digest, which a plugin never receives",
        ),
        (PROFILE.replace("[registry.acme.example/team/app]", "[nginx]"), &[], "names no registry"),
        (format!("{PROFILE}replicas: 3\n"), &[], "replicas: has no meaning with 'kind: image-credentials'"),
        (PROFILE.replace("kind: image-credentials", "kind: Profile"), &[], "manifests: is missing"),
        (
            PROFILE.to_owned(),
            &["--cluster", "embedded"],
            "--cluster: profile 'acme' describes no CCM, and only on kind a kubelet",
        ),
        (
            PROFILE.split("imageCredentials").next().unwrap_or_default().to_owned(),
            &[],
            "imageCredentials: is missing",
        ),
    ] {
        let said = refused(&profile, arguments);
        assert!(said.contains(part), "{part} is not in {said}");
    }
}

#[test]
fn one_run_judges_a_ccm_and_a_plugin_each_whatever_became_of_the_other() {
    let plugin = format!("#!/bin/sh\ncat >/dev/null\necho '{ANSWER}'\n");
    let folder = folder(plugin.as_bytes(), 0o755);
    let both = PROFILE
        .replace("kind: image-credentials", "kind: Profile\nmanifests: []\ncapabilities: {instances: v2}");
    let (file, out) = (folder.path().join("profile.yaml"), folder.path().join("out"));
    std::fs::write(&file, both).expect("written");
    let arguments = ["--cluster", "embedded", "--only", "CREDP-07", "--only", "NODE-INIT-04"];
    let output = command(&file, &out, &arguments);
    let ledger = ledger(&out, &output);
    let of = |id: &str| ledger.entries.iter().find(|entry| entry.id == id).expect("a check").outcome.clone();
    assert_eq!(of("CREDP-07"), Outcome::Pass);
    assert!(matches!(of("NODE-INIT-04"), Outcome::Fail { .. }), "{:?}", of("NODE-INIT-04"));
    assert_eq!(ledger.subject.backend, "embedded");
}
