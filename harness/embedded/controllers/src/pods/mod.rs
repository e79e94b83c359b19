//! Pods on their nodes: as programs of this machine, or simulated.

pub(crate) mod backoff;
pub(crate) mod bounds;
pub(crate) mod environment;
pub(crate) mod expansion;
pub(crate) mod facts;
pub(crate) mod hosts;
pub(crate) mod image;
pub(crate) mod logs;
pub(crate) mod manager;
pub(crate) mod note;
mod prepare;
pub(crate) mod probe;
pub(crate) mod process;
mod reaction;
pub(crate) mod relay;
pub(crate) mod sandbox;
pub(crate) mod setup;
pub(crate) mod shared;
pub(crate) mod simulated;
pub(crate) mod start;
pub(crate) mod status;
mod tell;
pub(crate) mod volumes;
pub(crate) mod worker;
