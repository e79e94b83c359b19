//! Users, their credentials and their rights.

pub mod account;
pub mod attributes;
pub mod authority;
pub mod jwt;
pub mod node;
pub mod rbac;
pub mod user;
