//! What one kind is.

use serde_json::Value;

use crate::schema::{self, TypeId};
use crate::structural::Patterns;

/// One subresource of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub verbs: Vec<&'static str>,
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
    pub list_kind: String,
    /// The resource's name in paths.
    pub plural: &'static str,
    /// The resource's singular name.
    pub singular: &'static str,
    /// Short names for kubectl.
    pub short_names: Vec<&'static str>,
    /// Categories such as `all`.
    pub categories: Vec<&'static str>,
    /// Objects of it live in namespaces.
    pub namespaced: bool,
    /// What can be done with it, in discovery's order.
    pub verbs: Vec<&'static str>,
    /// Its subresources in discovery's order.
    pub subresources: Vec<Subresource>,
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
    /// The type's name in the schema; empty for a custom resource.
    pub type_name: &'static str,
    /// The name under which its objects are kept; two versions or groups that serve the same objects share one.
    pub collection: String,
    /// What its definition says of it, where it is a custom resource.
    pub custom: Option<Custom>,
}

/// The scale of a custom resource: where it stands in an object. Paths are those of the definition without their dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The wanted replicas.
    pub wanted: String,
    /// The replicas there are.
    pub there: String,
    /// The selector as text, if any.
    pub selector: Option<String>,
}

/// What sets a custom resource apart: what its definition says of one of its versions.
#[derive(Debug, PartialEq, Eq)]
pub struct Custom {
    /// The type by which fields are owned.
    pub type_id: TypeId,
    /// The structural schema.
    pub schema: Value,
    /// Its patterns.
    pub patterns: Patterns,
    /// `additionalPrinterColumns`.
    pub columns: Vec<Value>,
    /// The fields besides name and namespace by which objects can be selected, without their first dot.
    pub selectable: Vec<String>,
    /// Its scale, where it has one.
    pub scale: Option<Scale>,
    /// What clients are warned of with every answer, where the version is deprecated.
    pub deprecation: Option<String>,
    /// The version in which objects are stored; nothing where it is this one.
    pub stored_as: Option<&'static Kind>,
}

impl Kind {
    /// Whether it is this kind of Kubernetes' own; custom resources may have the same name in another group.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.kind == kind && self.group == group
    }

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
        dotted(self.plural, self.group)
    }

    /// Whether it can be stored, listed and watched (reviews and bindings cannot).
    pub fn stored(&self) -> bool {
        !self.storage_hash.is_empty()
    }

    /// The subresource of a name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// The type of its objects.
    pub fn type_id(&self) -> Option<TypeId> {
        match &self.custom {
            Some(custom) => Some(custom.type_id),
            None => schema::find(self.type_name),
        }
    }

    /// Whether its objects can be sent as protobuf.
    pub fn in_protobuf(&self) -> bool {
        self.custom.is_none() && self.type_id().is_some_and(|ty| schema::get(ty).in_protobuf())
    }
}

/// A name with its group, as messages write it.
pub(crate) fn dotted(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}
