//! Kubelets in this process: the machines of a cluster, the Node of each, and its Pods.
//!
//! Pods whose image stands for a program of this machine run as operating system processes; all others are
//! simulated. The README of `embedded-controllers` describes what is modelled and what is not.

mod handles;
mod nodes;
mod pods;

pub use handles::{ContainerSignal, NoSuch, Nodes, Pods};
pub use nodes::fleet::{MachineState, Power};
pub use pods::logs::{LogLine, LogReader};
pub use pods::manager::PodsError;
pub use pods::obstacle::Obstacle;
pub use pods::sandbox::{Confinement, confinement};
