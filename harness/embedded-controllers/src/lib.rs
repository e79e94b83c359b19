//! What makes an API server a cluster: kubelets, the scheduler and the controllers, in this process.
//!
//! Everything speaks through [`kube::Client`], so it works with any API server. Pods whose image stands for a program
//! of this machine run as operating system processes; all others are simulated. What is modelled and what is not
//! stands in the crate's README.

mod cache;
mod clients;
mod cluster;
mod events;
mod handles;
mod lifecycle;
mod nodes;
mod pods;
mod quantities;
mod queue;
mod running;
mod scheduler;
mod selectors;
mod settings;
mod taints;
mod tasks;
mod workloads;
mod world;
mod writing;

pub use clients::Clients;
pub use handles::{ContainerSignal, NoSuch, Nodes, Pods};
pub use nodes::fleet::{MachineState, Power};
pub use pods::logs::{LogLine, LogReader};
pub use pods::manager::PodsError;
pub use pods::obstacle::Obstacle;
pub use pods::sandbox::{Confinement, confinement};
pub use running::{Controllers, Running, StartError};
pub use settings::{
    Bounds, CloudProvider, Controller, Dns, KubernetesVersion, Mounts, NodeSpec, NodeTaint, Pace, PodCidrs,
    PodNetwork, PodRange, Program, Resources, ServiceVip, ServingCertificate, Settings, Share,
};
