//! Roles and their bindings.
//!
//! Source: `pkg/apis/rbac/validation/validation.go`, `pkg/apis/rbac/v1/defaults.go`.

use serde_json::Value;

use super::strategy::Strategy;
use super::{Context, meta, workload};
use embedded_objects::cause::Cause;
use embedded_objects::kinds::Kind;
use embedded_objects::rules::names;
use embedded_objects::value::{Edit as _, PathAccess as _};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) enum Rbac {
    Role,
    Binding,
}

impl Strategy for Rbac {
    fn default(&self, object: &mut Value) {
        if matches!(self, Rbac::Binding) {
            object.put_default("roleRef.apiGroup", GROUP);
            for subject in object.items("subjects") {
                if matches!(subject.text("kind"), "User" | "Group") {
                    subject.put_default("apiGroup", GROUP);
                }
            }
        }
    }

    fn validate_create(&self, object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        self.validate(object)
    }

    fn validate_update(
        &self,
        kind: &Kind,
        _sub: Option<&str>,
        old: &Value,
        new: &Value,
        _cx: &Context<'_>,
    ) -> Vec<Cause> {
        let mut causes = meta::created(kind, new);
        causes.extend(self.validate(new));
        causes.extend(meta::changed(old, new));
        if old.at("roleRef") != new.at("roleRef") {
            let mut cause = Cause::invalid("roleRef", Value::Null, "cannot change roleRef");
            let shown = |name: &str| Value::from(new.text(&format!("roleRef.{name}")));
            // The server shows its internal type, in that type's order of fields.
            cause.message = format!(
                "Invalid value: {{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}: cannot change roleRef",
                shown("apiGroup"),
                shown("kind"),
                shown("name")
            );
            causes.push(cause);
        }
        causes
    }
}

impl Rbac {
    fn validate(&self, object: &Value) -> Vec<Cause> {
        let namespaced = matches!(object.text("kind"), "Role" | "RoleBinding");
        match self {
            Rbac::Role => role(object, namespaced),
            Rbac::Binding => binding(object, namespaced),
        }
    }
}

fn role(object: &Value, namespaced: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (at, rule) in object.list("rules").iter().enumerate() {
        let path = format!("rules[{at}]");
        let set = |name: &str| !rule.list(name).is_empty();
        if !set("verbs") {
            let why = "verbs must contain at least one value";
            causes.push(Cause::required(format!("{path}.verbs"), why));
        }
        if set("nonResourceURLs") {
            let (field, urls) = (format!("{path}.nonResourceURLs"), rule.at("nonResourceURLs").clone());
            if namespaced {
                let why = "namespaced rules cannot apply to non-resource URLs";
                causes.push(Cause::invalid(field.clone(), urls.clone(), why));
            }
            if set("apiGroups") || set("resources") || set("resourceNames") {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                causes.push(Cause::invalid(field, urls, why));
            }
            continue;
        }
        if !set("apiGroups") {
            let why = "resource rules must supply at least one api group";
            causes.push(Cause::required(format!("{path}.apiGroups"), why));
        }
        if !set("resources") {
            let why = "resource rules must supply at least one resource";
            causes.push(Cause::required(format!("{path}.resources"), why));
        }
    }
    if object.has("aggregationRule") {
        let path = "aggregationRule.clusterRoleSelectors";
        let selectors = object.list(path);
        if selectors.is_empty() {
            let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
            causes.push(Cause::required(path, why));
        }
        for (at, selector) in selectors.iter().enumerate() {
            causes.extend(workload::label_selector(selector, &format!("{path}[{at}]")));
        }
    }
    causes
}

fn binding(object: &Value, namespaced: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    let reference = |name: &str| object.text(&format!("roleRef.{name}")).to_owned();
    if reference("apiGroup") != GROUP {
        causes.push(Cause::not_supported("roleRef.apiGroup", reference("apiGroup"), &[GROUP]));
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&reference("kind").as_str()) {
        causes.push(Cause::not_supported("roleRef.kind", reference("kind"), kinds));
    }
    let name = reference("name");
    if name.is_empty() {
        causes.push(Cause::required("roleRef.name", ""));
    } else {
        let faults = names::path_segment(&name);
        causes.extend(faults.iter().map(|fault| Cause::invalid("roleRef.name", name.as_str(), fault)));
    }
    for (at, subject) in object.list("subjects").iter().enumerate() {
        subject_causes(subject, namespaced, &format!("subjects[{at}]"), &mut causes);
    }
    causes
}

fn subject_causes(subject: &Value, namespaced: bool, path: &str, causes: &mut Vec<Cause>) {
    let (name, group) = (subject.text("name"), subject.text("apiGroup"));
    if name.is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    }
    let field = format!("{path}.apiGroup");
    match subject.text("kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                let field = format!("{path}.name");
                let faults = names::subdomain(name);
                causes.extend(faults.iter().map(|fault| Cause::invalid(field.clone(), name, fault)));
            }
            if !group.is_empty() {
                causes.push(Cause::not_supported(field, group, &[""]));
            }
            if !namespaced && subject.text("namespace").is_empty() {
                causes.push(Cause::required(format!("{path}.namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                causes.push(Cause::not_supported(field, group, &[GROUP]));
            }
        }
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            causes.push(Cause::not_supported(format!("{path}.kind"), other, &kinds));
        }
    }
}
