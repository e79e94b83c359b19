//! Starts one container: its environment, its command line, its program and its probes.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Probe, Service};
use kube::ResourceExt;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::environment;
use super::expansion::fill;
use super::facts::Refusal;
use super::logs::Log;
use super::mount::Mount;
use super::note::Note;
use super::probe::{self, ProbeContext, Purpose, Tally};
use super::process::{Exit, Group};
use super::sandbox::{self, Prepared, Wanted};
use super::shared::Shared;
use super::shown;
use super::status::{Ended, Phase};
use super::worker::Worker;
use embedded_runtime::events::{Source, Weight};
use embedded_runtime::settings::{Bounds, Program};

/// How long reading the output of a program may take after it has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The home folder of every program. It is also its working folder, unless its container sets another one.
const HOME: &str = "/home/pod";

/// The command to start, and the facts that its probes need.
struct Order {
    prepared: Prepared,
    shown: Vec<Mount>,
    mounts: Vec<Mount>,
    environment: BTreeMap<String, String>,
}

impl Worker {
    /// Starts a container, or reports why it cannot be started.
    pub(crate) async fn start_container(&mut self, index: usize) {
        let Some(slot) = self.slots.get(index) else { return };
        let container = slot.container.clone();
        let image = container.image.clone().unwrap_or_default();
        if let Some(fault) = super::image::fault(&image) {
            self.refuse(index, super::image::UNUSABLE, super::image::refusal(&image, &fault));
            return;
        }
        let Some(program) = self.shared.world.settings.program(&image).cloned() else {
            self.begin(index, None);
            return;
        };
        if !program.pulls && container.image_pull_policy.as_deref() == Some("Always") {
            let why = format!("failed to pull image {image:?}: no registry hands it out");
            self.refuse(index, "ErrImagePull", why);
            return;
        }
        if let Some(why) = self.may_not_be_root(&container, &program) {
            self.refuse(index, "CreateContainerConfigError", why);
            return;
        }
        let order = match self.order(&container, &program) {
            Ok(order) => order,
            Err(Refusal(message)) => {
                self.refuse(index, "CreateContainerConfigError", message);
                return;
            }
        };
        self.tell(Weight::Normal, "Pulled", format!("Container image {image:?} already present on machine"));
        self.tell(Weight::Normal, "Created", format!("Container created: {}", container.name));
        match self.shared.spawner.spawn(order.prepared.clone()).await {
            Ok(mut child) => {
                let group = Group::of(&child);
                self.begin(index, group);
                self.bound(index, &child, &container);
                let Some(slot) = self.slots.get(index) else { return };
                let tasks = &self.shared.world.tasks;
                slot.log.take(tasks, child.stdout.take(), child.stderr.take());
                let (run, log, notes) = (slot.run, slot.log.clone(), self.notes.clone());
                tasks.spawn(async move {
                    let exit = child.wait().await.map_or(Exit { code: 255 }, Exit::from);
                    // Processes that the program left behind end with it.
                    group.iter().for_each(|group| group.signal(rustix::process::Signal::KILL));
                    // As with container runtimes, the output is complete before the end is reported.
                    log.complete(LAST_WORDS).await;
                    // The worker may have ended first; then the note is not needed.
                    let _ = notes.send(Note::Exited { slot: index, run, exit });
                });
                self.tell(Weight::Normal, "Started", format!("Container started: {}", container.name));
                self.watch_over(index, container, order);
            }
            Err(error) => self.failed_to_start(index, &container, &order.prepared, &error),
        }
    }

    /// The reason why a container that must not run as root would: `verifyRunAsNonRoot` of
    /// `pkg/kubelet/kuberuntime`.
    fn may_not_be_root(&self, container: &Container, program: &Program) -> Option<String> {
        let own = container.security_context.as_ref();
        let of_pod = self.pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
        let barred = own
            .and_then(|own| own.run_as_non_root)
            .or_else(|| of_pod.and_then(|of_pod| of_pod.run_as_non_root))
            .unwrap_or(false);
        let user =
            own.and_then(|own| own.run_as_user).or_else(|| of_pod.and_then(|of_pod| of_pod.run_as_user));
        let whom = format!("(pod: {:?}, container: {})", self.key.name, container.name);
        match (barred, user, program.user) {
            (true, Some(0), _) => Some(format!("container's runAsUser breaks non-root policy {whom}")),
            (true, None, Some(0)) => {
                Some(format!("container has runAsNonRoot and image will run as root {whom}"))
            }
            _ => None,
        }
    }

    /// Limits the resources that a run uses on this machine.
    fn bound(&self, index: usize, child: &tokio::process::Child, container: &Container) {
        let Some(slot) = self.slots.get(index) else { return };
        let Some(root) = child.id().and_then(|id| i32::try_from(id).ok()) else { return };
        let limits = container.resources.as_ref().and_then(|resources| resources.limits.as_ref());
        let own = limits.and_then(|limits| embedded_runtime::quantities::milli(&limits.get("memory")?.0));
        // A limit of zero means no limit.
        let own = own.and_then(|milli| u64::try_from(milli / 1000).ok()).filter(|bytes| *bytes > 0);
        let bounds = self.shared.world.settings.bounds;
        let bounds = Bounds { memory: own.unwrap_or(bounds.memory), ..bounds };
        let (notes, run) = (self.notes.clone(), slot.run);
        self.shared.guard.watch(root, bounds, move |overrun| {
            // The worker may have ended first.
            let _ = notes.send(Note::Overrun { slot: index, run, overrun });
        });
    }

    /// Reports that the container cannot be started as it is.
    fn refuse(&mut self, index: usize, reason: &str, message: String) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.phase = Phase::Waiting { reason: reason.to_owned(), message: Some(message.clone()) };
        }
        self.say_once(Weight::Warning, "Failed", format!("Error: {message}"));
    }

    /// Records the beginning of a new run.
    fn begin(&mut self, index: usize, group: Option<Group>) {
        let pace = self.shared.world.settings.pace.clone();
        let key = self.key.clone();
        let uid = self.uid.clone();
        let simulated_init = group.is_none();
        let Some(slot) = self.slots.get_mut(index) else { return };
        if slot.run > 0 {
            // The first start is not a restart: the first restart after it is immediate.
            slot.backoff.started(Instant::now(), &pace);
            slot.restarts = slot.restarts.saturating_add(1);
            if let Phase::Ended(ended) = &slot.phase {
                slot.last = Some(ended.clone());
            }
            let previous =
                std::mem::replace(&mut slot.log, Log::new(self.shared.world.settings.log_limit_bytes));
            self.shared.logs.keep(&key, &slot.container.name, &slot.log, Some(previous));
        } else {
            self.shared.logs.keep(&key, &slot.container.name, &slot.log, None);
        }
        slot.run = slot.run.saturating_add(1);
        slot.restart_at = None;
        slot.kill_at = None;
        slot.lost = false;
        slot.probes = CancellationToken::new();
        slot.group = group;
        let id = format!("embedded://{uid}-{}-{}", slot.container.name, slot.run);
        slot.phase = if slot.init && simulated_init {
            slot.log.end();
            Phase::Ended(Ended {
                code: 0,
                reason: "Completed".to_owned(),
                message: None,
                started: Some(Timestamp::now()),
                finished: Timestamp::now(),
                id,
            })
        } else {
            Phase::Running { since: Timestamp::now(), id }
        };
        slot.started = group.is_none() || slot.container.startup_probe.is_none();
        slot.ready = slot.started && (group.is_none() || slot.container.readiness_probe.is_none());
    }

    fn failed_to_start(
        &mut self,
        index: usize,
        container: &Container,
        prepared: &Prepared,
        error: &std::io::Error,
    ) {
        let program = prepared.line.first().cloned().unwrap_or_default();
        let message = format!("failed to start {program}: {error}");
        self.begin(index, None);
        if let Some(slot) = self.slots.get_mut(index) {
            slot.log.write(message.as_bytes());
            slot.log.end();
        }
        self.tell(Weight::Warning, "Failed", format!("Error: {message} (container {})", container.name));
        let run = self.slots.get(index).map_or(0, |slot| slot.run);
        // Treated like a program that ended at once, so that the back-off applies.
        let _ = self.notes.send(Note::Exited { slot: index, run, exit: Exit { code: 128 } });
    }

    /// Resolves everything of a container that depends on its environment.
    fn order(&self, container: &Container, program: &Program) -> Result<Order, Refusal> {
        let failed = |error: std::io::Error| Refusal(error.to_string());
        let scratch = self.folder.join("containers").join(&container.name);
        let (home, temporary) = (self.folder.join("home"), scratch.join("tmp"));
        for folder in [&home, &scratch, &temporary] {
            super::volumes::make_folder(folder).map_err(failed)?;
        }
        // The Pod's mounts cover these.
        let mut mounts = vec![Mount::new(&home, HOME)];
        if self.shared.isolation.confines() {
            mounts.push(Mount::new(&temporary, "/tmp"));
        }
        mounts.extend(self.own_hosts().map_err(failed)?);
        mounts.extend(self.mounts(container)?);
        let placeholders = BTreeMap::from([
            ("NODE_NAME", self.node.clone()),
            (
                "NODE_LOOPBACK",
                self.shared
                    .fleet
                    .state(&self.node)
                    .map(|state| state.loopback.to_string())
                    .unwrap_or_default(),
            ),
            ("POD_IP", self.setup.asked_at.to_string()),
        ]);
        let cluster = self.cluster_variables();
        let mut resolved = self.with_facts(|facts| environment::environment(container, &cluster, facts))?;
        let line = environment::command_line(container, program, &resolved, &placeholders);
        for (name, value) in &program.environment {
            resolved.insert(name.clone(), fill(value, &placeholders));
        }
        let host_name = if self.setup.host_network { &self.node } else { &self.key.name };
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned());
        for (name, value) in [("PATH", path), ("HOSTNAME", host_name.clone()), ("HOME", HOME.to_owned())] {
            resolved.entry(name.to_owned()).or_insert(value);
        }
        let working = container.working_dir.clone().unwrap_or_else(|| HOME.to_owned());
        let shown = shown::of(program, self.shared.folder.path());
        let wanted = Wanted {
            scratch: &scratch,
            shown: &shown,
            mounts: &mounts,
            line,
            environment: resolved.clone(),
            folder: working.as_ref(),
        };
        let prepared = sandbox::prepare(self.shared.isolation, wanted).map_err(failed)?;
        Ok(Order { prepared, shown, mounts, environment: resolved })
    }

    /// The cluster's variables for every container: the address of the API server, and the Services of its
    /// namespace.
    fn cluster_variables(&self) -> BTreeMap<String, String> {
        let world = &self.shared.world;
        let links = self.pod.spec.as_ref().and_then(|spec| spec.enable_service_links).unwrap_or(true);
        let services = if links { world.services.list_in(&self.key.namespace) } else { Vec::new() };
        let described: Vec<_> = services.iter().filter_map(|service| described(service)).collect();
        let mut result = environment::service_variables(
            described.iter().map(|(name, address, port)| (name.as_str(), address.as_str(), *port)),
        );
        let (host, port) = self.shared.api_server_for(&self.node);
        result.insert("KUBERNETES_SERVICE_HOST".to_owned(), host);
        result.insert("KUBERNETES_SERVICE_PORT".to_owned(), port.to_string());
        result.insert("KUBERNETES_SERVICE_PORT_HTTPS".to_owned(), port.to_string());
        result
    }

    /// Starts the container's probes.
    fn watch_over(&self, index: usize, container: Container, order: Order) {
        let Some(slot) = self.slots.get(index) else { return };
        let around = ProbeContext {
            address: self.setup.asked_at,
            isolation: self.shared.isolation,
            scratch: self.folder.join("probes").join(&container.name),
            shown: order.shown,
            mounts: order.mounts,
            environment: order.environment,
            client: self.shared.probes.clone(),
        };
        let prober = Prober {
            shared: self.shared.clone(),
            node: self.node.clone(),
            pod: self.pod.clone(),
            container,
            around,
            started: Instant::now(),
            slot: index,
            run: slot.run,
            notes: self.notes.clone(),
        };
        let cancel = slot.probes.clone();
        self.shared.world.tasks.spawn(async move {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = prober.watch() => {}
            }
        });
    }
}

/// A Service as its variables describe it.
fn described(service: &Service) -> Option<(String, String, i32)> {
    let spec = service.spec.as_ref()?;
    let address = spec.cluster_ip.clone().filter(|ip| !ip.is_empty() && ip != "None")?;
    Some((service.name_any(), address, spec.ports.as_ref()?.first()?.port))
}

/// Probes one run of a container as long as it lasts.
struct Prober {
    shared: std::sync::Arc<Shared>,
    node: String,
    pod: std::sync::Arc<k8s_openapi::api::core::v1::Pod>,
    container: Container,
    around: ProbeContext,
    started: Instant,
    slot: usize,
    run: u64,
    notes: mpsc::UnboundedSender<Note>,
}

impl Prober {
    async fn watch(&self) {
        if let Some(probe) = &self.container.startup_probe
            && !self.ask_until(probe, Purpose::Startup).await
        {
            return;
        }
        let readiness = async {
            if let Some(probe) = &self.container.readiness_probe {
                self.ask_until(probe, Purpose::Readiness).await;
            }
        };
        let liveness = async {
            if let Some(probe) = &self.container.liveness_probe {
                self.ask_until(probe, Purpose::Liveness).await;
            }
        };
        tokio::join!(readiness, liveness);
    }

    /// Probes again and again; ends with the verdict of a startup probe, or when the container has to be restarted.
    async fn ask_until(&self, probe: &Probe, purpose: Purpose) -> bool {
        let (mut next, period, timeout) = probe::schedule(probe, self.started);
        let mut tally = Tally::new(probe);
        loop {
            tokio::time::sleep_until(next).await;
            next = Instant::now() + period;
            // Without a kubelet there are no probes.
            if !self.shared.acts(&self.node) {
                continue;
            }
            let answer = probe::ask(probe, &self.container, &self.around, timeout).await;
            if let Err(why) = &answer {
                self.tell(format!("{} probe failed: {why}", purpose.words()));
            }
            let Some(verdict) = tally.count(answer.is_ok()) else { continue };
            let note = Note::Probed { slot: self.slot, run: self.run, purpose, verdict };
            if self.notes.send(note).is_err()
                || purpose == Purpose::Startup
                || (purpose == Purpose::Liveness && !verdict)
            {
                return verdict;
            }
        }
    }

    fn tell(&self, message: String) {
        if let Some(client) =
            self.shared.fleet.client(&self.node).filter(|_| self.shared.fleet.speaks(&self.node))
        {
            let source = Source { component: "kubelet", host: Some(&self.node) };
            let recorder = &self.shared.world.recorder;
            recorder.tell(&client, source, self.pod.as_ref(), Weight::Warning, "Unhealthy", message);
        }
    }
}
