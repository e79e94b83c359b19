//! Goes once through everything that `images`, `cluster` and `cloud` can do, on a real engine, and prints what each
//! step took.
//!
//! ```text
//! cargo run -p harness --example cluster_smoke -- [TOPOLOGY [KUBERNETES [chosen]]]
//! ```
//! TOPOLOGY is `single`, `three-node`, `no-cni`, `dual-stack` or a file; KUBERNETES a version or a node image.
//! With `chosen` kubelets get a provider id and no node IP, otherwise a node IP and no provider id.
#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use anyhow::{Context, Result, bail, ensure};
use fake_cloud::dialects::InstanceIds;
use harness::cloud::{Cloud, CloudSpec};
use harness::cluster::{
    Cluster, Families, KindSpec, Machine, PodNetwork, ProviderIds, Target, cleanup, ensure_network,
    list_leftovers,
};
use harness::config::{Kubernetes, NodeIp, ProviderIdFormat, Topology, workspace};
use harness::images::{Engine, Folders, ImageSource, Program, RunId, prepare};
use harness::probe::{ReadError, poll};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::Future;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(50);

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    let mut arguments = std::env::args().skip(1);
    let topology = match arguments.next().as_deref() {
        None | Some("single") => Topology::Single,
        Some("three-node") => Topology::ThreeNode,
        Some("no-cni") => Topology::NoCni,
        Some("dual-stack") => Topology::DualStack,
        Some(file) => Topology::File(file.into()),
    };
    let kubernetes = match arguments.next() {
        None => Kubernetes::Newest,
        Some(text) => text.parse().map_err(anyhow::Error::msg)?,
    };
    let identity = match arguments.next().as_deref() {
        None => (ProviderIds::Empty, NodeIp::Kept),
        Some("chosen") => {
            let format = ProviderIdFormat::new("native://{id}").context("it holds an id")?;
            (ProviderIds::Chosen { format, ids: InstanceIds::Text }, NodeIp::Dropped)
        }
        Some(other) => bail!("'{other}' is not 'chosen'"),
    };
    let engine = timed("connect", Engine::connect()).await?;
    let run = RunId::fresh();
    println!("run {run}, engine {}", engine.host());
    let went = tokio::select! {
        went = go(&engine, &run, topology, kubernetes, identity) => went,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    let removed = timed("clean up by run id", cleanup(&engine, &run)).await?;
    for thing in removed {
        println!("  cleanup removed {} {}", thing.kind, thing.name);
    }
    for thing in list_leftovers(&engine).await? {
        println!("  still there: {} {}", thing.kind, thing.name);
    }
    went
}

async fn go(
    engine: &Engine,
    run: &RunId,
    topology: Topology,
    kubernetes: Kubernetes,
    (provider_id, node_ip): (ProviderIds, NodeIp),
) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("cluster-smoke-").tempdir()?;
    let folders = Folders { workspace: &workspace(), scratch: folder.path() };
    let source = ImageSource::Build(Program {
        package: "fake-cloud".into(),
        bin: "fake-cloud".into(),
        features: Some(vec!["server".into()]),
    });
    let image = timed("compile and pack the fake cloud", prepare(engine, &source, folders)).await?;
    println!("  {} {}, {} bytes", image.reference, image.digest, std::fs::metadata(image.archive())?.len());

    let families = if topology == Topology::DualStack { Families::Both } else { Families::Ipv4 };
    let spec = KindSpec {
        run: run.clone(),
        topology,
        kubernetes,
        provider_id,
        node_ip,
        folder: folder.path().to_owned(),
        evidence: Some(std::env::temp_dir().join(format!("cluster-smoke-evidence-{run}"))),
    };
    let network = timed("create network", ensure_network(engine, run, families)).await?;
    let cloud_spec = CloudSpec { run, network: &network, dialect: "native", image: &image };
    let began = Instant::now();
    let told = |step: &str| println!("  {:6.2}s {step}", began.elapsed().as_secs_f64());
    let both = async {
        tokio::join!(
            timed("start cloud", Cloud::start(engine, cloud_spec)),
            Cluster::create(engine, &spec, &told)
        )
    };
    let (cloud, cluster) = timed("create cluster and cloud", async { anyhow::Ok(both.await) }).await?;
    let (cloud, cluster) = (cloud?, cluster?);
    println!("{}", serde_json::to_string_pretty(cluster.record())?);
    println!("{:?}", cloud.record());
    let cluster = Cluster::attach(serde_json::from_value(serde_json::to_value(cluster.record())?)?)?;

    timed("load image into all machines", cluster.load_image(image.archive())).await?;
    let last = cluster.machines().last().context("a machine")?.clone();
    // The label is the kubelet's half of containerd: without it a Pod would still not find the image.
    let managed =
        "ctr -n k8s.io images ls name~=fake-cloud | grep -c 'io.cri-containerd.image=managed' || true";
    println!("  known to the kubelet at once: {}", sh(&cluster, &last, managed).await?.trim());
    let nodes = timed("all Nodes registered with a pod CIDR", pod_cidrs(&cluster)).await?;
    println!("  {nodes:?}");
    let query = r#"get nodes -o 'jsonpath={range .items[*]}{.spec.providerID}{" "}{.metadata.annotations}{" "}{.status.addresses}{"\n"}{end}'"#;
    println!("{}", kubectl(&cluster, query).await?);

    kubelets(&cluster, &last).await?;
    pod_network(&cluster, nodes, &image.reference).await?;
    connections(&cluster, &cloud, &last).await?;
    processes(&cluster, &cloud).await?;
    if cluster.machines().len() > 1 {
        power(&cluster, &last).await?;
    }
    timed("logs bundle", async {
        cluster.logs_bundle(&folder.path().join("logs")).await;
        anyhow::Ok(())
    })
    .await?;
    println!("  {} lines of the cloud's log", cloud.logs(None).await?.lines().count());
    timed("remove cloud", cloud.remove()).await?;
    timed("delete cluster", cluster.delete()).await?;
    timed("delete cluster again", cluster.delete()).await
}

async fn kubelets(cluster: &Cluster, machine: &Machine) -> Result<()> {
    timed("restart kubelet", cluster.restart_kubelet(machine)).await?;
    timed("delete a Node and have it back with the taint", async {
        kubectl(cluster, &format!("delete node {}", machine.name)).await?;
        cluster.restart_kubelet(machine).await?;
        let taints = format!("get node {} -o jsonpath={{.spec.taints[*].key}}", machine.name);
        until("the uninitialized taint", async || {
            Ok(kubectl(cluster, &taints).await.is_ok_and(|keys| keys.contains("cloudprovider")).then_some(()))
        })
        .await
    })
    .await?;
    timed("stop and start kubelet", async {
        cluster.stop_kubelet(machine).await?;
        cluster.start_kubelet(machine).await
    })
    .await
}

async fn pod_network(cluster: &Cluster, cidrs: BTreeMap<String, Vec<String>>, image: &str) -> Result<()> {
    timed("pod network on", cluster.set_pod_network(PodNetwork::Present(cidrs))).await?;
    timed("every Node Ready", ready(cluster, "True")).await?;
    for machine in cluster.machines() {
        let pod = pod(machine, image).to_string();
        sh(
            cluster,
            &cluster.machines()[0],
            &format!("echo '{pod}' | kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f -"),
        )
        .await?;
    }
    for machine in cluster.machines() {
        let query = format!("get pod {} -o 'jsonpath={{.status.podIP}}'", machine.name);
        let ip = timed(
            "a Pod has its address",
            until("a Pod's address", async || {
                let ip = kubectl(cluster, &query).await?;
                Ok((!ip.is_empty()).then_some(ip))
            }),
        )
        .await?;
        let reach = format!("timeout 2 bash -c 'exec 3<> /dev/tcp/{ip}/8080' && echo reached");
        for from in cluster.machines() {
            let there = async || Ok(sh(cluster, from, &reach).await.ok());
            timed("and is reached from a machine", until("an answer", there)).await?;
        }
    }
    timed("the Pods are gone", kubectl(cluster, "delete pods --all --grace-period=0 --force --wait")).await?;
    timed("pod network off", cluster.set_pod_network(PodNetwork::Absent)).await?;
    timed("every Node NotReady", ready(cluster, "False")).await
}

/// A Pod on a machine that listens on port 8080.
fn pod(machine: &Machine, image: &str) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": machine.name },
        "spec": {
            "nodeName": machine.name,
            "automountServiceAccountToken": false,
            "tolerations": [{ "operator": "Exists" }],
            "containers": [{
                "name": "listener",
                "image": image,
                "imagePullPolicy": "Never",
                "args": ["serve", "--listen", "0.0.0.0:8080"],
                "env": [{ "name": "FAKE_CLOUD_ADMIN_TOKEN", "value": "of-no-use" }],
            }],
        },
    })
}

async fn connections(cluster: &Cluster, cloud: &Cloud, machine: &Machine) -> Result<()> {
    let target = Target::Cloud(cloud.record().ip.into());
    let reach = format!(
        "timeout 2 bash -c 'exec 3<> /dev/tcp/{}/8080' && echo reached || echo cut",
        cloud.record().ip
    );
    let expect = async |expected: &str| {
        let seen = sh(cluster, machine, &reach).await?;
        ensure!(seen.trim() == expected, "the cloud is {seen}, expected {expected}");
        anyhow::Ok(())
    };
    expect("reached").await?;
    timed("cut off from the cloud", cluster.cut(machine, target)).await?;
    cluster.cut(machine, target).await?;
    expect("cut").await?;
    timed("mend", cluster.mend(machine, target)).await?;
    cluster.mend(machine, target).await?;
    expect("reached").await?;
    let api = cluster.machines()[0].ip().context("an address")?;
    cluster.cut(machine, Target::ApiServer(api)).await?;
    let rules = sh(cluster, machine, "iptables -S OUTPUT").await?;
    cluster.mend(machine, Target::ApiServer(api)).await?;
    ensure!(rules.contains("--dport 6443 -j DROP"), "no rule for the API server:\n{rules}");
    Ok(())
}

async fn processes(cluster: &Cluster, cloud: &Cloud) -> Result<()> {
    let machine = &cluster.machines()[0];
    // The scheduler is a Pod on every cluster, and one that nothing here waits for.
    let scheduler = "for id in $(ctr -n k8s.io containers ls -q 'labels.\"io.kubernetes.container.name\"==kube-scheduler'); do \
                     ctr -n k8s.io tasks ls | grep $id; done | grep -v STOPPED | cut -d ' ' -f 1";
    let id = sh(cluster, machine, scheduler).await?.trim().to_owned();
    ensure!(!id.is_empty(), "no scheduler runs");
    let state = format!("ctr -n k8s.io tasks ls | grep {id} || true");
    timed("freeze a container", cluster.pause_container(machine, &id)).await?;
    let seen = sh(cluster, machine, &state).await?;
    ensure!(seen.contains("PAUSED"), "the container is not frozen: {seen}");
    timed("thaw it", cluster.resume_container(machine, &id)).await?;
    timed("kill it", cluster.kill_container(machine, &format!("containerd://{id}"), "SIGKILL")).await?;
    let restarted = async || {
        let now = sh(cluster, machine, scheduler).await?;
        Ok((!now.trim().is_empty() && !now.contains(&id)).then_some(()))
    };
    timed("the kubelet has it back", until("another container", restarted)).await?;
    let endpoint = &cloud.record().endpoint;
    ensure!(endpoint.starts_with("http://"), "{endpoint}");
    Ok(())
}

async fn power(cluster: &Cluster, machine: &Machine) -> Result<()> {
    timed("freeze machine", cluster.pause(machine)).await?;
    timed("thaw machine", cluster.unpause(machine)).await?;
    let workers = &cluster.machines()[1..];
    for worker in workers {
        timed("power off", cluster.stop(worker)).await?;
    }
    // In the other order, which would swap their addresses if Docker had its way.
    for worker in workers.iter().rev() {
        let back = timed("power on", cluster.start(worker)).await?;
        ensure!(back == *worker, "it came back changed: {back:?}, before {worker:?}");
    }
    timed("every Node reports anew", ready(cluster, "False")).await
}

async fn pod_cidrs(cluster: &Cluster) -> Result<BTreeMap<String, Vec<String>>> {
    let query =
        r#"get nodes -o 'jsonpath={range .items[*]}{.metadata.name}{"="}{.spec.podCIDRs}{"\n"}{end}'"#;
    until("a pod CIDR on every Node", async || {
        let text = kubectl(cluster, query).await?;
        let found: BTreeMap<String, Vec<String>> = text
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, list)| {
                let cidrs = list
                    .trim_matches(['[', ']'])
                    .split([',', ' '])
                    .map(|cidr| cidr.trim_matches('"').to_owned());
                (name.to_owned(), cidrs.filter(|cidr| !cidr.is_empty()).collect::<Vec<_>>())
            })
            .filter(|(_, cidrs)| !cidrs.is_empty())
            .collect();
        Ok((found.len() == cluster.machines().len()).then_some(found))
    })
    .await
}

async fn ready(cluster: &Cluster, expected: &str) -> Result<()> {
    let template = r#"get nodes -o 'jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}'"#;
    until("readiness of every Node", async || {
        let text = kubectl(cluster, template).await?;
        let all =
            text.lines().count() == cluster.machines().len() && text.lines().all(|line| line == expected);
        Ok(all.then_some(()))
    })
    .await
}

async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    let read = async |seen: &mut String| {
        let found = look().await.map_err(|error| ReadError::passing(format!("{error:#}")))?;
        *seen = "not yet".to_owned();
        Ok(found)
    };
    Ok(poll(what, LIMIT, TICK, read).await?)
}

async fn kubectl(cluster: &Cluster, arguments: &str) -> Result<String> {
    sh(
        cluster,
        &cluster.machines()[0],
        &format!("kubectl --kubeconfig /etc/kubernetes/admin.conf {arguments}"),
    )
    .await
}

async fn sh(cluster: &Cluster, machine: &Machine, script: &str) -> Result<String> {
    let output = cluster.exec(machine, &["sh", "-c", script], LIMIT).await?;
    if output.status != 0 {
        bail!("'{script}' ended with {}: {}{}", output.status, output.stdout, output.stderr);
    }
    Ok(output.stdout)
}

async fn timed<T, E>(what: &str, step: impl Future<Output = Result<T, E>>) -> Result<T>
where
    E: Into<anyhow::Error>,
{
    let began = Instant::now();
    let outcome = step.await.map_err(Into::into);
    let mark: &dyn Display = if outcome.is_ok() { &"" } else { &" FAILED" };
    println!("{:8.3}s {what}{mark}", began.elapsed().as_secs_f64());
    outcome.with_context(|| what.to_owned())
}
