//! Workloads: the parts of a Pod template that decide whether its Pods are created, scheduled, started and can work.

mod container;
mod extract;
mod fields;
mod hindrance;
mod kind;
mod outside;
mod placement;
mod pods;
mod refs;
mod role;
mod runtime_class;
mod selector;
mod sub_path;
mod taint;
mod token;
mod variables;

pub(crate) use container::{Container, fixed_image, image_fault};
pub(crate) use extract::workloads;
pub(crate) use hindrance::Hindrance;
pub(crate) use kind::{DnsPolicy, Role, WorkloadKind, spec_path, template_path};
pub(crate) use outside::{Condition, SAFE_SYSCTLS, SPARE};
pub(crate) use placement::PodTerm;
pub(crate) use pods::Workload;
pub(crate) use refs::{Ref, Stage};
pub(crate) use role::{CcmDoubt, cloud_controllers};
pub(crate) use selector::{Expression, Labels, Operator, Selector, Term, labels};
pub(crate) use taint::{
    CONTROL_PLANE, MASTER, NETWORK_UNAVAILABLE, NOT_READY, Toleration, UNINITIALIZED, UNREACHABLE, borne,
};
pub use taint::{Effect, Taint};
pub(crate) use token::{FOLDER as TOKEN_FOLDER, mounts_token};
