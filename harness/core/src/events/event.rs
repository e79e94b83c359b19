//! The events of a run. Pure data; the form is versioned by [`SCHEMA`].

use crate::check::{Isolation, Level};
use crate::ledger::{Outcome, SkipReason, Subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the form. A reader refuses any other; a new kind of event, or a new field without a default, requires a
/// new version.
pub const SCHEMA: &str = "ccm-conformance/events/v1";

/// One line of `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// The time, in milliseconds since the run began.
    pub at_ms: u64,
    /// The lane whose cluster, cloud and CCM it happened in, from 0; absent for events of the run. Numbers that a cloud
    /// assigns (calls, faults, barriers) are unique within a lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<u32>,
    /// The id of the check that it belongs to; absent for events of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// What happened.
    pub event: Payload,
}

impl Event {
    /// Its line in the file, with the line end.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("an event is plain data") + "\n"
    }

    /// Its type as the stream spells it, e.g. `run-ended`.
    pub fn kind(&self) -> String {
        let value = serde_json::to_value(&self.event).expect("an event is plain data");
        value["type"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether it is a message, the only kind of event that may follow the end of the run.
    pub fn is_message(&self) -> bool {
        matches!(self.event, Payload::Said { .. })
    }
}

/// The first event after the end of the run that is not a message. A run never writes one, so such an event is not from
/// the run.
pub fn after_end(events: &[Event]) -> Option<&Event> {
    let rest = events.iter().skip_while(|event| !matches!(event.event, Payload::RunEnded { .. }));
    rest.skip(1).find(|event| !event.is_message())
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Payload {
    /// The run began; the first event of every stream.
    RunBegan(RunBegan),
    /// A message to the user.
    Said {
        /// The line.
        text: String,
        /// Whether a run that is to be quiet does not show it.
        #[serde(skip)]
        detail: bool,
    },
    /// A stage of creating the environment, judging or cleaning up began.
    StageBegan {
        /// Its name, e.g. `cluster`.
        stage: String,
    },
    /// A stage ended.
    StageEnded {
        /// Its name.
        stage: String,
        /// Wall time, milliseconds.
        took_ms: u64,
        /// Whether it succeeded.
        ok: bool,
    },
    /// The environment could not be created; nothing can be judged.
    EnvironmentFailed {
        /// The reason, with a remedy.
        message: String,
    },
    /// The subject of the run, as far as it is known; a later one replaces an earlier one.
    SubjectKnown(Box<Subject>),
    /// All checks, and whether each runs. A later plan replaces an earlier one: what a cluster cannot show is known only
    /// once it is up.
    ChecksPlanned {
        /// In the order of the report.
        checks: Vec<PlannedCheck>,
    },
    /// A check has started.
    CheckBegan {
        /// The time, RFC 3339.
        started: String,
    },
    /// The environment failed a check, which is judged once more: what happened in it before does not count.
    CheckRepeated {
        /// How the environment failed it.
        why: String,
    },
    /// A check has ended; every check that was to run ends once.
    CheckEnded {
        /// Its outcome.
        ended: Outcome,
        /// Wall time, milliseconds; 0 when it did not run.
        duration_ms: u64,
        /// The largest fraction of a wait's limit that was used, in percent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_used_percent: Option<u32>,
        /// Facts the check recorded, by name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        facts: BTreeMap<String, String>,
    },
    /// A wait for a claim began.
    PromiseBegan(PromiseBegan),
    /// A claim was fulfilled.
    PromiseMet {
        /// The wait's number within its check.
        wait: u32,
        /// How long the check waited, in milliseconds.
        waited_ms: u64,
        /// How often it looked.
        reads: u64,
    },
    /// A claim was violated, or could not be judged.
    PromiseBroken(PromiseBroken),
    /// The CCM leads, with all replicas running: it was deployed, or has recovered from a disturbance.
    CcmLeads,
    /// A check makes a replica's process exit, or may do so.
    ReplicaDisturbed {
        /// The replica.
        replica: String,
    },
    /// A replica's process exited, and no check caused it.
    ReplicaEnded {
        /// The replica.
        replica: String,
        /// Its last log lines, oldest first.
        last_lines: Vec<String>,
    },
    /// The harness is about to delete Nodes of real machines, whose kubelets will register them again.
    NodesWithdrawn {
        /// Their names.
        nodes: Vec<String>,
    },
    /// A watched object changed in a property that checks use.
    ObjectChanged(ObjectChanged),
    /// The CCM called the cloud, and the call has ended.
    CloudCall(CloudCall),
    /// A fault was injected into the cloud.
    FaultInjected {
        /// The cloud's number for it.
        fault: u64,
        /// Which calls it affects, and how.
        what: String,
    },
    /// A fault was cleared.
    FaultCleared {
        /// The cloud's number for it.
        fault: u64,
    },
    /// A barrier was added, at which calls wait.
    BarrierRaised {
        /// The cloud's number for it.
        barrier: u64,
        /// Which calls wait at it.
        what: String,
    },
    /// A barrier was released; the waiting calls continue.
    BarrierReleased {
        /// The cloud's number for it.
        barrier: u64,
    },
    /// Evidence of a failed check was written.
    EvidenceTaken {
        /// The folder, relative to the report.
        folder: String,
    },
    /// All checks are judged. Only messages may follow: written files, the summary, the cleanup.
    RunEnded {
        /// Wall time since the run began, milliseconds.
        duration_ms: u64,
    },
}

/// The head of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunBegan {
    /// [`SCHEMA`].
    pub schema: String,
    /// The time, RFC 3339.
    pub started: String,
    /// Version of the harness.
    pub harness_version: String,
}

/// A check and whether it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedCheck {
    /// Contract id.
    pub id: String,
    /// Suite name.
    pub suite: String,
    /// The claim.
    pub title: String,
    /// The level that applies to this CCM.
    pub level: Level,
    /// How it shares its cluster with others.
    pub sharing: Isolation,
    /// Whether it is a vendor's private check, which is not part of the contract.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// Why it does not run, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Skipped>,
}

/// Why a check does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    /// The kind of reason.
    pub reason: SkipReason,
    /// The reason as text.
    pub detail: String,
}

/// A wait began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromiseBegan {
    /// Number within its check, from 1; a check may have several waits at the same time.
    pub wait: u32,
    /// Its subject, if that is a single thing: kind, name and uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The claim, a sentence.
    pub promise: String,
    /// What fulfils it.
    pub expected: String,
    /// The limit of the wait, or the window in which the claim must hold, in milliseconds.
    pub limit_ms: u64,
    /// Whether it must hold during the whole window, instead of becoming true once within the limit.
    pub throughout: bool,
}

/// A wait that ended without the claim being fulfilled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromiseBroken {
    /// Number within its check.
    pub wait: u32,
    /// Its subject, if that is a single thing: kind, name and uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The claim, a sentence.
    pub promise: String,
    /// What would have fulfilled it.
    pub expected: String,
    /// What was last observed instead; or why it could not be judged.
    pub seen: String,
    /// How long the check waited, in milliseconds.
    pub waited_ms: u64,
    /// How often it looked.
    pub reads: u64,
    /// Whether the CCM violated it; otherwise the environment prevented a judgement.
    pub judged: bool,
}

/// A change of a watched object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectChanged {
    /// Kind, e.g. `Node`.
    pub kind: String,
    /// Namespace; empty for kinds without.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Whether it was deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// The facts that changed, with their new values; `null` for removed ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub changed: BTreeMap<String, Option<String>>,
}

/// A call to the cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CloudCall {
    /// Position in the cloud's journal.
    pub seq: u64,
    /// The credential it was made with, which identifies the replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Its meaning, e.g. `lb.create`.
    pub operation: String,
    /// The request as the cloud received it: method, path and query.
    pub request: String,
    /// The object it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The owner of that object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Whether it changes the cloud.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writes: bool,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// The result: an HTTP status, or why there is none.
    pub outcome: String,
}
