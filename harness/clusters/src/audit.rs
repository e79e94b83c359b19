//! Requests to the API server, from clusters with a log of them.

/// Selects requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Those of users whose name has this prefix.
    pub user: String,
    /// Those since this time, milliseconds since 1970.
    pub since_ms: i64,
    /// Only those that authorization refused.
    pub refused: bool,
    /// Of requests that need the same permission, only the first.
    pub distinct: bool,
}

/// A request and its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// When it arrived, in milliseconds since 1970.
    pub at_ms: i64,
    /// The user.
    pub user: String,
    /// The verb, as in roles.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, with `/` and the subresource if there is one; empty for a non-resource path.
    pub resource: String,
    /// The namespace; empty at the cluster scope.
    pub namespace: String,
    /// The name; empty if the request has none.
    pub name: String,
    /// The path of the request.
    pub path: String,
    /// The HTTP status of the answer.
    pub code: u16,
    /// Whether authorization permitted it; it may still be refused afterwards.
    pub authorized: bool,
    /// The client's user agent.
    pub user_agent: String,
}
