//! Who asks, and whether they may.

pub mod account;
pub mod attributes;
pub mod authority;
pub mod jwt;
pub mod node;
pub mod rbac;
pub mod user;
