//! Settings of a workload that keep its Pods from running on any Node.

use super::go_values::is_plain;
use super::kind::WorkloadKind;
use super::refs::Stage;
use super::schedule::never_comes;
use crate::accept::orphan;
use crate::manifest::{Node, Object, Place};

/// A setting of the manifests that keeps Pods from running, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hindrance {
    /// The stage at which it takes effect.
    pub stage: Stage,
    /// A sentence without its final full stop.
    pub words: String,
    /// Where it is.
    pub place: Place,
    /// What to change, as an imperative: `set 'paused: false'`.
    pub advice: String,
    /// The minor version of Kubernetes since which it applies; 0 for all.
    pub since: u32,
    /// The scalar that fixes it: path of the map below the object, key and value.
    pub edit: Option<(Vec<String>, &'static str, &'static str)>,
}

impl Hindrance {
    /// One that applies to all versions of Kubernetes and is fixed by hand.
    pub fn new(stage: Stage, words: String, place: Place, advice: String) -> Hindrance {
        Hindrance { stage, words, place, advice, since: 0, edit: None }
    }
}

/// Less memory than any container runtime accepts, in billionths of a byte: usually `m` instead of `Mi`.
const LEAST_MEMORY: i128 = (1 << 20) * 1_000_000_000;

/// What the object itself shows; `spec` is that of its Pods.
pub(super) fn read(object: &Object, kind: WorkloadKind, spec: &Node) -> Vec<Hindrance> {
    let mut all = Vec::new();
    stopped(object, kind, &mut all);
    if let Some((place, words)) = orphan(object) {
        all.push(Hindrance::new(Stage::Creation, words, place, String::from("remove ownerReferences")));
    }
    const MIRROR: &str = "kubernetes.io/config.mirror";
    let path = super::kind::template_path(kind);
    let annotations = object.node.at(path).and_then(|template| template.at(&["metadata", "annotations"]));
    if let Some(mirror) = annotations.and_then(|annotations| annotations.get(MIRROR)) {
        all.push(Hindrance::new(
            Stage::Creation,
            String::from(
                "its annotation makes it the mirror of a static Pod, which only a kubelet may create",
            ),
            object.place(mirror),
            format!("remove the annotation {MIRROR}"),
        ));
    }
    // Its Pods have the label controller-revision-hash with its name, a dash and up to ten characters.
    const LONGEST_LABEL: usize = 63;
    let name = object.name.len();
    if kind == WorkloadKind::StatefulSet && name + 9 > LONGEST_LABEL {
        let place = object.at();
        let words = format!(
            "its name has {name} characters, so the label controller-revision-hash of its Pods would have more than 63"
        );
        all.push(Hindrance::new(
            Stage::Creation,
            words,
            place,
            String::from("give it a name of at most 52 characters"),
        ));
    }
    let gates = spec.get("schedulingGates").map(Node::items).unwrap_or_default();
    if let Some(gate) = gates.first() {
        all.push(Hindrance {
            stage: Stage::Scheduling,
            words: format!("the scheduling gate '{}' is closed", gate.text_at("name").unwrap_or_default()),
            place: object.place(gate),
            advice: String::from("remove schedulingGates"),
            since: 0,
            edit: None,
        });
    }
    if let Some(os) = spec.at(&["os", "name"]).filter(|os| os.text().is_some_and(|name| name != "linux")) {
        all.push(Hindrance {
            stage: Stage::Start,
            words: format!("the kubelet of a Linux Node refuses os.name {}", os.text().unwrap_or_default()),
            place: object.place(os),
            advice: String::from("set 'os.name: linux', or remove it"),
            since: 0,
            edit: None,
        });
    }
    const OS: &str = "kubernetes.io/os";
    let pod_labels = object.node.at(path).and_then(|template| template.at(&["metadata", "labels"]));
    if let Some(os) = pod_labels.and_then(|all| all.get(OS)).filter(|os| os.text() != Some("linux")) {
        let shown = os.scalar().unwrap_or_default();
        all.push(Hindrance::new(
            Stage::Start,
            format!("the kubelet of a Linux Node refuses Pods with the label {OS}: {shown}"),
            object.place(os),
            format!("remove the label {OS} from the template of the Pods, or write linux"),
        ));
    }
    let on_host = spec.get("hostNetwork").and_then(Node::bool) == Some(true);
    let settings = spec.at(&["securityContext", "sysctls"]).map(Node::items).unwrap_or_default();
    let of_network = |setting: &&Node| sysctl(setting).starts_with("net.");
    if let Some(setting) = settings.iter().find(of_network).filter(|_| on_host) {
        let name = setting.text_at("name").unwrap_or_default();
        all.push(Hindrance::new(
            Stage::Start,
            format!("the kubelet refuses the sysctl '{name}' for a Pod on the host's network"),
            object.place(setting),
            format!("remove the sysctl '{name}'"),
        ));
    }
    for volume in spec.get("volumes").map(Node::items).unwrap_or_default() {
        let medium = volume.at(&["emptyDir", "medium"]).and_then(|node| Some((node, node.text()?)));
        let unknown = |medium: &str| !matches!(medium, "" | "Memory") && !medium.starts_with("HugePages");
        if let Some((node, medium)) = medium.filter(|(_, medium)| unknown(medium)) {
            all.push(Hindrance::new(
                Stage::Start,
                format!("the kubelet knows no storage medium '{medium}' for an emptyDir"),
                object.place(node),
                String::from("write Memory, or remove 'medium'"),
            ));
        }
    }
    let of_all = |key: &str| spec.at(&["securityContext", key]).filter(|node| !node.is_null());
    if let Some(group) = of_all("runAsGroup").filter(|_| of_all("runAsUser").is_none()) {
        // The kubelet passes both to the sandbox (`generateUserString` of containerd).
        let words = "containerd refuses a runAsGroup for the whole Pod without a runAsUser";
        all.push(Hindrance::new(
            Stage::Start,
            words.to_owned(),
            object.place(group),
            String::from("add runAsUser next to it, or move runAsGroup to the containers"),
        ));
    }
    for container in decisive(spec) {
        let folder = container.get("workingDir").and_then(|node| Some((node, node.text()?)));
        let is_relative = |folder: &str| !folder.is_empty() && !folder.starts_with('/') && is_plain(folder);
        if let Some((node, folder)) = folder.filter(|(_, folder)| is_relative(folder)) {
            all.push(Hindrance::new(
                Stage::Start,
                format!(
                    "the container runtime refuses the workingDir '{folder}', which does not begin with /"
                ),
                object.place(node),
                String::from("write an absolute path"),
            ));
        }
        let limit = container.at(&["resources", "limits", "memory"]);
        let bytes = limit.and_then(Node::scalar).and_then(|text| embedded_objects::billionths(&text));
        if let (Some(limit), Some(_)) = (limit, bytes.filter(|bytes| *bytes < LEAST_MEMORY)) {
            let shown = limit.scalar().unwrap_or_default();
            all.push(Hindrance::new(
                Stage::Start,
                format!("no container starts with a memory limit of {shown}, which is less than 1 MiB"),
                object.place(limit),
                String::from("write the limit with a unit of memory, such as 128Mi"),
            ));
        }
        let (user, not_root) = identity(spec, container);
        if let Some(user) = user.filter(|user| not_root && user.int() == Some(0)) {
            let name = container.text_at("name").unwrap_or_default();
            all.push(Hindrance {
                stage: Stage::Start,
                words: format!("container '{name}' has both runAsUser: 0 and runAsNonRoot: true"),
                place: object.place(user),
                advice: String::from("set runAsUser to another value than 0, or remove runAsNonRoot"),
                since: 0,
                edit: None,
            });
        }
    }
    all
}

/// Containers of a Pod, those that run before the others first.
pub(super) fn each_container(spec: &Node) -> impl Iterator<Item = &Node> {
    ["initContainers", "containers"]
        .into_iter()
        .flat_map(|list| spec.get(list).map(Node::items).unwrap_or_default())
}

/// Whether a flag is in the command line of a container, also in a shell script.
pub(super) fn has_flag(container: &Node, flag: &str) -> bool {
    let texts = ["command", "args"].into_iter().filter_map(|list| container.get(list)).flat_map(Node::texts);
    let is_it = |word: &str| word.trim_matches(['"', '\'']).split('=').next() == Some(flag);
    texts.into_iter().any(|text| text.split_whitespace().any(is_it))
}

/// Init containers, and the containers that run the CCM, or all if that is not known. Another one that cannot start does not
/// keep them from starting (`SyncPod`).
pub(super) fn decisive(spec: &Node) -> impl Iterator<Item = &Node> {
    let items = |list: &str| spec.get(list).map(Node::items).unwrap_or_default();
    let (inits, main) = (items("initContainers"), items("containers"));
    let flag = ["--cloud-provider", "--leader-elect"]
        .into_iter()
        .find(|flag| main.iter().any(|container| has_flag(container, flag)));
    inits.iter().chain(main.iter().filter(move |own| flag.is_none_or(|flag| has_flag(own, flag))))
}

/// The user of a container, and whether it may not be root. The container's setting overrides the Pod's.
pub(super) fn identity<'n>(spec: &'n Node, container: &'n Node) -> (Option<&'n Node>, bool) {
    let of = |key: &str| {
        let own = container.at(&["securityContext", key]).filter(|node| !node.is_null());
        own.or_else(|| spec.at(&["securityContext", key])).filter(|node| !node.is_null())
    };
    (of("runAsUser"), of("runAsNonRoot").and_then(Node::bool) == Some(true))
}

/// The name of a sysctl with dots: slashes mean the same (`ConvertPodSysctlsVariableToDotsSeparator`).
pub(super) fn sysctl(setting: &Node) -> String {
    setting.text_at("name").unwrap_or_default().replace('/', ".")
}

/// A controller that is set to create no Pods.
fn stopped(object: &Object, kind: WorkloadKind, all: &mut Vec<Hindrance>) {
    let specs: &[&[&str]] = match kind {
        WorkloadKind::CronJob => &[&["spec"], &["spec", "jobTemplate", "spec"]],
        _ => &[&["spec"]],
    };
    let (field, kinds) = match kind {
        WorkloadKind::Deployment => ("paused", "a Deployment that is paused"),
        WorkloadKind::Job | WorkloadKind::CronJob => ("suspend", "a Job that is suspended"),
        _ => return,
    };
    for path in specs {
        let Some(map) = object.node.at(path) else { continue };
        if map.get(field).and_then(Node::bool) == Some(true) {
            all.push(Hindrance {
                stage: Stage::Creation,
                words: format!("{kinds} creates no Pods"),
                place: object.place_of(map, field),
                advice: format!("set '{field}: false'"),
                since: 0,
                edit: Some((path.iter().map(|key| (*key).to_owned()).collect(), field, "false")),
            });
        }
    }
    let schedule = object.node.at(&["spec", "schedule"]).filter(|_| kind == WorkloadKind::CronJob);
    if let Some(schedule) = schedule.filter(|schedule| never_comes(schedule.text().unwrap_or_default())) {
        let text = schedule.text().unwrap_or_default();
        all.push(Hindrance {
            stage: Stage::Creation,
            words: format!("no day fits the schedule '{text}' of the CronJob, so that it creates no Job"),
            place: object.place(schedule),
            advice: String::from("correct 'schedule'; a CCM belongs in a Deployment or a DaemonSet"),
            since: 0,
            edit: None,
        });
    }
    let deadline = object.node.at(&["spec", "startingDeadlineSeconds"]);
    if let Some(deadline) =
        deadline.filter(|deadline| kind == WorkloadKind::CronJob && deadline.int() == Some(0))
    {
        // `mostRecentScheduleTime` looks for a time that has come, beginning with the present.
        let words = String::from(
            "with startingDeadlineSeconds 0 no time of the CronJob has come yet, so it creates no Job",
        );
        let advice = String::from("remove startingDeadlineSeconds, or set it to 60 or more");
        all.push(Hindrance::new(Stage::Creation, words, object.place(deadline), advice));
    }
    let jobs: &[(&str, &str)] = &[
        ("parallelism", "a Job with parallelism 0 creates no Pods"),
        ("completions", "a Job with completions 0 is complete from the start and creates no Pods"),
    ];
    for path in specs {
        for (field, words) in jobs.iter().filter(|_| kind != WorkloadKind::Deployment) {
            let Some(map) = object.node.at(path) else { continue };
            if map.get(field).and_then(Node::int) == Some(0) {
                all.push(Hindrance {
                    stage: Stage::Creation,
                    words: (*words).to_owned(),
                    place: object.place_of(map, field),
                    advice: format!("set '{field}: 1'"),
                    since: 0,
                    edit: Some((path.iter().map(|key| (*key).to_owned()).collect(), field, "1")),
                });
            }
        }
    }
}
