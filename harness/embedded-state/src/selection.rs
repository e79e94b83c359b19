//! Which objects a list, a watch or a deletion of a collection selects.

use embedded_objects::kinds::Kind;
use embedded_objects::select::{Fields, Labels};
use embedded_objects::status::{self, Status};
use serde_json::{Map, Value};

use super::events::stored_kind;
use crate::query::Query;
use crate::store::Record;

/// The fields that selectors can use, over all kinds.
const SELECTABLE: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "spec.unschedulable",
    "spec.clusterIP",
    "spec.type",
    "spec.signerName",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
    "status.successful",
    "involvedObject",
    "regarding",
    "reason",
    "reportingComponent",
    "reportingController",
    "source",
    "deprecatedSource",
    "type",
];

/// The values of the selectable fields in an object.
#[must_use]
pub(super) fn fields_of(object: &Value) -> Vec<(&'static str, Value)> {
    let find = |path: &str| path.split('.').try_fold(object, |value, part| value.get(part));
    SELECTABLE.iter().filter_map(|path| Some((*path, find(path)?.clone()))).collect()
}

/// An object with only the selectable fields, in the form that selectors need.
fn expand(record: &Record) -> Value {
    let mut object = Map::new();
    for (path, value) in record.fields() {
        match path.split_once('.') {
            Some((outer, inner)) => {
                if let Some(map) = object.entry(outer).or_insert_with(|| Map::new().into()).as_object_mut() {
                    map.insert(inner.to_owned(), value.clone());
                }
            }
            None => {
                object.insert((*path).to_owned(), value.clone());
            }
        }
    }
    object.into()
}

/// A label and a field selector for one kind.
#[derive(Clone, Debug)]
pub struct Selection {
    kind: &'static Kind,
    labels: Labels,
    fields: Fields,
}

impl Selection {
    /// Parses `labelSelector` and `fieldSelector`; a name in the path counts as a selector for it.
    ///
    /// # Errors
    ///
    /// 400 for an invalid one.
    pub fn parse(kind: &'static Kind, query: &Query, name: Option<&str>) -> Result<Self, Status> {
        let labels =
            Labels::parse(query.get("labelSelector").unwrap_or_default()).map_err(status::bad_request)?;
        let mut text = query.get("fieldSelector").unwrap_or_default().to_owned();
        if let Some(name) = name {
            let asked = Fields::parse(kind, &text).map_err(status::bad_request)?;
            if !asked.is_empty() && asked.exact_name() != Some(name) {
                return Err(status::bad_request("fieldSelector metadata.name doesn't match requested name"));
            }
            text = format!("metadata.name={name}");
        }
        let fields = Fields::parse(kind, &text).map_err(status::bad_request)?;
        // The terms use the names of the form in which objects are stored.
        Ok(Self { kind: stored_kind(kind), labels, fields })
    }

    /// Whether all objects are selected.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether the object is selected.
    #[must_use]
    pub fn matches(&self, record: &Record) -> bool {
        if !self.labels.is_empty() && !self.labels.matches(record.labels()) {
            return false;
        }
        if self.fields.is_empty() {
            return true;
        }
        // The two fields that thousands of watchers use are compared without building an object.
        let differs = |path: &str, value: &str| self.fields.exact(path).is_some_and(|wanted| wanted != value);
        if differs("metadata.name", record.key().name())
            || differs("spec.nodeName", record.field("spec.nodeName"))
        {
            return false;
        }
        // The fields of a definition's selectors are not stored next to the object.
        let object = if self.kind.custom.is_some() { record.value() } else { expand(record) };
        self.fields.matches(self.kind, &object)
    }
}
