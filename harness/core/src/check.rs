//! The definition of checks: data, and an async body.
//!
//! It is independent of clusters, clouds and clocks. The body's context is a type parameter, which the testkit fills in.

mod capability;
mod claim;
mod facility;
mod id;
mod level;
mod named;
mod of_the_cloud;
mod party;
mod since;
mod suite;
mod time;
mod verdict;

pub use capability::Capability;
pub use claim::Claim;
pub use facility::{Facilities, Facility};
pub use id::{CheckId, label_of, row_of};
pub use level::Level;
pub use party::Party;
pub use since::{Before, Since};
pub use suite::{Suite, assert_unique_ids};
pub use verdict::{Blocker, CheckError, SubjectName, Verdict, Violation, chain};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::pin::Pin;

/// The facilities of the cloud that a check needs if it creates machines and examines the CCM's resources.
const SEEN: &[Facility] = &[Facility::Machines, Facility::Inventory];

/// How a check is isolated from others (contract TEST-05). Reports and event streams call it `sharing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Isolation {
    /// Uses only its own objects, and runs at the same time as any number of others.
    #[serde(rename = "shared")]
    Shared,
    /// Watches the leader crash: prepares while others run, then waits for the crash together with all others that watch
    /// it.
    #[serde(rename = "joint")]
    SharedCrash,
    /// Waits for what a busy CCM does late, such as Events. Runs only at the same time as checks of the same kind.
    #[serde(rename = "calm")]
    Quiet,
    /// Disturbs the CCM or the whole cluster, and runs alone.
    #[serde(rename = "exclusive")]
    Alone,
    /// Needs a cluster that no CCM has touched yet, or on which only its own CCM works. Runs alone and first.
    #[serde(rename = "cold")]
    FreshCluster,
    /// Judges the whole run, in all environments. Runs when all others have ended.
    #[serde(rename = "standing")]
    AfterTheRun,
    /// Needs neither cluster nor CCM, and runs at any time.
    #[serde(rename = "apart")]
    NoCluster,
    /// Has its own cluster and cloud, which are created for it and removed with it. Runs at any time; with real kubelets,
    /// when all others have ended.
    #[serde(rename = "own")]
    DedicatedCluster,
}

/// How a check's own environment differs from the run's.
///
/// ```
/// # use harness_core::check::*; struct Cx; async fn body(_: &Cx) -> Verdict { Ok(()) }
/// const CHECK: Check<Cx> =
///     Check::own("ACME-LB-01", "restricts clients", "Acme handbook", |cx| Box::pin(body(cx)))
///         .in_a_dedicated_cluster(Environment::TwoWorkers);
/// assert!(CHECK.environment.is_some());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Environment {
    /// It has two machines in addition to those of its control plane.
    TwoWorkers,
    /// Its Kubernetes is behind that of the run, and it has two machines in addition to those of its control plane.
    Earlier {
        /// By how many minor versions.
        minors: u32,
    },
    /// Its kubelets report no addresses (`--node-ip`), and request their serving certificates from the cluster.
    ServingCertificates,
}

/// A field or behaviour that the API server must have; without it the check is 'not observable'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Served {
    /// All Kubernetes versions that the harness supports have it.
    Always,
    /// Present from this minor version of Kubernetes 1 on.
    Since {
        /// The minor version, e.g. 21 for Kubernetes 1.21.
        minor: u32,
        /// The field or behaviour, e.g. `Service spec.loadBalancerClass`.
        what: &'static str,
    },
}

/// The future that a check's body returns. Bodies run on their own thread, so it need not be `Send`.
///
/// ```
/// # use harness_core::check::{Body, Verdict}; struct Cx;
/// async fn handles_status(_: &Cx, status: u16) -> Verdict {
///     Ok(())
/// }
/// const STATUSES: [u16; 2] = [404, 503];
/// // The function that `Check::row` gets for each row of a table.
/// let run: for<'a> fn(&'a Cx, usize) -> Body<'a> = |cx, at| Box::pin(handles_status(cx, STATUSES[at]));
/// ```
pub type Body<'a> = Pin<Box<dyn Future<Output = Verdict> + 'a>>;

/// The code of a check.
pub enum Run<Cx: 'static> {
    /// A separate body.
    Body(for<'a> fn(&'a Cx) -> Body<'a>),
    /// A common body for all rows of a table, and the index of this check's row.
    Row(for<'a> fn(&'a Cx, usize) -> Body<'a>, usize),
}

impl<Cx> Clone for Run<Cx> {
    fn clone(&self) -> Run<Cx> {
        *self
    }
}

impl<Cx> Copy for Run<Cx> {}

/// One claim of the contract, and the body that judges it.
pub struct Check<Cx: 'static> {
    /// The contract's id, or that of one claim of a contract row. Unique and never changed.
    pub id: CheckId,
    /// What it claims.
    pub claim: Claim,
    /// How it is isolated from others.
    pub isolation: Isolation,
    /// The properties of its own environment, with [`Isolation::DedicatedCluster`].
    pub environment: Option<Environment>,
    /// What the CCM must declare.
    pub needs: &'static [Capability],
    /// What it must not declare.
    pub lacks: &'static [Capability],
    /// The facilities that the environment must have.
    pub facilities: Facilities,
    /// Whether it makes calls wait for longer than a client does.
    pub hangs: bool,
    /// What the API server must serve.
    pub served: Served,
    /// Whether it blocks a loop of the CCM that processes all objects one after the other, however many workers there
    /// are.
    pub holds_up: bool,
    /// The row next to whose claims it may run if it may not run next to unrelated checks; `None`: its own.
    pub next_to: Option<&'static str>,
    /// The minimum wall time of a passing run in seconds, if a quiet window or back-off requires one; otherwise 0. Long
    /// checks are started first.
    pub takes_s: u32,
    /// The same with real machines, if that is more: API servers restart, and kubelets restart a CCM.
    pub takes_on_machines_s: u32,
    /// Whether it takes as long as the run's soak time, and is only part of runs with one.
    pub soaks: bool,
    /// Whether it judges an upgrade, and is only part of runs that name an old release.
    pub upgrades: bool,
    /// Whether it depends only on what is written: then neither a slow machine nor a restarting CCM excuses what it finds
    /// without waiting.
    pub timeless: bool,
    /// The code.
    pub run: Run<Cx>,
}

impl<Cx> Clone for Check<Cx> {
    fn clone(&self) -> Check<Cx> {
        *self
    }
}

impl<Cx> Copy for Check<Cx> {}

impl<Cx: 'static> Check<Cx> {
    /// The check of the contract's claim with this id. It shares the cluster and needs a cloud's machines and inventory;
    /// each method changes one property.
    ///
    /// # Panics
    /// When the contract has no such claim. In a table of checks that is a compile error.
    pub const fn of(id: &'static str, run: for<'a> fn(&'a Cx) -> Body<'a>) -> Check<Cx> {
        let id = CheckId::new(id);
        Check::new(id, Claim::of(&id), Run::Body(run))
    }

    /// Like [`Check::of`], for one row of a table: `run` gets the row's index.
    ///
    /// # Panics
    /// Like [`Check::of`].
    pub const fn row(id: CheckId, run: for<'a> fn(&'a Cx, usize) -> Body<'a>, row: usize) -> Check<Cx> {
        Check::new(id, Claim::of(&id), Run::Row(run, row))
    }

    /// A MUST that is not part of the contract, such as a vendor's private check for its own CCM. Begin its id with the
    /// vendor's name, which no row of the contract does: `ACME-LABEL-01`.
    pub const fn own(
        id: &'static str,
        title: &'static str,
        source: &'static str,
        run: for<'a> fn(&'a Cx) -> Body<'a>,
    ) -> Check<Cx> {
        let claim =
            Claim { check: id, title, level: Level::Must, framework_only: false, since: None, source };
        Check::new(CheckId::new(id), claim, Run::Body(run))
    }

    const fn new(id: CheckId, claim: Claim, run: Run<Cx>) -> Check<Cx> {
        Check {
            id,
            claim,
            isolation: Isolation::Shared,
            environment: None,
            needs: &[],
            lacks: &[],
            facilities: Facilities::of(SEEN),
            hangs: false,
            served: Served::Always,
            holds_up: false,
            next_to: None,
            takes_s: 0,
            takes_on_machines_s: 0,
            soaks: false,
            upgrades: false,
            timeless: false,
            run,
        }
    }

    /// Applies to CCMs that declare these capabilities.
    pub const fn needs(mut self, needs: &'static [Capability]) -> Check<Cx> {
        self.needs = needs;
        self
    }

    /// Applies to CCMs that declare none of these: for them, any of it would be too much.
    pub const fn lacks(mut self, lacks: &'static [Capability]) -> Check<Cx> {
        self.lacks = lacks;
        self
    }

    /// Sets the level of a check that is not part of the contract.
    pub const fn binds(mut self, level: Level) -> Check<Cx> {
        self.claim.level = level;
        self
    }

    /// Also needs these facilities.
    pub const fn with(mut self, more: &[Facility]) -> Check<Cx> {
        self.facilities = self.facilities.and(more);
        self
    }

    /// Needs neither cluster nor CCM.
    pub const fn without_a_cluster(mut self) -> Check<Cx> {
        self.isolation = Isolation::NoCluster;
        self.facilities = Facilities::of(&[]);
        self
    }

    /// Needs a kubelet that runs the image credential provider under test, and no CCM; runs alone.
    pub const fn by_a_kubelet(mut self) -> Check<Cx> {
        self.isolation = Isolation::FreshCluster;
        self.facilities = Facilities::of(&[Facility::ImageCredentials]);
        self
    }

    /// Needs an API server that reaches its Nodes through the network proxy under test, and no CCM; runs alone.
    pub const fn through_the_proxy(mut self) -> Check<Cx> {
        self.isolation = Isolation::FreshCluster;
        self.facilities = Facilities::of(&[Facility::NetworkProxy]);
        self
    }

    /// Needs kubelets with the CSI drivers under test, and no CCM; runs next to others that do.
    pub const fn with_csi_drivers(mut self) -> Check<Cx> {
        self.isolation = Isolation::NoCluster;
        self.facilities = Facilities::of(&[Facility::CsiDrivers]);
        self.served_since(33, "the migration of all seven in-tree plugins")
    }

    /// Runs in its own environment: a cluster with these properties that no CCM has touched, and a cloud.
    pub const fn in_a_dedicated_cluster(mut self, environment: Environment) -> Check<Cx> {
        self.isolation = Isolation::DedicatedCluster;
        self.environment = Some(environment);
        self.with(&[Facility::OwnEnvironment])
    }

    /// Runs alone.
    pub const fn alone(mut self) -> Check<Cx> {
        self.isolation = Isolation::Alone;
        self
    }

    /// Waits for what a busy CCM delays: runs only next to others that do.
    pub const fn in_quiet(mut self) -> Check<Cx> {
        self.isolation = Isolation::Quiet;
        self
    }

    /// Whether it keeps workers of the CCM or its client busy for other checks too: it makes calls fail, hang or wait. It
    /// then runs next to unrelated checks only if the CCM has workers for all of them.
    pub const fn disturbs(&self) -> bool {
        self.facilities.contains(Facility::Faults) || self.facilities.contains(Facility::Barriers)
    }

    /// Blocks a loop of the CCM that processes all objects one after the other: it never runs next to unrelated checks.
    pub const fn holds_up_a_loop(mut self) -> Check<Cx> {
        self.holds_up = true;
        self
    }

    /// Runs next to the claims of another row if it may not run next to unrelated checks: they block the same loop in the
    /// same way.
    pub const fn next_to_claims_of(mut self, row: &'static str) -> Check<Cx> {
        self.next_to = Some(row);
        self
    }

    /// Makes calls wait for longer than a client does. If the CCM has no spare workers, not even claims of the same row
    /// run next to it; if it has, other checks with hanging calls do.
    pub const fn hanging(mut self) -> Check<Cx> {
        self.hangs = true;
        self
    }

    /// Watches the leader crash, together with others that do; the leader is found by its calls.
    pub const fn at_the_crash(mut self) -> Check<Cx> {
        self.isolation = Isolation::SharedCrash;
        self.by_calls()
    }

    /// Runs alone, on a cluster on which no CCM works when it begins.
    pub const fn on_a_fresh_cluster(mut self) -> Check<Cx> {
        self.isolation = Isolation::FreshCluster;
        self
    }

    /// Judges the whole run, when all other checks of all lanes have ended.
    pub const fn after_the_run(mut self) -> Check<Cx> {
        self.isolation = Isolation::AfterTheRun;
        self
    }

    /// Whether it is not part of the contract: its result is reported separately, and has no effect on the verdict.
    pub fn is_private(&self) -> bool {
        Claim::find(&self.id).is_none()
    }

    /// Runs the body.
    pub fn body<'a>(&self, cx: &'a Cx) -> Body<'a> {
        match self.run {
            Run::Body(run) => run(cx),
            Run::Row(run, row) => run(cx, row),
        }
    }
}
