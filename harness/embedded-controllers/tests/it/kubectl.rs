//! kubectl commands that need controllers. Skipped with a message if kubectl is not installed.

use std::process::{Output, Stdio};

use embedded_controllers::{CloudProvider, NodeSpec, Program, Share};
use tokio::process::Command;

use crate::cluster::{Cluster, shell};

/// A cluster of two nodes, and kubectl for it.
struct Kubectl {
    folder: tempfile::TempDir,
    cluster: Cluster,
}

impl Kubectl {
    async fn start() -> Option<Kubectl> {
        let found =
            Command::new("kubectl").args(["version", "--client"]).stdout(Stdio::null()).status().await;
        if !found.is_ok_and(|status| status.success()) {
            #[expect(clippy::print_stderr, reason = "a test that proves nothing must say so")]
            {
                eprintln!("SKIPPED: there is no kubectl on this machine (ci/docker/setup installs Debian's)");
            }
            return None;
        }
        let own = |name: &str| NodeSpec { cloud: CloudProvider::None, ..NodeSpec::new(name) };
        let folder = tempfile::tempdir().expect("a folder");
        let shared = Share { path: folder.path().to_owned(), writable: false };
        let cluster = Cluster::start(vec![own("node-0"), own("node-1")], |settings| {
            settings.programs.push(Program { shares: vec![shared], ..shell() });
        })
        .await;
        std::fs::write(folder.path().join("config"), cluster.kubeconfig()).expect("written");
        Some(Kubectl { folder, cluster })
    }

    async fn output(&self, line: &str) -> Output {
        let mut command = Command::new("kubectl");
        command
            .args(line.split_whitespace())
            .env("KUBECONFIG", self.folder.path().join("config"))
            .env("HOME", self.folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command.output().await.expect("kubectl runs")
    }

    /// Runs a command that has to succeed, and whose output has to contain this.
    async fn run(&self, line: &str, expected: &str) -> String {
        let output = self.output(line).await;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out.contains(expected), "kubectl {line}\n{out}\n{err}");
        out.into_owned()
    }
}

#[tokio::test]
async fn deployments_are_rolled_out_scaled_and_taken_back() {
    let Some(kubectl) = Kubectl::start().await else { return };
    kubectl
        .run("wait --for=condition=Ready node/node-0 node/node-1 --timeout=60s", "node-1 condition met")
        .await;
    for (line, expected) in [
        ("create deployment web --image=none --replicas=2", "deployment.apps/web created"),
        ("rollout status deployment/web --timeout=60s", "successfully rolled out"),
        ("wait --for=condition=Available deployment/web --timeout=60s", "condition met"),
        ("get deployment web", "2/2"),
        ("scale deployment web --replicas=4", "deployment.apps/web scaled"),
        ("rollout status deployment/web --timeout=60s", "successfully rolled out"),
        ("get deployment web", "4/4"),
        ("set image deployment/web none=other", "image updated"),
        ("rollout status deployment/web --timeout=60s", "successfully rolled out"),
        ("get deployment web -o wide", "other"),
        ("rollout history deployment/web", "2"),
        ("rollout undo deployment/web", "rolled back"),
        ("rollout status deployment/web --timeout=60s", "successfully rolled out"),
        ("rollout restart deployment/web", "restarted"),
        ("rollout status deployment/web --timeout=60s", "successfully rolled out"),
        ("expose deployment web --port=80 --type=LoadBalancer", "service/web exposed"),
        ("get service web", "<pending>"),
        ("describe deployment web", "NewReplicaSet:"),
        ("describe service web", "LoadBalancer"),
        ("describe pods -l app=web", "Successfully assigned"),
        ("get pods -l app=web -o wide", "node-"),
        ("get replicasets,endpoints,endpointslices,events", "replicaset.apps/web-"),
        ("autoscale deployment web --max=3 --dry-run=client", "web"),
        ("delete service,deployment web", "deleted"),
        ("wait --for=delete pod -l app=web --timeout=60s", ""),
    ] {
        kubectl.run(line, expected).await;
    }
    kubectl.cluster.stop().await;
}

#[tokio::test]
async fn nodes_are_cordoned_drained_and_described() {
    let Some(kubectl) = Kubectl::start().await else { return };
    kubectl
        .run("wait --for=condition=Ready node/node-0 node/node-1 --timeout=60s", "node-0 condition met")
        .await;
    for (line, expected) in [
        ("create deployment web --image=none --replicas=4", "created"),
        ("rollout status deployment/web --timeout=60s", "successfully rolled out"),
        ("cordon node-0", "node/node-0 cordoned"),
        ("get node node-0", "Ready,SchedulingDisabled"),
        ("drain node-0 --ignore-daemonsets --timeout=60s", "node/node-0 drained"),
        ("rollout status deployment/web --timeout=60s", "successfully rolled out"),
        ("describe node node-0", "Unschedulable:      true"),
        ("describe node node-1", "web-"),
        ("uncordon node-0", "node/node-0 uncordoned"),
        ("label node node-0 example.com/rack=7", "labeled"),
        ("annotate node node-0 example.com/note=x", "annotated"),
        ("taint node node-0 example.com/full=yes:NoSchedule", "tainted"),
        ("taint node node-0 example.com/full-", "untainted"),
        ("get nodes -l example.com/rack=7 -o name", "node/node-0"),
        ("auth can-i create nodes", "yes"),
    ] {
        kubectl.run(line, expected).await;
    }
    let left = kubectl.run("get pods --field-selector=spec.nodeName=node-0 -o name", "").await;
    assert_eq!(left, "", "the drained node has Pods");
    let placed = kubectl.run("get pods -l app=web -o jsonpath={.items[*].spec.nodeName}", "").await;
    assert_eq!(placed, "node-1 node-1 node-1 node-1");
    kubectl.cluster.stop().await;
}

#[tokio::test]
async fn logs_are_followed_until_the_program_ends() {
    let Some(kubectl) = Kubectl::start().await else { return };
    let manifest = kubectl.folder.path().join("pod.yaml");
    // The second line is written when the file exists: not before the first line has been read.
    let script = "echo first; until [ -e \"$GO\" ]; do sleep 0.05; done; echo second";
    let go = kubectl.folder.path().join("go");
    let text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  restartPolicy: Never\n  containers:\n  - \
         {{name: c, image: shell, args: [{script:?}], env: [{{name: GO, value: {go:?}}}]}}\n"
    );
    std::fs::write(&manifest, text).expect("written");
    kubectl.run(&format!("apply -f {}", manifest.display()), "pod/p created").await;
    kubectl.run("wait --for=jsonpath={.status.phase}=Running pod/p --timeout=60s", "condition met").await;
    let mut following = Command::new("kubectl")
        .args(["logs", "--follow", "p"])
        .env("KUBECONFIG", kubectl.folder.path().join("config"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("kubectl runs");
    let out = following.stdout.take().expect("its output");
    let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(out));
    assert_eq!(lines.next_line().await.expect("read").as_deref(), Some("first"));
    std::fs::write(&go, "").expect("written");
    assert_eq!(lines.next_line().await.expect("read").as_deref(), Some("second"));
    assert_eq!(lines.next_line().await.expect("read"), None);
    assert!(following.wait().await.expect("it ends").success());
    kubectl.run("logs p --tail=1", "second").await;
    kubectl.cluster.stop().await;
}
