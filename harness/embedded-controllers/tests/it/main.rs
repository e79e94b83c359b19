//! The controllers with the embedded API server.

mod cluster;
mod kubectl;
mod machines;
mod programs;
mod workloads;
