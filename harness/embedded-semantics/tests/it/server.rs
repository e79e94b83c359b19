//! A minimal server around the crate: objects by path, one revision counter, no network.

use std::collections::BTreeMap;

use embedded_objects::kinds::{self, Kind};
use embedded_objects::status::{self, Status};
use embedded_objects::{fields, patch};
use embedded_semantics::alloc::Allocator;
use embedded_semantics::lifecycle::{self, Context};
use serde_json::{Value, json};

pub(crate) const NOW: &str = "2026-01-02T03:04:05Z";
pub(crate) const UID: &str = "00000000-0000-0000-0000-000000000001";

/// The target of a request.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) kind: &'static Kind,
    pub(crate) namespace: String,
    pub(crate) name: Option<String>,
    pub(crate) sub: Option<String>,
}

impl Target {
    /// Parses a path without its query; `None` if it is not a resource.
    pub(crate) fn parse(path: &str) -> Option<Target> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let (plural, rest) = rest.split_first()?;
        Some(Target {
            kind: kinds::find(group, version, plural)?,
            namespace: namespace.to_owned(),
            name: rest.first().map(|name| (*name).to_owned()),
            sub: rest.get(1).map(|sub| (*sub).to_owned()),
        })
    }
}

/// The objects of one scenario.
pub(crate) struct Server {
    pub(crate) objects: BTreeMap<(String, String, String), Value>,
    allocator: Allocator,
    revision: u64,
}

impl Server {
    pub(crate) fn new() -> Server {
        let allocator = Allocator::new(&["10.96.0.0/16"]).expect("a right network");
        Server { objects: BTreeMap::new(), allocator, revision: 1 }
    }

    fn key(target: &Target, name: &str) -> (String, String, String) {
        (target.kind.resource(), target.namespace.clone(), name.to_owned())
    }

    fn put(&mut self, target: &Target, mut object: Value) -> Value {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = self.revision.to_string().into();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.objects.insert(Server::key(target, &name), object.clone());
        object
    }

    pub(crate) fn get(&self, target: &Target) -> Result<Value, Status> {
        let name = target.name.clone().unwrap_or_default();
        self.objects
            .get(&Server::key(target, &name))
            .cloned()
            .ok_or_else(|| status::not_found(target.kind, &name))
    }

    pub(crate) fn create(&mut self, target: &Target, body: &str) -> Result<Value, Status> {
        let mut object = fields::read(target.kind, body, fields::Mode::Warn)?.object;
        if object.get("metadata").is_none_or(Value::is_null) {
            object["metadata"] = json!({});
        }
        lifecycle::place(&mut object, &target.namespace)?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let object = lifecycle::create(target.kind, object, &mut context(&mut self.allocator))?;
        if self.objects.contains_key(&Server::key(target, &name)) {
            return Err(status::already_exists(target.kind, &name));
        }
        Ok(self.put(target, object))
    }

    fn store(&mut self, target: &Target, old: &Value, new: Value) -> Result<Value, Status> {
        let version = new["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let name = target.name.clone().unwrap_or_default();
        if !version.is_empty() && version != old["metadata"]["resourceVersion"] {
            return Err(status::stale(target.kind, &name));
        }
        let cx = &mut context(&mut self.allocator);
        let new = lifecycle::update(target.kind, target.sub.as_deref(), old, new, cx)?;
        let gone =
            new["metadata"].get("deletionTimestamp").is_some() && new["metadata"].get("finalizers").is_none();
        let stored = self.put(target, new);
        if gone {
            self.objects.remove(&Server::key(target, &name));
            lifecycle::released(target.kind, &stored, &mut self.allocator);
        }
        Ok(stored)
    }

    pub(crate) fn replace(&mut self, target: &Target, body: &str) -> Result<Value, Status> {
        let old = self.get(target)?;
        let mut object = fields::read(target.kind, body, fields::Mode::Warn)?.object;
        lifecycle::place(&mut object, &target.namespace)?;
        self.store(target, &old, object)
    }

    pub(crate) fn change(&mut self, target: &Target, kind: &str, body: &str) -> Result<Value, Status> {
        let old = self.get(target)?;
        let new = match kind {
            "application/json-patch+json" => patch::json(&old, body)?,
            "application/merge-patch+json" => patch::merge(&old, body)?,
            _ => patch::strategic(target.kind, &old, body)?,
        };
        self.store(target, &old, new)
    }

    pub(crate) fn delete(&mut self, target: &Target) -> Result<Value, Status> {
        let mut object = self.get(target)?;
        let name = target.name.clone().unwrap_or_default();
        if object["metadata"].get("finalizers").is_some() {
            object["metadata"]["deletionTimestamp"] = NOW.into();
            object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
            return Ok(self.put(target, object));
        }
        self.objects.remove(&Server::key(target, &name));
        lifecycle::released(target.kind, &object, &mut self.allocator);
        if target.kind.returns_deleted {
            return Ok(object);
        }
        Ok(status::deleted(target.kind, &name, UID).body())
    }
}

pub(crate) fn context(allocator: &mut Allocator) -> Context<'_> {
    Context {
        now: NOW,
        now_micro: "2026-01-02T03:04:05.000000Z",
        uid: UID,
        suffix: "abcde",
        allocator,
        minor: 36,
        dry_run: false,
    }
}
