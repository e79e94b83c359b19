//! What every write carries with it, from the request to the store.

use crate::api::{Api, Clock};
use crate::auth::user::User;
use crate::http::call::Call;
use crate::store::Transaction;

/// What every write needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'a> {
    /// The server's state.
    pub api: &'a Api,
    /// The right to write.
    pub tx: &'a Transaction<'a>,
    /// Who writes.
    pub user: &'a User,
    /// When.
    pub clock: &'a Clock,
    /// Whether nothing shall be kept.
    pub dry_run: bool,
    /// Whose fields the written ones become.
    pub manager: &'a str,
}

impl<'a> Write<'a> {
    /// The write that a call asks for.
    pub(crate) fn of(call: &'a Call, tx: &'a Transaction<'a>, dry_run: bool, manager: &'a str) -> Self {
        Self { api: &call.api, tx, user: &call.user, clock: &call.clock, dry_run, manager }
    }
}
