//! Workloads: the parts of a Pod template that decide whether its Pods are created, scheduled, started and can work.

mod adoption;
mod claims;
mod container;
mod controllers;
mod duration;
mod extract;
mod fields;
mod flag_values;
mod flags;
mod go_values;
mod hindrance;
mod host_files;
mod inits;
mod kind;
mod mounts;
mod needed_variables;
mod outside;
mod placement;
mod pods;
mod refs;
mod role;
mod runtime_class;
mod schedule;
mod scripts;
mod selector;
mod spread;
mod sub_path;
mod taint;
mod token;
mod variables;

pub use container::{Container, fixed_image, image_fault};
pub use controllers::Controllers;
pub use duration::seconds;
pub use extract::{class_of, preempts, workloads};
pub use go_values::is_plain;
pub use hindrance::Hindrance;
pub use kind::{DnsPolicy, Role, WorkloadKind, spec_path, template_path};
pub use outside::{Condition, SAFE_SYSCTLS, SPARE};
pub use placement::PodTerm;
pub use pods::Workload;
pub use refs::{Ref, Stage};
pub use role::{CcmDoubt, cloud_controllers};
pub use selector::{Expression, Labels, Operator, Selector, Term, labels};
pub use spread::Spread;
pub use taint::{
    CONTROL_PLANE, MASTER, NETWORK_UNAVAILABLE, NOT_READY, Toleration, UNINITIALIZED, UNREACHABLE, borne,
};
pub use taint::{Effect, Taint};
pub use token::{FOLDER as TOKEN_FOLDER, mounts_token};
pub use variables::{expanded, is_added_label};
