//! The server as kubectl sees it. Skipped with a message if kubectl is not installed.

use std::process::Stdio;

use tokio::process::Command;

use crate::client::Cluster;

struct Kubectl {
    folder: tempfile::TempDir,
    cluster: Cluster,
}

impl Kubectl {
    async fn new() -> Option<Self> {
        let found =
            Command::new("kubectl").args(["version", "--client"]).stdout(Stdio::null()).status().await;
        if !found.is_ok_and(|status| status.success()) {
            #[expect(clippy::print_stderr, reason = "a test that proves nothing must say so")]
            {
                eprintln!("SKIPPED: there is no kubectl on this machine (ci/docker/setup installs Debian's)");
            }
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let cluster = Cluster::start().await;
        std::fs::write(folder.path().join("config"), cluster.server.kubeconfig().expect("a kubeconfig"))
            .expect("written");
        Some(Self { folder, cluster })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command
            .args(arguments)
            .env("KUBECONFIG", self.folder.path().join("config"))
            .env("HOME", self.folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    async fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().await.expect("kubectl runs");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl {arguments:?}\n{out}\n{err}");
        out.into_owned()
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    }
}

const MANIFEST: &str = "
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {k: v}
";

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_works() {
    let Some(kubectl) = Kubectl::new().await else { return };
    let manifest = kubectl.file("manifest.yaml", MANIFEST);
    let applied = kubectl.run(&["apply", "-f", &manifest]).await;
    assert!(
        applied.contains("service/web created") && applied.contains("configmap/settings created"),
        "{applied}"
    );
    let again = kubectl.run(&["apply", "-f", &manifest]).await;
    assert!(again.contains("service/web unchanged"), "{again}");
    let changed = kubectl.file("changed.yaml", &MANIFEST.replace("port: 80,", "port: 81,"));
    assert!(kubectl.run(&["apply", "-f", &changed]).await.contains("service/web configured"));
    let port = kubectl.run(&["get", "service", "web", "-o", "jsonpath={.spec.ports[0].port}"]).await;
    assert_eq!(port, "81");
    let table = kubectl.run(&["get", "services"]).await;
    assert!(table.starts_with("NAME") && table.contains("EXTERNAL-IP") && table.contains("81:"), "{table}");
    assert!(kubectl.run(&["get", "services,configmaps", "-A"]).await.contains("kube-root-ca.crt"));
    let applied = kubectl.run(&["apply", "--server-side", "--force-conflicts", "-f", &changed]).await;
    assert!(applied.contains("service/web serverside-applied"), "{applied}");
    assert!(kubectl.run(&["describe", "service", "web"]).await.contains("LoadBalancer"));
    let editor = kubectl.file("editor.sh", "#!/bin/sh\nsed -i 's/k: v$/k: edited/' \"$1\"\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&editor, mode).expect("executable");
    let edit = kubectl.command(&["edit", "configmap", "settings"]).env("EDITOR", &editor).output().await;
    let edit = edit.expect("kubectl runs");
    assert!(edit.status.success(), "{}", String::from_utf8_lossy(&edit.stderr));
    assert_eq!(kubectl.run(&["get", "configmap", "settings", "-o", "jsonpath={.data.k}"]).await, "edited");
    let waiting = kubectl.command(&["wait", "--for=delete", "configmap/settings", "--timeout=20s"]).output();
    let deleting = kubectl.command(&["delete", "configmap", "settings"]).output();
    let (waited, deleted) = tokio::join!(waiting, deleting);
    assert!(waited.expect("kubectl runs").status.success());
    assert!(deleted.expect("kubectl runs").status.success());
    assert!(kubectl.run(&["api-resources"]).await.contains("services"));
    kubectl.run(&["delete", "-f", &manifest, "--ignore-not-found"]).await;
    let mut watching = kubectl
        .command(&["get", "configmaps", "--watch-only", "-o", "name"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl runs");
    let mut audit = kubectl.cluster.server.audit().watch();
    let begun = async {
        loop {
            let entries = audit.next().await;
            // Watches of the whole list: the earlier watch of `kubectl wait` was for one object.
            let whole = |query: &str| query.contains("watch=true") && !query.contains("fieldSelector");
            if entries.iter().any(|entry| entry.request.verb == "watch" && whole(&entry.query)) {
                break;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), begun).await.expect("kubectl watches");
    kubectl.run(&["create", "configmap", "seen"]).await;
    let out = watching.stdout.take().expect("its output");
    let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(out));
    let line = tokio::time::timeout(std::time::Duration::from_secs(20), lines.next_line()).await;
    assert_eq!(line.expect("in time").expect("a line").as_deref(), Some("configmap/seen"));
    watching.kill().await.expect("killed");
}
