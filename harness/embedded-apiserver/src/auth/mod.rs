//! Who asks, and whether they may.

pub(crate) mod account;
pub(crate) mod attributes;
pub(crate) mod authority;
pub(crate) mod jwt;
pub(crate) mod node;
pub(crate) mod rbac;
pub(crate) mod user;
