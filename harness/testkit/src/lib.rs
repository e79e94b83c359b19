//! The tools for the body of a check.
//!
//! A file of checks begins with `use harness_testkit::prelude::*;` and needs nothing else of the harness. A body receives
//! a [`CheckCx`]; everything that it creates through it is undone when the check ends, in reverse order, whatever the
//! outcome.

pub mod evidence;
pub mod prelude;

mod aborted;
mod account;
mod additional_replicas;
mod api_requests;
mod boot;
mod calls;
mod canary;
mod cloud;
mod cold;
mod context;
mod continuity;
mod crash;
mod credential;
mod deadlock;
mod departure;
mod events;
mod faults;
mod foreign_balancers;
mod heartbeat;
mod hosts;
mod lease;
mod lists;
mod logs;
mod machines;
mod manifests;
pub mod matchers;
mod met_faults;
mod namespaces;
mod network;
mod node_plan;
mod nodes;
mod part_way;
mod port;
mod reach;
mod reader;
mod releases;
mod replicas;
mod rights;
mod routes;
mod services;
mod serving;
mod step_down;
mod subject;
mod taints;
mod trial;
mod tried;
mod undo;
mod undo_steps;
mod unmet_faults;
mod versions;
mod watches;
mod whole_run;

pub use account::Account;
pub use boot::{Boot, BootOf, started, still_runs, uninitialised};
pub use calls::{Calls, callers, no_calls, some_calls};
pub use canary::{Canary, is_placed, is_unplaced};
pub use cloud::Cloud;
pub use cold::Cold;
pub use context::CheckCx;
pub use continuity::{Losses, nothing_lost};
pub use credential::Replaceable;
pub use departure::{Departed, Departure, departs};
pub use events::{EventsOf, reported_only_by, tells, tells_by, tells_of, warns};
pub use faults::{Barrier, Fault, FaultPlan, Target, met_by};
pub use harness_config::{AnnotationEffect, RouteTrigger, Targets};
pub use harness_session::{Crash, Network, Rule};
pub use hosts::{Host, Loss, runs_on_two_machines};
pub use lease::{Lease, StolenLease, held, holder_of, taken_over, transitions_of};
pub use logs::{Log, LogRead, can_be_read};
pub use machines::{Machine, MachinePlan, address, machine};
pub use namespaces::OwnNamespace;
pub use node_plan::{NodePlan, Ready, taint, uninitialized};
pub use nodes::Node;
pub use part_way::{begun, failing};
pub use port::{Answer, Page, SecurePort, answers, refused, serves, shows, shows_nothing};
pub use reach::{Frozen, Partition};
pub use reader::Reader;
pub use releases::{Rolled, Rollout, rolled_out};
pub use replicas::{End, Process, Replica, ends, is_back, runs, stays_up};
pub use rights::{Grant, Right};
pub use routes::{Destination, has_no_route, keeps_route, leads_to};
pub use services::{Balancer, Service, ServicePlan, load_balancer};
pub use step_down::StepDown;
pub use subject::{Subject, Wait};
pub use trial::Trial;
pub use tried::{Tried, has_ended, is_up, keeps_running, refuses, unless_it_ends};
pub use undo_steps::UndoStep;
pub use versions::OwnMachine;
pub use watches::Interruption;
pub use whole_run::{Ends, LeftObjects, Leftovers, OwnNodes, all_stay, as_before, none};

use harness_core::check::{Check as CheckOf, Suite as SuiteOf};

/// A check as suites write it.
///
/// ```
/// use harness_testkit::prelude::*;
///
/// const CHECKS: &[Check] = &[Check::of("NODE-INIT-01", |cx| Box::pin(removes_its_taint(cx)))
///     .needs(&[Capability::Instances])];
///
/// async fn removes_its_taint(cx: &CheckCx) -> Verdict {
///     let machine = cx.machine(machine("a")).await?;
///     let node = cx.node(machine.node()).await?;
///     node.becomes(initialised()).await.map(drop)
/// }
/// ```
pub type Check = CheckOf<CheckCx>;
/// A suite as suites write it.
///
/// ```
/// use harness_testkit::prelude::*;
///
/// # const CHECKS: &[Check] = &[];
/// const SUITE: Suite = Suite {
///     name: "acme",
///     proves: "labels of Acme mean what its handbook says",
///     judges: Party::Ccm,
///     tables: &[CHECKS],
/// };
/// ```
pub type Suite = SuiteOf<CheckCx>;
