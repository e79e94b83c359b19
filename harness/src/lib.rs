//! The harness: everything that runs and reports.
//!
//! Modules in reading order; each imports only from those above it.
//! `check` and `probe` are pure; `cli` at the end knows everything and decides nothing.

pub mod check;
pub mod ledger;
pub mod probe;
pub mod config;
pub mod images;
pub mod cluster;
pub mod cloud;
pub mod k8s;
pub mod ccm;
pub mod progress;
pub mod session;
pub mod cx;
pub mod evidence;
pub mod run;
pub mod report;
pub mod cli;
