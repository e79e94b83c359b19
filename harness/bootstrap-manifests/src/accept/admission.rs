//! Rules about the configuration of admission: webhooks, policies and the labels of Pod security
//! (`pkg/apis/admissionregistration/validation`, `k8s.io/pod-security-admission`).

use super::answer::{Answer, Refusal};
use crate::manifest::{Node, Object, Objects};

/// Refuses configurations of admission that the API server refuses.
pub(super) fn check(objects: &Objects, answer: &mut Answer) {
    for (index, object) in objects.all.iter().enumerate() {
        let mut refuse = |node: &Node, what: String, hint: &str| {
            if !node.holds_placeholder() {
                let place = object.place(node);
                answer.refusals.push(Refusal { object: index, place, what, hint: hint.to_owned() });
            }
        };
        super::expressions::check(object, &mut refuse);
        match object.kind.as_str() {
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
                webhooks(object, &mut refuse);
            }
            "ValidatingAdmissionPolicyBinding" => {
                actions(object, &mut refuse);
                parameters(object, &mut refuse);
            }
            "MutatingAdmissionPolicyBinding" => parameters(object, &mut refuse),
            "Namespace" => levels(object, &mut refuse),
            "PriorityClass" => priority(object, &mut refuse),
            _ => {}
        }
    }
}

fn webhooks(object: &Object, refuse: &mut dyn FnMut(&Node, String, &str)) {
    let all = object.node.get("webhooks").map(Node::items).unwrap_or_default();
    for (at, webhook) in all.iter().enumerate() {
        let field = |name: &str| format!("webhooks[{at}].{name}");
        let name = webhook.text_at("name").unwrap_or_default();
        if name.split('.').filter(|part| !part.is_empty()).count() < 3 {
            let what = "should be a domain with at least three segments separated by dots";
            let what = format!("{}: Invalid value: \"{name}\": {what}", field("name"));
            refuse(
                webhook.get("name").unwrap_or(webhook),
                what,
                "write a name such as check.ccm.example.org",
            );
        }
        let effects = webhook.text_at("sideEffects").unwrap_or_default();
        if !matches!(effects, "None" | "NoneOnDryRun") {
            let what = match effects {
                "" => format!(
                    "{}: Required value: must specify one of None, NoneOnDryRun",
                    field("sideEffects")
                ),
                other => format!(
                    "{}: Unsupported value: \"{other}\": supported values: \"None\", \"NoneOnDryRun\"",
                    field("sideEffects")
                ),
            };
            refuse(webhook.get("sideEffects").unwrap_or(webhook), what, "write sideEffects: None");
        }
        let seconds = webhook.get("timeoutSeconds").and_then(|node| Some((node, node.int()?)));
        if let Some((node, seconds)) = seconds.filter(|(_, seconds)| !(1..=30).contains(seconds)) {
            let what = "the timeout value must be between 1 and 30 seconds";
            refuse(
                node,
                format!("{}: Invalid value: {seconds}: {what}", field("timeoutSeconds")),
                "write at most 30",
            );
        }
        let versions = webhook.get("admissionReviewVersions").map(Node::texts).unwrap_or_default();
        if !versions.iter().any(|version| matches!(version.as_str(), "v1" | "v1beta1")) {
            let what = "must include at least one of v1, v1beta1";
            let node = webhook.get("admissionReviewVersions").unwrap_or(webhook);
            refuse(node, format!("{}: {what}", field("admissionReviewVersions")), "write [v1]");
        }
        let ways = ["url", "service"].iter().filter(|way| webhook.at(&["clientConfig", way]).is_some());
        if ways.count() != 1 {
            let node = webhook.get("clientConfig").unwrap_or(webhook);
            let what = "exactly one of url or service is required";
            refuse(node, format!("{}: {what}", field("clientConfig")), "name the Service of the webhook");
        }
    }
}

fn actions(object: &Object, refuse: &mut dyn FnMut(&Node, String, &str)) {
    let node = object.node.at(&["spec", "validationActions"]);
    let all = node.map(Node::texts).unwrap_or_default();
    let has = |action: &str| all.iter().any(|own| own == action);
    let at = node.or_else(|| object.node.get("spec")).unwrap_or(&object.node);
    if all.is_empty() {
        let what = "spec.validationActions: Required value: at least one validation action is required";
        refuse(at, what.to_owned(), "write [Deny]");
    }
    if has("Deny") && has("Warn") {
        let what = "spec.validationActions: Invalid value: must not contain both Deny and Warn (repeating the same \
                    validation failure information in the API response and headers serves no purpose)";
        refuse(at, what.to_owned(), "remove Warn");
    }
}

/// A reference to parameters (`validateParamRef`).
fn parameters(object: &Object, refuse: &mut dyn FnMut(&Node, String, &str)) {
    let Some(reference) = object.node.at(&["spec", "paramRef"]).filter(|own| !own.is_null()) else { return };
    if !matches!(reference.text_at("parameterNotFoundAction"), Some("Allow" | "Deny")) {
        let what = "spec.paramRef.parameterNotFoundAction: Required value: must be Allow or Deny";
        refuse(reference, what.to_owned(), "write parameterNotFoundAction: Deny");
    }
    let has = |field: &str| reference.get(field).is_some_and(|own| !own.is_null());
    if has("name") == has("selector") {
        let what = "spec.paramRef: Invalid value: exactly one of name or selector is required";
        refuse(reference, what.to_owned(), "name the parameters, or select them");
    }
}

fn levels(object: &Object, refuse: &mut dyn FnMut(&Node, String, &str)) {
    let labels = object.node.at(&["metadata", "labels"]).map(Node::entries).unwrap_or_default();
    for entry in labels {
        let Some(mode) = entry.key.strip_prefix("pod-security.kubernetes.io/") else { continue };
        let Some(value) = entry.value.text() else { continue };
        let field = format!("metadata.labels[{}]", entry.key);
        match mode {
            "enforce" | "audit" | "warn" if !matches!(value, "privileged" | "baseline" | "restricted") => {
                let what = "must be one of privileged, baseline, restricted";
                refuse(
                    &entry.value,
                    format!("{field}: Invalid value: \"{value}\": {what}"),
                    "correct the level",
                );
            }
            "enforce-version" | "audit-version" | "warn-version" if !is_version(value) => {
                let what = "must be \"latest\" or \"v1.x\"";
                refuse(&entry.value, format!("{field}: Invalid value: \"{value}\": {what}"), "write latest");
            }
            _ => {}
        }
    }
}

/// The largest value of a priority that users may set (`pkg/apis/scheduling`, `HighestUserDefinablePriority`).
const HIGHEST: i64 = 1_000_000_000;

fn priority(object: &Object, refuse: &mut dyn FnMut(&Node, String, &str)) {
    let own = ["system-node-critical", "system-cluster-critical"].contains(&object.name.as_str());
    if object.name.starts_with("system-") && !own {
        let what = "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only";
        refuse(object.node.get("metadata").unwrap_or(&object.node), what.to_owned(), "choose another name");
    }
    let value = object.node.get("value").and_then(|node| Some((node, node.int()?)));
    if let Some((node, _)) = value.filter(|(_, value)| *value > HIGHEST && !own) {
        let what = format!("value: Forbidden: maximum allowed value of a user defined priority is {HIGHEST}");
        refuse(node, what, "write a smaller value");
    }
}

fn is_version(text: &str) -> bool {
    let minor = text.strip_prefix("v1.").unwrap_or_default();
    let is_number = minor == "0" || !minor.starts_with('0');
    text == "latest" || (is_number && minor.parse::<u32>().is_ok())
}
