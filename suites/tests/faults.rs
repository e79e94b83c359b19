//! Every way in which the cloud can fail in every operation that a CCM uses: the reference CCM recovers from
//! it, and nothing is left in the cloud afterwards.
//!
//! A cell is an operation and an effect. It has an API server, a cloud and a CCM of its own. In them a
//! machine and a Service arrive, change and leave; the fault is active whenever the operation is due.
//! `HARD_CELLS` says how many cells are measured (`all`, or a number), `HARD_SEED` which.

#![expect(clippy::print_stdout, reason = "the figures are printed")]

use anyhow::{Context, Result, bail};
use embedded_cluster::{Cluster, ClusterSpec};
use futures::{StreamExt, stream};
use harness_clouds::{
    Address, Cloud, CloudRecord, CloudSpec, Credential, Effect, Fault, Instance, InstanceState, Match, Op,
    Place, fresh_id,
};
use harness_clusters::images::RunId;
use harness_config::CloudSource;
use harness_core::probe::{ReadError, poll};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// The operations that a CCM uses, and when: as things arrive, change, or leave.
const OPERATIONS: [(Op, [bool; 3]); 13] = [
    (Op::InstanceGet, [true, true, true]),
    (Op::InstanceList, [true, true, true]),
    (Op::LbGet, [true, true, true]),
    (Op::LbList, [true, true, true]),
    (Op::LbCreate, [true, false, false]),
    (Op::LbUpdate, [false, true, false]),
    (Op::LbDelete, [false, false, true]),
    (Op::AuxRead, [true, true, true]),
    (Op::AuxCreate, [true, false, false]),
    (Op::AuxUpdate, [false, true, false]),
    (Op::AuxDelete, [false, false, true]),
    (Op::RouteList, [true, true, true]),
    (Op::RouteCreate, [true, false, false]),
];
/// Operations that end something. They are tried in addition to [`OPERATIONS`], and only effects on the
/// answer concern them.
const ROUTE_DELETE: (Op, [bool; 3]) = (Op::RouteDelete, [false, false, true]);

/// How many calls meet each fault.
const CALLS: u64 = 2;
/// How long it may take in each of the three phases until everything is as expected: five tries of a CCM's
/// back-off, on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// How many cells are measured in parallel; each spends most of the time waiting.
const PARALLEL: usize = 16;
/// How many cells are measured by default.
const USUAL: usize = 8;
const TOKEN: &str = "token-of-the-ccm-under-faults";
const RANGES: [&str; 2] = ["192.0.2.0/24", "198.51.100.0/24"];

/// The effects by name, and whether the effect falsifies a list. A CCM that gets an empty list may leave
/// things in the cloud, so that no list is falsified while things leave.
fn effects() -> Vec<(&'static str, Effect, bool)> {
    let status = |status, retry_after_s| Effect::Status { status, retry_after_s };
    vec![
        ("401", status(401, None), false),
        ("403", status(403, None), false),
        ("408", status(408, None), false),
        ("429", status(429, Some(1)), false),
        ("500", status(500, None), false),
        ("503", status(503, None), false),
        ("malformed", Effect::Malformed, false),
        ("refused", Effect::Refuse, false),
        ("silence", Effect::Hang { ms: Some(2_000) }, false),
        ("late", Effect::Latency { ms: 2_000 }, false),
        ("answer-lost", Effect::LoseAnswer { ms: None }, false),
        ("slow-provisioning", Effect::SlowProvisioning { ms: 2_000 }, false),
        ("slow-deletion", Effect::SlowDeletion { ms: 2_000 }, false),
        ("empty", Effect::Empty, true),
        ("without", Effect::Without { names: vec!["node-1".to_owned(), "i-1".to_owned()] }, true),
        ("stale", Effect::Stale, true),
        ("empty-first-page", Effect::EmptyFirstPage, false),
        ("shifted-pages", Effect::ShiftedPages, true),
    ]
}

/// One measurement: an operation and an effect.
struct Cell {
    op: Op,
    times: [bool; 3],
    name: String,
    effect: Effect,
}

/// The result of a cell.
struct Outcome {
    name: String,
    /// How many calls the fault has met.
    hits: u64,
    took: Duration,
    /// The first thing that never reached its expected state.
    wrong: Option<String>,
    /// What is left in the cloud.
    left: Option<String>,
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (op, times) in OPERATIONS.into_iter().chain([ROUTE_DELETE]) {
        for (name, effect, lies) in effects() {
            let times = if lies { [times[0], times[1], false] } else { times };
            let word = serde_json::to_value(op).ok().and_then(|word| word.as_str().map(str::to_owned));
            let name = format!("{} {name}", word.unwrap_or_default());
            cells.push(Cell { op, times, name, effect });
        }
    }
    cells
}

/// The requested cells, in an order that the seed decides.
fn chosen() -> Vec<Cell> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
    let mut cells = cells();
    let mut numbers = number("HARD_SEED").unwrap_or(1) as u64 | 1;
    for at in (1..cells.len()).rev() {
        numbers ^= numbers << 13;
        numbers ^= numbers >> 7;
        numbers ^= numbers << 17;
        cells.swap(at, (numbers >> 11) as usize % (at + 1));
    }
    let all = std::env::var("HARD_CELLS").is_ok_and(|text| text == "all");
    cells.truncate(if all { usize::MAX } else { number("HARD_CELLS").unwrap_or(USUAL) });
    cells
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cloud_that_fails_is_recovered_from_and_nothing_is_left_in_it() {
    let began = Instant::now();
    let outcomes: Vec<Outcome> =
        stream::iter(chosen()).map(measure).buffer_unordered(PARALLEL).collect().await;
    let count = |of: fn(&&Outcome) -> bool| outcomes.iter().filter(of).count();
    println!(
        "faults     {} cells of {}: {} met their fault; {} not recovered, {} left something; {:.0} s at most, {:.0} s in all",
        outcomes.len(),
        cells().len(),
        count(|one| one.hits > 0),
        count(|one| one.wrong.is_some()),
        count(|one| one.left.is_some()),
        outcomes.iter().map(|one| one.took).max().unwrap_or_default().as_secs_f64(),
        began.elapsed().as_secs_f64(),
    );
    let bad: Vec<String> = outcomes
        .iter()
        .filter_map(|one| {
            let what = one.wrong.as_ref().or(one.left.as_ref())?;
            Some(format!("{}: {what}", one.name))
        })
        .collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    // An operation that the reference CCM does not use shows nothing; it uses most of them.
    assert!(2 * count(|one| one.hits > 0) > outcomes.len(), "hardly any call met its fault");
}

async fn measure(cell: Cell) -> Outcome {
    let began = Instant::now();
    let (mut hits, mut left) = (0, None);
    let wrong = live(&cell, &mut hits, &mut left).await.err().map(|error| format!("{error:#}"));
    Outcome { name: cell.name, hits, took: began.elapsed(), wrong, left }
}

/// A cluster, its cloud and its CCM.
struct Setup {
    cloud: Cloud,
    nodes: Api<Node>,
    services: Api<Service>,
    ccm: Child,
    folder: TempDir,
}

/// The life of a machine and a Service in an environment of their own.
async fn live(cell: &Cell, hits: &mut u64, left: &mut Option<String>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (native, on_message): (_, harness_clouds::OnMessage) =
        (CloudSource::Dialect("native".to_owned()), Arc::new(|_| ()));
    let (run, place) = (&RunId::fresh(), Place::LOOPBACK);
    let spec = CloudSpec {
        run,
        cloud: &native,
        place,
        replicas: &[],
        folder: folder.path(),
        on_message: &on_message,
    };
    let running = harness_clouds::start(spec).await?;
    let cluster = Cluster::start(ClusterSpec::api_server()).await?;
    let kubeconfig = folder.path().join("kubeconfig");
    cluster.write_kubeconfig(&kubeconfig)?;
    let ccm = start(&kubeconfig, running.record(), folder.path())?;
    let client = cluster.client();
    let (nodes, services) = (Api::all(client.clone()), Api::namespaced(client, "default"));
    let mut world = Setup { cloud: running.attach()?, nodes, services, ccm, folder };
    let lived = world.live(cell, hits, left).await;
    let ended = world.ccm.try_wait()?;
    world.ccm.kill().await?;
    let log = match &lived {
        Ok(()) => String::new(),
        Err(_) => world.log(),
    };
    cluster.stop().await;
    running.stop().await?;
    if let Some(status) = ended {
        bail!("the CCM ended: {status}\n{log}");
    }
    lived.with_context(|| log)
}

fn start(kubeconfig: &Path, cloud: &CloudRecord, folder: &Path) -> Result<Child> {
    let log = std::fs::File::create(folder.join("ccm.log"))?;
    let child = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"))
        .args([
            "reference-ccm",
            "--cloud-provider=native",
            "--leader-elect=false",
            "--secure-port=0",
            "--cluster-cidr=10.244.0.0/16",
            "--node-monitor-period=1s",
            "--node-status-update-frequency=2s",
            "--route-reconciliation-period=2s",
        ])
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .env("NATIVE_CLOUD_ENDPOINT", &cloud.endpoint)
        .env("NATIVE_CLOUD_TOKEN", TOKEN)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn()?;
    Ok(child)
}

impl Setup {
    async fn live(&mut self, cell: &Cell, hits: &mut u64, left: &mut Option<String>) -> Result<()> {
        self.cloud.admit(&Credential { name: "ccm".into(), token: TOKEN.into() }).await?;
        let arrive = self.disturb(cell, 0).await?;
        self.arrive().await?;
        self.becomes("initialised, routed and provisioned", async |world| world.unfinished(80, 0).await)
            .await?;
        *hits += self.calm(arrive).await?;
        let change = self.disturb(cell, 1).await?;
        let ports = json!([{"port": 81, "protocol": "TCP"}]);
        let spec = json!({"spec": {"ports": ports, "loadBalancerSourceRanges": [RANGES[1]]}});
        self.services.patch("web", &PatchParams::default(), &Patch::Merge(spec)).await?;
        self.becomes("changed as the Service was", async |world| world.unfinished(81, 1).await).await?;
        *hits += self.calm(change).await?;
        let leave = self.disturb(cell, 2).await?;
        self.leave().await?;
        self.becomes("gone", async |world| world.still_there().await).await?;
        *hits += self.calm(leave).await?;
        if let Err(what) = self.becomes("left by nothing", async |world| world.remains().await).await {
            *left = Some(format!("{what:#}"));
        }
        Ok(())
    }

    /// Activates the cell's fault if it is due in this phase.
    async fn disturb(&self, cell: &Cell, time: usize) -> Result<Option<u64>> {
        if !cell.times[time] {
            return Ok(None);
        }
        let matching = Match { ops: vec![cell.op], ..Match::default() };
        let fault = Fault { matching, effect: cell.effect.clone(), calls: Some(CALLS), for_ms: None };
        Ok(Some(self.cloud.inject(fresh_id(), &fault).await?.id))
    }

    /// Clears the fault; returns how many calls it has met.
    async fn calm(&self, fault: Option<u64>) -> Result<u64> {
        let Some(id) = fault else { return Ok(0) };
        let hits = self.cloud.fault(id).await?.hits;
        self.cloud.clear_fault(id).await?;
        Ok(hits)
    }

    async fn arrive(&self) -> Result<()> {
        self.cloud
            .put_instance(&Instance {
                id: "i-1".into(),
                name: "node-1".into(),
                provider_id: Some("native://i-1".into()),
                instance_type: "m1.small".into(),
                zone: "zone-a".into(),
                region: "region-1".into(),
                addresses: vec![Address { kind: "InternalIP".into(), address: "10.64.0.1".into() }],
                labels: Default::default(),
                state: InstanceState::Running,
            })
            .await?;
        let node = json!({
            "metadata": {"name": "node-1"},
            "spec": {
                "podCIDR": "10.244.1.0/24", "podCIDRs": ["10.244.1.0/24"],
                "taints": [{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}],
            },
        });
        self.nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
        self.ready("True").await?;
        let service = json!({
            "metadata": {"name": "web"},
            "spec": {
                "type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}],
                "loadBalancerSourceRanges": [RANGES[0]],
            },
        });
        self.services.create(&PostParams::default(), &serde_json::from_value(service)?).await?;
        Ok(())
    }

    async fn leave(&self) -> Result<()> {
        self.services.delete("web", &DeleteParams::default()).await?;
        self.cloud.remove_instance("i-1").await?;
        self.ready("Unknown").await
    }

    async fn ready(&self, status: &str) -> Result<()> {
        let ready =
            json!({"status": {"conditions": [{"type": "Ready", "status": status, "reason": "Test"}]}});
        let parameters = PatchParams::default();
        self.nodes.patch_status("node-1", &parameters, &Patch::Strategic(ready)).await?;
        Ok(())
    }

    /// The first thing that does not yet match the Service with that port and the Node.
    async fn unfinished(&self, port: u16, range: usize) -> Result<Option<String>> {
        let (node, service) = (self.nodes.get("node-1").await?, self.services.get("web").await?);
        let inventory = self.cloud.inventory().await?;
        let spec = node.spec.unwrap_or_default();
        let tainted = spec.taints.iter().flatten().any(|taint| taint.key == UNINITIALIZED);
        let ingress = service.status.and_then(|status| status.load_balancer).and_then(|lb| lb.ingress);
        let ports: Vec<Vec<u16>> = inventory
            .load_balancers
            .iter()
            .map(|lb| lb.frontends.iter().map(|frontend| frontend.port).collect())
            .collect();
        let backends = inventory.load_balancers.iter().flat_map(|lb| &lb.backends).count();
        let guarded = inventory.auxiliaries.iter().filter(|one| is_for(&one.spec, RANGES[range])).count();
        let routes = inventory.routes.iter().filter(|route| route.target_instance.as_deref() == Some("i-1"));
        let seen = (
            tainted || spec.provider_id.is_none(),
            ingress.unwrap_or_default().len(),
            ports,
            backends,
            (guarded, inventory.auxiliaries.len()),
            (routes.count(), inventory.routes.len()),
        );
        let wanted = (false, 1, vec![vec![port]], 1, (1, 1), (1, 1));
        Ok((seen != wanted).then(|| {
            format!("uninitialised, ingress, ports, backends, firewalls, routes: {seen:?}, not {wanted:?}")
        }))
    }

    async fn still_there(&self) -> Result<Option<String>> {
        let (node, service) = (self.nodes.get_opt("node-1").await?, self.services.get_opt("web").await?);
        let there = (node.is_some(), service.is_some());
        Ok((there != (false, false)).then(|| format!("Node and Service are there: {there:?}")))
    }

    async fn remains(&self) -> Result<Option<String>> {
        let inventory = self.cloud.inventory().await?;
        let empty = Default::default();
        Ok((inventory != empty).then(|| format!("{}", empty.diff(&inventory))))
    }

    /// Waits until everything is as expected.
    async fn becomes(
        &mut self,
        what: &str,
        look: impl AsyncFn(&Setup) -> Result<Option<String>>,
    ) -> Result<()> {
        let this = &*self;
        let mut read = async |seen: &mut String| match look(this).await {
            Ok(None) => Ok(Some(())),
            Ok(Some(missing)) => {
                *seen = missing;
                Ok(None)
            }
            Err(error) => Err(ReadError::passing(format!("{error:#}"))),
        };
        poll(what, LIMIT, LOOK, &mut read)
            .await
            .map_err(|error| anyhow::anyhow!("not {what}: {}", error.text))
    }

    /// Returns the end of the CCM's log.
    fn log(&self) -> String {
        let text = std::fs::read_to_string(self.folder.path().join("ccm.log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        format!("the end of the CCM's log:\n{}", lines[lines.len().saturating_sub(12)..].join("\n"))
    }
}

/// The taint that waits for a CCM.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// Whether a firewall admits this range and no other.
fn is_for(spec: &Value, range: &str) -> bool {
    spec["source_ranges"] == json!([range])
}
