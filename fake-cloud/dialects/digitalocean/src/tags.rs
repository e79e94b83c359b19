//! Tags: auxiliary objects that list the resources they are attached to. The resources themselves do not know
//! their tags.

use super::errors;
use fake_cloud_driver::Auxiliary;
use fake_cloud_kit::Error;
use fake_cloud_model::{AuxSpec, Cloud};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// The kind of tags in the model, which is also the prefix of their ids.
const KIND: &str = "tag";

/// A resource as it is named in tags.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Resource {
    pub(super) resource_id: String,
    pub(super) resource_type: String,
}

impl Resource {
    pub(super) fn new(resource_type: &str, resource_id: &str) -> Resource {
        Resource { resource_id: resource_id.to_owned(), resource_type: resource_type.to_owned() }
    }
}

/// The body of a request that creates a tag.
#[derive(Deserialize)]
pub(super) struct NewTag {
    pub(super) name: String,
}

/// The body of a request that tags or untags resources.
#[derive(Deserialize)]
pub(super) struct Resources {
    pub(super) resources: Vec<Resource>,
}

impl Resources {
    /// The resources, if all of them exist. Kinds that this cloud does not have never exist.
    ///
    /// # Errors
    /// When one does not exist.
    pub(super) fn checked(self, cloud: &mut Cloud, now: Duration) -> Result<Vec<Resource>, Error> {
        for Resource { resource_id, resource_type } in &self.resources {
            let there = match resource_type.as_str() {
                "droplet" => cloud.instance(resource_id).is_ok(),
                "load_balancer" => cloud.load_balancer(resource_id, now).is_ok(),
                _ => false,
            };
            if !there {
                let text = format!("{resource_type:.40} {resource_id:.80} was not found");
                return Err(errors::invalid(text));
            }
        }
        Ok(self.resources)
    }
}

/// All tags with their resources.
#[derive(Debug, Default)]
pub(super) struct Tags(Vec<(String, Vec<Resource>)>);

impl Tags {
    /// All existing tags.
    pub(super) fn all(cloud: &Cloud) -> Tags {
        Tags(all(cloud).map(|aux| (aux.name.clone(), carried(aux))).collect())
    }

    /// The names of a resource's tags.
    pub(super) fn of(&self, resource_type: &str, resource_id: &str) -> Vec<&str> {
        let carries = |resource: &Resource| {
            resource.resource_type == resource_type && resource.resource_id == resource_id
        };
        let found = self.0.iter().filter(|(_, resources)| resources.iter().any(carries));
        found.map(|(name, _)| name.as_str()).collect()
    }
}

/// Creates a tag; an existing one is not changed. Returns its id if it is new.
///
/// # Errors
/// When the name is not valid.
pub(super) fn create(cloud: &mut Cloud, name: &str, now: Duration) -> Result<Option<String>, Error> {
    check_name(name)?;
    if find(cloud, name).is_some() {
        return Ok(None);
    }
    let aux = cloud.create_auxiliary(KIND, KIND, spec(name, Vec::new()), now)?;
    Ok(Some(aux.id.clone()))
}

/// Attaches a tag to all of these resources.
///
/// # Errors
/// When there is no such tag.
pub(super) fn tag(
    cloud: &mut Cloud,
    name: &str,
    resources: Vec<Resource>,
    now: Duration,
) -> Result<(), Error> {
    let (id, mut carried) = find(cloud, name).ok_or_else(errors::not_found)?;
    for resource in resources {
        if !carried.contains(&resource) {
            carried.push(resource);
        }
    }
    cloud.update_auxiliary(KIND, &id, spec(name, carried), now)?;
    Ok(())
}

/// Removes a tag from all of these resources.
///
/// # Errors
/// When there is no such tag.
pub(super) fn untag(
    cloud: &mut Cloud,
    name: &str,
    resources: &[Resource],
    now: Duration,
) -> Result<(), Error> {
    let (id, mut carried) = find(cloud, name).ok_or_else(errors::not_found)?;
    carried.retain(|resource| !resources.contains(resource));
    cloud.update_auxiliary(KIND, &id, spec(name, carried), now)?;
    Ok(())
}

/// Removes a deleted resource from all tags.
///
/// # Errors
/// None that a caller could handle.
pub(super) fn forget(cloud: &mut Cloud, resource: &Resource, now: Duration) -> Result<(), Error> {
    let carriers: Vec<String> =
        all(cloud).filter(|aux| carried(aux).contains(resource)).map(|aux| aux.name.clone()).collect();
    carriers.iter().try_for_each(|name| untag(cloud, name, std::slice::from_ref(resource), now))
}

/// A tag as the API shows it, if it exists.
pub(super) fn shown(cloud: &Cloud, name: &str) -> Option<Value> {
    let (_, carried) = find(cloud, name)?;
    let count = |kind: &str| carried.iter().filter(|resource| resource.resource_type == kind).count();
    Some(json!({
        "name": name,
        "resources": {
            "count": carried.len(),
            "droplets": {"count": count("droplet")},
            "images": {"count": 0},
            "volumes": {"count": 0},
            "volume_snapshots": {"count": 0},
            "databases": {"count": 0},
        },
    }))
}

fn all(cloud: &Cloud) -> impl Iterator<Item = &Auxiliary> {
    cloud.auxiliaries().filter(|aux| aux.kind == KIND)
}

fn find(cloud: &Cloud, name: &str) -> Option<(String, Vec<Resource>)> {
    all(cloud).find(|aux| aux.name == name).map(|aux| (aux.id.clone(), carried(aux)))
}

fn carried(aux: &Auxiliary) -> Vec<Resource> {
    // A tag that a test has created may contain anything; whatever is not a list of resources is ignored.
    aux.spec.get("resources").and_then(|list| Vec::deserialize(list).ok()).unwrap_or_default()
}

fn spec(name: &str, resources: Vec<Resource>) -> AuxSpec {
    AuxSpec {
        name: name.to_owned(),
        owner: String::new(),
        // Tags exist independently of their resources.
        load_balancer: None,
        spec: json!({"resources": resources}),
    }
}

/// Checks a tag's name: letters, numbers, colons, dashes and underscores, at most 255 of them.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_');
    if name.is_empty() || name.len() > 255 || !name.chars().all(allowed) {
        return Err(errors::invalid(
            "tag name must have 1 to 255 characters and may only contain letters, numbers, colons, dashes and \
             underscores",
        ));
    }
    Ok(())
}
