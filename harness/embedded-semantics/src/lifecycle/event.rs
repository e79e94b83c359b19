//! Events of both groups. An event is the same object in both groups, in different forms.
//!
//! Source: `pkg/apis/core/validation/events.go`, `pkg/apis/events/v1/conversion.go`.

use serde_json::Value;

use super::strategy::Strategy;
use super::{Context, meta};
use embedded_objects::cause::Cause;
use embedded_objects::kinds::Kind;
use embedded_objects::rules::names;
use embedded_objects::value::{Edit as _, PathAccess as _};

/// The names of a member in the core group and in events.k8s.io.
const PAIRS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Converts an event of the core group to the form in events.k8s.io.
pub fn event_from_core(event: &Value) -> Value {
    renamed(event, "events.k8s.io/v1", PAIRS.iter().copied())
}

/// Converts an event of events.k8s.io to the form in the core group.
pub fn event_to_core(event: &Value) -> Value {
    renamed(event, "v1", PAIRS.iter().map(|(core, new)| (*new, *core)))
}

fn renamed<'a>(event: &Value, api_version: &str, pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let mut out = event.clone();
    for (from, to) in pairs {
        if let Some(value) = out.clear(from) {
            out.put(to, value);
        }
    }
    out.put("apiVersion", api_version);
    // A stored object has no kind, and only an object with a kind is written according to its type.
    out.put("kind", "Event");
    embedded_objects::typed::decode_object(&out).unwrap_or(out)
}

/// The group of an event: the core group, or the newer one.
pub(super) enum Event {
    Core,
    New,
}

impl Strategy for Event {
    fn validate_create(&self, object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        let mut causes = self.both(object);
        if matches!(self, Event::New) {
            causes.extend(series(object));
            if !object.has("eventTime") {
                causes.push(Cause::required("eventTime", ""));
            }
            let kind = object.text("type");
            if !matches!(kind, "Normal" | "Warning") {
                causes.push(Cause::invalid("type", "", format!("has invalid value: {kind}")));
            }
            let unset = [
                ("firstTimestamp", object.has("deprecatedFirstTimestamp")),
                ("lastTimestamp", object.has("deprecatedLastTimestamp")),
                ("count", object.int("deprecatedCount") != 0),
                ("source", !object.map("deprecatedSource").is_empty()),
            ];
            causes.extend(
                unset
                    .into_iter()
                    .filter(|(_, set)| *set)
                    .map(|(field, _)| Cause::invalid(field, "", "needs to be unset")),
            );
        }
        causes
    }

    fn validate_update(
        &self,
        _kind: &Kind,
        _sub: Option<&str>,
        old: &Value,
        new: &Value,
        _cx: &Context<'_>,
    ) -> Vec<Cause> {
        let mut causes = self.both(new);
        if matches!(self, Event::New) {
            causes.extend(meta::changed(old, new));
            if old.at("series") != new.at("series") {
                causes.extend(series(new));
            }
            let fields = [
                "regarding",
                "reason",
                "note",
                "deprecatedSource",
                "deprecatedFirstTimestamp",
                "deprecatedLastTimestamp",
                "deprecatedCount",
                "reason",
                "type",
                "eventTime",
                "action",
                "related",
                "reportingController",
                "reportingInstance",
            ];
            for field in fields.iter().filter(|field| old.at(field) != new.at(field)) {
                // The server names the fields as the core group does.
                let core = PAIRS.iter().find(|(_, new)| new == field).map(|(core, _)| *core);
                let named = match core {
                    Some("reportingComponent") | None => *field,
                    Some(core) => core,
                };
                causes.push(Cause::invalid(named, new.at(field).clone(), "field is immutable"));
            }
        }
        causes
    }
}

fn series(event: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if event.has("series") {
        if event.int("series.count") < 2 {
            causes.push(Cause::invalid("series.count", "", "should be at least 2"));
        }
        if !event.has("series.lastObservedTime") {
            causes.push(Cause::required("series.lastObservedTime", ""));
        }
    }
    causes
}

impl Event {
    fn both(&self, event: &Value) -> Vec<Cause> {
        let mut causes = Vec::new();
        let (about, message, reporter) = match self {
            Event::Core => ("involvedObject", "message", "reportingComponent"),
            Event::New => ("regarding", "note", "reportingController"),
        };
        let own = event.text("metadata.namespace");
        let about = event.text(&format!("{about}.namespace"));
        let misplaced =
            || Cause::invalid("involvedObject.namespace", about, "does not match event.namespace");
        if !event.has("eventTime") {
            let fits = if about.is_empty() { own.is_empty() || own == "default" } else { own == about };
            if !fits {
                causes.push(misplaced());
            }
        } else {
            if about.is_empty() && own != "default" && own != "kube-system" {
                causes.push(misplaced());
            }
            let controller = event.text(reporter);
            if controller.is_empty() {
                causes.push(Cause::required(reporter, ""));
            }
            let faults = names::qualified(controller);
            causes.extend(faults.iter().map(|fault| Cause::invalid(reporter, controller, fault)));
            for (field, limit) in [("reportingInstance", 128), ("action", 128), ("reason", 128)] {
                let text = event.text(field);
                if text.is_empty() {
                    causes.push(Cause::required(field, ""));
                }
                if text.len() > limit {
                    causes.push(Cause::invalid(field, "", format!("can have at most {limit} characters")));
                }
            }
            if event.text(message).len() > 1024 {
                causes.push(Cause::invalid("message", "", "can have at most 1024 characters"));
            }
        }
        causes.extend(names::subdomain(own).iter().map(|fault| Cause::invalid("namespace", own, fault)));
        causes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_has_in_each_group_the_members_that_the_group_writes() {
        let core = json!({"metadata": {"name": "a"}, "involvedObject": {"kind": "Pod"}, "reason": "R", "message": "m",
            "source": {}, "firstTimestamp": null, "lastTimestamp": null, "count": 1, "eventTime": null,
            "reportingComponent": "", "reportingInstance": ""});
        let new = event_from_core(&core);
        assert_eq!((&new["note"], &new["deprecatedCount"]), (&json!("m"), &json!(1)));
        for empty in ["reportingController", "reportingInstance"] {
            assert!(new.get(empty).is_none(), "{new}");
        }
        let back = event_to_core(&new);
        for written in ["reportingComponent", "reportingInstance", "message", "involvedObject"] {
            assert_eq!(back[written], core[written], "{back}");
        }
    }
}
