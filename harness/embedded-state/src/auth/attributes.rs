//! The attributes of a request, about which authorization decides.

use std::fmt;

use super::user::User;

/// One request, in the terms of roles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The verb: `get`, `list`, `create`, ...; for paths that are not resources, the HTTP method in lower case.
    pub verb: String,
    /// The API group, empty for the core group.
    pub group: String,
    /// The resource in the plural; empty for a path that is not a resource.
    pub resource: String,
    /// The part after the object's name, such as `status`.
    pub subresource: String,
    /// The namespace, empty at the cluster scope.
    pub namespace: String,
    /// The object's name; empty if the request has none.
    pub name: String,
    /// The path of the request.
    pub path: String,
    /// The field selector of a list or watch, as the client wrote it.
    pub field_selector: String,
}

impl Attributes {
    /// Whether this is about a resource, not about a path such as `/healthz`.
    #[must_use]
    pub fn is_resource(&self) -> bool {
        !self.resource.is_empty()
    }

    /// The resource with its subresource, as rules name it.
    #[must_use]
    pub fn full_resource(&self) -> String {
        match self.subresource.as_str() {
            "" => self.resource.clone(),
            subresource => format!("{}/{subresource}", self.resource),
        }
    }

    /// The message that `user` may not do this, in the API server's words.
    #[must_use]
    pub fn denial(&self, user: &User) -> String {
        let Self { verb, group, namespace, path, .. } = self;
        let text = if self.is_resource() {
            let place = match namespace.as_str() {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {namespace:?}"),
            };
            let resource = self.full_resource();
            format!("User {:?} cannot {verb} resource {resource:?} in API group {group:?} {place}", user.name)
        } else {
            format!("User {:?} cannot {verb} path {path:?}", user.name)
        };
        // This keeps browsers from rendering the answer as a page.
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
    }
}

impl fmt::Display for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}",
            self.verb,
            if self.is_resource() { self.full_resource() } else { self.path.clone() }
        )
    }
}

/// The answer to [`Attributes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Allowed; the reason names what grants it and may be empty.
    Allow(String),
    /// Nothing grants it; the reason, often empty, names faults that were found.
    NoOpinion(String),
}

impl Decision {
    /// Whether the request is allowed.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow(_))
    }

    /// The reason; it may be empty.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Allow(reason) | Self::NoOpinion(reason) => reason,
        }
    }
}
