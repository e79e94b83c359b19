//! The checks of a CCM as a program in the cluster: how it boots, which replica works, with which rights, at
//! what cost, and how it is operated.

pub mod authorization;
pub mod bootstrap;
pub mod failover;
pub mod operation;
pub mod scalability;
pub mod soak;
pub mod upgrade;
