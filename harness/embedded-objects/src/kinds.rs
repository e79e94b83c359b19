//! The kinds that this server serves: names, verbs, subresources and special behaviour.

mod custom;
mod kind;
mod table;

pub use custom::{Budget, Defined, TooMany, defined};
pub(crate) use kind::dotted;
pub use kind::{Custom, Kind, NameForm, Scale, Subresource};
pub use table::ALL;

/// The kind that is served with this group, version and plural name.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
    ALL.iter().find(|kind| kind.plural == plural && kind.group == group && kind.version == version)
}

/// The kind of an object's apiVersion and kind.
pub fn by_kind(api_version: &str, kind: &str) -> Option<&'static Kind> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    ALL.iter().find(|known| known.kind == kind && known.group == group && known.version == version)
}

/// The kind of an object.
pub fn of(object: &serde_json::Value) -> Option<&'static Kind> {
    by_kind(object.get("apiVersion")?.as_str()?, object.get("kind")?.as_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn every_kind_has_its_type_and_list_type() {
        for kind in ALL.iter() {
            assert!(kind.type_id().is_some(), "{} is not in the schema", kind.type_name);
            if kind.stored() {
                assert!(schema::find(&format!("{}List", kind.type_name)).is_some(), "{}", kind.list_kind);
            }
        }
    }

    #[test]
    fn storage_hashes_are_those_of_group_version_and_kind() {
        use base64::Engine as _;
        use sha2::Digest as _;
        for kind in ALL.iter().filter(|kind| kind.stored()) {
            // Both groups' Events are stored as the core one.
            let group = if kind.kind == "Event" { "" } else { kind.group };
            // Definitions of custom resources are stored in their first version.
            let version = match kind.kind {
                "CustomResourceDefinition" => "v1beta1",
                // Mutating admission policies are stored in the version before the served one, and
                // autoscalers in their newest version.
                kind if kind.starts_with("MutatingAdmissionPolicy") => "v1beta1",
                "HorizontalPodAutoscaler" => "v2",
                _ => kind.version,
            };
            let digest = sha2::Sha256::digest(format!("{group}/{version}/{}", kind.kind));
            let hash = base64::engine::general_purpose::STANDARD.encode(&digest[..8]);
            assert_eq!(kind.storage_hash, hash, "{}", kind.resource());
        }
    }

    #[test]
    fn kinds_are_found_by_path_and_by_object() {
        let lease = find("coordination.k8s.io", "v1", "leases").expect("leases are served");
        assert_eq!(by_kind("coordination.k8s.io/v1", "Lease"), Some(lease));
        assert_eq!(lease.resource(), "leases.coordination.k8s.io");
        assert_eq!(
            of(&serde_json::json!({"kind": "Pod", "apiVersion": "v1"})).map(|k| k.plural),
            Some("pods")
        );
        assert_eq!(find("", "v2", "pods"), None);
    }
}
