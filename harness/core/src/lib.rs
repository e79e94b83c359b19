//! The base of all other crates of the harness: checks and their outcomes, events, waiting, output and secrets.

pub mod bounded;
pub mod check;
pub mod events;
pub mod files;
pub mod glob;
pub mod ledger;
pub mod objects;
pub mod output;
pub mod owner;
pub mod probe;
pub mod progress;
pub mod screen;
pub mod secrets;
