//! The Lease of the leader election: where it is, who holds it, and whether it can be written.

use super::Assumed;
use crate::manifest::{Node, Objects};
use crate::workload::{Condition, Hindrance, Role, Stage, Workload, is_plain, seconds};
use embedded_objects::billionths;
use embedded_objects::rules::names;

/// How long a boot may wait for a Lease that another client holds, in seconds.
const LONGEST_WAIT: i64 = 300;

/// Leases of kubeadm's own components, which never give them up.
const OF_COMPONENTS: &[&str] = &["kube-controller-manager", "kube-scheduler"];

/// Namespace and name of the workload's Lease; `None` without a leader election.
pub(super) fn lease_of(workload: &Workload) -> Option<(String, String)> {
    if workload.flag("leader-elect").is_some_and(|(value, _)| value == "false") {
        return None;
    }
    let value = |flag: &str, default: &str| {
        workload.flag(flag).map_or_else(|| default.to_owned(), |(value, _)| value)
    };
    // The framework's defaults (component-base config).
    let namespace = value("leader-elect-resource-namespace", "kube-system");
    Some((namespace, value("leader-elect-resource-name", "cloud-controller-manager")))
}

/// Whether the manifests create the Lease, so that the program need not.
pub(super) fn lease_exists(objects: &Objects, workload: &Workload) -> bool {
    lease_of(workload).is_some_and(|(namespace, name)| objects.find("Lease", &namespace, &name).is_some())
}

/// What keeps the workload from becoming the leader.
pub(super) fn held(objects: &Objects, assumed: &Assumed, workload: &Workload) -> Option<Hindrance> {
    let (namespace, name) = lease_of(workload)?;
    let flag = |flag: &str| workload.flag(flag).map(|(_, place)| place);
    if let Some((lock, place)) = workload.flag("leader-elect-resource-lock")
        && lock != "leases"
    {
        return Some(Hindrance::new(
            Stage::Work,
            format!("--leader-elect-resource-lock={lock} is not supported any more, and the process exits"),
            place,
            String::from("set --leader-elect-resource-lock=leases"),
        ));
    }
    if let Some(fault) = durations(workload) {
        return Some(fault);
    }
    // In a script a shell may replace it.
    let mut words = workload.containers.iter().flat_map(|container| &container.arguments);
    let has_script = words.any(|(word, _)| word.contains(char::is_whitespace));
    for name in
        ["leader-elect-resource-namespace", "leader-elect-resource-name"].iter().filter(|_| !has_script)
    {
        let Some((value, place)) = workload.flag(name) else { continue };
        let variables = workload.containers.iter().flat_map(|container| &container.env_names);
        let written = |variable: &&String| value.contains(&format!("${{{variable}}}"));
        if let Some(variable) = variables.into_iter().find(written) {
            return Some(Hindrance::new(
                Stage::Work,
                format!("nothing replaces ${{{variable}}} in --{name}, so its Lease cannot be written"),
                place,
                format!("write $({variable}), which the kubelet replaces"),
            ));
        }
    }
    if let Some((name, place)) = workload.flag("leader-elect-resource-name")
        && is_plain(&name)
        && !names::subdomain(&name).is_empty()
    {
        return Some(Hindrance::new(
            Stage::Work,
            format!("the API server refuses a Lease with the name '{name}', so it never becomes the leader"),
            place,
            String::from("use lower case letters, digits, '-' and '.' in --leader-elect-resource-name"),
        ));
    }
    if namespace == "kube-system" && OF_COMPONENTS.contains(&name.as_str()) {
        return Some(Hindrance::new(
            Stage::Work,
            format!("Lease/{name} belongs to {name}, so it never becomes the leader"),
            flag("leader-elect-resource-name").unwrap_or_else(|| workload.spec_place.clone()),
            String::from("set --leader-elect-resource-name to a name of its own"),
        ));
    }
    let built_in = ["default", "kube-system", "kube-public", "kube-node-lease"].contains(&namespace.as_str());
    let here = objects.of_kind("Namespace").any(|object| object.name == namespace);
    if !built_in && !here && !namespace.contains("${") && !assumed.holds("Namespace", "", &namespace) {
        return Some(Hindrance::new(
            Stage::Work,
            format!("Namespace/{namespace}, in which its Lease belongs, does not exist"),
            flag("leader-elect-resource-namespace").unwrap_or_else(|| workload.spec_place.clone()),
            format!("create Namespace/{namespace}, or pass '--assume Namespace/{namespace}' if it exists"),
        ));
    }
    if let Some(full) = without_room(objects, workload, &namespace) {
        return Some(full);
    }
    let lease = objects.find("Lease", &namespace, &name)?;
    let spec = lease.node.get("spec")?;
    let holder = spec.text_at("holderIdentity").filter(|holder| !holder.is_empty())?;
    let seconds = spec.get("leaseDurationSeconds").and_then(Node::int).filter(|s| *s > LONGEST_WAIT)?;
    // The time counts from the moment at which the program first sees the Lease (client-go, `isLeaseValid`).
    Some(Hindrance::new(
        Stage::Work,
        format!("Lease/{name} is held by '{holder}', so it waits {seconds} s before it becomes the leader"),
        lease.place_of(spec, "holderIdentity"),
        format!("remove Lease/{namespace}/{name} from the manifests"),
    ))
}

/// The times of an election that it cannot work with (client-go, `NewLeaderElector`): its process exits then.
fn durations(workload: &Workload) -> Option<Hindrance> {
    /// The framework's defaults in seconds (component-base config).
    const DEFAULTS: [(&str, f64); 3] = [
        ("leader-elect-lease-duration", 15.0),
        ("leader-elect-renew-deadline", 10.0),
        ("leader-elect-retry-period", 2.0),
    ];
    /// How much longer than the period a retry may take.
    const JITTER: f64 = 1.2;
    let set = DEFAULTS.map(|(name, default)| match workload.flag(name) {
        Some((text, place)) => (seconds(&text), Some(place)),
        None => (Some(default), None),
    });
    // The first that the manifests set.
    let place = set.iter().find_map(|(_, place)| place.clone())?;
    let [(Some(lease), _), (Some(renew), _), (Some(retry), _)] = set else { return None };
    let exits = |words: String, advice: &str| {
        Some(Hindrance::new(Stage::Work, words, place.clone(), advice.to_owned()))
    };
    if lease <= renew {
        let words = format!(
            "the process exits, as the duration of its Lease ({lease} s) is not longer than its renew deadline ({renew} s)"
        );
        return exits(words, "make --leader-elect-lease-duration longer than --leader-elect-renew-deadline");
    }
    if renew <= JITTER * retry {
        let words = format!(
            "the process exits, as its renew deadline ({renew} s) is not longer than {JITTER} times its retry period ({retry} s)"
        );
        return exits(words, "make --leader-elect-renew-deadline longer than --leader-elect-retry-period");
    }
    // The Lease has whole seconds, and the API server refuses zero.
    if lease < 1.0 {
        let words =
            format!("the duration of its Lease ({lease} s) becomes 0 s, which the API server refuses");
        return exits(words, "set --leader-elect-lease-duration to one second or more");
    }
    None
}

/// The Leases that kubeadm's components have in kube-system: of an API server, the controller manager and the scheduler.
const LEAST: i128 = 3;

/// A quota that leaves no room for a new Lease.
fn without_room(objects: &Objects, workload: &Workload, namespace: &str) -> Option<Hindrance> {
    const KEY: &str = "count/leases.coordination.k8s.io";
    if lease_exists(objects, workload) {
        return None;
    }
    let taken = if namespace == "kube-system" { LEAST } else { 0 };
    let quotas = objects.of_kind("ResourceQuota").filter(|quota| quota.namespace == namespace);
    quotas.into_iter().find_map(|quota| {
        let hard = quota.node.at(&["spec", "hard", KEY])?;
        let most = billionths(&hard.scalar()?)? / 1_000_000_000;
        (most <= taken).then(|| {
            Hindrance::new(
                Stage::Work,
                format!("ResourceQuota/{} ({KEY}: {most}) leaves no room for its Lease", quota.name),
                quota.place(hard),
                format!("raise the quota ResourceQuota/{}", quota.name),
            )
        })
    })
}

/// A Lease that another program of the manifests also wants: only one of them gets it.
pub(super) fn shared(workloads: &[Workload], own: usize) -> Option<Condition> {
    let workload = &workloads[own];
    let lease = lease_of(workload).filter(|_| workload.role == Role::Ccm)?;
    // Only CCMs have its default name. One that initialises Nodes as well may get it.
    let is_rival = |other: &Workload| match other.role {
        Role::Other => other.flag("leader-elect-resource-name").is_some(),
        Role::Ccm => !other.runs_controller(&["cloud-node", "cloud-node-controller"]),
        _ => false,
    };
    let rival = workloads
        .iter()
        .enumerate()
        .find(|(index, other)| *index != own && is_rival(other) && lease_of(other).as_ref() == Some(&lease));
    let (_, rival) = rival?;
    let (_, place) =
        workload.flag("leader-elect-resource-name").unwrap_or((String::new(), workload.place.clone()));
    let words = format!("it gets Lease/{} before {}, which uses the same name", lease.1, rival.title());
    Some(Condition { words, place })
}
