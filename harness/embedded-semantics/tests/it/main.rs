//! Compares the crate with a real API server's answers, and tests it with arbitrary input.

mod arbitrary;
mod pods;
mod replay;
mod rules;
mod server;
