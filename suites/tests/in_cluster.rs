//! A run in a Pod of the cluster under test, with the manifests that users get: without Docker, with the
//! rights of the manifests, and with the files that Sonobuoy waits for, however the run ends.

use embedded_cluster::{Cluster, ClusterSpec, Program, Share};
use flate2::read::GzDecoder;
use harness_config::yaml::from_str_multi;
use harness_core::ledger::{Ledger, Outcome};
use harness_core::probe::{ReadError, poll};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Resource;
use kube::api::{Api, LogParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ccm-conformance");
const NAMESPACE: &str = "ccm-conformance";
/// The image in the manifests, and one of the CCM, which listens next to other tests of this machine.
const OWN: &str = "ccm-conformance:latest";
const CCM: &str = "ccm:test";
/// Sonobuoy's folder in a plugin.
const PLUGINS: &str = "/tmp/sonobuoy/results";

/// Checks that create, change, watch and delete everything that a run uses: Nodes, a Service, roles and
/// accounts, the CCM as it is shipped and by itself, its logs; and a check that looks at all Nodes.
const SELECTED: &[&str] = &[
    "NODE-INIT-01",
    "NODE-INIT-04",
    "SVC-CREATE-01",
    "SVC-CREATE-06",
    "AUTH-01",
    "AUTH-02",
    "BOOT-LINT-17",
    "SVC-DEL-03",
    "ROUTE-15",
];

fn manifests(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ci/in-cluster").join(name)
}

fn documents(name: &str) -> Vec<Value> {
    let path = manifests(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    from_str_multi(&text, &path).unwrap_or_else(|error| panic!("{error}"))
}

/// The containers of a manifest that run this program.
fn containers(document: &Value) -> Vec<Value> {
    let all = document["spec"]["template"]["spec"]["containers"].as_array().cloned().unwrap_or_default();
    all.into_iter().chain([document["spec"].clone()]).filter(|container| container["image"] == OWN).collect()
}

#[test]
fn manifests_name_options_that_there_are() {
    // Outside of a Pod, the cluster is that of a kubeconfig.
    let kubeconfig = tempfile::NamedTempFile::new().expect("a file");
    let text = "current-context: a\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:6443'}}]\n\
                contexts: [{name: a, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n";
    std::fs::write(kubeconfig.path(), text).expect("written");
    let mut tried = Vec::new();
    for name in ["job.yaml", "sharded-job.yaml", "merge.yaml", "sonobuoy-plugin.yaml"] {
        for container in documents(name).iter().flat_map(containers) {
            let arguments = container["args"].as_array().expect("args").iter().filter_map(Value::as_str);
            let expanded = |text: &str| text.replace("$(JOB)", "a-1").replace("$(JOB_COMPLETION_INDEX)", "1");
            let arguments: Vec<String> = arguments.map(expanded).collect();
            assert!(!arguments.concat().contains("$("), "{name}: {arguments:?}");
            // `plan` takes the arguments of a run, except for those about results, and starts nothing; `merge` fails because its
            // folders do not exist.
            let command = if arguments[0] == "run" { "plan" } else { &arguments[0] };
            let (of_results, others): (Vec<&String>, Vec<&String>) = arguments[1..].iter().partition(|one| {
                one.starts_with("--sonobuoy-results=") || command == "plan" && one.starts_with("--out=")
            });
            if of_results.iter().any(|one| one.starts_with("--sonobuoy")) {
                let help = Command::new(PROGRAM).args(["run", "--help"]).output().expect("the program runs");
                assert!(String::from_utf8_lossy(&help.stdout).contains("--sonobuoy-results"), "{name}");
            }
            let ended = Command::new(PROGRAM)
                .arg(command)
                .args(others)
                .env("JOB_COMPLETION_INDEX", "1")
                .env("KUBECONFIG", kubeconfig.path())
                .output()
                .expect("the program runs");
            let said = String::from_utf8_lossy(&ended.stderr);
            match command {
                "plan" => assert_eq!(ended.status.code(), Some(0), "{name}: {said}"),
                _ => assert!(said.contains("/results/part-0") && !said.contains("Usage:"), "{name}: {said}"),
            }
            tried.push(name);
        }
    }
    assert_eq!(
        tried,
        ["job.yaml", "sharded-job.yaml", "merge.yaml", "sonobuoy-plugin.yaml"],
        "one container each"
    );
}

/// A cluster with the objects of `base.yaml`, and a folder for the results of a plugin in it.
struct Around {
    cluster: Cluster,
    pods: Api<Pod>,
    results: TempDir,
    /// Another folder that the plugin sees at the same path, and may write to.
    shared: TempDir,
}

async fn create<K>(api: Api<K>, document: &Value)
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let object: K = serde_json::from_value(document.clone()).expect("of its kind");
    api.create(&PostParams::default(), &object).await.unwrap_or_else(|error| panic!("{document}: {error}"));
}

impl Around {
    async fn begin() -> Around {
        let ccm = Program {
            more_arguments: vec!["--bind-address=${NODE_LOOPBACK}".to_owned()],
            ..Program::new(CCM, [PROGRAM, "reference-ccm"])
        };
        let results = tempfile::tempdir().expect("a folder");
        // It stands for the volume that Sonobuoy mounts.
        let shared = tempfile::tempdir().expect("a folder");
        let shares =
            [&results, &shared].map(|folder| Share { path: folder.path().to_owned(), writable: true });
        let own = Program { shares: shares.to_vec(), ..Program::new(OWN, [PROGRAM]) };
        let spec = ClusterSpec { programs: vec![own, ccm], ..ClusterSpec::awaiting_cloud(1) };
        let cluster = Cluster::start(spec).await.expect("a cluster");
        let client = cluster.client();
        for document in documents("base.yaml") {
            match document["kind"].as_str().expect("a kind") {
                "Namespace" => create::<Namespace>(Api::all(client.clone()), &document).await,
                "ServiceAccount" => {
                    create::<ServiceAccount>(Api::namespaced(client.clone(), NAMESPACE), &document).await;
                }
                "ClusterRole" => create::<ClusterRole>(Api::all(client.clone()), &document).await,
                "ClusterRoleBinding" => {
                    create::<ClusterRoleBinding>(Api::all(client.clone()), &document).await
                }
                // A folder of this test replaces it.
                "PersistentVolumeClaim" => {}
                other => panic!("base.yaml has a {other}, and this test makes none"),
            }
        }
        Around { pods: Api::namespaced(client, NAMESPACE), cluster, results, shared }
    }

    /// Adds a Node whose providerID has the form of another cloud, with a pod network, like one of kind's own.
    async fn add_node_of_another_cloud(&self) {
        let spec = json!({"providerID": "kind://docker/other/node", "podCIDR": "10.199.0.0/24", "podCIDRs": ["10.199.0.0/24"]});
        let node = json!({"metadata": {"name": "of-another-cloud"}, "spec": spec});
        create(Api::<Node>::all(self.cluster.client()), &node).await;
    }

    /// Runs the plugin as Sonobuoy would, with more arguments, under the account of `base.yaml`.
    async fn run_plugin(&self, more: &[&str]) {
        let text = std::fs::read_to_string(manifests("sonobuoy-plugin.yaml")).expect("a manifest");
        let text = text.replace(PLUGINS, &self.results.path().display().to_string());
        let plugin = from_str_multi(&text, Path::new("plugin")).expect("YAML").remove(0);
        let mut container = plugin["spec"].clone();
        // The folder of the results is the one on this machine.
        container["volumeMounts"] = json!([]);
        let arguments = container["args"].as_array_mut().expect("args");
        arguments.extend(["--image", CCM].iter().chain(more).map(|argument| json!(argument)));
        let variables = container["env"].as_array_mut().expect("env");
        variables.push(json!({"name": "DOCKER_HOST", "value": "unix:///nowhere"}));
        // For machines where nothing can be mounted.
        let account = "/var/run/secrets/kubernetes.io/serviceaccount";
        variables.push(json!({"name": "SERVICE_ACCOUNT_FOLDER", "value": account}));
        let mut spec = plugin["podSpec"].clone();
        spec["serviceAccountName"] = json!("ccm-conformance");
        spec["containers"] = json!([container]);
        create(self.pods.clone(), &json!({"metadata": {"name": "plugin"}, "spec": spec})).await;
    }

    /// The address of the cluster's machine.
    async fn address(&self) -> String {
        let node = Api::<Node>::all(self.cluster.client()).get("node-0").await.expect("its Node");
        let mut annotations = node.metadata.annotations.unwrap_or_default();
        annotations.remove("alpha.kubernetes.io/provided-node-ip").expect("its kubelet announces one")
    }

    /// The output of the Pod so far.
    async fn log(&self) -> String {
        self.pods.logs("plugin", &LogParams::default()).await.unwrap_or_else(|error| error.to_string())
    }

    async fn until<T>(&self, what: &str, limit: u64, look: impl AsyncFn() -> Option<T>) -> T {
        let looked = async |seen: &mut String| {
            *seen = self.log().await;
            Ok::<_, ReadError>(look().await)
        };
        let found = poll(what, Duration::from_secs(limit), Duration::from_millis(100), looked).await;
        found.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The files that Sonobuoy would get, as soon as the file that it waits for exists.
    async fn handed_over(&self, limit: u64) -> BTreeMap<String, String> {
        let done = self.results.path().join("done");
        let archive =
            self.until("the file 'done'", limit, async || std::fs::read_to_string(&done).ok()).await;
        unpacked(Path::new(&archive))
    }
}

/// The files of an archive, by name.
fn unpacked(archive: &Path) -> BTreeMap<String, String> {
    let archive = File::open(archive).unwrap_or_else(|error| panic!("{}: {error}", archive.display()));
    let mut files = BTreeMap::new();
    for file in tar::Archive::new(GzDecoder::new(archive)).entries().expect("an archive") {
        let mut file = file.expect("a file");
        let (mut text, name) = (Vec::new(), file.path().expect("a name").display().to_string());
        file.read_to_end(&mut text).expect("read");
        files.insert(name, String::from_utf8_lossy(&text).into_owned());
    }
    files
}

fn ledger(files: &BTreeMap<String, String>) -> Ledger {
    harness_report::parse(&files["report.yaml"], Path::new("report.yaml")).expect("a report")
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_pod_a_run_judges_the_cluster_around_it_without_docker() {
    let around = Around::begin().await;
    around.add_node_of_another_cloud().await;
    let selected: Vec<&str> = SELECTED.iter().flat_map(|id| ["--only", id]).collect();
    around.run_plugin(&selected).await;
    let files = around.handed_over(300).await;
    let log = around.log().await;
    let ledger = ledger(&files);
    let skipped = |outcome: &Outcome| matches!(outcome, Outcome::Skip { .. });
    let judged: Vec<_> = ledger.entries.iter().filter(|entry| !skipped(&entry.outcome)).collect();
    let bad: Vec<_> = judged.iter().filter(|entry| entry.outcome != Outcome::Pass).collect();
    assert!(bad.is_empty(), "{bad:#?}\n{log}");
    for id in SELECTED {
        assert!(judged.iter().any(|entry| entry.id == *id), "{id} was not judged:\n{log}");
    }
    assert_eq!(ledger.subject.backend, "existing");
    assert!(
        files["sonobuoy_results.yaml"].contains("\nstatus: passed"),
        "{}",
        files["sonobuoy_results.yaml"]
    );
    assert!(files["events.jsonl"].contains("run-ended") && files["report.html"].starts_with("<!"));
    let token = "eyJhbGciOi";
    assert!(files.values().all(|text| !text.contains(token)), "the account's token was given away");
    around.cluster.stop().await;
}

/// A cloud that already knows the cluster's machine, and whose driver does not allow changes.
const REAL: &str = r#"
import driver
put, seen = driver.DriverApi.call, []
def call(self, method, path, query, body):
    if not self.cloud.instances:
        self.cloud.instances["i-1"] = dict(self.INSTANCE, id="i-1", name="node-0", provider_id="native://i-1",
            addresses=[{"type": "InternalIP", "address": open("address").read()}])
    if method != "GET":
        raise driver.Refused(403, "forbidden", "this cloud is read-only")
    status, answer = put(self, method, path, query, body)
    return status, dict(answer, machines=False, facilities=[]) if path == ["capabilities"] else answer
driver.DriverApi.call = call
page = driver.Handler.answer
def answer(self):
    if not self.path.startswith("/driver/"):
        open("callers", "a").write(self.headers.get("Authorization", "") + "\n")
    page(self)
driver.Handler.do_GET = driver.Handler.do_POST = driver.Handler.do_PUT = driver.Handler.do_DELETE = answer
driver.main()
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_real_cloud_is_looked_at_and_its_ccm_has_the_users_credential() {
    const CREDENTIAL: &str = "users-own-credential-0451";
    let around = Around::begin().await;
    let made = around.shared.path().join("acme");
    let written = Command::new(PROGRAM).args(["init", "cloud", "acme", "--out"]).arg(&made).output();
    assert!(written.expect("the program runs").status.success());
    std::fs::write(made.join("real.py"), REAL).expect("written");
    std::fs::write(made.join("credential"), CREDENTIAL).expect("written");
    std::fs::write(made.join("address"), around.address().await).expect("written");
    let profile = std::fs::read_to_string(made.join("profile.yaml")).expect("a profile");
    let (before, after) = profile.split_once("  driver:\n").expect("a driver");
    let (command, after) = after.split_once('\n').expect("its command");
    let command = command.replace("driver.py", "real.py");
    let real = format!(
        "  real:\n    credentials: {{CLOUD_TOKEN: {{file: credential}}}}\n    driver:\n  {command}\n"
    );
    std::fs::write(made.join("profile.yaml"), format!("{before}{real}{after}")).expect("written");
    let made_path = made.display().to_string();
    let only = ["--only", "NODE-INIT-01", "--only", "SVC-CREATE-02", "--only", "SVC-DEL-03"];
    around.run_plugin(&[&["--profile", &made_path][..], &only].concat()).await;
    let files = around.handed_over(300).await;
    let (log, ledger) = (around.log().await, ledger(&files));
    let of = |id: &str| &ledger.entries.iter().find(|entry| entry.id == id).expect("a check").outcome;
    assert_eq!(of("SVC-CREATE-02"), &Outcome::Pass, "{log}");
    assert!(format!("{:?}", of("NODE-INIT-01")).contains("lacks machines"), "{:?}", of("NODE-INIT-01"));
    assert!(format!("{:?}", of("SVC-DEL-03")).contains("lacks "), "{:?}", of("SVC-DEL-03"));
    assert_eq!(ledger.subject.driver, "acme before a real cloud: inventory");
    let callers = std::fs::read_to_string(made.join("callers")).expect("the driver was called");
    let bearer = format!("Bearer {CREDENTIAL}");
    assert!(callers.lines().count() > 0 && callers.lines().all(|line| line == bearer), "{callers}");
    assert!(files.values().all(|text| !text.contains(CREDENTIAL)), "the credential was given away");
    assert!(!log.contains(CREDENTIAL), "{log}");
    around.cluster.stop().await;
}

/// A run for Sonobuoy on a cluster of its own, until its checks begin.
struct Alone {
    child: Child,
    folder: TempDir,
}

impl Alone {
    async fn begin() -> Alone {
        let folder = tempfile::tempdir().expect("a folder");
        let said = File::create(folder.path().join("said")).expect("a file");
        let child = Command::new(PROGRAM)
            .args(["run", "--cluster", "embedded", "--suite", "taint-removal", "--sonobuoy-results"])
            .arg(folder.path().join("results"))
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()
            .expect("the program starts");
        let alone = Alone { child, folder };
        let began = async |seen: &mut String| {
            *seen = alone.said();
            Ok::<_, ReadError>(seen.contains("nodes known to the cloud").then_some(()))
        };
        let began = poll("a run under way", Duration::from_secs(60), Duration::from_millis(50), began).await;
        began.unwrap_or_else(|error| panic!("{error}"));
        alone
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("said")).unwrap_or_default()
    }

    /// The process of the run itself.
    fn run(&self) -> u32 {
        let parent = self.child.id();
        let children =
            std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).expect("Linux has it");
        let mut children = children.split_whitespace().map(|child| child.parse().expect("a number"));
        children.next().expect("it has a child")
    }

    /// Waits for its end. Returns its exit code, and the result file that Sonobuoy gets.
    fn end(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().expect("it can be waited for").code();
        let done = std::fs::read_to_string(self.folder.path().join("results/done"));
        let archive = done.unwrap_or_else(|error| panic!("not done ({error}): {}", self.said()));
        (code, unpacked(Path::new(&archive)).remove("sonobuoy_results.yaml").expect("results"))
    }
}

fn send(signal: &str, process: u32) {
    let sent = Command::new("kill").args(["-s", signal, &process.to_string()]).status();
    assert!(sent.expect("kill can be run").success());
}

#[tokio::test]
async fn a_terminated_plugin_hands_over_partial_results() {
    let alone = Alone::begin().await;
    send("TERM", alone.child.id());
    let (code, results) = alone.end();
    assert_eq!(code, Some(130), "{results}");
    assert!(results.contains("\nstatus: failed") && results.contains("exit-code: \"130\""), "{results}");
    assert!(results.contains("NODE-INIT-01: "), "the plan is printed: {results}");
}

#[tokio::test]
async fn a_run_that_is_killed_does_not_keep_sonobuoy_waiting() {
    let alone = Alone::begin().await;
    send("KILL", alone.run());
    let (code, results) = alone.end();
    assert_eq!(code, Some(3), "{results}");
    assert!(results.contains("\nstatus: failed") && results.contains("verdict: none"), "{results}");
    assert!(results.contains("nodes known to the cloud"), "its last lines: {results}");
}
