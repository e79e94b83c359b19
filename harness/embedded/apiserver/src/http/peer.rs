//! Who is at the other end of a connection.

use std::sync::Arc;

use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::auth::user::User;

/// Who is at the other end.
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    /// A connection, with the certificates it has shown, none or the leaf first.
    Network(Arc<Vec<CertificateDer<'static>>>),
    /// A client of this process, which may be whom it says.
    InProcess(Arc<User>),
}
