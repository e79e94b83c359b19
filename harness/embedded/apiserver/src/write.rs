//! What every write carries with it, from the request to the store.

use crate::api::{Api, Clock};
use crate::auth::user::User;
use crate::http::body::LIMIT;
use crate::http::call::Call;
use crate::store::Transaction;
use embedded_semantics::size;
use embedded_semantics::status::{self, Status};
use serde_json::Value;

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

/// The largest object that is kept, bytes of JSON: no request could bring a larger one as a whole.
const LARGEST_OBJECT: usize = LIMIT;
/// The most that all objects may be, bytes of JSON. A real server's quota, that of etcd, is 2 GiB of a denser form.
const LARGEST_STORE: usize = 512 << 20;

/// Whether an object may be kept.
///
/// # Errors
///
/// 500 in etcd's words: it is too large, or there is no room for any.
pub(crate) fn check_size(write: &Write<'_>, object: &Value) -> Result<(), Status> {
    if size::of(object) > LARGEST_OBJECT {
        return Err(status::unexplained("etcdserver: request is too large"));
    }
    if write.api.store.size() > LARGEST_STORE {
        return Err(status::unexplained("etcdserver: mvcc: database space exceeded"));
    }
    Ok(())
}

impl<'a> Write<'a> {
    /// The write that a call asks for.
    pub(crate) fn of(call: &'a Call, tx: &'a Transaction<'a>, dry_run: bool, manager: &'a str) -> Self {
        Self { api: &call.api, tx, user: &call.user, clock: &call.clock, dry_run, manager }
    }
}
