//! The components that turn an API server into a cluster: kubelets, the scheduler and the controllers, in
//! this process.
//!
//! All components use [`kube::Client`], so it works with any API server. Pods whose image stands for a
//! program of this machine run as operating system processes; all others are simulated. The crate's README
//! describes what is modelled and what is not.

mod cluster;
mod lifecycle;
mod running;
mod scheduler;
mod workloads;

pub use embedded_kubelet::{
    Confinement, ContainerSignal, LogLine, LogReader, MachineState, NoSuch, Nodes, Obstacle, Pods, PodsError,
    Power, confinement,
};
pub use embedded_runtime::clients::Clients;
pub use embedded_runtime::settings::{
    Bounds, CloudProvider, Controller, Dns, KubernetesVersion, Mounts, NodeSpec, NodeTaint, Pace, PodCidrs,
    PodNetwork, PodRange, Program, Resources, ServiceVip, ServingCertificate, Settings, Share,
};
pub use running::{Controllers, Running, StartError};
