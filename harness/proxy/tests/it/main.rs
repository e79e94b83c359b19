//! The proxy from outside: in front of the fake cloud, in front of a small server, and without a server.

mod arbitrary;
mod calls;
mod disturbed;
mod secrets;
mod slow;
mod support;
mod unusable;
mod wire;
