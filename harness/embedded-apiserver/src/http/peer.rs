//! Who is at the other end of a connection.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_rustls::rustls::pki_types::CertificateDer;

use embedded_state::auth::user::User;
use embedded_state::{Exceeded, Share, Usage, Use};

/// Who is at the other end.
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    /// A connection.
    Network(Arc<Connection>),
    /// A client of this process, which may be whom it says.
    InProcess(Arc<User>),
}

/// A connection of a client.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The certificates that the client has shown, none or the leaf first.
    pub(crate) certificates: Vec<CertificateDer<'static>>,
    owner: watch::Sender<Owner>,
}

/// To whom a connection is counted.
#[derive(Debug, Default)]
enum Owner {
    /// Nobody yet: no request with a good credential, or without any, has come.
    #[default]
    Unknown,
    /// The user of its first request.
    Known { _share: Option<Share> },
    /// The user of its first request has as many connections as a user may have.
    Refused,
}

impl Peer {
    /// One more of something for a user, as [`Usage::take`]; a client of this process is exempt.
    pub(crate) fn take(&self, usage: &Arc<Usage>, user: &User, used: Use) -> Result<Option<Share>, Exceeded> {
        match self {
            Peer::InProcess(_) => Ok(None),
            Peer::Network(_) => usage.take(user, used),
        }
    }

    /// Counts the connection to the user of its first request. Whether it may go on.
    pub(crate) fn belongs_to(&self, usage: &Arc<Usage>, user: &User) -> bool {
        let Peer::Network(connection) = self else { return true };
        let mut goes_on = true;
        connection.owner.send_if_modified(|owner| {
            let is_new = matches!(owner, Owner::Unknown);
            if is_new {
                *owner = match usage.take(user, Use::Connection) {
                    Ok(_share) => Owner::Known { _share },
                    Err(_) => Owner::Refused,
                };
            }
            goes_on = !matches!(owner, Owner::Refused);
            is_new
        });
        goes_on
    }
}

impl Connection {
    /// A new connection on which these certificates were shown.
    #[must_use]
    pub(crate) fn new(certificates: Vec<CertificateDer<'static>>) -> Connection {
        Connection { certificates, owner: watch::Sender::default() }
    }

    /// Waits until it is known whose connection it is.
    pub(crate) async fn known(&self) {
        // The sender is our own, so this does not end otherwise.
        let _ = self.owner.subscribe().wait_for(|owner| !matches!(owner, Owner::Unknown)).await;
    }

    /// Waits until its user has too many of them.
    pub(crate) async fn refused(&self) {
        let _ = self.owner.subscribe().wait_for(|owner| matches!(owner, Owner::Refused)).await;
    }
}
