//! What a program can reach and what it cannot, in every way of confinement that this machine allows, as this
//! user and as an ordinary one.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use super::*;

/// A user without any rights.
const UNPRIVILEGED: &str = "65534";

/// The ways that work here. On a machine that allows none, nothing is tested, and a message says so.
async fn ways(folder: &Path) -> Vec<Way> {
    let mut ways = Vec::new();
    for way in WAYS {
        match try_out(folder, way).await {
            Ok(()) => ways.push(way),
            Err(error) => {
                let _ = io::Write::write_fmt(&mut io::stderr(), format_args!("{way:?}: {error}\n"));
            }
        }
    }
    ways
}

/// Runs the program, as another user if `user` is given. Everything below `folder` belongs to that user then.
fn run(prepared: &Prepared, folder: &Path, user: Option<&str>) -> Output {
    let mut line = prepared.line.clone();
    if let Some(user) = user {
        let owned = Command::new("chown").args(["-R", user]).arg(folder).status().expect("chown");
        assert!(owned.success());
        let start = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--"].map(str::to_owned);
        line.splice(0..0, start);
    }
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]).envs(&prepared.environment).stdin(Stdio::null());
    command.output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn a_program_sees_its_files_where_the_pod_wants_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("files");
    write_file(&source.join("token"), b"secret").expect("written");
    let targets: &[&str] = &[
        "/var/run/secrets/kubernetes.io/serviceaccount",
        "/config-of-nobody/deep",
        "/usr/share/of/nobody",
        "/etc/acme",
    ];
    let mounts: Vec<_> = targets.iter().map(|target| Mount::new(&source, *target)).collect();
    let ways = ways(folder.path()).await.into_iter().map(Isolation::Confined);
    let ways: Vec<_> = ways.chain([Isolation::Rewritten, Isolation::RewrittenAlone]).collect();
    for (isolation, target) in ways.iter().flat_map(|way| targets.iter().map(|target| (*way, target))) {
        let wanted = Wanted {
            scratch: &folder.path().join("scratch"),
            shown: &[],
            mounts: &mounts,
            line: vec!["cat".to_owned(), format!("{target}/token")],
            environment: BTreeMap::new(),
            folder: Path::new("/"),
        };
        let output = run(&prepare(isolation, wanted).expect("prepared"), folder.path(), None);
        assert_eq!(text(&output.stdout), "secret", "{isolation:?} {target}: {output:?}");
    }
}

/// A hostile program that looks for things to read. Each line of its output is something that it must not
/// reach. It does no harm.
const PEEKS: &str = r#"
for path in "$SECRET" "$RUN" "$OTHER" /root /home/me /etc/shadow /etc/ssh /run/docker.sock /var/run/docker.sock \
    /sys/kernel /dev/mem /dev/tty /dev/kmsg; do
    test -e "$path" && echo "sees $path"
done
there=/proc/$VICTIM
grep -q SECRET_OF_ANOTHER "$there/environ" 2>/dev/null && echo "reads the environment of another"
test -e "$there/root$SECRET" && echo "reads files by the root of another"
ls "$there/cwd/" 2>/dev/null | grep -q kubeconfig && echo "reads files by the folder of another"
(exec 3<"$there/mem") 2>/dev/null && echo "opens the memory of another"
kill -0 "$VICTIM" 2>/dev/null && echo "signals the process of another"
"#;
/// Things that are all reachable without confinement, except files that not every machine has.
const REACHED: [&str; 5] = [
    "reads the environment of another",
    "reads files by the root of another",
    "reads files by the folder of another",
    "opens the memory of another",
    "signals the process of another",
];
/// A hostile program that tries to do harm. Each line of its output is something that it must not be able to do.
const DEEDS: &str = r#"
(: >/usr/of-a-program) 2>/dev/null && echo "writes to /usr"
(: >/of-a-program) 2>/dev/null && echo "writes to /"
(: >/etc/hostname) 2>/dev/null && echo "writes to /etc"
(echo 4 >/proc/sys/kernel/printk) 2>/dev/null && echo "sets the kernel"
umount /proc 2>/dev/null && echo "takes /proc away"
mount -t tmpfs none /tmp 2>/dev/null && echo "mounts"
unshare --user --map-root-user --mount true 2>/dev/null && echo "makes namespaces"
mknod /tmp/device b 254 0 2>/dev/null && echo "makes devices"
setpriv --reuid 12345 true 2>/dev/null && echo "becomes another user"
grep -E '^Cap(Eff|Prm|Bnd|Amb)' /proc/self/status | grep -qv '0000000000000000$' && echo "has capabilities"
grep -q '^NoNewPrivs:.*0' /proc/self/status && echo "may get more rights"
"#;
/// Things that the program has to find; otherwise it has tried nothing.
const ITS_OWN: &str = r#"
test "$$" = 1 && test -d /proc/self/fd && echo "its process"
cd && touch "$HOME/a" /tmp/b && test -e a && echo "its folders"
test "$(cat /etc/acme/token)" = secret && ! (: >/etc/acme/token) 2>/dev/null && echo "its files"
exec 3</dev/urandom 4>/dev/null 5>/dev/shm/c && echo "its devices"
test "$LD_LIBRARY_PATH" = /nowhere && test "$NAME" = "a value" && echo "its environment"
"#;

#[tokio::test]
async fn a_confined_program_reaches_nothing_of_others() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("its mode");
    // Readable for everyone: only its path keeps a program from it.
    let secret = folder.path().join("run/kubeconfig");
    let other = tempfile::Builder::new().prefix("ccm-conformance-").tempdir().expect("a folder");
    std::fs::create_dir_all(folder.path().join("run")).expect("made");
    std::fs::write(&secret, "secret").expect("written");
    let root = rustix::process::geteuid().is_root();
    let users: &[Option<&str>] = if root { &[None, Some(UNPRIVILEGED)] } else { &[None] };
    for (way, user) in
        ways(folder.path()).await.into_iter().flat_map(|way| users.iter().map(move |user| (way, *user)))
    {
        if user.is_some() && !way.user {
            continue;
        }
        let mut victim = Command::new("sleep");
        victim.arg("600").env("SECRET_OF_ANOTHER", "1").current_dir(folder.path().join("run"));
        let mut victim = victim.spawn().expect("a process");
        let place = folder.path().join(format!("{way:?}-{user:?}"));
        let (home, temporary, files) = (place.join("home"), place.join("tmp"), place.join("files"));
        for folder in [&home, &temporary] {
            super::super::volumes::make_folder(folder).expect("made");
        }
        write_file(&files.join("token"), b"secret").expect("written");
        let mounts = [
            Mount::new(&home, "/home/pod"),
            Mount::new(&temporary, "/tmp"),
            Mount::read_only(&files, "/etc/acme"),
        ];
        let variables = [
            ("HOME", "/home/pod".to_owned()),
            ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
            ("SECRET", secret.display().to_string()),
            ("RUN", folder.path().display().to_string()),
            ("OTHER", other.path().display().to_string()),
            ("VICTIM", victim.id().to_string()),
            ("LD_LIBRARY_PATH", "/nowhere".to_owned()),
            ("NAME", "a value".to_owned()),
        ];
        let wanted = |script: &str| Wanted {
            scratch: &place,
            shown: &[],
            mounts: &mounts,
            line: ["sh", "-c", script].map(str::to_owned).to_vec(),
            environment: variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            folder: Path::new("/home/pod"),
        };
        let isolation = Isolation::Confined(way);
        let own = run(&prepare(isolation, wanted(ITS_OWN)).expect("prepared"), folder.path(), user);
        let expected = "its process\nits folders\nits files\nits devices\nits environment\n";
        assert_eq!(text(&own.stdout), expected, "{way:?} as {user:?}: {}", text(&own.stderr));
        // A `/tmp` of its own would rewrite the paths that it looks for.
        let anywhere = Wanted { mounts: &[], ..wanted(PEEKS) };
        let unconfined = prepare(Isolation::Rewritten, anywhere).expect("prepared");
        let reached = text(&run(&unconfined, folder.path(), None).stdout);
        let peeked = run(&prepare(isolation, wanted(PEEKS)).expect("prepared"), folder.path(), user);
        victim.kill().and_then(|()| victim.wait()).expect("it ends");
        assert_eq!(text(&peeked.stdout), "", "{way:?} as {user:?}: {}", text(&peeked.stderr));
        assert!(
            REACHED.iter().all(|what| reached.contains(what)),
            "not noticed without a sandbox: {reached}"
        );
        assert!(reached.contains(&format!("sees {}", secret.display())), "{reached}");
        let done = run(&prepare(isolation, wanted(DEEDS)).expect("prepared"), folder.path(), user);
        assert_eq!(text(&done.stdout), "", "{way:?} as {user:?}: {}", text(&done.stderr));
    }
}

#[tokio::test]
async fn a_program_is_the_only_one_in_its_proc() {
    let folder = tempfile::tempdir().expect("a folder");
    for way in ways(folder.path()).await.into_iter().filter(|way| way.own_proc) {
        let wanted = Wanted {
            scratch: &folder.path().join("scratch"),
            shown: &[],
            mounts: &[],
            line: ["sh", "-c", "echo /proc/[0-9]*"].map(str::to_owned).to_vec(),
            environment: BTreeMap::new(),
            folder: Path::new("/"),
        };
        let output = run(&prepare(Isolation::Confined(way), wanted).expect("prepared"), folder.path(), None);
        assert_eq!(text(&output.stdout), "/proc/1\n", "{way:?}: {}", text(&output.stderr));
    }
}

#[tokio::test]
async fn a_program_below_the_temporary_folder_is_found_with_its_neighbours() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("place");
    write_file(&place.join("library"), b"echo \"$1\"").expect("written");
    let program = place.join("program");
    write_file(&program, b"#!/bin/sh\n. \"$(dirname \"$0\")/library\"\n").expect("written");
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("its mode");
    let temporary = folder.path().join("tmp");
    super::super::volumes::make_folder(&temporary).expect("made");
    let ways = ways(folder.path()).await.into_iter().map(Isolation::Confined);
    for isolation in ways.chain([Isolation::Rewritten, Isolation::RewrittenAlone]) {
        let wanted = Wanted {
            scratch: &folder.path().join("scratch"),
            shown: &[Mount::read_only(&place, &place)],
            mounts: &[Mount::new(&temporary, "/tmp")],
            line: vec![program.display().to_string(), "found".to_owned()],
            environment: BTreeMap::new(),
            folder: Path::new("/"),
        };
        let output = run(&prepare(isolation, wanted).expect("prepared"), folder.path(), None);
        assert_eq!(text(&output.stdout), "found\n", "{isolation:?}: {}", text(&output.stderr));
    }
}

#[test]
fn launchers_are_named_by_path_and_get_no_variable_that_loads_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let variables = ["LD_PRELOAD", "BASH_ENV", "ENV", "ENVIRONMENT", "TOKEN"];
    let wanted = Wanted {
        scratch: folder.path(),
        shown: &[],
        mounts: &[],
        line: vec!["true".to_owned()],
        environment: variables.iter().map(|name| ((*name).to_owned(), "value".to_owned())).collect(),
        folder: Path::new("/"),
    };
    let way = Way { user: true, own_proc: true };
    let prepared = prepare(Isolation::Confined(way), wanted).expect("prepared");
    assert!(
        prepared.line[0].starts_with('/') && prepared.line[0].ends_with("/setpriv"),
        "{:?}",
        prepared.line
    );
    assert_eq!(prepared.environment.keys().collect::<Vec<_>>(), ["ENVIRONMENT", "TOKEN"]);
    let inside = &prepared.line[prepared.line.len() - 5..];
    assert!(inside[0].ends_with("/env"), "{inside:?}");
    assert_eq!(inside[1..], ["BASH_ENV=value", "ENV=value", "LD_PRELOAD=value", "true"]);
}
