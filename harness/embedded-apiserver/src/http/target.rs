//! The target of a request, read from its method and path.
//!
//! Follows `k8s.io/apiserver/pkg/endpoints/request` (`RequestInfo`), which authorization and audit use.

use http::Method;
use percent_encoding::percent_decode_str;

use embedded_state::auth::attributes::Attributes;
use embedded_state::query::Query;

/// The target of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// The attributes for authorization.
    pub attributes: Attributes,
    /// The API version, for example `v1`; empty for a path that is not a resource.
    pub version: String,
    /// The part of the path after the subresource.
    pub rest: Vec<String>,
}

impl Target {
    /// Parses method, path and parameters.
    #[must_use]
    pub(crate) fn parse(method: &Method, path: &str, query: &Query) -> Self {
        let mut target = Self::default();
        let attributes = &mut target.attributes;
        path.clone_into(&mut attributes.path);
        attributes.verb = method.as_str().to_ascii_lowercase();
        let decoded: Vec<String> = path
            .trim_matches('/')
            .split('/')
            .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
            .collect();
        let mut parts = decoded.iter().map(String::as_str).collect::<Vec<_>>().into_iter().peekable();
        match parts.next() {
            Some("api") => {}
            Some("apis") => {
                if decoded.len() < 4 {
                    return target;
                }
                parts.next().unwrap_or_default().clone_into(&mut attributes.group);
            }
            _ => return target,
        }
        if decoded.len() < 3 {
            return target;
        }
        parts.next().unwrap_or_default().clone_into(&mut target.version);
        let mut watch_by_path = false;
        if parts.peek() == Some(&"watch") {
            parts.next();
            watch_by_path = true;
        }
        let mut parts: Vec<&str> = parts.collect();
        if let ["namespaces", namespace, more @ ..] = parts.as_slice() {
            (*namespace).clone_into(&mut attributes.namespace);
            if more.first().is_some_and(|next| !matches!(*next, "status" | "finalize")) {
                parts = more.to_vec();
            }
        }
        let part = |at: usize| parts.get(at).copied().unwrap_or_default().to_owned();
        attributes.resource = part(0);
        attributes.name = part(1);
        attributes.subresource = part(2);
        target.rest = parts.iter().skip(3).map(|part| (*part).to_owned()).collect();
        let named = !attributes.name.is_empty();
        let verb = match (method.as_str(), named) {
            _ if watch_by_path => "watch",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", true) => "delete",
            ("DELETE", false) => "deletecollection",
            ("GET" | "HEAD", true) => "get",
            ("GET" | "HEAD", false) if query.flag("watch") == Some(true) => "watch",
            ("GET" | "HEAD", false) => "list",
            _ => "",
        };
        verb.clone_into(&mut attributes.verb);
        if matches!(verb, "list" | "watch" | "deletecollection") {
            query.get("fieldSelector").unwrap_or_default().clone_into(&mut attributes.field_selector);
            if attributes.name.is_empty() {
                // A list that is limited to one name is authorized as access to that object.
                if let Some(name) = exact_name(&attributes.field_selector) {
                    attributes.name = name;
                }
            }
        }
        target
    }
}

/// The name that a field selector requires, if it does.
fn exact_name(selector: &str) -> Option<String> {
    selector.split(',').find_map(|term| {
        let (field, value) = term.split_once("==").or_else(|| term.split_once('='))?;
        let usable = !value.is_empty() && !value.contains(['/', '%']) && value != "." && value != "..";
        (field == "metadata.name" && usable).then(|| value.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, uri: &str, expected: &str) {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let target = Target::parse(&method, path, &Query::parse(query));
        let Attributes { verb, group, resource, subresource, namespace, name, .. } = &target.attributes;
        let seen = format!("{verb} {group}/{} {namespace} {resource}/{name}/{subresource}", target.version);
        assert_eq!(seen, expected, "{method} {uri}");
    }

    #[test]
    fn paths_are_read_as_the_api_server_reads_them() {
        check("GET", "/api/v1/nodes", "list /v1  nodes//");
        check("GET", "/api/v1/nodes?watch=1", "watch /v1  nodes//");
        check("GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dn1", "list /v1  nodes/n1/");
        check("PATCH", "/api/v1/nodes/n1/status", "patch /v1  nodes/n1/status");
        check("POST", "/api/v1/namespaces/a/pods/p/binding", "create /v1 a pods/p/binding");
        check("GET", "/api/v1/namespaces/a", "get /v1 a namespaces/a/");
        check("PUT", "/api/v1/namespaces/a/finalize", "update /v1 a namespaces/a/finalize");
        check("DELETE", "/apis/apps/v1/namespaces/a/deployments", "deletecollection apps/v1 a deployments//");
        check("GET", "/api/v1/watch/namespaces/a/services/s", "watch /v1 a services/s/");
        check("GET", "/healthz", "get /  //");
        check("GET", "/apis/apps/v1", "get /  //");
        check("GET", "/api/v1", "get /  //");
    }
}
