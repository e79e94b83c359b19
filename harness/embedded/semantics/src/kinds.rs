//! The kinds this server serves: names, verbs, subresources, and what sets each apart.

mod table;

pub use table::ALL;

use crate::schema::{self, TypeId};

/// One subresource of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// Its name, such as `status`.
    pub name: &'static str,
    /// The group of the kind that is sent to and comes from it; the parent's where it is empty.
    pub group: &'static str,
    /// The version of that kind; the parent's where it is empty.
    pub version: &'static str,
    /// The kind that is sent to and comes from it.
    pub kind: &'static str,
    /// What can be done with it, in discovery's order.
    pub verbs: &'static [&'static str],
}

/// What a name of this kind must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameForm {
    /// A DNS subdomain.
    Subdomain,
    /// A DNS label.
    Label,
    /// Anything that can stand in a path.
    PathSegment,
}

/// One resource that is served.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The kind of a list of it.
    pub list_kind: &'static str,
    /// The resource's name in paths.
    pub plural: &'static str,
    /// The resource's singular name.
    pub singular: &'static str,
    /// Short names for kubectl.
    pub short_names: &'static [&'static str],
    /// Categories such as `all`.
    pub categories: &'static [&'static str],
    /// Objects of it live in namespaces.
    pub namespaced: bool,
    /// What can be done with it, in discovery's order.
    pub verbs: &'static [&'static str],
    /// Its subresources in discovery's order.
    pub subresources: &'static [Subresource],
    /// The hash of how it is stored, as discovery tells it; empty for what is not stored.
    pub storage_hash: &'static str,
    /// What its names look like.
    pub name_form: NameForm,
    /// A deletion at once answers with the object instead of a Status.
    pub returns_deleted: bool,
    /// An update without a resourceVersion overwrites what is there.
    pub unconditional_update: bool,
    /// A PUT to an absent name creates the object.
    pub create_on_update: bool,
    /// The type's name in the schema.
    pub type_name: &'static str,
}

impl Kind {
    /// `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The resource with its group, as messages write it: `leases.coordination.k8s.io`.
    pub fn resource(&self) -> String {
        crate::status::dotted(self.plural, self.group)
    }

    /// Whether it can be stored, listed and watched (reviews and bindings cannot).
    pub fn stored(&self) -> bool {
        !self.storage_hash.is_empty()
    }

    /// The subresource of a name.
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// The type of its objects.
    pub fn type_id(&self) -> Option<TypeId> {
        schema::find(self.type_name)
    }
}

/// The kind served at a group, version and plural name.
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

    #[test]
    fn every_kind_has_its_type_and_list_type() {
        for kind in ALL {
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
            let digest = sha2::Sha256::digest(format!("{group}/{}/{}", kind.version, kind.kind));
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
