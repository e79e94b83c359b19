//! What every write carries with it, from the request to the store.

use crate::http::call::Call;
use embedded_objects::status::{self, Status};
use embedded_objects::{size, wire};
use embedded_state::auth::user::User;
use embedded_state::store::Transaction;
use embedded_state::{Api, Clock};
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

/// The largest object that is kept, bytes as a real server writes it to etcd: protobuf, or JSON where a kind has none. etcd
/// takes requests of 1.5 MiB, and its client sends none of more than 2 MiB.
const LARGEST_OBJECT: usize = 1536 << 10;
const LARGEST_MESSAGE: usize = 2 << 20;
/// About how much of a request is not the object: its key, twice, and what the transaction compares.
const AROUND: usize = 200;
/// The most that all objects may be, bytes of JSON. A real server's quota, that of etcd, is 2 GiB of a denser form.
const LARGEST_STORE: usize = 512 << 20;

/// Whether an object may be kept.
///
/// # Errors
///
/// 500 in etcd's words: it is too large, or there is no room for any.
pub(crate) fn check_size(write: &Write<'_>, object: &Value) -> Result<(), Status> {
    // Nothing is larger in protobuf than as JSON: only what might be too large is written for that.
    if size::of(object) + AROUND > LARGEST_OBJECT {
        let length =
            wire::encode_protobuf(object).map_or_else(|_| size::of(object), |bytes| bytes.len()) + AROUND;
        if length > LARGEST_MESSAGE {
            return Err(status::unexplained(format!(
                "rpc error: code = ResourceExhausted desc = trying to send message larger than max ({length} vs. \
                 {LARGEST_MESSAGE})"
            )));
        }
        if length > LARGEST_OBJECT {
            return Err(status::unexplained("etcdserver: request is too large"));
        }
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
