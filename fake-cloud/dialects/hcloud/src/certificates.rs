//! Certificates: the model's auxiliary objects that services of load balancers refer to.

use super::calls::{Now, ShownAction, check_labels, check_name, number, planned, planned_with, show_action};
use super::clock::Clock;
use super::details::{Details, OWNER_LABEL};
use super::errors;
use super::query;
use fake_cloud_driver::{Auxiliary, LoadBalancer, Op};
use fake_cloud_kit::{Answer, Body, Call, Error, Plan, Request};
use fake_cloud_model::{AuxSpec, Cloud};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The kind of certificates in the model, which is also the prefix of ids.
const CERTIFICATE: &str = "certificate";
/// For how many days a certificate is valid.
const VALID_DAYS: u64 = 90;

#[derive(Serialize)]
struct Shown<'a> {
    id: u64,
    name: &'a str,
    labels: BTreeMap<String, String>,
    #[serde(rename = "type")]
    kind: &'a Value,
    certificate: &'a Value,
    created: &'a Value,
    not_valid_before: &'a Value,
    not_valid_after: &'a Value,
    domain_names: &'a Value,
    fingerprint: &'a Value,
    status: Option<Status>,
    used_by: Vec<User>,
}

/// The status of a managed certificate.
#[derive(Serialize)]
struct Status {
    issuance: &'static str,
    renewal: &'static str,
    error: Option<&'static str>,
}

#[derive(Serialize)]
struct User {
    id: u64,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Created<'a> {
    certificate: Shown<'a>,
    action: Option<ShownAction>,
}

/// Whether there is a certificate with this id.
pub(super) fn exists(cloud: &Cloud, id: u64) -> bool {
    cloud.auxiliary(CERTIFICATE, &id.to_string()).is_ok()
}

fn get<'a>(cloud: &'a Cloud, id: &str) -> Result<&'a Auxiliary, Error> {
    cloud.auxiliary(CERTIFICATE, id).map_err(|_| errors::not_found("certificate", id))
}

/// The load balancers that use each certificate.
fn users(cloud: &mut Cloud, now: Now) -> BTreeMap<u64, Vec<u64>> {
    let mut users: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for lb in cloud.load_balancers(now.time) {
        for certificate in used_by(lb) {
            users.entry(certificate).or_default().push(number(&lb.id));
        }
    }
    users
}

fn used_by(lb: &LoadBalancer) -> Vec<u64> {
    let mut used: Vec<u64> = Details::of(lb)
        .services
        .into_values()
        .filter_map(|service| service.http)
        .flat_map(|http| http.certificates)
        .collect();
    used.sort_unstable();
    used.dedup();
    used
}

fn show<'a>(aux: &'a Auxiliary, users: &BTreeMap<u64, Vec<u64>>) -> Shown<'a> {
    const NONE: &Value = &Value::Null;
    let id = number(&aux.id);
    let part = |key: &str| aux.spec.get(key).unwrap_or(NONE);
    let managed = part("type") == "managed";
    let users = users.get(&id).map(Vec::as_slice).unwrap_or_default();
    Shown {
        id,
        name: &aux.name,
        labels: labels(aux),
        kind: part("type"),
        certificate: part("certificate"),
        created: part("created"),
        not_valid_before: part("not_valid_before"),
        not_valid_after: part("not_valid_after"),
        domain_names: part("domain_names"),
        fingerprint: part("fingerprint"),
        status: managed.then_some(Status { issuance: "completed", renewal: "scheduled", error: None }),
        used_by: users.iter().map(|id| User { id: *id, kind: "load_balancer" }).collect(),
    }
}

fn labels(aux: &Auxiliary) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<String, String> =
        aux.spec.get("labels").and_then(|labels| BTreeMap::deserialize(labels).ok()).unwrap_or_default();
    if !aux.owner.is_empty() {
        labels.insert(OWNER_LABEL.to_owned(), aux.owner.clone());
    }
    labels
}

fn label<'a>(aux: &'a Auxiliary, key: &str) -> Option<&'a str> {
    if key == OWNER_LABEL {
        return Some(aux.owner.as_str()).filter(|owner| !owner.is_empty());
    }
    aux.spec.get("labels")?.get(key)?.as_str()
}

pub(super) fn list(clock: Clock, request: &Request) -> Plan {
    let query = query::list(request, &["name", "label_selector", "type"], &["id", "name", "created"]);
    let mut call = Call::new(Op::AuxRead);
    for (key, value) in query.filters() {
        call = call.keyed(key, value);
    }
    if let Some(owner) = query.besides.wanted_label(OWNER_LABEL) {
        call = call.owned_by(owner);
    }
    planned(clock, call, query, |query, cloud, now| {
        let limit = cloud.page_size();
        let users = users(cloud, now);
        let kind =
            |aux: &Auxiliary| aux.spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let fits = |aux: &&Auxiliary| {
            aux.kind == CERTIFICATE
                && query.fits("name", &aux.name)
                && query.fits("type", &kind(aux))
                && query.besides.selects(|key| label(aux, key))
        };
        let found: Vec<&Auxiliary> = cloud.list_auxiliaries(now.time).into_iter().filter(fits).collect();
        let value = |aux: &&Auxiliary, key: &str| match key {
            "name" => aux.name.clone(),
            "created" => aux.spec.get("created").and_then(Value::as_str).unwrap_or_default().to_owned(),
            _ => aux.id.clone(),
        };
        Ok(query::page(query, "certificates", limit, found, value, |aux| show(aux, &users)))
    })
}

pub(super) fn read(clock: Clock, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(clock, Call::on(Op::AuxRead, &id), query::none(request), move |_, cloud, now| {
        let users = users(cloud, now);
        Ok(Answer::one(200, "certificate", &show(get(cloud, &id)?, &users)))
    })
}

/// The body of a request that creates a certificate.
#[derive(Deserialize)]
struct New {
    #[serde(default)]
    name: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    domain_names: Vec<String>,
    certificate: Option<String>,
    private_key: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

pub(super) fn create(clock: Clock, request: &Request) -> Plan {
    let body: Body<New> = Body::of(request);
    let mut call = Call::new(Op::AuxCreate);
    if let Ok(new) = &body.value {
        let owner = new.labels.get(OWNER_LABEL).map(String::as_str).unwrap_or_default();
        call = call.keyed("name", &new.name).owned_by(owner);
    }
    planned_with(clock, call, request, body, |new, cloud, now| {
        check_name(&new.name)?;
        check_labels(&new.labels)?;
        check_free(cloud, &new.name, None)?;
        let managed = new.is_managed()?;
        let failure = if managed { cloud.take_action_failure() } else { None };
        let id =
            cloud.create_auxiliary(CERTIFICATE, CERTIFICATE, new.spec(now, managed), now.time)?.id.clone();
        let action = managed.then(|| {
            let resources = vec![(CERTIFICATE.to_owned(), id.clone())];
            show_action(
                cloud.begin_action("create_certificate", resources, failure, (now.time, now.time)),
                now,
            )
        });
        let certificate = show(get(cloud, &id)?, &BTreeMap::new());
        Ok(Answer::json(201, &Created { certificate, action }).creating(&id))
    })
}

impl New {
    fn is_managed(&self) -> Result<bool, Error> {
        let is_pem = |text: &Option<String>| text.as_deref().is_some_and(|text| text.contains("-----BEGIN"));
        match self.kind.as_deref().unwrap_or("uploaded") {
            "managed" if self.domain_names.is_empty() => Err(errors::missing("domain_names")),
            "managed" => Ok(true),
            "uploaded" if !is_pem(&self.certificate) => {
                Err(errors::field("certificate", "is not a certificate in PEM form"))
            }
            "uploaded" if !is_pem(&self.private_key) => {
                Err(errors::field("private_key", "is not a key in PEM form"))
            }
            "uploaded" => Ok(false),
            _ => Err(errors::field("type", "must be one of managed, uploaded")),
        }
    }

    /// The content that the model keeps. The key is not included: no caller can read it back.
    fn spec(mut self, now: Now, managed: bool) -> AuxSpec {
        let owner = self.labels.remove(OWNER_LABEL).unwrap_or_default();
        let spec = json!({
            "type": if managed { "managed" } else { "uploaded" },
            "labels": self.labels,
            "certificate": self.certificate,
            "created": now.text(),
            "not_valid_before": now.text(),
            "not_valid_after": now.clock.text_after_days(now.time, VALID_DAYS),
            "domain_names": self.domain_names,
            "fingerprint": "03:c7:55:9b:2a:d1:04:17:09:f6:d0:7f:18:34:63:d4:3e:5f:fa:ce",
        });
        AuxSpec { name: self.name, owner, load_balancer: None, spec }
    }
}

fn check_free(cloud: &mut Cloud, name: &str, except: Option<&str>) -> Result<(), Error> {
    let same =
        |aux: &Auxiliary| aux.kind == CERTIFICATE && aux.name == name && Some(aux.id.as_str()) != except;
    if cloud.auxiliaries().any(same) { Err(errors::taken(name)) } else { Ok(()) }
}

/// The body of a request that renames a certificate.
#[derive(Deserialize)]
struct Rename {
    name: Option<String>,
    labels: Option<BTreeMap<String, String>>,
}

pub(super) fn rename(clock: Clock, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    let body: Body<Rename> = Body::of(request);
    planned_with(clock, Call::on(Op::AuxUpdate, &id), request, body, move |rename, cloud, now| {
        let aux = get(cloud, &id)?.clone();
        let mut spec =
            AuxSpec { name: aux.name, owner: aux.owner, load_balancer: aux.load_balancer, spec: aux.spec };
        if let Some(name) = rename.name {
            check_name(&name)?;
            check_free(cloud, &name, Some(&id))?;
            spec.name = name;
        }
        if let Some(mut labels) = rename.labels {
            check_labels(&labels)?;
            spec.owner = labels.remove(OWNER_LABEL).unwrap_or_default();
            spec.spec["labels"] = json!(labels);
        }
        cloud.update_auxiliary(CERTIFICATE, &id, spec, now.time)?;
        let users = users(cloud, now);
        Ok(Answer::one(200, "certificate", &show(get(cloud, &id)?, &users)))
    })
}

pub(super) fn delete(clock: Clock, request: &Request, id: &str) -> Plan {
    let id = id.to_owned();
    planned(clock, Call::on(Op::AuxDelete, &id), query::none(request), move |_, cloud, now| {
        get(cloud, &id)?;
        if users(cloud, now).contains_key(&number(&id)) {
            return Err(Error::said(409, "resource_in_use", "the certificate is used by a load_balancer"));
        }
        cloud.delete_auxiliary(CERTIFICATE, &id)?;
        Ok(Answer::empty(204))
    })
}
