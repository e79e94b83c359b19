//! Resources that the model keeps as auxiliary objects: how they are stored, shown, and changed.

use super::errors::{exists, invalid, not_found, required};
use super::names::{CREATED, Scope, link, number, owner_in, project_link, short};
use super::operations::{self, Change};
use super::parts::{self, stored};
use super::query::{self, merged, reading, writing};
use fake_cloud_driver::{Auxiliary, Op};
use fake_cloud_kit::{Call, Error, Plan, Request};
use fake_cloud_model::{AuxSpec, Cloud};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// A kind of resource.
pub(super) trait Kind: 'static {
    /// The collection, as in paths: `firewalls`.
    const COLLECTION: &'static str;
    /// The kind, as in bodies: `compute#firewall`.
    const KIND: &'static str;
    /// The kind of the auxiliary object.
    const AUX: &'static str;
    /// The fields that are kept of a request; everything else is added by the cloud or not known.
    const FIELDS: &'static [&'static str];

    /// Checks the kept fields of a request, and adds what the cloud decides. `before` is what is stored so far.
    fn prepare(
        cloud: &mut Cloud,
        scope: &Scope,
        fields: Value,
        before: Option<&Value>,
        now: Duration,
    ) -> Result<Value, Error>;

    /// What the cloud shows in addition to the stored fields.
    fn complete(_cloud: &mut Cloud, _scope: &Scope, shown: Value, _now: Duration) -> Value {
        shown
    }

    /// Checks whether the resource with this name can be deleted.
    fn check_unused(_cloud: &mut Cloud, _scope: &Scope, _name: &str, _now: Duration) -> Result<(), Error> {
        Ok(())
    }

    /// Applies a change to the load balancers that depend on it; absent: there is none before or after.
    fn changed(
        _cloud: &mut Cloud,
        _before: Option<&Value>,
        _after: Option<&Value>,
        _now: Duration,
    ) -> Result<(), Error> {
        Ok(())
    }
}

/// The resource with this name.
pub(super) fn find<K: Kind>(cloud: &Cloud, scope: &Scope, name: &str) -> Option<Auxiliary> {
    parts::find(cloud, K::AUX, scope, name)
}

/// The shown form of a resource.
pub(super) fn shown<K: Kind>(cloud: &mut Cloud, scope: &Scope, aux: &Auxiliary, now: Duration) -> Value {
    let mut header = json!({
        "kind": K::KIND,
        "id": number(&format!("{} {}", aux.id, aux.name)).to_string(),
        "creationTimestamp": CREATED,
        "selfLink": link(scope, K::COLLECTION, &aux.name),
    });
    match scope {
        Scope::Region(region) => header["region"] = json!(project_link(&format!("/regions/{region}"))),
        Scope::Zone(zone) => header["zone"] = json!(project_link(&format!("/zones/{zone}"))),
        Scope::Global => {}
    }
    K::complete(cloud, scope, merged(header, stored(aux)), now)
}

pub(super) fn list<K: Kind>(request: &Request, scope: Scope) -> Plan {
    let place = (K::KIND, scope.clone(), K::COLLECTION);
    query::listing(request, Call::new(Op::AuxRead), place, move |cloud, now| {
        let all = cloud.list_auxiliaries(now).into_iter().filter(|aux| parts::is_at(aux, K::AUX, &scope));
        let all: Vec<Auxiliary> = all.cloned().collect();
        all.iter().map(|aux| shown::<K>(cloud, &scope, aux, now)).collect()
    })
}

/// A call about the resource with this name.
pub(super) fn call_on(op: Op, name: &str) -> Call {
    Call::on(op, name).owned_by(owner_in(name))
}

pub(super) fn get<K: Kind>(request: &Request, scope: Scope, name: &str) -> Plan {
    let name = name.to_owned();
    reading(request, call_on(Op::AuxRead, &name), move |cloud, now| {
        let aux = existing::<K>(cloud, &scope, &name)?;
        Ok(shown::<K>(cloud, &scope, &aux, now))
    })
}

/// The resource with this name, which has to exist.
pub(super) fn existing<K: Kind>(cloud: &Cloud, scope: &Scope, name: &str) -> Result<Auxiliary, Error> {
    find::<K>(cloud, scope, name).ok_or_else(|| not_found(&short(scope, K::COLLECTION, name)))
}

pub(super) fn insert<K: Kind>(request: &Request, scope: Scope) -> Plan {
    let name = name_of(request);
    let call = Call::new(Op::AuxCreate).keyed("name", &name).owned_by(owner_in(&name));
    let plan = writing(request, call, move |body, cloud, now| {
        check_name(&name)?;
        if find::<K>(cloud, &scope, &name).is_some() {
            return Err(exists(&short(&scope, K::COLLECTION, &name)));
        }
        let resource = K::prepare(cloud, &scope, kept(&body, K::FIELDS), None, now)?;
        let failure = cloud.take_action_failure();
        let change = Change::of("insert", &scope, K::COLLECTION, &name);
        let mut made = None;
        if failure.is_none() {
            let spec = spec(&scope, &name, resource.clone());
            made = Some(cloud.create_auxiliary(K::AUX, "aux", spec, now)?.id.clone());
            K::changed(cloud, None, Some(&merged(json!({ "name": name }), resource)), now)?;
        }
        let answer = operations::began(cloud, &change, failure, (now, now));
        Ok(made.iter().fold(answer, |answer, id| answer.creating(id)))
    });
    plan.with_unknown(unknown::<K>(request))
}

/// Changes the given fields (`merges`), or replaces all of them.
pub(super) fn update<K: Kind>(request: &Request, scope: Scope, name: &str, merges: bool) -> Plan {
    let name = name.to_owned();
    let plan = writing(request, call_on(Op::AuxUpdate, &name), move |body, cloud, now| {
        let aux = existing::<K>(cloud, &scope, &name)?;
        let before = stored(&aux);
        let fields = kept(&body, K::FIELDS);
        let fields = if merges { merged(aux.spec["resource"].clone(), fields) } else { fields };
        let after = K::prepare(cloud, &scope, fields, Some(&before), now)?;
        let failure = cloud.take_action_failure();
        if failure.is_none() {
            store::<K>(cloud, &scope, &aux, after, now)?;
        }
        let change = Change::of(if merges { "patch" } else { "update" }, &scope, K::COLLECTION, &name);
        Ok(operations::began(cloud, &change, failure, (now, now)))
    });
    plan.with_unknown(unknown::<K>(request))
}

/// Stores new fields of a resource.
pub(super) fn store<K: Kind>(
    cloud: &mut Cloud,
    scope: &Scope,
    aux: &Auxiliary,
    fields: Value,
    now: Duration,
) -> Result<(), Error> {
    let load_balancer = aux.load_balancer.clone();
    let spec = AuxSpec { load_balancer, ..spec(scope, &aux.name, fields.clone()) };
    cloud.update_auxiliary(K::AUX, &aux.id, spec, now)?;
    K::changed(cloud, Some(&stored(aux)), Some(&merged(json!({"name": aux.name}), fields)), now)
}

/// Makes these resources parts of a load balancer, or of none.
pub(super) fn attach(
    cloud: &mut Cloud,
    own: Vec<Auxiliary>,
    load_balancer: Option<&str>,
    now: Duration,
) -> Result<(), Error> {
    for Auxiliary { kind, id, name, owner, spec, .. } in own {
        let load_balancer = load_balancer.map(str::to_owned);
        cloud.update_auxiliary(&kind, &id, AuxSpec { name, owner, load_balancer, spec }, now)?;
    }
    Ok(())
}

pub(super) fn delete<K: Kind>(request: &Request, scope: Scope, name: &str) -> Plan {
    let name = name.to_owned();
    writing(request, call_on(Op::AuxDelete, &name), move |_, cloud, now| {
        let aux = existing::<K>(cloud, &scope, &name)?;
        K::check_unused(cloud, &scope, &name, now)?;
        let failure = cloud.take_action_failure();
        if failure.is_none() {
            cloud.delete_auxiliary(K::AUX, &aux.id)?;
            K::changed(cloud, Some(&stored(&aux)), None, now)?;
        }
        let change = Change::of("delete", &scope, K::COLLECTION, &name);
        Ok(operations::began(cloud, &change, failure, (now, now)))
    })
}

fn spec(scope: &Scope, name: &str, resource: Value) -> AuxSpec {
    AuxSpec {
        name: name.to_owned(),
        owner: owner_in(name).to_owned(),
        load_balancer: None,
        spec: json!({"scope": scope.path(), "resource": resource}),
    }
}

/// The name in the body of a request.
pub(super) fn name_of(request: &Request) -> String {
    let body = request.body::<Value>().unwrap_or(Value::Null);
    body["name"].as_str().unwrap_or_default().to_owned()
}

/// Checks the name of a new resource.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() {
        return Err(required("resource.name"));
    }
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let sound = name.len() <= 63
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.bytes().all(inside);
    let why = "Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'";
    if sound { Ok(()) } else { Err(invalid("resource.name", name, why)) }
}

/// The fields of a body that are kept: those that are neither null nor empty.
pub(super) fn kept(body: &Value, fields: &[&str]) -> Value {
    let used = fields.iter().filter_map(|field| Some(((*field).to_owned(), body.get(*field)?.clone())));
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    Value::Object(used.filter(|(_, value)| !is_empty(value)).collect::<Map<_, _>>())
}

/// The fields that clients send back because they have read them.
const SHOWN: &[&str] = &[
    "kind",
    "id",
    "name",
    "creationTimestamp",
    "selfLink",
    "selfLinkWithId",
    "region",
    "zone",
    "status",
    "users",
    "fingerprint",
    "labelFingerprint",
];

fn unknown<K: Kind>(request: &Request) -> Option<String> {
    unknown_field(request, K::FIELDS)
}

/// The first field of a body that this dialect does not know.
pub(super) fn unknown_field(request: &Request, fields: &[&str]) -> Option<String> {
    let body = request.body::<Value>().ok()?;
    let known = |key: &str| fields.contains(&key) || SHOWN.contains(&key);
    let unknown = body.as_object()?.keys().find(|key| !known(key))?;
    Some(format!("of the body: {unknown:.80}"))
}
