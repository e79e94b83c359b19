//! The description of one kind.

use serde_json::Value;

use crate::schema::{self, TypeId};
use crate::structural::Patterns;

/// One subresource of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// Its name, such as `status`.
    pub name: &'static str,
    /// The group of the kind that is sent and returned; empty for the group of the parent.
    pub group: &'static str,
    /// The version of that kind; empty for the version of the parent.
    pub version: &'static str,
    /// The kind that is sent and returned.
    pub kind: &'static str,
    /// Its verbs, in discovery's order.
    pub verbs: Vec<&'static str>,
}

/// The form that a name of this kind must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameForm {
    /// A DNS subdomain.
    Subdomain,
    /// A DNS label.
    Label,
    /// Anything that is allowed in a path.
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
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Its verbs, in discovery's order.
    pub verbs: Vec<&'static str>,
    /// Its subresources in discovery's order.
    pub subresources: Vec<Subresource>,
    /// The storage hash in discovery; empty if it is not stored.
    pub storage_hash: &'static str,
    /// The form of its names.
    pub name_form: NameForm,
    /// Whether an immediate deletion is answered with the object instead of a Status.
    pub returns_deleted: bool,
    /// Whether an update without a resourceVersion overwrites the object.
    pub unconditional_update: bool,
    /// Whether a PUT to a missing name creates the object.
    pub create_on_update: bool,
    /// The type's name in the schema; empty for a custom resource.
    pub type_name: &'static str,
    /// The name of the collection that stores its objects; two versions or groups of the same objects share one.
    pub collection: String,
    /// The data from its definition, if it is a custom resource.
    pub custom: Option<Custom>,
}

/// The scale of a custom resource: the paths in an object. They are those of the definition without the
/// leading dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The desired replicas.
    pub wanted: String,
    /// The current replicas.
    pub there: String,
    /// The selector as text, if any.
    pub selector: Option<String>,
}

/// The data that a definition has for one version of a custom resource.
#[derive(Debug, PartialEq, Eq)]
pub struct Custom {
    /// The type that determines who owns which fields.
    pub type_id: TypeId,
    /// The structural schema.
    pub schema: Value,
    /// Its patterns.
    pub patterns: Patterns,
    /// `additionalPrinterColumns`.
    pub columns: Vec<Value>,
    /// The fields other than name and namespace that field selectors can use, without their leading dot.
    pub selectable: Vec<String>,
    /// Its scale, if it has one.
    pub scale: Option<Scale>,
    /// The warning in every answer, if the version is deprecated.
    pub deprecation: Option<String>,
    /// The version in which objects are stored; `None` if it is this one.
    pub stored_as: Option<&'static Kind>,
}

impl Kind {
    /// Whether it is this built-in kind; custom resources may have the same name in another group.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.kind == kind && self.group == group
    }

    /// The `apiVersion` of its objects.
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

    /// Whether it can be stored, listed and watched; reviews and bindings cannot.
    pub fn stored(&self) -> bool {
        !self.storage_hash.is_empty()
    }

    /// The subresource with this name.
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
