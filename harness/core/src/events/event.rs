//! What can happen in a run. Pure data; the form is versioned by [`SCHEMA`].

use crate::check::{Isolation, Level};
use crate::ledger::{Outcome, SkipReason, Subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The form of the stream. A reader refuses any other; a new kind of event, or a new field without a default, is a new
/// version.
pub const SCHEMA: &str = "ccm-conformance/events/v1";

/// One line of `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// When, in milliseconds since the run began.
    pub at_ms: u64,
    /// The lane whose cluster, cloud and CCM it happened in, from 0; absent for what belongs to the run. Numbers that a
    /// cloud gives (calls, faults, barriers) are unique within a lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<u32>,
    /// The check it belongs to, by id; absent for what belongs to the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// What happened.
    pub event: Payload,
}

impl Event {
    /// Its line in the file, with the line's end.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("an event is plain data") + "\n"
    }

    /// Its type as the stream spells it, e.g. `run-ended`.
    pub fn kind(&self) -> String {
        let value = serde_json::to_value(&self.event).expect("an event is plain data");
        value["type"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether it is a message, the only event that may follow the end of the run.
    pub fn is_message(&self) -> bool {
        matches!(self.event, Payload::Said { .. })
    }
}

/// The first event after the end of the run that is not a message. A run writes none, and what it says is not the run's.
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
    /// Something was said to the person who waits.
    Said {
        /// The line.
        text: String,
    },
    /// A stage of bringing the environment up, judging or taking it down began.
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
        /// Whether it did what it is for.
        ok: bool,
    },
    /// The environment did not come up; nothing can be judged.
    EnvironmentFailed {
        /// Why, with the way out.
        message: String,
    },
    /// What is tested, as far as it is known now; a later one takes the place of an earlier one.
    SubjectKnown(Box<Subject>),
    /// Every check there is, and whether it runs. A later plan takes the place of an earlier one: what a cluster cannot
    /// show is known only once it is up.
    ChecksPlanned {
        /// In the order of the report.
        checks: Vec<PlannedCheck>,
    },
    /// A check has its turn.
    CheckBegan {
        /// When, RFC 3339.
        started: String,
    },
    /// A check has ended; every check that was to run ends once.
    CheckEnded {
        /// How.
        ended: Outcome,
        /// Wall time, milliseconds; 0 when it did not run.
        duration_ms: u64,
        /// The longest share of a wait's limit that was used, percent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_used_percent: Option<u32>,
        /// Facts the check recorded, by name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        facts: BTreeMap<String, String>,
    },
    /// A wait on a promise began.
    PromiseBegan(PromiseBegan),
    /// A promise was kept.
    PromiseMet {
        /// The wait's number within its check.
        wait: u32,
        /// How long it was waited for, milliseconds.
        waited_ms: u64,
        /// How often was looked.
        reads: u64,
    },
    /// A promise was broken, or could not be judged.
    PromiseBroken(PromiseBroken),
    /// The CCM leads, with every replica running: deployed, or back after a disturbance.
    CcmLeads,
    /// A check makes a replica's process end, or may.
    ReplicaDisturbed {
        /// The replica.
        replica: String,
    },
    /// A replica's process has ended, and no check made it.
    ReplicaEnded {
        /// The replica.
        replica: String,
        /// The last lines that it wrote, oldest first.
        last_lines: Vec<String>,
    },
    /// The harness is about to delete Nodes of real machines, whose kubelets will register them anew.
    NodesWithdrawn {
        /// Their names.
        nodes: Vec<String>,
    },
    /// A watched object changed in something that checks look at.
    ObjectChanged(ObjectChanged),
    /// The CCM called the cloud, and the call has ended.
    CloudCall(CloudCall),
    /// A fault is in force in the cloud.
    FaultInjected {
        /// The cloud's number for it.
        fault: u64,
        /// What calls meet it, and what they meet.
        what: String,
    },
    /// A fault was ended.
    FaultCleared {
        /// The cloud's number for it.
        fault: u64,
    },
    /// Calls wait at a barrier from now on.
    BarrierRaised {
        /// The cloud's number for it.
        barrier: u64,
        /// What calls wait at it.
        what: String,
    },
    /// A barrier is gone; what waited goes on.
    BarrierReleased {
        /// The cloud's number for it.
        barrier: u64,
    },
    /// Evidence of a failed check was written.
    EvidenceTaken {
        /// The folder, relative to the report.
        folder: String,
    },
    /// The judging is over. Only messages may follow: what was written, the summary, the taking down.
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
    /// When, RFC 3339.
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
    /// How it binds this CCM.
    pub level: Level,
    /// How it runs beside others.
    pub sharing: Isolation,
    /// Whether it is a vendor's own, and not of the contract.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// Why it does not run, where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Skipped>,
}

/// Why a check does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    /// The kind of reason.
    pub reason: SkipReason,
    /// In words.
    pub detail: String,
}

/// A wait began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromiseBegan {
    /// Number within its check, from 1; several waits of one check may be under way.
    pub wait: u32,
    /// What it is about, where that is one thing: kind, name and uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The promise, a sentence.
    pub promise: String,
    /// What fulfils it.
    pub expected: String,
    /// The longest wait, or the window in which it has to hold, milliseconds.
    pub limit_ms: u64,
    /// Whether it has to hold throughout the window, rather than come true once within the limit.
    pub throughout: bool,
}

/// A wait ended without its promise kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromiseBroken {
    /// Number within its check.
    pub wait: u32,
    /// What it is about, where that is one thing: kind, name and uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The promise, a sentence.
    pub promise: String,
    /// What would have fulfilled it.
    pub expected: String,
    /// What was last seen instead; or why it could not be judged.
    pub seen: String,
    /// How long was waited, milliseconds.
    pub waited_ms: u64,
    /// How often was looked.
    pub reads: u64,
    /// Whether the CCM broke it; else the environment kept it from being judged.
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
    /// Whether it is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// The facts that are others than before, with their new values; `null` for what is no longer there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub changed: BTreeMap<String, Option<String>>,
}

/// A call to the cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CloudCall {
    /// Position in the cloud's journal.
    pub seq: u64,
    /// Whose credential it was made with: the replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What it means, e.g. `lb.create`.
    pub operation: String,
    /// As the cloud received it: method, path and query.
    pub request: String,
    /// The object it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Whom that object belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Whether it changes the cloud.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writes: bool,
    /// How long it took, milliseconds.
    pub took_ms: u64,
    /// What became of it: an HTTP status, or why there is none.
    pub outcome: String,
}
