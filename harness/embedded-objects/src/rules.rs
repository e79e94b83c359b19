//! The rules that many kinds share: names, addresses, quantities, times.

pub mod names;
pub mod net;
pub mod quantity;
pub mod time;
