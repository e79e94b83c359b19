//! The checks of Nodes: a CCM initialises them, writes what the cloud reports about their machines, and
//! deletes those whose machine is gone.

pub mod lifecycle;
pub mod population;
pub mod taint_removal;
