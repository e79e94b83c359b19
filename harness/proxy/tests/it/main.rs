//! The proxy from outside: before the fake cloud, before a server of a few lines, and before nobody.

mod arbitrary;
mod calls;
mod disturbed;
mod secrets;
mod slow;
mod support;
mod unusable;
mod wire;
