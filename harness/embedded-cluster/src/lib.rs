//! A Kubernetes cluster in this process.
//!
//! An API server with storage, watches, TLS, RBAC and admission; kubelets for any number of machines; the
//! scheduler and the controllers that every cluster has. No Docker, no etcd, no downloads, no privileges: a
//! cluster starts within a tenth of a second and disappears when it is stopped. It is made for tests of
//! everything that talks to a cluster: controllers, operators, cloud controller managers, clients.
//!
//! ```
//! use embedded_cluster::{Cluster, ClusterSpec};
//! use k8s_openapi::api::core::v1::Namespace;
//! use kube::Api;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cluster = Cluster::start(ClusterSpec::api_server()).await?;
//! let namespaces: Api<Namespace> = Api::all(cluster.client());
//! assert!(namespaces.get_opt("kube-system").await?.is_some());
//! cluster.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! - **The content of a cluster** is described by a [`ClusterSpec`]: machines, controllers, network, DNS,
//!   version of Kubernetes. [`ClusterSpec::api_server`] has none of these, like envtest;
//!   [`ClusterSpec::of_nodes`] is a whole cluster.
//! - **Clients**: [`Cluster::client`] needs neither socket nor TLS; [`Cluster::kubeconfig`] is for other
//!   programs, such as kubectl; [`Cluster::client_as`] and [`Cluster::kubeconfig_for`] act as any [`User`].
//! - **Machines** are simulated; [`Cluster::machines`] adds and removes them, restarts kubelets, switches
//!   machines off, freezes them and cuts them off.
//! - **Pods** whose image stands for a program of this computer ([`Program`]) run it as an operating system
//!   process; all others are simulated. [`Cluster::pods`] has their logs and sends them signals.
//! - **Faults**: [`Cluster::set_request_fault`] refuses, loses or holds chosen requests of service accounts;
//!   [`Cluster::interrupt_watches`] ends their watches.
//! - **Other processes** reach machines and Pods through a socket: [`Cluster::serve`] and [`Remote`].
//!
//! The READMEs of this crate and of its parts describe what is modelled and what is not: `embedded-apiserver`
//! and `embedded-controllers`, and the crates below these. Those crates are not a separate interface: use
//! this crate.

mod addresses;
mod audit;
mod cluster;
mod logs;
mod machine;
mod orders;
mod remote;
mod spec;
mod version;

pub use addresses::IpFamilies;
pub use audit::{AuditEntry, AuditQuery};
pub use cluster::{Cluster, StartError};
pub use embedded_apiserver::{
    AuthorityError, Issued, RequestEffect, RequestFault, RequestFaultState, RequestMatch, User,
};
pub use embedded_controllers::{
    Bounds, CloudProvider, Confinement, ContainerSignal, Controller, Dns, LogLine, LogReader, MachineState,
    NoSuch, NodeSpec, NodeTaint, Nodes as Machines, Obstacle, Pace, PodNetwork, Pods, Power, Program,
    ServiceVip, ServingCertificate, Share, confinement,
};
pub use machine::{MachineSpec, NodeIp, Role};
pub use orders::{MachineOperation, OutOfReach, WatchOperation};
pub use remote::{Remote, RemoteError, Serving};
pub use spec::ClusterSpec;
pub use version::{KubernetesVersion, UnknownVersion};
