//! The rules that many kinds share: names, quantities, times.

pub(crate) mod names;
pub(crate) mod quantity;
pub(crate) mod time;
