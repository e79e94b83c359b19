//! The crate against what a real API server answered, and against arbitrary input.

mod arbitrary;
mod replay;
mod rules;
mod server;
