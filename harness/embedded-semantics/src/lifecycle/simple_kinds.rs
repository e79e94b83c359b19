//! Kinds with few rules: ConfigMap, Secret, Namespace, ServiceAccount, Lease, CSINode, CertificateSigningRequest.
//!
//! Source: `pkg/apis/core/validation/validation.go`, `pkg/apis/coordination/validation`, and their registries.

use base64::Engine as _;
use serde_json::{Value, json};

use super::strategy::Strategy;
use super::{Context, meta};
use embedded_objects::cause::Cause;
use embedded_objects::kinds::Kind;
use embedded_objects::rules::names;
use embedded_objects::value::{Edit as _, PathAccess as _};

/// How many bytes a ConfigMap or Secret may contain.
const DATA_LIMIT: usize = 1 << 20;
const LOCKED: &str = "field is immutable when `immutable` is set";

pub(super) struct ConfigMap;
pub(super) struct Secret;
pub(super) struct Namespace;
pub(super) struct ServiceAccount;
pub(super) struct Lease;
pub(super) struct SigningRequest;

fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    base64::engine::general_purpose::STANDARD.decode(text).map(|bytes| bytes.len()).unwrap_or_default()
}

fn key_faults(causes: &mut Vec<Cause>, list: &str, key: &str) {
    let field = format!("{list}[{key}]");
    causes.extend(names::data_key(key).iter().map(|fault| Cause::invalid(field.clone(), key, fault)));
}

/// The causes for changes after `immutable` was set.
fn locked(old: &Value, new: &Value, lists: &[&str]) -> Vec<Cause> {
    let mut causes = Vec::new();
    if old.truth("immutable") {
        if !new.truth("immutable") {
            causes.push(Cause::forbidden("immutable", LOCKED));
        }
        let changed = lists.iter().filter(|list| old.at(list) != new.at(list));
        causes.extend(changed.map(|list| Cause::forbidden(*list, LOCKED)));
    }
    causes
}

impl ConfigMap {
    fn validate(object: &Value) -> Vec<Cause> {
        let mut causes = Vec::new();
        let mut size = 0;
        for (key, value) in object.map("data") {
            key_faults(&mut causes, "data", key);
            if object.map("binaryData").contains_key(key) {
                let why = "duplicate of key present in binaryData";
                causes.push(Cause::invalid(format!("data[{key}]"), key.as_str(), why));
            }
            size += value.as_str().map(str::len).unwrap_or_default();
        }
        for (key, value) in object.map("binaryData") {
            key_faults(&mut causes, "binaryData", key);
            size += decoded_length(value);
        }
        if size > DATA_LIMIT {
            causes.push(Cause::too_long("", DATA_LIMIT));
        }
        causes
    }
}

impl Strategy for ConfigMap {
    fn validate_create(&self, object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        ConfigMap::validate(object)
    }

    fn validate_update(
        &self,
        kind: &Kind,
        _sub: Option<&str>,
        old: &Value,
        new: &Value,
        _cx: &Context<'_>,
    ) -> Vec<Cause> {
        let mut causes = meta::changed(old, new);
        causes.extend(locked(old, new, &["data", "binaryData"]));
        causes.extend(meta::created(kind, new));
        causes.extend(ConfigMap::validate(new));
        causes
    }
}

impl Secret {
    fn validate(object: &Value) -> Vec<Cause> {
        let mut causes = Vec::new();
        let data = object.map("data");
        for key in data.keys() {
            key_faults(&mut causes, "data", key);
        }
        if data.values().map(decoded_length).sum::<usize>() > DATA_LIMIT {
            causes.push(Cause::too_long("data", DATA_LIMIT));
        }
        let mut need = |key: &str| {
            if !data.contains_key(key) {
                causes.push(Cause::required(format!("data[{key}]"), ""));
            }
        };
        match object.text("type") {
            "kubernetes.io/service-account-token" => {
                let note = "kubernetes.io/service-account.name";
                let named = object.at("metadata.annotations").get(note).and_then(Value::as_str);
                if named.unwrap_or_default().is_empty() {
                    causes.push(Cause::required(format!("metadata.annotations[{note}]"), ""));
                }
            }
            "kubernetes.io/dockercfg" => need(".dockercfg"),
            "kubernetes.io/dockerconfigjson" => need(".dockerconfigjson"),
            "kubernetes.io/basic-auth"
                if !data.contains_key("username") && !data.contains_key("password") =>
            {
                need("username");
                need("password");
            }
            "kubernetes.io/ssh-auth" => need("ssh-privatekey"),
            "kubernetes.io/tls" => {
                need("tls.crt");
                need("tls.key");
            }
            _ => {}
        }
        causes
    }
}

impl Strategy for Secret {
    fn default(&self, object: &mut Value) {
        object.put_default("type", "Opaque");
        // Values that were sent as plain text are only stored as data.
        if let Some(Value::Object(plain)) = object.clear("stringData") {
            let engine = base64::engine::general_purpose::STANDARD;
            for (key, value) in plain {
                let value = engine.encode(value.as_str().unwrap_or_default());
                object.object("data").insert(key, value.into());
            }
        }
    }

    fn validate_create(&self, object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        Secret::validate(object)
    }

    fn prepare_update(&self, _sub: Option<&str>, old: &Value, new: &mut Value, _cx: &mut Context<'_>) {
        let kind = old.at("type").clone();
        new.put_default("type", kind);
    }

    fn validate_update(
        &self,
        kind: &Kind,
        _sub: Option<&str>,
        old: &Value,
        new: &Value,
        _cx: &Context<'_>,
    ) -> Vec<Cause> {
        let mut causes = meta::changed(old, new);
        causes.extend(meta::immutable(old, new, "type"));
        causes.extend(locked(old, new, &["data"]));
        causes.extend(meta::created(kind, new));
        causes.extend(Secret::validate(new));
        causes
    }
}

impl Strategy for Namespace {
    fn default(&self, object: &mut Value) {
        let name = object.text("metadata.name").to_owned();
        if !name.is_empty() {
            let labels = object.object("metadata.labels");
            labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
        }
        object.put_default("status.phase", "Active");
    }

    fn prepare_create(&self, object: &mut Value, _cx: &mut Context<'_>) {
        // A generated name gets its label here.
        self.default(object);
        object.put("status", json!({"phase": "Active"}));
        let mut finalizers = object.list("spec.finalizers").to_vec();
        if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
            finalizers.push("kubernetes".into());
            object.put("spec.finalizers", finalizers);
        }
    }

    fn validate_create(&self, object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        finalizer_causes(object, |_| "spec.finalizers".to_owned())
    }

    fn prepare_update(&self, sub: Option<&str>, old: &Value, new: &mut Value, _cx: &mut Context<'_>) {
        match sub {
            Some("status") => new.put("spec", old.at("spec").clone()),
            Some(_) => new.put("status", old.at("status").clone()),
            None => {
                new.put("spec.finalizers", old.at("spec.finalizers").clone());
                new.put("status", old.at("status").clone());
            }
        }
    }

    fn validate_update(
        &self,
        _kind: &Kind,
        sub: Option<&str>,
        old: &Value,
        new: &Value,
        _cx: &Context<'_>,
    ) -> Vec<Cause> {
        let mut causes = meta::changed(old, new);
        match sub {
            Some("status") => {
                let phase = new.text("status.phase");
                let deleted = new.has("metadata.deletionTimestamp");
                let due = if deleted { "Terminating" } else { "Active" };
                if phase != due {
                    let when = if deleted { "not empty" } else { "empty" };
                    let why = format!("may only be '{due}' if `deletionTimestamp` is {when}");
                    causes.push(Cause::invalid("status.Phase", phase, why));
                }
            }
            Some(_) => causes.extend(finalizer_causes(new, |at| format!("spec.finalizers[{at}]"))),
            None => {}
        }
        causes
    }
}

/// The causes for the finalizers of a namespace: they must be built-in, or have a domain.
fn finalizer_causes(object: &Value, field: impl Fn(usize) -> String) -> Vec<Cause> {
    let list = object.list("spec.finalizers");
    let mut causes = Vec::new();
    for (at, finalizer) in list.iter().filter_map(Value::as_str).enumerate() {
        let faults = names::qualified(finalizer);
        causes.extend(faults.iter().map(|fault| Cause::invalid(field(at), finalizer, fault)));
    }
    if causes.is_empty() {
        causes = meta::finalizer_names(list, field);
    }
    causes
}

impl Strategy for ServiceAccount {
    fn validate_update(
        &self,
        kind: &Kind,
        _sub: Option<&str>,
        old: &Value,
        new: &Value,
        _cx: &Context<'_>,
    ) -> Vec<Cause> {
        let mut causes = meta::changed(old, new);
        causes.extend(meta::created(kind, new));
        causes
    }
}

impl Lease {
    fn validate(object: &Value) -> Vec<Cause> {
        let mut causes = Vec::new();
        let path = "spec.leaseDurationSeconds";
        if let Some(seconds) = object.at(path).as_i64().filter(|seconds| *seconds <= 0) {
            causes.push(Cause::invalid(path, seconds, "must be greater than 0"));
        }
        let path = "spec.leaseTransitions";
        if let Some(count) = object.at(path).as_i64().filter(|count| *count < 0) {
            causes.push(Cause::invalid(path, count, "must be greater than or equal to 0"));
        }
        let strategy = object.text("spec.strategy");
        if strategy.is_empty() && !object.text("spec.preferredHolder").is_empty() {
            let why = "may only be specified if `strategy` is defined";
            causes.push(Cause::forbidden("spec.preferredHolder", why));
        }
        causes
    }
}

impl Strategy for Lease {
    fn prepare_create(&self, object: &mut Value, _cx: &mut Context<'_>) {
        coordinated_fields(object);
    }

    fn validate_create(&self, object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        Lease::validate(object)
    }

    fn prepare_update(&self, _sub: Option<&str>, _old: &Value, new: &mut Value, _cx: &mut Context<'_>) {
        coordinated_fields(new);
    }

    fn validate_update(
        &self,
        _kind: &Kind,
        _sub: Option<&str>,
        old: &Value,
        new: &Value,
        _cx: &Context<'_>,
    ) -> Vec<Cause> {
        let mut causes = meta::changed(old, new);
        causes.extend(Lease::validate(new));
        causes
    }
}

/// Removes the fields of coordinated leader election, which is off by default.
fn coordinated_fields(lease: &mut Value) {
    lease.clear("spec.strategy");
    lease.clear("spec.preferredHolder");
}

impl Strategy for SigningRequest {
    fn default(&self, object: &mut Value) {
        if object.list("spec.usages").is_empty() {
            object.put("spec.usages", json!(["digital signature", "key encipherment"]));
        }
    }

    fn prepare_create(&self, object: &mut Value, _cx: &mut Context<'_>) {
        object.put("status", json!({}));
    }

    fn validate_create(&self, object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        let mut causes = Vec::new();
        if object.text("spec.request").is_empty() {
            let why = "PEM block type must be CERTIFICATE REQUEST";
            causes.push(Cause::invalid("spec.request", Value::Null, why));
        }
        let signer = object.text("spec.signerName");
        if signer.is_empty() {
            causes.push(Cause::required("spec.signerName", ""));
        } else if !signer.contains('/') {
            let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            causes.push(Cause::invalid("spec.signerName", signer, why));
        }
        causes
    }

    fn prepare_update(&self, sub: Option<&str>, old: &Value, new: &mut Value, _cx: &mut Context<'_>) {
        // A request is immutable; its status and its approval are changed through subresources.
        new.put("spec", old.at("spec").clone());
        match sub {
            None => new.put("status", old.at("status").clone()),
            Some("approval") => {
                let certificate = old.at("status.certificate").clone();
                if certificate.is_null() {
                    new.clear("status.certificate");
                } else {
                    new.put("status.certificate", certificate);
                }
            }
            Some(_) => {}
        }
    }
}
