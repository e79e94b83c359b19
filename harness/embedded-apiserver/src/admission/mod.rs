//! Admission: the checks of a write before the kind's own rules, in the order of a real server's plugins.

mod namespace;
mod pod;
mod restriction;
mod signing;

use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use embedded_semantics::lifecycle::tolerate_unready_nodes;
use serde_json::Value;

use crate::write::Write;
use embedded_state::auth::rbac::{Escalation, check_escalation};

/// Admits a creation; may change the object.
///
/// # Errors
///
/// The reason why it is not admitted.
pub(crate) fn create(write: &Write<'_>, kind: &'static Kind, object: &mut Value) -> Result<(), Status> {
    namespace::creation(write.api, kind, object)?;
    let is_pod = kind.group.is_empty() && kind.kind == "Pod";
    if is_pod {
        pod::service_account(write.api, object)?;
    }
    restriction::check(write, kind, None, Some(object))?;
    if kind.group == "certificates.k8s.io" && kind.kind == "CertificateSigningRequest" {
        signing::check(kind, object)?;
        signing::note_asker(write.user, object);
    }
    if is_pod {
        pod::priority(write.api, kind, object)?;
        pod::runtime_class(write.api, object)?;
    }
    Ok(())
}

/// Admits a change; may alter the new object.
///
/// # Errors
///
/// The reason why it is not admitted.
pub(crate) fn update(
    write: &Write<'_>,
    kind: &'static Kind,
    sub: Option<&str>,
    old: &Value,
    new: &mut Value,
) -> Result<(), Status> {
    if sub.is_none() && kind.is("", "Pod") && new["spec"].is_object() {
        tolerate_unready_nodes(new);
    }
    match sub {
        None => restriction::check(write, kind, Some(old), Some(new)),
        Some("status") => restriction::check_status(write, kind, old, new),
        Some(_) => Ok(()),
    }
}

/// Checks a write after the kind's rules have accepted it: a user cannot grant rights that they do not have.
///
/// # Errors
///
/// The reason why it is not admitted.
pub(crate) fn validate(
    write: &Write<'_>,
    kind: &'static Kind,
    old: Option<&Value>,
    object: &Value,
) -> Result<(), Status> {
    if kind.group != "rbac.authorization.k8s.io" {
        return Ok(());
    }
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    check_escalation(&write.api.policy(), write.user, kind.plural, text("namespace"), object, old).map_err(
        |why| match why {
            Escalation::Forbidden(why) => status::forbidden(kind, text("name"), &why),
            Escalation::NoRole(resource, name) => {
                let plural = resource.split('.').next().unwrap_or(resource);
                embedded_objects::kinds::find(kind.group, "v1", plural)
                    .map_or_else(status::no_such_resource, |role| status::not_found(role, &name))
            }
        },
    )
}

/// Admits a deletion.
///
/// # Errors
///
/// The reason why it is not admitted.
pub(crate) fn delete(write: &Write<'_>, kind: &'static Kind, object: &Value) -> Result<(), Status> {
    namespace::deletion(kind, object)?;
    restriction::check(write, kind, Some(object), None)
}
