//! What was asked of the API server, where a cluster tells it.

/// Which requests are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Those of users whose name begins so.
    pub user: String,
    /// Those since this time, milliseconds since 1970.
    pub since_ms: i64,
    /// Only those that authorization refused.
    pub refused: bool,
    /// Of those that ask for the same right only the first.
    pub distinct: bool,
}

/// A request and its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// When it came, milliseconds since 1970.
    pub at_ms: i64,
    /// Who asked.
    pub user: String,
    /// The verb, as roles have it.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, with `/` and the subresource where there is one; empty for a path that is none.
    pub resource: String,
    /// The namespace; empty at the cluster scope.
    pub namespace: String,
    /// The name; empty where the request names none.
    pub name: String,
    /// The path of the request.
    pub path: String,
    /// The HTTP status of the answer.
    pub code: u16,
    /// Whether authorization let it pass; what comes after may refuse it all the same.
    pub authorized: bool,
    /// What the client calls itself.
    pub user_agent: String,
}
