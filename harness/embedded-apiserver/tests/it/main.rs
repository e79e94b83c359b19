//! The server as clients see it: over TLS, and in process.

mod access;
mod bad_input;
mod client;
mod definitions;
mod doors;
mod escalations;
mod in_process;
mod kubectl;
mod lists;
mod logs;
mod names;
mod objects;
mod protobuf;
mod surface;
mod transcripts;
mod watches;
mod writes;
