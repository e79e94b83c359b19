//! What a check is: data first, one async body second.
//!
//! Knows no cluster, no cloud and no clock. The body's context is a type parameter, filled in by [`crate::cx`].

use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// How binding a requirement is, after RFC 2119 (contract section 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// Failing it makes the CCM not conformant.
    Must,
    /// Failing it is reported and does not change the verdict.
    Should,
    /// Recorded, never failed.
    Info,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::Must => "MUST",
            Level::Should => "SHOULD",
            Level::Info => "INFO",
        })
    }
}

/// What a CCM must declare before a check applies to it (contract section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Instances or InstancesV2: it initialises nodes.
    Instances,
    /// Zones and regions are reported.
    Zones,
    /// It provisions load balancers.
    LoadBalancer,
    /// It programs routes.
    Routes,
    /// It runs with leader election and two or more replicas.
    LeaderElection,
    /// Nodes and Services with both IP families.
    DualStack,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Capability::Instances => "instances",
            Capability::Zones => "zones",
            Capability::LoadBalancer => "load-balancer",
            Capability::Routes => "routes",
            Capability::LeaderElection => "leader-election",
            Capability::DualStack => "dual-stack",
        })
    }
}

/// What the machinery around the CCM must be able to do; where it cannot, the check is 'not observable'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Facility {
    /// The fake cloud's faults, barriers and journal.
    CloudControl,
    /// The harness deploys, restarts and removes the CCM itself.
    CcmControl,
    /// A CCM process can be killed, frozen and thawed inside its node.
    ProcessControl,
    /// A real kubelet can be restarted so that its Node registers anew.
    KubeletControl,
    /// The pod network can be absent or present as the check wants it.
    PodNetworkControl,
    /// A machine can be switched off and on.
    NodeControl,
    /// A machine can be cut off from the API server and from the cloud.
    LinkControl,
    /// The CCM boots on the cluster that it initialises, not beside a control plane elsewhere.
    BootsInside,
}

impl fmt::Display for Facility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Facility::CloudControl => "cloud-control",
            Facility::CcmControl => "ccm-control",
            Facility::ProcessControl => "process-control",
            Facility::KubeletControl => "kubelet-control",
            Facility::PodNetworkControl => "pod-network-control",
            Facility::NodeControl => "node-control",
            Facility::LinkControl => "link-control",
            Facility::BootsInside => "boots-inside",
        })
    }
}

/// What a check does to others that run beside it (contract TEST-05).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Touches only objects of its own; runs beside any number of others.
    Shared,
    /// Watches the leader crash: prepares beside others, then is alone with those that watch the same crash.
    Joint,
    /// Disturbs the CCM or the whole cluster; runs alone.
    Exclusive,
    /// Needs a cluster that no CCM has touched yet; runs alone and first.
    Cold,
}

/// A field or behaviour the API server must have; older ones make the check 'not observable'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Served {
    /// Every Kubernetes version the harness supports has it.
    Always,
    /// Present from this minor version of Kubernetes 1 on.
    Since {
        /// The minor version, e.g. 21 for Kubernetes 1.21.
        minor: u32,
        /// What it is, e.g. `Service spec.loadBalancerClass`.
        what: &'static str,
    },
}

/// The future a check's body returns. Bodies run on their own thread, so it need not be `Send`.
pub type Body<'a> = Pin<Box<dyn Future<Output = Verdict> + 'a>>;

/// One requirement of the contract, judged by one body.
pub struct Check<Cx: 'static> {
    /// The contract's id, e.g. `NODE-INIT-01`. Unique and stable for ever.
    pub id: &'static str,
    /// The claim, in the present tense.
    pub title: &'static str,
    /// How binding it is.
    pub level: Level,
    /// Exact strings or timings that bind only CCMs declaring the framework profile (the contract's dagger);
    /// for others a MUST becomes a SHOULD.
    pub framework_only: bool,
    /// How it gets along with others.
    pub sharing: Sharing,
    /// What the CCM must declare.
    pub needs: &'static [Capability],
    /// What the machinery must be able to do.
    pub facilities: &'static [Facility],
    /// What the API server must serve.
    pub served: Served,
    /// Where the requirement comes from.
    pub source: &'static str,
    /// The least wall time a passing run takes, seconds, where a quiet window or back-off dictates one; else 0.
    /// Long checks are started first.
    pub takes_s: u32,
    /// The body.
    pub run: for<'a> fn(&'a Cx) -> Body<'a>,
}

impl<Cx: 'static> Check<Cx> {
    /// A MUST that shares the cluster, needs a fake cloud it can steer, and nothing else. The other constructors
    /// change one thing each.
    pub const fn must(
        id: &'static str,
        title: &'static str,
        source: &'static str,
        run: for<'a> fn(&'a Cx) -> Body<'a>,
    ) -> Check<Cx> {
        Check {
            id,
            title,
            level: Level::Must,
            framework_only: false,
            sharing: Sharing::Shared,
            needs: &[],
            facilities: &[Facility::CloudControl],
            served: Served::Always,
            source,
            takes_s: 0,
            run,
        }
    }

    /// Applies to CCMs that declare these capabilities.
    pub const fn needs(mut self, needs: &'static [Capability]) -> Check<Cx> {
        self.needs = needs;
        self
    }

    /// Binds only CCMs of the framework profile (the contract's dagger).
    pub const fn of_the_framework(mut self) -> Check<Cx> {
        self.framework_only = true;
        self
    }

    /// Needs this machinery.
    pub const fn with(mut self, facilities: &'static [Facility]) -> Check<Cx> {
        self.facilities = facilities;
        self
    }

    /// Runs alone.
    pub const fn alone(mut self) -> Check<Cx> {
        self.sharing = Sharing::Exclusive;
        self
    }

    /// Watches the leader crash, together with others that do.
    pub const fn at_the_crash(mut self) -> Check<Cx> {
        self.sharing = Sharing::Joint;
        self
    }

    /// Runs alone, on a cluster no CCM has touched yet.
    pub const fn cold(mut self) -> Check<Cx> {
        self.sharing = Sharing::Cold;
        self
    }

    /// Needs an API server of this minor version.
    pub const fn served_since(mut self, minor: u32, what: &'static str) -> Check<Cx> {
        self.served = Served::Since { minor, what };
        self
    }

    /// Takes at least so many seconds when it passes.
    pub const fn takes(mut self, seconds: u32) -> Check<Cx> {
        self.takes_s = seconds;
        self
    }
}

/// A named group of checks, in the user's words.
pub struct Suite<Cx: 'static> {
    /// Name for `--suite` and the first part of a test's name, e.g. `taint-removal`.
    pub name: &'static str,
    /// What the suite proves, one sentence.
    pub proves: &'static str,
    /// Its checks.
    pub checks: &'static [Check<Cx>],
}

/// What a body returns: `Ok` when the claim holds.
pub type Verdict = Result<(), Stop>;

/// Why a body stopped before its end.
#[derive(Clone, Debug)]
pub enum Stop {
    /// The CCM broke the promise: a failure.
    Unmet(Box<Unmet>),
    /// The machinery failed: an environment error, never the CCM's fault.
    Error(String),
    /// This cluster or cloud cannot show it.
    NotObservable(String),
}

impl Stop {
    /// A failure found outside a wait, in the same form as one found inside.
    pub fn unmet(promise: impl Into<String>, expected: impl Into<String>, seen: impl Into<String>) -> Stop {
        Stop::Unmet(Box::new(Unmet {
            promise: promise.into(),
            expected: expected.into(),
            seen: seen.into(),
            waited: None,
            explained: None,
        }))
    }
}

impl<E: std::error::Error + 'static> From<E> for Stop {
    /// Outside a wait an error is the machinery's, with its whole chain of causes.
    fn from(error: E) -> Stop {
        Stop::Error(chain(&error))
    }
}

/// An error and its causes in one line, each cause once.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = words(error);
    let mut cause = error.source();
    while let Some(next) = cause {
        let words = words(next);
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = next.source();
    }
    text
}

/// An error's own text. kube appends the whole status as a debug dump to what the API server said; that is cut off.
fn words(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (Status {") {
        Some((said, _)) => said.replace("ApiError: ", "the API server: "),
        None => text,
    }
}

/// A broken promise: what was promised, expected and seen, and for how long it was waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// The promise, a sentence.
    pub promise: String,
    /// What would have fulfilled it.
    pub expected: String,
    /// What was there instead.
    pub seen: String,
    /// How long and how often was looked; `None` when the promise was judged from what had happened already.
    pub waited: Option<String>,
    /// Why it may be so, where that can be told; several lines.
    pub explained: Option<String>,
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "promise:   {}", self.promise)?;
        writeln!(f, "expected:  {}", self.expected)?;
        write!(f, "last seen: {}", self.seen)?;
        if let Some(waited) = &self.waited {
            write!(f, "\nwaited:    {waited}")?;
        }
        match &self.explained {
            Some(explained) => write!(f, "\nexplained:\n{}", explained.trim_end()),
            None => Ok(()),
        }
    }
}
