//! Tags: auxiliary objects that say which resources carry them. Nobody but a tag knows that something is tagged.

use super::errors;
use fake_cloud_driver::Auxiliary;
use fake_cloud_kit::Error;
use fake_cloud_model::{AuxSpec, Cloud};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// What the model calls tags, and what their ids begin with.
const KIND: &str = "tag";

/// A resource as tags name it.
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

/// Body that creates a tag.
#[derive(Deserialize)]
pub(super) struct NewTag {
    pub(super) name: String,
}

/// Body that tags or untags resources.
#[derive(Deserialize)]
pub(super) struct Resources {
    pub(super) resources: Vec<Resource>,
}

impl Resources {
    /// The resources, if all of them are there. Those this cloud has nothing of are not.
    ///
    /// # Errors
    /// When one is not.
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

/// All tags with what carries them.
#[derive(Debug, Default)]
pub(super) struct Tags(Vec<(String, Vec<Resource>)>);

impl Tags {
    /// All there are.
    pub(super) fn all(cloud: &Cloud) -> Tags {
        Tags(all(cloud).map(|aux| (aux.name.clone(), carried(aux))).collect())
    }

    /// Names of the tags that a resource carries.
    pub(super) fn of(&self, resource_type: &str, resource_id: &str) -> Vec<&str> {
        let carries = |resource: &Resource| {
            resource.resource_type == resource_type && resource.resource_id == resource_id
        };
        let found = self.0.iter().filter(|(_, resources)| resources.iter().any(carries));
        found.map(|(name, _)| name.as_str()).collect()
    }
}

/// Creates a tag; one that is there already stays as it is. Returns its id if it is new.
///
/// # Errors
/// When the name cannot be one.
pub(super) fn create(cloud: &mut Cloud, name: &str, now: Duration) -> Result<Option<String>, Error> {
    check_name(name)?;
    if find(cloud, name).is_some() {
        return Ok(None);
    }
    let aux = cloud.create_auxiliary(KIND, KIND, spec(name, Vec::new()), now)?;
    Ok(Some(aux.id.clone()))
}

/// Has all of these resources carry a tag.
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

/// Has none of these resources carry a tag any more.
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

/// Takes a resource that is gone off all tags.
///
/// # Errors
/// None that a caller could do anything about.
pub(super) fn forget(cloud: &mut Cloud, resource: &Resource, now: Duration) -> Result<(), Error> {
    let carriers: Vec<String> =
        all(cloud).filter(|aux| carried(aux).contains(resource)).map(|aux| aux.name.clone()).collect();
    carriers.iter().try_for_each(|name| untag(cloud, name, std::slice::from_ref(resource), now))
}

/// A tag as the API shows it, if it is there.
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
    // A tag that a test has put there may say anything; what is no list of resources is none.
    aux.spec.get("resources").and_then(|list| Vec::deserialize(list).ok()).unwrap_or_default()
}

fn spec(name: &str, resources: Vec<Resource>) -> AuxSpec {
    AuxSpec {
        name: name.to_owned(),
        owner: String::new(),
        // Tags outlive what carries them.
        load_balancer: None,
        spec: json!({"resources": resources}),
    }
}

/// Letters, numbers, colons, dashes and underscores, at most 255 of them.
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
