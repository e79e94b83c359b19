//! The context of a write, from the request to the store.

use crate::http::call::Call;
use embedded_objects::status::{self, Status};
use embedded_objects::{size, wire};
use embedded_state::auth::user::User;
use embedded_state::store::Transaction;
use embedded_state::{Api, Clock};
use serde_json::Value;

/// The context of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'a> {
    /// The server's state.
    pub api: &'a Api,
    /// The transaction.
    pub tx: &'a Transaction<'a>,
    /// The user who writes.
    pub user: &'a User,
    /// The time of the write.
    pub clock: &'a Clock,
    /// Whether this is a dry run.
    pub dry_run: bool,
    /// The manager that owns the written fields.
    pub manager: &'a str,
}

/// The size limit of a stored object, in bytes as a real server writes it to etcd: protobuf, or JSON if a
/// kind has no protobuf. etcd accepts requests of 1.5 MiB, and its client sends none of more than 2 MiB.
const LARGEST_OBJECT: usize = 1536 << 10;
const LARGEST_MESSAGE: usize = 2 << 20;
/// About how many bytes of a request are not the object: its key, twice, and the comparisons of the transaction.
const AROUND: usize = 200;
/// The size limit of all objects together, in bytes of JSON. A real server's quota, that of etcd, is 2 GiB of
/// a denser form.
const LARGEST_STORE: usize = 512 << 20;

/// Checks that an object may be stored.
///
/// # Errors
///
/// 500 in etcd's words: it is too large, or there is no room left.
pub(crate) fn check_size(write: &Write<'_>, object: &Value) -> Result<(), Status> {
    // No object is larger in protobuf than in JSON, so only one that might be too large is encoded for this check.
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
    /// The write for a call.
    pub(crate) fn of(call: &'a Call, tx: &'a Transaction<'a>, dry_run: bool, manager: &'a str) -> Self {
        Self { api: &call.api, tx, user: &call.user, clock: &call.clock, dry_run, manager }
    }
}
