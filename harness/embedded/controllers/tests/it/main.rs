//! The controllers against the embedded API server.

mod cluster;
mod machines;
mod programs;
mod workloads;
