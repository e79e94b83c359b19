//! Admission webhooks that block a CCM: they refuse requests that they cannot examine (`failurePolicy: Fail`, the
//! default), and no Pod answers behind their Service.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, RuleWithOperations, ServiceReference, ValidatingWebhookConfiguration,
    WebhookClientConfig,
};
use k8s_openapi::api::core::v1::Endpoints;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use std::collections::BTreeSet;

/// Requests of a boot that a webhook may intercept: description, group, resource, operations.
const GUARDED: &[(&str, &str, &str, &[&str])] = &[
    ("the creation of Pods", "", "pods", &["CREATE"]),
    ("changes of Nodes", "", "nodes", &["UPDATE"]),
    ("changes of Node status", "", "nodes/status", &["UPDATE"]),
    ("Leases", "coordination.k8s.io", "leases", &["CREATE", "UPDATE"]),
    ("changes of Services", "", "services", &["UPDATE"]),
    ("changes of Service status", "", "services/status", &["UPDATE"]),
];

/// One webhook, of either kind of configuration.
#[derive(Clone, Debug)]
struct Webhook {
    /// Its configuration, `ValidatingWebhookConfiguration acme`.
    of: String,
    name: String,
    fails_closed: bool,
    rules: Vec<RuleWithOperations>,
    service: Option<ServiceReference>,
}

/// Each webhook that blocks requests of a boot, because it fails closed and no Pod behind its Service is ready: a
/// sentence with its name, its `failurePolicy`, the requests that it intercepts, and the Service. Empty if the API server
/// does not answer.
pub async fn webhooks_in_the_way(client: &Client) -> Vec<String> {
    let all = ListParams::default();
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let mut webhooks = Vec::new();
    for found in validating.list(&all).await.map(|list| list.items).unwrap_or_default() {
        let of = format!("ValidatingWebhookConfiguration {}", found.name_any());
        webhooks.extend(found.webhooks.unwrap_or_default().into_iter().map(|webhook| {
            let fails_closed = fails_closed(webhook.failure_policy.as_deref());
            of_either(&of, webhook.name, fails_closed, webhook.rules, webhook.client_config)
        }));
    }
    for found in mutating.list(&all).await.map(|list| list.items).unwrap_or_default() {
        let of = format!("MutatingWebhookConfiguration {}", found.name_any());
        webhooks.extend(found.webhooks.unwrap_or_default().into_iter().map(|webhook| {
            let fails_closed = fails_closed(webhook.failure_policy.as_deref());
            of_either(&of, webhook.name, fails_closed, webhook.rules, webhook.client_config)
        }));
    }
    if webhooks.is_empty() {
        return Vec::new();
    }
    let endpoints: Api<Endpoints> = Api::all(client.clone());
    let endpoints = endpoints.list(&all).await.map(|list| list.items).unwrap_or_default();
    let answering = answering(&endpoints);
    webhooks.iter().filter_map(|webhook| webhook.in_the_way(&answering)).collect()
}

fn fails_closed(policy: Option<&str>) -> bool {
    policy != Some("Ignore")
}

fn of_either(
    of: &str,
    name: String,
    fails_closed: bool,
    rules: Option<Vec<RuleWithOperations>>,
    client: WebhookClientConfig,
) -> Webhook {
    Webhook {
        of: of.to_owned(),
        name,
        fails_closed,
        rules: rules.unwrap_or_default(),
        service: client.service,
    }
}

/// The Services behind which a Pod is ready, by namespace and name.
fn answering(endpoints: &[Endpoints]) -> BTreeSet<(String, String)> {
    let ready = |one: &&Endpoints| {
        let subsets = one.subsets.iter().flatten();
        subsets.into_iter().any(|subset| subset.addresses.as_ref().is_some_and(|list| !list.is_empty()))
    };
    let key = |one: &Endpoints| (one.namespace().unwrap_or_default(), one.name_any());
    endpoints.iter().filter(ready).map(key).collect()
}

impl Webhook {
    /// Why it blocks requests, if it does.
    fn in_the_way(&self, answering: &BTreeSet<(String, String)>) -> Option<String> {
        let service = self.service.as_ref()?;
        let before: Vec<&str> =
            GUARDED.iter().filter(|guarded| self.asks_about(guarded)).map(|guarded| guarded.0).collect();
        let answers = answering.contains(&(service.namespace.clone(), service.name.clone()));
        (self.fails_closed && !answers && !before.is_empty()).then(|| {
            format!(
                "webhook {} of {} (failurePolicy Fail) intercepts {}, but no Pod behind its Service {}/{} is ready",
                self.name,
                self.of,
                before.join(", "),
                service.namespace,
                service.name
            )
        })
    }

    fn asks_about(&self, (_, group, resource, operations): &(&str, &str, &str, &[&str])) -> bool {
        let has = |list: &Option<Vec<String>>, what: &str| {
            list.iter().flatten().any(|one| one == "*" || one == what)
        };
        let (of, sub) = resource.split_once('/').unwrap_or((resource, ""));
        let names = |pattern: &String| match pattern.split_once('/') {
            None => sub.is_empty() && (pattern == "*" || pattern == of),
            Some((one, other)) => {
                (one == "*" || one == of) && (other == "*" || !sub.is_empty() && other == sub)
            }
        };
        self.rules.iter().any(|rule| {
            has(&rule.api_groups, group)
                && rule.resources.iter().flatten().any(names)
                && operations.iter().any(|operation| has(&rule.operations, operation))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn said(policy: &str, rule: Value, ready: &Value) -> Option<String> {
        let service = json!({"namespace": "policy", "name": "gate"});
        let endpoints = json!({"metadata": {"namespace": "policy", "name": "gate"}, "subsets": ready});
        let endpoints: Endpoints = serde_json::from_value(endpoints).expect("endpoints");
        let webhook = Webhook {
            of: "ValidatingWebhookConfiguration gate".to_owned(),
            name: "gate.example.com".to_owned(),
            fails_closed: fails_closed(Some(policy)),
            rules: vec![serde_json::from_value(rule).expect("a rule")],
            service: Some(serde_json::from_value(service).expect("a Service")),
        };
        webhook.in_the_way(&answering(&[endpoints]))
    }

    #[test]
    fn webhooks_that_fail_closed_without_an_answer_are_named_with_their_victims() {
        let rule = |resources: Value| json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": resources});
        let without_endpoints = json!(null);
        let why = said("Fail", rule(json!(["nodes", "pods"])), &without_endpoints);
        let expected = "webhook gate.example.com of ValidatingWebhookConfiguration gate (failurePolicy Fail) intercepts the \
                        creation of Pods, changes of Nodes, but no Pod behind its Service policy/gate is ready";
        assert_eq!(why.as_deref(), Some(expected));
        let all = said("Fail", rule(json!(["*/*"])), &without_endpoints)
            .expect("it stands before everything of this group");
        assert!(all.contains("changes of Node status") && !all.contains("Leases"), "{all}");
        let coming = json!([{"notReadyAddresses": [{"ip": "10.244.0.9"}]}]);
        assert!(said("Fail", rule(json!(["nodes/status"])), &coming).is_some());
    }

    #[test]
    fn webhooks_that_fail_open_answer_or_do_not_match_do_not_block() {
        let rule = |resource: &str, operation: &str| json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": [resource]});
        let (without_endpoints, with_endpoint) =
            (json!(null), json!([{"addresses": [{"ip": "10.244.0.9"}]}]));
        assert_eq!(said("Ignore", rule("pods", "CREATE"), &without_endpoints), None);
        assert_eq!(said("Fail", rule("pods", "CREATE"), &with_endpoint), None);
        assert_eq!(said("Fail", rule("pods", "DELETE"), &without_endpoints), None);
        assert_eq!(said("Fail", rule("configmaps", "CREATE"), &without_endpoints), None);
    }
}
