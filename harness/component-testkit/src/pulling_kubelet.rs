//! A real kubelet that runs the image credential provider under test when it pulls images.

use super::image_credentials::ImageCredentialProvider;
use harness_clusters::images::own_program;
use harness_clusters::{LinkOp, Machine, Operation, Role, SetupOp, Target};
use harness_components::image_credentials::{
    NodeSetup, OnNode, PluginExecution, REGISTRY_PORT, Sighting, gives_tokens, version_for,
};
use harness_core::bounded;
use harness_core::check::{CheckError, Verdict, chain};
use harness_core::probe::{ReadError, poll};
use harness_session::Session;
use harness_testkit::CheckCx;
use harness_testkit::UndoStep;
use k8s_openapi::api::core::v1::{ContainerState, Pod, ServiceAccount};
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long a kubelet may take until it answers again.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long a pull may take; this includes a plugin that is killed after a minute.
const PULL_LIMIT: Duration = Duration::from_secs(150);
/// Interval between two reads.
const AGAIN: Duration = Duration::from_millis(200);
/// How long the registry on a node may take to answer.
const REGISTRY_LIMIT: Duration = Duration::from_secs(10);
/// The service account of the Pods that pull.
const PULLER: &str = "puller";
/// The reasons of a waiting container whose image could not be pulled.
const NOT_PULLED: &[&str] =
    &["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ImageInspectError", "RegistryUnavailable"];
/// The reasons of a waiting container whose image is not known yet.
const NOT_YET: &[&str] = &["ContainerCreating", "PodInitializing"];

/// A kubelet that runs the plugin, and the registry from which it pulls all images. Example: see [`Pull`].
#[derive(Debug)]
pub struct PullingKubelet<'a> {
    cx: &'a CheckCx,
    plugin: &'a ImageCredentialProvider<'a>,
    machine: &'a Machine,
    namespace: String,
    registry: String,
    client: reqwest::Client,
    pods: AtomicU32,
}

/// The result of a pull.
///
/// ```
/// # use harness_component_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let plugin = ImageCredentialProvider::of(cx)?;
/// let kubelet = PullingKubelet::with(&plugin, &[]).await?;
/// if let Pull::Refused(why) = kubelet.pull(&plugin.images()[0]).await? {
///     return Err(plugin.violation("a kubelet pulls a private image", "the image", why));
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pull {
    /// The node has the image.
    Pulled,
    /// The image could not be pulled; the kubelet's message.
    Refused(String),
}

/// A machine that cannot reach the cloud, until this is undone, at the latest when the check ends.
#[derive(Debug)]
#[must_use = "it lasts until the check ends it"]
pub struct WithoutCloud<'a>(&'a CheckCx, String);

impl WithoutCloud<'_> {
    /// Restores its connection to the cloud.
    ///
    /// # Errors
    /// When the cluster cannot do it.
    pub async fn restore(self) -> Verdict {
        reconnecting(&self.1).carry_out(self.0.session()).await.map_err(CheckError::Error)
    }
}

fn plugin_on_node(plugin: &ImageCredentialProvider<'_>, others: &[&str]) -> Result<NodeSetup, CheckError> {
    let cx = plugin.cx;
    let minor = cx.session().state().served_minor;
    let versions = plugin.versions();
    let version = version_for(minor, &versions).ok_or_else(|| {
        let why = format!(
            "kubelets of 1.{minor} use no API version that the profile declares for the plugin ({}; \
             imageCredentials.apiVersions)",
            versions.join(", ")
        );
        CheckError::NotObservable(why)
    })?;
    let images =
        plugin.images().iter().chain(plugin.without()).map(String::as_str).chain(others.iter().copied());
    let own = own_program()?;
    let on_node = OnNode {
        provider: plugin.provider(),
        minor,
        version,
        line: plugin.program_line()?,
        folder: plugin.program_folder(),
        environment: plugin.own_environment(None),
        registries: images.map(|image| registry_of(image).to_owned()).collect::<BTreeSet<String>>(),
        own_program: &own,
    };
    let archive = cx.session().dir().path().join(format!("{}.tar", cx.prefix()));
    cx.record("asked_in", version);
    Ok(on_node.write(archive)?)
}

/// Waits until a kubelet has started with the plugin.
async fn kubelet_answers(plugin: &ImageCredentialProvider<'_>, machine: &Machine) -> Verdict {
    let answers = async |seen: &mut String| match of_kubelet(plugin.cx, &machine.name, "healthz").await {
        Ok(said) if said.trim() == "ok" => Ok(Some(())),
        Ok(said) => {
            *seen = said;
            Ok(None)
        }
        Err(error) => {
            *seen = "no answer".to_owned();
            Err(ReadError::passing(chain(&error)))
        }
    };
    let what = format!("the kubelet of {} answers", machine.name);
    let waited = async { Ok(poll(&what, START_LIMIT, AGAIN, answers).await) };
    match plugin.cx.session().unless_interrupted(waited).await? {
        Ok(()) => Ok(()),
        Err(error) => {
            let promise = "a kubelet starts with the configuration";
            Err(plugin.violation(promise, "a kubelet that answers", error.text))
        }
    }
}

async fn of_kubelet(cx: &CheckCx, node: &str, page: &str) -> Result<String, kube::Error> {
    let request = http::Request::get(format!("/api/v1/nodes/{node}/proxy/{page}")).body(Vec::new());
    cx.client().request_text(request.map_err(kube::Error::HttpError)?).await
}

/// Removes the plugin from a machine's kubelet.
fn removing_plugin(machine: &str, setup: &NodeSetup) -> UndoStep {
    let what = format!("removing the image credential provider from the kubelet of {machine}");
    let (machine, setup) = (machine.to_owned(), setup.clone());
    UndoStep::new(what, move |session| {
        let (machine, setup) = (machine.clone(), setup.clone());
        Box::pin(async move {
            let machine = machine_named(session, &machine)?;
            let remove = Operation::ImageCredentials { machine, setup: &setup, op: SetupOp::Remove };
            session.cluster().operate(remove).await.map_err(|error| chain(&error))
        })
    })
}

/// Restores the connection of a machine to the cloud.
fn reconnecting(machine: &str) -> UndoStep {
    let (what, machine) = (format!("letting {machine} reach the cloud again"), machine.to_owned());
    let step = UndoStep::new(what, move |session| {
        let machine = machine.clone();
        Box::pin(async move {
            let (machine, to) = (machine_named(session, &machine)?, cloud_address(session));
            let restore = Operation::Link { machine, to, op: LinkOp::Restore };
            session.cluster().operate(restore).await.map_err(|error| chain(&error))
        })
    });
    step.first()
}

fn machine_named<'a>(session: &'a Session, name: &str) -> Result<&'a Machine, String> {
    let found = session.machines().iter().find(|machine| machine.name == name);
    found.ok_or_else(|| format!("machine {name} does not exist"))
}

fn cloud_address(session: &Session) -> Target {
    Target::Cloud(session.state().cloud.ip.into())
}

impl<'a> PullingKubelet<'a> {
    /// Configures a kubelet to run the plugin until the check ends. Images of the plugin's registries and of these others
    /// come from a registry of the harness.
    ///
    /// # Errors
    /// Not observable if the cluster cannot do it, or its kubelets use no API version that the plugin knows; a violation
    /// if no kubelet starts with the configuration.
    pub async fn with(
        plugin: &'a ImageCredentialProvider<'a>,
        others: &[&str],
    ) -> Result<PullingKubelet<'a>, CheckError> {
        let cx = plugin.cx;
        let machines = cx.session().machines();
        let machine = machines.iter().find(|machine| machine.role == Role::Worker).or(machines.first());
        let machine = machine.ok_or_else(|| CheckError::Error("the cluster has no machine".to_owned()))?;
        let address = machine.reached_at.ok_or_else(|| {
            CheckError::NotObservable(format!(
                "the harness cannot reach machine {} and its registry",
                machine.name
            ))
        })?;
        let setup = plugin_on_node(plugin, others)?;
        cx.undo_at_end(removing_plugin(&machine.name, &setup));
        let install = Operation::ImageCredentials { machine, setup: &setup, op: SetupOp::Install };
        cx.session().unless_interrupted(async { Ok(cx.session().cluster().operate(install).await?) }).await?;
        std::fs::remove_file(&setup.archive)?;
        kubelet_answers(plugin, machine).await?;
        let namespace = cx.namespace().await?;
        let account: ServiceAccount = serde_json::from_value(json!({
            "metadata": {"name": PULLER, "annotations": plugin.annotations()}, "automountServiceAccountToken": false,
        }))?;
        let accounts: Api<ServiceAccount> = Api::namespaced(cx.client().clone(), &namespace);
        accounts.create(&PostParams::default(), &account).await?;
        let client = reqwest::Client::builder().timeout(REGISTRY_LIMIT).no_proxy().build()?;
        let registry = format!("http://{}", SocketAddr::new(address, REGISTRY_PORT));
        let kubelet =
            PullingKubelet { cx, plugin, machine, namespace, registry, client, pods: AtomicU32::new(0) };
        if let Some(audience) = plugin.audience().filter(|_| kubelet.gives_tokens()) {
            // An administrator who configures such a plugin must allow this, too.
            let rules = json!([{"apiGroups": [""], "resources": [audience], "verbs": ["request-serviceaccounts-token-audience"]}]);
            cx.allows_group("system:nodes", rules).await?;
        }
        Ok(kubelet)
    }

    /// Whether it passes service account tokens to plugins.
    pub fn gives_tokens(&self) -> bool {
        gives_tokens(self.cx.session().state().served_minor)
    }

    /// Pulls an image for a new Pod, whether or not the node has the image.
    ///
    /// # Errors
    /// The Pod cannot be created, or there is no result.
    pub async fn pull(&self, image: &str) -> Result<Pull, CheckError> {
        let name = format!("pull-{}", self.pods.fetch_add(1, Ordering::Relaxed));
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {
                "nodeName": self.machine.name,
                "hostNetwork": true,
                "restartPolicy": "Never",
                "serviceAccountName": PULLER,
                "automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 0,
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "pulled", "image": format!("{image}:{}", self.cx.prefix()), "imagePullPolicy": "Always"}],
            },
        }))?;
        let pods: Api<Pod> = Api::namespaced(self.cx.client().clone(), &self.namespace);
        let session = &self.cx.session();
        session.unless_interrupted(async { Ok(pods.create(&PostParams::default(), &pod).await?) }).await?;
        let looks = async |seen: &mut String| {
            let pod = pods.get(&name).await.map_err(|error| ReadError::passing(chain(&error)))?;
            let state = pod.status.and_then(|status| status.container_statuses?.into_iter().next()?.state);
            *seen = "a container without a status from the kubelet".to_owned();
            Ok(state.and_then(|state| became(&state, seen)))
        };
        let what = format!("image {image} is pulled or refused");
        let pull =
            session.unless_interrupted(async { Ok(poll(&what, PULL_LIMIT, AGAIN, looks).await?) }).await?;
        // A kubelet retries as long as the Pod exists.
        let at_once = DeleteParams::default().grace_period(0);
        session.unless_interrupted(async { Ok(pods.delete(&name, &at_once).await.map(drop)?) }).await?;
        Ok(pull)
    }

    /// Pulls an image; a failure to pull is a violation.
    ///
    /// # Errors
    /// Those of [`PullingKubelet::pull`], and if the image could not be pulled.
    pub async fn has_pulled(&self, image: &str, when: &str) -> Verdict {
        let Pull::Refused(why) = self.pull(image).await? else { return Ok(()) };
        let ran =
            self.executions().await?.iter().filter(|one| one.image == image).map(shown).collect::<Vec<_>>();
        let ran = if ran.is_empty() { "the plugin was not run for it".to_owned() } else { ran.join("; ") };
        Err(self.plugin.violation(
            &format!("a kubelet pulls {image}{when}"),
            "the image on the node",
            format!("{why}; {ran}"),
        ))
    }

    /// The executions of the plugin for images of this check, in order.
    ///
    /// # Errors
    /// The registry on the node does not answer.
    pub async fn executions(&self) -> Result<Vec<PluginExecution>, CheckError> {
        let all = self.sightings().await?.into_iter();
        Ok(all
            .filter_map(|one| if let Sighting::Execution(seen) = one { Some(seen) } else { None })
            .collect())
    }

    /// The users with whose credentials images were requested, each once.
    ///
    /// # Errors
    /// The registry on the node does not answer.
    pub async fn users(&self) -> Result<BTreeSet<String>, CheckError> {
        let all = self.sightings().await?.into_iter();
        Ok(all
            .filter_map(|one| if let Sighting::ManifestRequest(look) = one { look.user } else { None })
            .collect())
    }

    async fn sightings(&self) -> Result<Vec<Sighting>, CheckError> {
        let asked = async {
            let answer = self.client.get(format!("{}/sightings", self.registry)).send().await?;
            let text = bounded::body(answer.error_for_status()?).await?;
            Ok::<_, CheckError>(serde_json::from_str(&text)?)
        };
        self.cx.session().unless_interrupted(asked).await
    }

    /// Its metrics about plugins: each series with its value.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn metrics(&self) -> Result<Vec<(String, String)>, CheckError> {
        let text = of_kubelet(self.cx, &self.machine.name, "metrics").await?;
        let ours = text.lines().filter(|line| line.starts_with("kubelet_credential_provider_"));
        let split = ours.filter_map(|line| line.rsplit_once(' '));
        Ok(split.map(|(series, value)| (series.to_owned(), value.to_owned())).collect())
    }

    /// Cuts off its machine from the plugin's cloud.
    ///
    /// # Errors
    /// Not observable if none of the plugin's settings names its cloud, or machines cannot be cut off.
    pub async fn loses_the_cloud(&self) -> Result<WithoutCloud<'a>, CheckError> {
        self.plugin.has_a_cloud_of_ours()?;
        let (name, to) = (self.machine.name.clone(), cloud_address(self.cx.session()));
        self.cx.undo_at_end(reconnecting(&name));
        self.cx
            .session()
            .cluster()
            .operate(Operation::Link { machine: self.machine, to, op: LinkOp::Cut })
            .await?;
        Ok(WithoutCloud(self.cx, name))
    }
}

/// The result of a pull, from the state of the container; `None` if there is none yet.
fn became(state: &ContainerState, seen: &mut String) -> Option<Pull> {
    let Some(waiting) = &state.waiting else { return Some(Pull::Pulled) };
    let (reason, message) =
        (waiting.reason.as_deref().unwrap_or_default(), waiting.message.as_deref().unwrap_or_default());
    *seen = format!("a container that waits: {reason} {message}");
    match reason {
        "" => None,
        _ if NOT_YET.contains(&reason) => None,
        _ if NOT_PULLED.contains(&reason) => Some(Pull::Refused(format!("{reason}: {message}"))),
        // The image was pulled, but its program cannot be started.
        _ => Some(Pull::Pulled),
    }
}

fn shown(one: &PluginExecution) -> String {
    let ended = one.code.map_or("did not exit by itself".to_owned(), |code| format!("ended with {code}"));
    format!("the plugin {ended} after {} ms with {} credentials", one.took_ms, one.credentials.len())
}

/// Host and port of an image's registry.
fn registry_of(image: &str) -> &str {
    image.split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_container_tells_whether_its_image_was_pulled() {
        let became =
            |state: Value| became(&serde_json::from_value(state).expect("a state"), &mut String::new());
        let waits = |reason: &str| became(json!({"waiting": {"reason": reason, "message": "m"}}));
        assert_eq!(waits("ContainerCreating"), None);
        assert_eq!(waits("ErrImagePull"), Some(Pull::Refused("ErrImagePull: m".to_owned())));
        assert_eq!(waits("CreateContainerError"), Some(Pull::Pulled));
        assert_eq!(became(json!({"terminated": {"exitCode": 128}})), Some(Pull::Pulled));
        assert_eq!(registry_of("registry.acme.example:5000/team/app"), "registry.acme.example:5000");
    }
}
