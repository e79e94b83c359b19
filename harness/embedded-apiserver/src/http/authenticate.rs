//! Authentication and impersonation: the user who sent a request, and the user as whom it is carried out.

use embedded_objects::status::{self, Status};
use http::{HeaderMap, header};
use percent_encoding::percent_decode_str;

use super::peer::Peer;
use embedded_state::Api;
use embedded_state::auth::account::{Claims, ISSUER};
use embedded_state::auth::attributes::Attributes;
use embedded_state::auth::user::{ANONYMOUS, AUTHENTICATED, SERVICE_ACCOUNT, UNAUTHENTICATED, User};

/// The sender: by client certificate, otherwise by bearer token, otherwise anonymous; `None` for an invalid
/// credential.
pub(super) fn user(api: &Api, peer: &Peer, headers: &HeaderMap) -> Option<User> {
    let certificates = match peer {
        Peer::InProcess(user) => return Some((**user).clone()),
        Peer::Network(connection) => &connection.certificates,
    };
    if !certificates.is_empty() {
        return api.authority.user(certificates);
    }
    let Some(authorization) = headers.get(header::AUTHORIZATION) else { return Some(User::anonymous()) };
    let text = authorization.to_str().ok()?;
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
            let (user, audiences) = by_token(api, token.trim()).ok()?;
            audiences.iter().any(|audience| audience == ISSUER).then_some(user)
        }
        // The server has no other schemes, so they do not identify a sender.
        _ => Some(User::anonymous()),
    }
}

/// The user of a token, and the audiences that it is for.
///
/// # Errors
///
/// The fault of the token, in the API server's words.
pub(crate) fn by_token(api: &Api, token: &str) -> Result<(User, Vec<String>), String> {
    let claims: Claims = api.signer.verify(token).ok_or_else(|| "invalid bearer token".to_owned())?;
    let holder = claims.holder(&api.store, jiff::Timestamp::now().as_second());
    let user = holder.map_err(|why| format!("[invalid bearer token, {why}]"))?;
    Ok((user, claims.aud))
}

/// The user in the headers `Impersonate-*`, if there is one.
///
/// # Errors
///
/// 403 if `user` may not act as that user, 400 if the headers name groups without a user.
pub(super) fn impersonated(api: &Api, user: &User, headers: &HeaderMap) -> Result<Option<User>, Status> {
    let all = |name: &str| -> Vec<String> {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(str::to_owned).collect()
    };
    let name = all("impersonate-user").into_iter().next().unwrap_or_default();
    let groups = all("impersonate-group");
    let uid = all("impersonate-uid").into_iter().next().unwrap_or_default();
    let mut extra: Vec<(String, String)> = Vec::new();
    for (header, value) in headers {
        if let (Some(key), Ok(value)) = (header.as_str().strip_prefix("impersonate-extra-"), value.to_str()) {
            extra.push((percent_decode_str(key).decode_utf8_lossy().into_owned(), value.to_owned()));
        }
    }
    if name.is_empty() {
        if groups.is_empty() && uid.is_empty() && extra.is_empty() {
            return Ok(None);
        }
        return Err(status::internal("requested impersonation without impersonating a user"));
    }
    let may = |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| {
        let request = Attributes {
            verb: "impersonate".into(),
            group: group.into(),
            resource: resource.into(),
            subresource: subresource.into(),
            namespace: namespace.into(),
            name: name.into(),
            ..Attributes::default()
        };
        let decision = api.authorize(user, &request);
        if decision.is_allowed() {
            return Ok(());
        }
        Err(status::forbidden_on(group, resource, name, &request.denial(user)))
    };
    let mut other = User { name: name.clone(), uid, groups, ..User::default() };
    match other.as_service_account().map(|(namespace, account)| (namespace.to_owned(), account.to_owned())) {
        Some((namespace, account)) if name.starts_with(SERVICE_ACCOUNT) => {
            may("", "serviceaccounts", "", &namespace, &account)?;
            if other.groups.is_empty() {
                other.groups = User::service_account(&namespace, &account, "").groups;
            }
        }
        _ => may("", "users", "", "", &name)?,
    }
    for group in &other.groups {
        may("", "groups", "", "", group)?;
    }
    for (key, value) in extra {
        may("authentication.k8s.io", "userextras", &key, "", &value)?;
        other.extra.entry(key).or_default().push(value);
    }
    if !other.uid.is_empty() {
        may("authentication.k8s.io", "uids", "", "", &other.uid)?;
    }
    let implied = if name == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
    if !other.in_group(implied) {
        other.groups.push(implied.to_owned());
    }
    Ok(Some(other))
}
