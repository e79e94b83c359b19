//! `cluster embedded`: a separate cluster for kubectl, a CCM under a debugger or any other client.

use super::arguments::EmbeddedOptions;
use embedded_cluster::{Cluster, ClusterSpec};
use harness_clouds::{
    Address, CloudSpec, Credential, Instance, InstanceState, Place, RunningCloud, fresh_token, start,
};
use harness_clusters::images::RunId;
use harness_config::CloudSource;
use harness_core::check::chain;
use harness_core::files;
use harness_core::output;
use harness_report::exit;
use harness_runner::{INTERRUPTED, Signals, start_reaper};
use harness_session::RunDir;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// From this number of Nodes on, a message says that the start takes minutes.
const MANY_NODES: u32 = 1000;

/// Starts it, writes the kubeconfig and waits for SIGINT or SIGTERM.
pub(super) fn embedded(options: &EmbeddedOptions) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return fail(
                exit::ENVIRONMENT,
                &format!("cannot start the async runtime: {}", files::why(&error)),
            );
        }
    };
    runtime.block_on(serve(options))
}

async fn serve(options: &EmbeddedOptions) -> ExitCode {
    let began = Instant::now();
    let file = &options.kubeconfig;
    // Before anything is started: a user must not lose other clusters in that file.
    if file.exists() {
        let why = format!("{} exists, and would be overwritten; name a file that does not", file.display());
        return fail(exit::USAGE, &why);
    }
    start_reaper();
    // With this folder, 'clean' finds a cluster that was killed, and its kubeconfig.
    let dir = match RunDir::create(RunId::fresh().as_str()) {
        Ok(dir) => dir,
        Err(error) => return fail(exit::ENVIRONMENT, &chain(&error)),
    };
    let code = in_folder(options, &dir, began).await;
    match dir.remove() {
        Ok(()) => ExitCode::from(code),
        Err(error) => fail(exit::ENVIRONMENT, &chain(&error)),
    }
}

async fn in_folder(options: &EmbeddedOptions, dir: &RunDir, began: Instant) -> u8 {
    let file = &options.kubeconfig;
    let mut signals = Signals::heard();
    let spec = ClusterSpec {
        kubernetes: options.kubernetes,
        folder: Some(dir.path().to_owned()),
        ..ClusterSpec::awaiting_cloud(options.nodes)
    };
    if options.nodes > MANY_NODES {
        output::err(&format!("starting a cluster with {} Nodes takes some minutes", options.nodes));
    }
    let started = tokio::select! {
        started = Cluster::start(spec) => started,
        () = signals.next() => return INTERRUPTED,
    };
    let cluster = match started {
        Ok(cluster) => cluster,
        Err(error) => return say(exit::ENVIRONMENT, &chain(&error)),
    };
    if let Err(error) = cluster.write_kubeconfig(file) {
        cluster.stop().await;
        return say(
            exit::USAGE,
            &format!("--kubeconfig {}: {}", file.display(), files::why_not_written(&error)),
        );
    }
    if let Err(error) = dir.note_outside(file) {
        cluster.stop().await;
        let _ = std::fs::remove_file(file);
        return say(exit::ENVIRONMENT, &chain(&error));
    }
    let cloud = match &options.cloud {
        None => None,
        Some(dialect) => match Cloud::start(dialect, options.nodes, dir).await {
            Ok(cloud) => Some(cloud),
            Err(why) => {
                cluster.stop().await;
                let _ = std::fs::remove_file(file);
                return say(exit::ENVIRONMENT, &format!("the fake cloud: {why}"));
            }
        },
    };
    let text = format!(
        "Kubernetes {} at {} in {:.2} s, {}\nexport KUBECONFIG={}\n{}Ctrl-C ends it\n",
        options.kubernetes,
        cluster.url(),
        began.elapsed().as_secs_f64(),
        if options.nodes == 1 { "1 Node".to_owned() } else { format!("{} Nodes", options.nodes) },
        std::path::absolute(file).unwrap_or_else(|_| file.to_owned()).display(),
        cloud.as_ref().map(Cloud::described).unwrap_or_default(),
    );
    // The credential is there for the user to copy, and of no use once this process has ended.
    output::handed_on(text.as_bytes());
    signals.next().await;
    cluster.stop().await;
    if let Some(cloud) = cloud
        && let Err(error) = cloud.running.stop().await
    {
        say(exit::ENVIRONMENT, &chain(&error));
    }
    // It leads nowhere any more.
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => say(
            exit::ENVIRONMENT,
            &format!("{} could not be removed: {}", file.display(), files::why(&error)),
        ),
        _ => exit::CONFORMANT,
    }
}

/// The variables from which CCMs read the address of a cloud and their credential: dialect, variable, what follows the address,
/// variable. CCMs of the other dialects read files.
const VARIABLES: &[(&str, &str, &str, &str)] = &[
    ("native", "NATIVE_CLOUD_ENDPOINT", "", "NATIVE_CLOUD_TOKEN"),
    ("digitalocean", "DO_OVERRIDE_URL", "/", "DO_ACCESS_TOKEN"),
    ("hcloud", "HCLOUD_ENDPOINT", "/v1", "HCLOUD_TOKEN"),
    ("linode", "LINODE_URL", "", "LINODE_API_TOKEN"),
];

/// The fake cloud next to the cluster, with a machine for each Node.
struct Cloud {
    running: RunningCloud,
    dialect: String,
    token: String,
}

impl Cloud {
    async fn start(dialect: &str, nodes: u32, dir: &RunDir) -> Result<Cloud, String> {
        let source = CloudSource::Dialect(dialect.to_owned());
        let (run, on_message) = (RunId::fresh(), Arc::new(|what: String| output::err(&what)));
        let spec = CloudSpec {
            run: &run,
            cloud: &source,
            place: Place::LOOPBACK,
            replicas: &[],
            folder: dir.path(),
            on_message: &(on_message as _),
        };
        let running = start(spec).await.map_err(|error| chain(&error))?;
        let token = fresh_token().map_err(|error| chain(&error))?;
        let cloud = running.attach().map_err(|error| chain(&error))?;
        let caller = Credential { name: "by-hand".to_owned(), token: token.clone() };
        let machines: Vec<Instance> = (0..nodes).map(|node| machine(&cloud, dialect, node)).collect();
        let prepared = async {
            cloud.admit(&caller).await?;
            cloud.put_instances(&machines).await
        };
        match prepared.await {
            Ok(()) => Ok(Cloud { running, dialect: dialect.to_owned(), token }),
            Err(error) => {
                let _ = running.stop().await;
                Err(chain(&error))
            }
        }
    }

    /// What a person needs to point a CCM at it.
    fn described(&self) -> String {
        let (endpoint, token) = (&self.running.record().endpoint, &self.token);
        let variables = VARIABLES.iter().find(|(dialect, ..)| *dialect == self.dialect);
        let set = variables.map_or_else(String::new, |(_, address, path, credential)| {
            format!("export {address}={endpoint}{path} {credential}={token}\n")
        });
        format!("fake cloud ({}) at {endpoint}, token {token}\n{set}", self.dialect)
    }
}

/// The machine of a Node in the cloud, with an address that only the cloud knows as well.
fn machine(cloud: &harness_clouds::Cloud, dialect: &str, node: u32) -> Instance {
    let name = format!("node-{node}");
    let own = Address { kind: "InternalIP".to_owned(), address: Cluster::node_ipv4(node).to_string() };
    let external = format!("198.51.100.{}", 1 + node % 250);
    let external = Address { kind: "ExternalIP".to_owned(), address: external };
    let id = cloud.ids().make(&name);
    Instance {
        provider_id: cloud.shown().provider_ids.then(|| format!("{dialect}://{id}")),
        id,
        name,
        instance_type: "m1.large".to_owned(),
        zone: "zone-1".to_owned(),
        region: "region-1".to_owned(),
        addresses: cloud.shown().part_of([own, external]),
        labels: BTreeMap::new(),
        state: InstanceState::Running,
    }
}

fn fail(code: u8, why: &str) -> ExitCode {
    ExitCode::from(say(code, why))
}

fn say(code: u8, why: &str) -> u8 {
    output::err(&format!("error: {why}"));
    code
}

#[cfg(test)]
mod tests {
    use super::VARIABLES;

    #[test]
    fn the_variables_are_those_of_the_profiles() {
        for (dialect, address, path, _) in VARIABLES.iter().filter(|(dialect, ..)| *dialect != "native") {
            let file = format!("{}/../../fixtures/ccms/{dialect}/profile.yaml", env!("CARGO_MANIFEST_DIR"));
            let profile = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
            let line = format!("\n  {address}: ${{CLOUD_ENDPOINT}}{path}\n");
            assert!(profile.contains(&line), "{file} lacks '{}'", line.trim());
        }
    }
}
