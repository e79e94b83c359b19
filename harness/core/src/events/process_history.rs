//! How the CCM behaved during a whole run: derives from the events which exits of its process no check caused, and which
//! Nodes it deleted.

use super::event::{Event, ObjectChanged, Payload};
use crate::probe::Observed;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Fact of a Pod: its replica of the CCM.
pub const REPLICA: &str = "replica";
/// Fact of a Pod: the exit code of the previous process.
pub const LAST_EXIT_CODE: &str = "lastExitCode";

/// The events so far about the CCM's processes, and about the resources created in the cloud.
#[derive(Clone, Debug, Default)]
pub struct ProcessHistory {
    pods: BTreeMap<(u32, String), Process>,
    ends: Vec<End>,
    /// Nodes that the harness deletes, by lane.
    withdrawn: BTreeSet<(u32, String)>,
    lost_nodes: Vec<LostNode>,
    /// Namespace and name of each Service, by uid.
    services: BTreeMap<String, String>,
    created: u64,
    ownerless: u64,
    has_led: bool,
}

/// One Pod of a replica.
#[derive(Clone, Debug, Default)]
struct Process {
    replica: String,
    restarts: u64,
    containers: String,
    /// The exit code of the previous process.
    last_exit_code: Option<String>,
    /// How often its process has exited.
    ends: u64,
    /// Whether the CCM has led since the Pod was created.
    steady: bool,
    /// The running check that has disturbed the replica; empty if it is unknown.
    disturbed_by: Option<String>,
    /// Since when it runs undisturbed again, or will, in milliseconds since the run began; `None` if it was never
    /// disturbed.
    recovered_ms: Option<u64>,
    leaving: bool,
}

/// How long after a disturbance a check may still be the cause of an exit: a Lease was lost, or a new process has to find
/// the cluster first. Milliseconds.
const RECOVERS_MS: u64 = 30_000;
/// Exit codes of programs that crash, whichever component was silent: a panic of Go or Rust, an abort, a memory fault.
const CRASHES: [i32; 4] = [2, 101, 134, 139];

/// An exit of a replica's process that no check caused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The lane.
    pub lane: u32,
    /// The replica.
    pub replica: String,
    /// When it was observed, in milliseconds since the run began.
    pub at_ms: u64,
    /// The exit code, if the kubelet reported one.
    pub code: Option<i32>,
    /// Its last log lines, oldest first, if they could be read.
    pub last_lines: Vec<String>,
}

impl End {
    /// Whether it was a crash, which the silence of another component does not explain.
    pub fn is_crash(&self) -> bool {
        self.code.is_some_and(|code| CRASHES.contains(&code))
    }
}

/// A Node that was deleted without the harness having announced it. Checks also delete their own Nodes, so only those of
/// real machines count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostNode {
    /// The lane.
    pub lane: u32,
    /// Its name.
    pub node: String,
    /// When it was observed, in milliseconds since the run began.
    pub at_ms: u64,
}

impl fmt::Display for LostNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node {} of cluster {} at {:.1} s", self.node, self.lane, self.at_ms as f64 / 1000.0)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let End { replica, lane, at_ms, .. } = self;
        write!(f, "replica {replica} in cluster {lane} at {:.1} s", *at_ms as f64 / 1000.0)?;
        self.code.map_or(Ok(()), |code| write!(f, " with exit code {code}"))
    }
}

impl ProcessHistory {
    /// Whether the CCM has led on any cluster.
    pub fn has_led(&self) -> bool {
        self.has_led
    }

    /// Adds the next event.
    pub(super) fn take(&mut self, event: &Event) {
        let Some(lane) = event.lane else { return };
        match &event.event {
            Payload::CcmLeads => {
                self.has_led = true;
                self.pods_of(lane).for_each(|pod| {
                    (pod.steady, pod.disturbed_by, pod.recovered_ms) = (true, None, None);
                });
            }
            Payload::ReplicaDisturbed { replica } => {
                let by = event.check.clone().unwrap_or_default();
                let disturbed = self.pods_of(lane).filter(|pod| pod.replica == *replica);
                disturbed.for_each(|pod| pod.disturbed_by = Some(by.clone()));
            }
            Payload::ReplicaEnded { replica, last_lines } => {
                let of_it =
                    |end: &&mut End| end.lane == lane && end.replica == *replica && end.last_lines.is_empty();
                if let Some(end) = self.ends.iter_mut().find(of_it) {
                    end.last_lines.clone_from(last_lines);
                }
            }
            Payload::CheckEnded { .. } => {
                let theirs = self
                    .pods_of(lane)
                    .filter(|pod| pod.disturbed_by.is_some() && pod.disturbed_by == event.check);
                theirs.for_each(|pod| {
                    (pod.disturbed_by, pod.recovered_ms) = (None, Some(event.at_ms + RECOVERS_MS));
                });
            }
            Payload::ObjectChanged(change) if change.kind == "Pod" => self.pod(lane, event.at_ms, change),
            Payload::NodesWithdrawn { nodes } => {
                self.withdrawn.extend(nodes.iter().map(|node| (lane, node.clone())));
            }
            Payload::ObjectChanged(change) if change.kind == "Node" && change.deleted => {
                let node = change.name.clone();
                if !self.withdrawn.remove(&(lane, node.clone())) {
                    self.lost_nodes.push(LostNode { lane, node, at_ms: event.at_ms });
                }
            }
            Payload::ObjectChanged(change) if change.kind == "Service" => {
                let name = format!("{}/{}", change.namespace, change.name);
                self.services.insert(change.uid.clone(), name);
            }
            Payload::CloudCall(call) if call.operation == "lb.create" && call.resource.is_some() => {
                self.created += 1;
                self.ownerless += u64::from(call.owner.is_none());
            }
            _ => {}
        }
    }

    /// The exits of its process that no check caused, in order. Not counted are those before it first led, those of a
    /// replica that a check is disturbing or has just disturbed, and those of a Pod that is being deleted.
    pub fn ends(&self) -> &[End] {
        &self.ends
    }

    /// The exits in a lane since a moment, in milliseconds since the run began.
    pub fn ends_since(&self, lane: u32, from_ms: u64) -> impl Iterator<Item = &End> {
        self.ends.iter().filter(move |end| end.lane == lane && end.at_ms >= from_ms)
    }

    /// The Nodes that were deleted, but not by the harness, in order.
    pub fn lost_nodes(&self) -> &[LostNode] {
        &self.lost_nodes
    }

    /// Namespace and name of the Service that is an owner in the cloud, given by its uid, a name made from the uid, or
    /// namespace and name.
    pub fn service_of(&self, owner: &str) -> Option<&str> {
        let is = |uid: &str, name: &str| default_name(uid) == owner || name == owner;
        let named = || self.services.iter().find(|(uid, name)| is(uid, name)).map(|(_, name)| name);
        self.services.get(owner).or_else(named).map(String::as_str)
    }

    /// Explanations for more than one failure, one sentence each, the most important first. `ends_excused`: a check has
    /// judged the exits, and none of them was the CCM's fault.
    pub fn explanations(&self, ends_excused: bool) -> Vec<String> {
        let mut explanations = Vec::new();
        let mut by_replica: BTreeMap<(u32, &str), usize> = BTreeMap::new();
        for end in &self.ends {
            *by_replica.entry((end.lane, &end.replica)).or_default() += 1;
        }
        if !by_replica.is_empty() && !ends_excused {
            let times = |times: usize| if times == 1 { "once".to_owned() } else { format!("{times} times") };
            let one = |((lane, replica), count): ((u32, &str), usize)| {
                format!("replica {replica} {} in cluster {lane}", times(count))
            };
            let each: Vec<String> = by_replica.into_iter().map(one).collect();
            let all = times(self.ends.len());
            explanations.push(format!("the CCM ended {all} by itself: {}", each.join(", ")));
        }
        if self.ownerless > 0 {
            explanations.push(format!(
                "{} of {} load balancers were made without saying which Service they are for",
                self.ownerless, self.created
            ));
        }
        explanations
    }

    fn pods_of(&mut self, lane: u32) -> impl Iterator<Item = &mut Process> {
        self.pods.range_mut((lane, String::new())..(lane + 1, String::new())).map(|(_, pod)| pod)
    }

    fn pod(&mut self, lane: u32, at_ms: u64, change: &ObjectChanged) {
        let key = (lane, change.uid.clone());
        let says = |fact: &str| change.changed.get(fact).and_then(Option::as_ref);
        if change.deleted {
            self.pods.remove(&key);
            return;
        }
        if let Some(replica) = says(REPLICA) {
            self.pods.entry(key.clone()).or_default().replica.clone_from(replica);
        }
        // Pods of other programs have no such label.
        let Some(pod) = self.pods.get_mut(&key) else { return };
        pod.leaving |= says("deletionTimestamp").is_some();
        if let Some(restarts) = says("restarts").and_then(|count| count.parse().ok()) {
            pod.restarts = restarts;
        }
        if let Some(containers) = change.changed.get("containers") {
            pod.containers = containers.clone().unwrap_or_default();
        }
        if let Some(code) = change.changed.get(LAST_EXIT_CODE) {
            pod.last_exit_code.clone_from(code);
        }
        let down = pod.containers.contains("ended with") || pod.containers.contains("CrashLoopBackOff");
        let ends = pod.restarts + u64::from(down);
        let recovers = pod.disturbed_by.is_some() || pod.recovered_ms.is_some_and(|since| at_ms < since);
        if ends > pod.ends && pod.steady && !recovers && !pod.leaving {
            let code = pod.containers.split("ended with ").nth(1).and_then(|text| text.split(',').next());
            let code = code.or(pod.last_exit_code.as_deref()).and_then(|code| code.parse().ok());
            let end = End { lane, replica: pod.replica.clone(), at_ms, code, last_lines: Vec::new() };
            self.ends.extend(std::iter::repeat_n(end, usize::try_from(ends - pod.ends).unwrap_or(1)));
        }
        pod.ends = pod.ends.max(ends);
    }
}

/// The framework's name for a Service's load balancer (k8s.io/cloud-provider cloud.go, DefaultLoadBalancerName).
fn default_name(uid: &str) -> String {
    format!("a{}", uid.replace('-', "")).chars().take(32).collect()
}

impl Observed for LostNode {
    fn observed(&self) -> String {
        self.to_string()
    }
}

impl Observed for End {
    fn observed(&self) -> String {
        match self.last_lines.is_empty() {
            true => self.to_string(),
            false => format!("{self}, its last lines:\n  {}\n", self.last_lines.join("\n  ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::CloudCall;

    /// Events of lane 0, a second apart.
    fn conduct(events: Vec<Payload>) -> ProcessHistory {
        let mut conduct = ProcessHistory::default();
        for (at, event) in (0..).zip(events) {
            conduct.take(&Event { at_ms: at * 1000, lane: Some(0), check: None, event });
        }
        conduct
    }

    fn pod(uid: &str, facts: &[(&str, &str)]) -> Payload {
        let changed = facts.iter().map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned())));
        let [kind, namespace, name, uid] = ["Pod", "kube-system", "ccm-a", uid].map(str::to_owned);
        Payload::ObjectChanged(ObjectChanged {
            kind,
            namespace,
            name,
            uid,
            deleted: false,
            changed: changed.collect(),
        })
    }

    fn begins(uid: &str) -> Payload {
        pod(uid, &[("replica", "a"), ("restarts", "0"), ("containers", "running")])
    }

    fn seconds(conduct: &ProcessHistory) -> Vec<u64> {
        conduct.ends().iter().map(|end| end.at_ms / 1000).collect()
    }

    #[test]
    fn an_end_counts_once_the_ccm_has_led() {
        let restarted = |count: &str| pod("u", &[("restarts", count)]);
        let all = conduct(vec![
            begins("u"),
            restarted("1"),
            Payload::CcmLeads,
            pod("u", &[("containers", "ended with 2")]),
            pod("u", &[("containers", "running"), ("restarts", "2")]),
            restarted("4"),
        ]);
        // The end observed at 3 s is the restart of 4 s.
        assert_eq!(seconds(&all), [3, 5, 5]);
        assert_eq!(all.ends_since(0, 5000).count(), 2);
        assert_eq!(all.ends_since(1, 0).count(), 0);
        assert_eq!(
            all.explanations(false),
            ["the CCM ended 3 times by itself: replica a 3 times in cluster 0"]
        );
        assert!(all.explanations(true).is_empty());
    }

    #[test]
    fn a_crash_is_distinguished_from_a_deliberate_exit() {
        let ended = |text: &str| {
            let events = vec![begins("u"), Payload::CcmLeads, pod("u", &[("containers", text)])];
            conduct(events).ends().iter().map(|end| (end.code, end.is_crash())).collect::<Vec<_>>()
        };
        assert_eq!(ended("ended with 2"), [(Some(2), true)]);
        assert_eq!(ended("ended with 1, running"), [(Some(1), false)]);
        assert_eq!(ended("CrashLoopBackOff"), [(None, false)]);
        let restarted = pod("u", &[("containers", "running"), ("restarts", "1"), (LAST_EXIT_CODE, "139")]);
        // The second end with the same code only changes the count.
        let again = pod("u", &[("restarts", "2")]);
        let all = conduct(vec![begins("u"), Payload::CcmLeads, restarted, again]);
        assert_eq!(all.ends().iter().map(End::is_crash).collect::<Vec<_>>(), [true, true]);
    }

    #[test]
    fn each_end_is_reported_with_its_own_last_output() {
        let ended = |text: &str| pod("u", &[("containers", text)]);
        let said =
            |line: &str| Payload::ReplicaEnded { replica: "a".to_owned(), last_lines: vec![line.to_owned()] };
        let all = conduct(vec![
            begins("u"),
            Payload::CcmLeads,
            ended("ended with 1"),
            said("the Lease is lost"),
            pod("u", &[("containers", "running"), ("restarts", "1")]),
            ended("ended with 255"),
            said("no such cloud"),
            said("of no replica"),
        ]);
        let shown: Vec<String> = all.ends().iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "replica a in cluster 0 at 2.0 s with exit code 1",
                "replica a in cluster 0 at 5.0 s with exit code 255"
            ]
        );
        let lines: Vec<&[String]> = all.ends().iter().map(|end| &*end.last_lines).collect();
        assert_eq!(lines, [["the Lease is lost"], ["no such cloud"]]);
    }

    #[test]
    fn an_end_that_a_check_made_or_a_deletion_does_not_count() {
        let disturbed = || Payload::ReplicaDisturbed { replica: "a".to_owned() };
        let ended = |uid: &str| pod(uid, &[("containers", "ended with 137")]);
        let leaving = pod("u", &[("deletionTimestamp", "now")]);
        assert!(conduct(vec![begins("u"), Payload::CcmLeads, disturbed(), ended("u")]).ends().is_empty());
        assert!(conduct(vec![begins("u"), Payload::CcmLeads, leaving, ended("u")]).ends().is_empty());
        let again = vec![begins("u"), Payload::CcmLeads, disturbed(), Payload::CcmLeads, ended("u")];
        assert_eq!(seconds(&conduct(again)), [4], "it has led again");
        // When the check that disturbed it has ended, and the consequences are over.
        let crashes = |events: Vec<(u64, Option<&str>, Payload)>| {
            let mut conduct = ProcessHistory::default();
            for (at_s, check, event) in events {
                let check = check.map(str::to_owned);
                conduct.take(&Event { at_ms: at_s * 1000, lane: Some(0), check, event });
            }
            seconds(&conduct)
        };
        let check_ended = || Payload::CheckEnded {
            ended: crate::ledger::Outcome::Pass,
            duration_ms: 1,
            budget_used_percent: None,
            facts: BTreeMap::new(),
        };
        let begun = || {
            let leads = (1, None, Payload::CcmLeads);
            vec![
                (0, None, begins("u")),
                leads,
                (2, Some("HA-03"), disturbed()),
                (3, Some("SVC-01"), check_ended()),
            ]
        };
        let then = |at_s| [(9, Some("HA-03"), check_ended()), (at_s, None, ended("u"))];
        assert_eq!(
            crashes(begun().into_iter().chain([(50, None, ended("u"))]).collect()),
            [0; 0],
            "it still runs"
        );
        assert_eq!(crashes(begun().into_iter().chain(then(20)).collect()), [0; 0], "its Lease was lost");
        assert_eq!(crashes(begun().into_iter().chain(then(50)).collect()), [50]);
        assert!(conduct(vec![Payload::CcmLeads, pod("x", &[("restarts", "3")])]).ends().is_empty());
    }

    #[test]
    fn a_node_is_lost_unless_the_harness_takes_it_away_and_then_once() {
        let node = |deleted| {
            let [kind, name, uid] = ["Node", "worker", "u"].map(str::to_owned);
            let (namespace, changed) = (String::new(), BTreeMap::new());
            Payload::ObjectChanged(ObjectChanged { kind, namespace, name, uid, deleted, changed })
        };
        let withdrawn = || Payload::NodesWithdrawn { nodes: vec!["worker".to_owned()] };
        let lost =
            |events| conduct(events).lost_nodes().iter().map(|node| node.at_ms / 1000).collect::<Vec<_>>();
        assert_eq!(lost(vec![node(false), withdrawn(), node(true), node(false)]), [0; 0]);
        assert_eq!(lost(vec![withdrawn(), node(true), node(false), node(true)]), [3]);
        assert_eq!(lost(vec![node(false), node(true)]), [1]);
    }

    #[test]
    fn load_balancers_without_owner_are_an_explanation() {
        let call = |owner: Option<&str>| {
            Payload::CloudCall(CloudCall {
                seq: 1,
                by: None,
                operation: "lb.create".to_owned(),
                request: "POST /lb".to_owned(),
                resource: Some("lb-1".to_owned()),
                owner: owner.map(str::to_owned),
                writes: true,
                took_ms: 1,
                outcome: "201".to_owned(),
            })
        };
        let all = conduct(vec![call(None), call(Some("u"))]);
        let expected = "1 of 2 load balancers were made without saying which Service they are for";
        assert_eq!(all.explanations(false), [expected]);
    }
}
