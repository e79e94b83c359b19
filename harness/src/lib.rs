//! The harness: everything that runs and reports.
//!
//! Modules in reading order; each imports only from those above it.
//! `check` and `probe` are pure; `cli` at the end knows everything and decides nothing.

#[macro_use]
mod backends;

pub mod bounded;
pub mod ccm;
pub mod check;
pub mod cli;
pub mod cloud;
pub mod cluster;
pub mod config;
pub mod contract;
pub mod csi_migration;
pub mod cx;
pub mod events;
pub mod evidence;
pub mod files;
mod glob;
pub mod image_credentials;
pub mod images;
pub mod k8s;
pub mod ledger;
pub mod network_proxy;
pub mod output;
pub mod owner;
pub mod probe;
pub mod progress;
pub mod proof;
pub mod reaper;
pub mod report;
pub mod run;
mod screen;
pub mod secrets;
pub mod session;
