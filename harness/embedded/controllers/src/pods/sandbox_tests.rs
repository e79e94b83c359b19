//! Rewriting, plans, and the namespace where this machine allows it.

use super::*;

fn mount(source: &str, target: &str) -> Mount {
    Mount { source: PathBuf::from(source), target: PathBuf::from(target) }
}

#[test]
fn paths_are_rewritten_at_their_borders_only() {
    let mounts = [mount("/tmp/a", "/etc/cloud"), mount("/tmp/b", "/etc/cloud/deep")];
    let cases = [
        ("--config=/etc/cloud/x.yaml", "--config=/tmp/a/x.yaml"),
        ("/etc/cloud", "/tmp/a"),
        ("/etc/cloud/deep/y", "/tmp/b/y"),
        ("/etc/cloudy", "/etc/cloudy"),
        ("/usr/etc/cloud", "/usr/etc/cloud"),
        ("a:/etc/cloud:b", "a:/tmp/a:b"),
        ("ü", "ü"),
    ];
    for (text, expected) in cases {
        assert_eq!(rewrite(text, &mounts), expected, "{text}");
    }
}

#[test]
fn missing_folders_get_a_mirror_and_a_missing_top_folder_a_root() {
    let exists = |path: &Path| ["/", "/run", "/etc", "/etc/ssl"].iter().any(|known| path == Path::new(known));
    let plan = Plan::of(&[mount("/s", "/run/secrets/x"), mount("/s", "/etc/ssl")], &exists);
    assert_eq!((plan.mirrors.clone(), plan.own_root), (vec![PathBuf::from("/run")], false));
    assert_eq!(plan.nearest(Path::new("/run/secrets/x")), Some(&PathBuf::from("/run")));
    assert_eq!(plan.nearest(Path::new("/etc/ssl")), None);
    assert!(Plan::of(&[mount("/s", "/config")], &exists).own_root);
}

#[test]
fn what_starts_programs_is_named_by_its_path() {
    let [program, _, _, end] = &dies_too()[..] else { panic!("{:?}", dies_too()) };
    assert!(Path::new(program).is_absolute() && program.ends_with("/setpriv"), "{program}");
    assert_eq!(end, "--");
}

#[tokio::test]
async fn a_program_sees_its_files_where_the_pod_wants_them() {
    let folder = tempfile::tempdir().expect("a folder");
    // What this machine allows decides whether namespaces are tested; every way has to work for arguments.
    let detected = detect(Mounts::Detect, folder.path()).await;
    let source = folder.path().join("files");
    write_file(&source.join("token"), b"secret").expect("written");
    let targets: &[&str] = &["/var/run/secrets/kubernetes.io/serviceaccount", "/config-of-nobody/deep"];
    let mounts: Vec<_> = targets
        .iter()
        .map(|target| Mount { source: source.clone(), target: PathBuf::from(target) })
        .collect();
    let ways = [detected, Isolation::Rewritten, Isolation::RewrittenAlone];
    for (isolation, target) in ways.iter().flat_map(|way| targets.iter().map(|target| (*way, target))) {
        let line = vec!["cat".to_owned(), format!("{target}/token")];
        let scratch = folder.path().join("scratch");
        let prepared =
            prepare(isolation, &scratch, &mounts, line, BTreeMap::new(), Path::new("/")).expect("prepared");
        let output =
            std::process::Command::new(&prepared.line[0]).args(&prepared.line[1..]).output().expect("runs");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "secret", "{isolation:?} {target}: {output:?}");
    }
}
