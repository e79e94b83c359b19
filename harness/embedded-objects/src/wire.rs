//! Objects as bytes: JSON in Go's order of fields, and Kubernetes protobuf.

mod encode;
mod parse;
mod text;

use serde_json::Value;

use crate::fields::{self, Body};
use crate::kinds::Kind;
use crate::schema::{self, TypeId};
use crate::status::{self, Status};
use crate::typed;

pub use text::{json, plain};

/// The content type of Kubernetes protobuf.
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// The content type of a watch in Kubernetes protobuf.
pub const PROTOBUF_WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// The first bytes of Kubernetes protobuf.
const MAGIC: &[u8; 4] = b"k8s\0";

/// Decodes an object in Kubernetes protobuf: its apiVersion, its kind, and the object in normal form.
///
/// # Errors
/// The message for bytes that are not such an object.
pub fn decode_protobuf(bytes: &[u8]) -> Result<(String, String, Value), String> {
    if bytes.is_empty() {
        return Err("empty data".to_owned());
    }
    let Some(body) = bytes.strip_prefix(MAGIC) else {
        return Err("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
            .to_owned());
    };
    let envelope = parse::envelope(body)?;
    let ty = schema::of_object(&envelope.api_version, &envelope.kind).ok_or_else(|| {
        let (version, kind) = (&envelope.api_version, &envelope.kind);
        format!("no kind {kind:?} is registered for version {version:?}")
    })?;
    let mut object = parse::message(ty, envelope.raw)?;
    if let Some(members) = object.as_object_mut() {
        members.insert("apiVersion".to_owned(), envelope.api_version.as_str().into());
        members.insert("kind".to_owned(), envelope.kind.as_str().into());
    }
    let object = typed::decode(ty, &object)?;
    Ok((envelope.api_version, envelope.kind, object))
}

/// Encodes an object, list, Status or options in Kubernetes protobuf.
///
/// # Errors
/// The message for an object whose type is not in the schema, or, like Table, has no protobuf.
pub fn encode_protobuf(object: &Value) -> Result<Vec<u8>, String> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    Ok(enveloped(api_version, kind, &encode::message(in_protobuf(api_version, kind)?, object)))
}

/// The protobuf bytes of an object's own fields, as in lists: without its apiVersion and kind.
///
/// # Errors
/// The message for a kind that has no protobuf.
pub fn encode_fields(kind: &Kind, object: &Value) -> Result<Vec<u8>, String> {
    Ok(encode::message(in_protobuf(&kind.api_version(), kind.kind)?, object))
}

/// Encodes an object in Kubernetes protobuf from its own fields ([`encode_fields`]).
pub fn encode_object(kind: &Kind, fields: &[u8]) -> Vec<u8> {
    enveloped(&kind.api_version(), kind.kind, fields)
}

/// Encodes a list in Kubernetes protobuf from the fields of its items ([`encode_fields`]).
///
/// # Errors
/// As for [`encode_fields`].
pub fn encode_list<'a>(
    kind: &Kind,
    metadata: &Value,
    items: impl Iterator<Item = &'a [u8]> + Clone,
) -> Result<Vec<u8>, String> {
    encode_list_of(&kind.api_version(), &kind.list_kind, metadata, items)
}

/// The same for a list that no kind has, such as one of metadata alone.
///
/// # Errors
/// As for [`encode_fields`].
pub fn encode_list_of<'a>(
    api_version: &str,
    list_kind: &str,
    metadata: &Value,
    items: impl Iterator<Item = &'a [u8]> + Clone,
) -> Result<Vec<u8>, String> {
    let metadata = encode::message(in_protobuf("meta.k8s.io/v1", "ListMeta")?, metadata);
    Ok(enveloped(api_version, list_kind, &encode::list(&metadata, items)))
}

/// Encodes an object that consists of its metadata, without its type. Managed fields may be given as their text.
///
/// # Errors
/// As for [`encode_fields`].
pub fn encode_metadata(metadata: &Value) -> Result<Vec<u8>, String> {
    Ok(encode::only(&encode::message(in_protobuf("meta.k8s.io/v1", "ObjectMeta")?, metadata)))
}

/// The first field in the bytes of an object's own fields: for every kind, the metadata. `None` if another
/// field is first.
pub fn first_field(fields: &[u8]) -> Option<&[u8]> {
    parse::first_field(fields)
}

fn in_protobuf(api_version: &str, kind: &str) -> Result<TypeId, String> {
    let known = schema::of_object(api_version, kind).filter(|ty| schema::get(*ty).in_protobuf());
    known.ok_or_else(|| format!("no kind {kind:?} is registered for version {api_version:?}"))
}

fn enveloped(api_version: &str, kind: &str, fields: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(encode::envelope(api_version, kind, fields));
    bytes
}

/// One event of a watch in Kubernetes protobuf: its length in four bytes, then the event.
///
/// # Errors
/// As for [`encode_protobuf`].
pub fn encode_watch_event(event: &str, object: &Value) -> Result<Vec<u8>, String> {
    let body = encode::watch_event(event, &encode_protobuf(object)?);
    let length = u32::try_from(body.len()).map_err(|_| "the event is longer than 4 GiB".to_owned())?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend(body);
    Ok(frame)
}

/// The type and object of one event of a watch, without its four bytes of length.
///
/// # Errors
/// The message for bytes that are not such an event.
pub fn decode_watch_event(bytes: &[u8]) -> Result<(String, Value), String> {
    let (event, object) = parse::watch_event(bytes)?;
    decode_protobuf(object).map(|(_, _, object)| (event, object))
}

/// Parses a protobuf body that must be of a kind.
///
/// # Errors
/// The Status for bytes that are not such an object.
pub fn read(kind: &Kind, bytes: &[u8]) -> Result<Body, Status> {
    read_as(kind.group, kind.version, kind.kind, bytes)
}

/// Parses a protobuf body that must be of a kind that is not served itself, such as `autoscaling/v1` `Scale`.
///
/// # Errors
/// As for [`read`].
pub fn read_as(group: &str, version: &str, kind: &str, bytes: &[u8]) -> Result<Body, Status> {
    let (api_version, sent_kind, object) = decode_protobuf(bytes).map_err(|why| {
        status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({})",
            fields::summary(bytes)
        ))
    })?;
    let sent_version = api_version.rsplit('/').next().unwrap_or_default();
    if sent_kind != kind || api_version != fields::joined(group, version) {
        return Err(fields::unknown_conversion(&sent_kind, sent_version, group, kind));
    }
    Ok(Body { object, warnings: Vec::new() })
}

/// Parses protobuf options such as `DeleteOptions`, which clients send in the API version of the object.
///
/// # Errors
/// As for [`read`].
pub fn read_options(kind: &str, bytes: &[u8]) -> Result<Body, Status> {
    let version = decode_protobuf(bytes).map(|(version, _, _)| version).unwrap_or_default();
    let (group, version) = version.rsplit_once('/').unwrap_or(("", &version));
    read_as(group, version, kind, bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn round_trip(object: Value) {
        let normal = typed::decode_object(&object).expect("it is of its type");
        let bytes = encode_protobuf(&normal).expect("its type is known");
        let (_, _, back) = decode_protobuf(&bytes).expect("it was just written");
        assert_eq!(back, normal);
    }

    #[test]
    fn objects_come_back_from_protobuf_as_they_went() {
        round_trip(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "labels": {"x": "y"},
            "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"manager": "m", "operation": "Update",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}]},
            "spec": {"ports": [{"port": 80, "targetPort": "web"}, {"port": 81, "targetPort": 8081}],
                "allocateLoadBalancerNodePorts": false, "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}}}),
        );
        round_trip(
            json!({"apiVersion": "v1", "kind": "Node", "spec": {"podCIDRs": ["10.0.0.0/24"], "taints": [
            {"key": "a", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}]},
            "status": {"capacity": {"cpu": "2", "memory": "1Gi"}, "conditions": [{"type": "Ready", "status": "True"}]}}),
        );
        round_trip(
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"leaseTransitions": 0,
            "renewTime": "2026-01-01T00:00:00.000001Z"}}),
        );
        round_trip(json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "AAEC"}, "type": "Opaque"}));
        round_trip(json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "status": {"user": {"extra": {"k": ["a", "b"]}}}}));
        round_trip(json!({"apiVersion": "v1", "kind": "NodeList", "metadata": {"resourceVersion": "5"},
            "items": [{"metadata": {"name": "a"}}]}));
        round_trip(json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": -1}));
        round_trip(status::stale(&crate::kinds::ALL[0], "x").body());
    }

    #[test]
    fn the_bytes_are_those_of_the_generated_code() {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
        let expected = b"k8s\0\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12\x0c\x22\x0aBackground\x1a\0\x22\0";
        assert_eq!(encode_protobuf(&options).expect("it is known"), expected);
    }

    #[test]
    fn verbs_are_a_message_of_their_own() {
        let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [
            {"name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "verbs": ["get", "list"]}]});
        // According to the numbers in k8s.io/apimachinery's generated.proto: an APIResourceList has
        // groupVersion (1) and resources (2); an APIResource has name (1), namespaced (2), kind (3), verbs
        // (4), singularName (6), group (8), version (9) and storageVersionHash (10); its verbs are a message
        // that has items (1).
        let verbs = b"\x22\x0b\x0a\x03get\x0a\x04list";
        let resource =
            [b"\x0a\x04pods\x10\x01\x1a\x03Pod".as_slice(), verbs, b"\x32\x03pod\x42\0\x4a\0\x52\0"];
        let resource = resource.concat();
        let mut body = b"\x0a\x02v1\x12".to_vec();
        body.push(u8::try_from(resource.len()).expect("it is short"));
        body.extend(resource);
        let bytes = encode_protobuf(&list).expect("it is known");
        let envelope = b"k8s\0\x0a\x15\x0a\x02v1\x12\x0fAPIResourceList\x12";
        let expected =
            [envelope.as_slice(), &[u8::try_from(body.len()).expect("it is short")], &body, b"\x1a\0\x22\0"];
        assert_eq!(bytes, expected.concat());
        round_trip(list);
    }

    #[test]
    fn definitions_of_custom_resources_come_back_with_their_schemas() {
        let schema = json!({"type": "object", "description": "d", "properties": {
            "a": {"type": "array", "items": {"type": "integer", "maximum": 10, "minimum": 0.5}},
            "b": {"type": "object", "additionalProperties": {"type": "string", "enum": ["x", "y"], "default": "x"}},
            "c": {"type": "object", "additionalProperties": true, "x-kubernetes-preserve-unknown-fields": true},
            "d": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "e": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}},
                "x-kubernetes-validations": [{"rule": "self.size() < 3", "message": "too many"}]},
            "f": {"type": "object", "additionalProperties": false, "dependencies": {"p": ["q"], "r": {"type": "object"}}},
            "g": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}], "nullable": true,
                "externalDocs": {"url": "u"}, "example": {"any": [1, null]}}}});
        round_trip(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "as.example.com"}, "spec": {"group": "example.com", "scope": "Cluster",
            "names": {"plural": "as", "kind": "A", "shortNames": ["x"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".a", "statusReplicasPath": ".b"}},
                "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".a"}]}],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                "clientConfig": {"caBundle": "AAEC", "service": {"name": "s", "namespace": "n", "port": 443}}}}}}));
    }

    #[test]
    fn a_schemas_bytes_are_those_of_the_generated_code() {
        let ty = schema::find("apiextensions/v1.JSONSchemaProps").expect("a type of the table");
        let field = |number: u32| schema::get(ty).by_number.iter().find(|field| field.number == number);
        // JSONSchemaPropsOrBool has allows (1) and schema (2); OrArray schema (1) and schemas (2); OrStringArray schema (1)
        // and property (2).
        let of = |value: Value| encode::message(ty, &value);
        let after = |bytes: &[u8], key: &[u8]| bytes.windows(key.len()).any(|window| window == key);
        assert!(field(30).is_some_and(|field| field.json == "additionalProperties"));
        assert!(after(&of(json!({"additionalProperties": false})), b"\xf2\x01\x02\x08\0"));
        let schema = of(json!({"type": "string"}));
        let holds = |head: &[u8], before: &[u8], number: u8, value: Value| {
            let mut held = before.to_vec();
            held.extend([number << 3 | 2, u8::try_from(schema.len()).expect("it is short")]);
            held.extend(&schema);
            let length = u8::try_from(held.len()).expect("it is short");
            after(&of(value), &[head, &[length], &held].concat())
        };
        assert!(holds(b"\xf2\x01", b"\x08\x01", 2, json!({"additionalProperties": {"type": "string"}})));
        assert!(holds(b"\xc2\x01", b"", 1, json!({"items": {"type": "string"}})));
        assert!(holds(b"\xc2\x01", b"", 2, json!({"items": [{"type": "string"}]})));
        let texts = of(json!({"dependencies": {"p": ["q"]}}));
        assert!(after(&texts, b"\x82\x02\x08\x0a\x01p\x12\x03\x12\x01q"));
    }

    #[test]
    fn a_list_of_fields_is_the_list_of_its_objects() {
        let kind = crate::kinds::find("", "v1", "nodes").expect("nodes are served");
        let node = |name: &str| json!({"metadata": {"name": name}, "spec": {"podCIDR": "10.0.0.0/24"}});
        let metadata = json!({"resourceVersion": "7", "continue": "x", "remainingItemCount": 3});
        let items = [node("a"), node("b")];
        let list = json!({"kind": "NodeList", "apiVersion": "v1", "metadata": metadata, "items": items});
        let fields = items.each_ref().map(|item| encode_fields(kind, item).expect("a node is known"));
        let written = encode_list(kind, &metadata, fields.iter().map(Vec::as_slice)).expect("so is a list");
        assert_eq!(written, encode_protobuf(&list).expect("the same"));
        let object = json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a"}});
        let fields = encode_fields(kind, &object).expect("a node is known");
        assert_eq!(encode_object(kind, &fields), encode_protobuf(&object).expect("the same"));
    }

    #[test]
    fn watch_events_are_framed() {
        let node =
            typed::decode_object(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}))
                .expect("a node");
        let frame = encode_watch_event("ADDED", &node).expect("a node is known");
        let length = u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]);
        assert_eq!(length as usize, frame.len() - 4);
        assert_eq!(decode_watch_event(&frame[4..]), Ok(("ADDED".to_owned(), node)));
    }

    #[test]
    fn bodies_that_are_not_objects_are_reported() {
        assert!(decode_protobuf(b"{}").expect_err("JSON").contains("expected prefix [107 56 115 0]"));
        assert_eq!(decode_protobuf(b""), Err("empty data".to_owned()));
        assert!(decode_protobuf(b"k8s\0\x0a\xff").is_err());
        assert!(encode_protobuf(&json!({"apiVersion": "meta.k8s.io/v1", "kind": "Table"})).is_err());
        let of_apps =
            encode_protobuf(&json!({"apiVersion": "apps/v1", "kind": "DeleteOptions"})).expect("known");
        assert!(read_options("DeleteOptions", &of_apps).is_ok());
        let node = crate::kinds::find("", "v1", "nodes").expect("nodes are served");
        let options = encode_protobuf(&json!({"apiVersion": "v1", "kind": "Pod"})).expect("it is known");
        assert!(read(node, &options).expect_err("a Pod").message.contains("cannot be handled as a Node"));
    }
}
