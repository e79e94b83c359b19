//! The controllers against the embedded API server.

mod cluster;
mod kubectl;
mod machines;
mod programs;
mod workloads;
