//! The rules that many kinds share: names, addresses, quantities, times.

pub(crate) mod names;
pub(crate) mod net;
pub(crate) mod quantity;
pub(crate) mod time;
