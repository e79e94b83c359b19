//! Everything that the body of a check needs: `use harness_testkit::prelude::*;`.
//!
//! Additional items for the suites of image credential providers, network proxies and CSI migration are in
//! [`crate::components`], one module each.

pub use crate::matchers::{
    addressed, at_least_one, expected_labels, has_addresses, has_labels, initialised, initialised_as,
    keeps_finalizer, lacks_finalizer, no_other_than, nothing_left, one_active, one_balancer, publishes,
    publishes_nothing, reaches, targets, untouched, waits_to_be_deleted,
};
pub use crate::{
    Account, Balancer, Barrier, Calls, Check, CheckCx, Crash, CsiCall, CsiCluster, CsiMigration, DIAL_LIMIT,
    Destination, EventsOf, Fault, FaultPlan, Frozen, Grant, ImageCredentialProvider, Lease, Loss, Machine,
    MachinePlan, Network, Node, NodePlan, Peer, ProxyProcesses, Pull, Reader, Ready, Replica, Right,
    RouteTrigger, Rule, SecurePort, Service, ServicePlan, StoredVolume, Subject, Suite, Targets, Trial,
    Tried, Way, address, all_stay, answers, as_before, callers, can_be_read, departs, ends, goes_on,
    has_ended, has_no_route, held, holder_of, is_back, is_placed, is_unplaced, is_up, keeps_route, leads_to,
    load_balancer, machine, met_by, no_calls, none, nothing_lost, refused, refuses, runs,
    runs_on_two_machines, serves, shows, shows_nothing, some_calls, started, stays_up, still_runs, taint,
    taken_over, tells, tells_by, tells_of, told_by_none_but, transitions_of, uninitialised, uninitialized,
    unless_it_ends, warns,
};
pub use harness_clouds::{
    Address, Auxiliary, Effect, Entry, Frontend, HealthCheck, Instance, Inventory, LbState, LoadBalancer, Op,
    Outcome, Route, is_nameless,
};
pub use harness_clusters::Asked;
pub use harness_config::Limits;
pub use harness_core::check::{
    Before, Blocker, Body, Capability, CheckError, CheckId, Environment, Facility, Party, SubjectName,
    Verdict, Violation, assert_unique_ids,
};
pub use harness_core::probe::{
    Matcher, Observed, ReadError, ReadSource, Seen, both, gone, holds, matcher, pause, poll, present,
};
pub use harness_core::secrets;
pub use harness_session::k8s::{
    A_NODEIP, B_REGION, B_TYPE, B_ZONE, C_NET, Change, F_LB, L_EXCL, L_REGION, L_TYPE, L_ZONE, T_NOT_READY,
    T_SHUT, T_TO_BE_DELETED, T_UNINIT, Version, addresses, condition, has_taint, ingress, ip_modes, label,
    pod_cidrs, provider_id, ready, show_addresses, taints,
};
