//! The server as clients meet it: over TLS, and in process.

mod client;
mod transcripts;
