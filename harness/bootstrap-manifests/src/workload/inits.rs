//! Init containers and sidecars: which of them keep the others from starting.
//!
//! Source: `computeInitContainerActions` in `pkg/kubelet/kuberuntime/kuberuntime_container.go`.

use super::hindrance::Hindrance;
use super::outside::{Condition, is_of_framework};
use super::refs::Stage;
use super::scripts::{self, End};
use crate::manifest::{Node, Object};

/// What the init containers of a Pod mean for the boot.
#[derive(Default)]
pub(super) struct Inits {
    pub(super) hindrances: Vec<Hindrance>,
    pub(super) conditions: Vec<Condition>,
}

/// Judges the init containers in their order; `spec` is that of the Pods.
pub(super) fn read(object: &Object, spec: &Node) -> Inits {
    let mut found = Inits::default();
    for init in spec.get("initContainers").map(Node::items).unwrap_or_default() {
        if is_the_program(spec, init) {
            // It works although the Pod never leaves its initialisation, and nothing after it is started.
            break;
        }
        let name = init.text_at("name").unwrap_or_default();
        let place = object.place(init);
        let mut depends = |words: String| found.conditions.push(Condition { words, place: place.clone() });
        let never = |words: String, advice: &str| {
            Hindrance::new(Stage::Start, words, place.clone(), advice.to_owned())
        };
        let never_ends = |name: &str| {
            never(
                format!("the init container '{name}' never ends, and the containers after it wait for that"),
                "set 'restartPolicy: Always', or move it to containers",
            )
        };
        match (is_sidecar(init), does_nothing(init)) {
            (true, true) => match init.get("startupProbe") {
                None => {}
                Some(probe) => match served_before(spec, probe) {
                    Some(port) => depends(format!("port {port} of its Node answers the startupProbe of '{name}'")),
                    None => found.hindrances.push(never(
                        format!(
                            "the sidecar '{name}' never counts as started, as nothing answers its startupProbe, and \
                             the containers after it wait for that"
                        ),
                        "remove the startupProbe, or move it to the container that it is about",
                    )),
                },
            },
            (true, false) if waits_for_the_ccm(spec, init) => found.hindrances.push(never(
                format!(
                    "the startupProbe of the sidecar '{name}' asks the CCM, which starts only after it has succeeded"
                ),
                "remove the startupProbe, or move it to the container that it is about",
            )),
            (true, false) => depends(format!("the sidecar '{name}' starts")),
            (false, true) => found.hindrances.push(never_ends(name)),
            (false, false) if prints_and_ends(spec, init) => {}
            (false, false) => match scripts::of_container(init).filter(|_| has_tools(spec, init)) {
                Some(End::After(seconds)) if seconds <= LONGEST_WAIT => {}
                Some(End::WithError) => found.hindrances.push(never(
                    format!("the init container '{name}' ends with an error each time"),
                    "correct its command, or remove it",
                )),
                Some(End::Never) => found.hindrances.push(never_ends(name)),
                _ => depends(format!("the init container '{name}' succeeds")),
            },
        }
    }
    found.hindrances.extend(long_hook(object, spec));
    found
}

/// A container before the program whose postStart hook sleeps: the kubelet starts one container after the other, each with
/// its hook (`SyncPod`).
fn long_hook(object: &Object, spec: &Node) -> Option<Hindrance> {
    let main = spec.get("containers").map(Node::items).unwrap_or_default();
    let program = main.iter().position(is_of_framework)?;
    main[..program].iter().find_map(|container| {
        let time = container.at(&["lifecycle", "postStart", "sleep", "seconds"])?;
        let seconds = time.int().filter(|seconds| *seconds as f64 > LONGEST_WAIT)?;
        let name = container.text_at("name").unwrap_or_default();
        Some(Hindrance::new(
            Stage::Start,
            format!(
                "it starts only after the postStart hook of the container '{name}', which sleeps {seconds} s"
            ),
            object.place(time),
            format!("move the container '{name}' after it, or remove the hook"),
        ))
    })
}

/// The longest that init containers may wait for a boot, in seconds.
const LONGEST_WAIT: f64 = 120.0;

/// Whether an init container has another image than the program, and so one for its command. That of the program may have no
/// shell.
fn has_tools(spec: &Node, init: &Node) -> bool {
    let main = spec.get("containers").map(Node::items).unwrap_or_default();
    main.iter().all(|other| other.text_at("image") != init.text_at("image"))
}

/// Whether a container of `initContainers` runs next to the others.
pub(super) fn is_sidecar(init: &Node) -> bool {
    init.text_at("restartPolicy") == Some("Always")
}

/// Whether an init container is the program itself, which never ends: it has flags of the framework, and no container after
/// it has its image.
pub(super) fn is_the_program(spec: &Node, init: &Node) -> bool {
    const OF_FRAMEWORK: [&str; 3] = ["--leader-elect", "--cloud-provider", "--cloud-config"];
    let has_flags = arguments(init)
        .iter()
        .any(|argument| OF_FRAMEWORK.iter().any(|flag| argument.split('=').next() == Some(*flag)));
    let same = |other: &&Node| other.text_at("image") == init.text_at("image");
    let main = spec.get("containers").map(Node::items).unwrap_or_default();
    !is_sidecar(init) && has_flags && !main.iter().any(|other| same(&other))
}

/// Whether it is the image that only holds a place: it listens nowhere and never ends.
fn does_nothing(container: &Node) -> bool {
    let image = container.text_at("image").unwrap_or_default();
    let last = image.rsplit('/').next().unwrap_or_default();
    let name = last.split([':', '@']).next().unwrap_or_default();
    name == "pause" && container.get("command").is_none()
}

/// Whether it prints the version or the help of a program that another container of the Pod runs.
fn prints_and_ends(spec: &Node, init: &Node) -> bool {
    let main = spec.get("containers").map(Node::items).unwrap_or_default();
    let known = main.iter().any(|other| other.text_at("image") == init.text_at("image"));
    known
        && init.get("command").is_none()
        && matches!(arguments(init).as_slice(), [one] if one == "--version" || one == "--help")
}

/// The port of the framework's programs: the CCM's own, which is not there yet.
const OF_CCM: i64 = 10258;

/// Whether the startup probe of a sidecar asks the port of the CCM, which is one of the containers after it.
fn waits_for_the_ccm(spec: &Node, init: &Node) -> bool {
    let ports = init.get("ports").map(Node::items).unwrap_or_default();
    let serves = ports.iter().any(|port| port.get("containerPort").and_then(Node::int) == Some(OF_CCM));
    let main = spec.get("containers").map(Node::items).unwrap_or_default();
    init.get("startupProbe").and_then(port_of) == Some(OF_CCM)
        && !serves
        && !is_of_framework(init)
        && main.iter().any(is_of_framework)
}

fn port_of(probe: &Node) -> Option<i64> {
    ["httpGet", "tcpSocket", "grpc"].iter().find_map(|way| probe.at(&[way, "port"]))?.int()
}

/// The port of the Node that a probe asks and that something other than the Pod may serve; `None` if nothing can answer.
fn served_before(spec: &Node, probe: &Node) -> Option<i64> {
    let port = port_of(probe)?;
    let on_node = spec.get("hostNetwork").and_then(Node::bool) == Some(true);
    (on_node && port != OF_CCM).then_some(port)
}

fn arguments(container: &Node) -> Vec<String> {
    container.get("args").map(Node::texts).unwrap_or_default()
}
