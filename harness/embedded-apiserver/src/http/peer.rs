//! The client at the other end of a connection.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_rustls::rustls::pki_types::CertificateDer;

use embedded_state::auth::user::User;
use embedded_state::{Exceeded, Share, Usage, Use};

/// The client at the other end.
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    /// A connection.
    Network(Arc<Connection>),
    /// A client in this process, which may act as any user.
    InProcess(Arc<User>),
}

/// A network connection of a client.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The client's certificates: none, or the leaf first.
    pub(crate) certificates: Vec<CertificateDer<'static>>,
    owner: watch::Sender<Owner>,
}

/// The user to whom a connection is counted.
#[derive(Debug, Default)]
enum Owner {
    /// None yet: no request with a valid credential, or without any, has come.
    #[default]
    Unknown,
    /// The user of its first request.
    Known { _share: Option<Share> },
    /// The user of its first request already has the maximum number of connections.
    Refused,
}

impl Peer {
    /// Takes one more of something for a user, as [`Usage::take`]; a client of this process is exempt.
    pub(crate) fn take(&self, usage: &Arc<Usage>, user: &User, used: Use) -> Result<Option<Share>, Exceeded> {
        match self {
            Peer::InProcess(_) => Ok(None),
            Peer::Network(_) => usage.take(user, used),
        }
    }

    /// Counts the connection to the user of its first request. Returns whether it may continue.
    pub(crate) fn belongs_to(&self, usage: &Arc<Usage>, user: &User) -> bool {
        let Peer::Network(connection) = self else { return true };
        let mut continues = true;
        connection.owner.send_if_modified(|owner| {
            let is_new = matches!(owner, Owner::Unknown);
            if is_new {
                *owner = match usage.take(user, Use::Connection) {
                    Ok(_share) => Owner::Known { _share },
                    Err(_) => Owner::Refused,
                };
            }
            continues = !matches!(owner, Owner::Refused);
            is_new
        });
        continues
    }
}

impl Connection {
    /// A new connection with these certificates.
    #[must_use]
    pub(crate) fn new(certificates: Vec<CertificateDer<'static>>) -> Connection {
        Connection { certificates, owner: watch::Sender::default() }
    }

    /// Waits until the user of the connection is known.
    pub(crate) async fn known(&self) {
        // This object owns the sender, so the wait ends only with a value.
        let _ = self.owner.subscribe().wait_for(|owner| !matches!(owner, Owner::Unknown)).await;
    }

    /// Waits until the user has too many connections.
    pub(crate) async fn refused(&self) {
        let _ = self.owner.subscribe().wait_for(|owner| matches!(owner, Owner::Refused)).await;
    }
}
