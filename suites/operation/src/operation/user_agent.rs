//! The name with which the CCM identifies itself to both APIs (OBS-11).

use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1::Node;
use std::sync::Arc;
use suites_common::joining::joined;

const INSTANCES: &[Capability] = &[Capability::Instances];

pub(super) const CHECKS: &[Check] = &[
    Check::of("OBS-11.cloud", |cx| Box::pin(is_named_to_the_cloud(cx))).by_calls().needs(INSTANCES),
    Check::of("OBS-11.kubernetes", |cx| Box::pin(is_named_to_kubernetes(cx))).needs(INSTANCES),
];

fn named() -> Matcher<Vec<Entry>> {
    matcher("name their caller", |calls: &Vec<Entry>| {
        let agent = |call: &Entry| call.user_agent.clone().unwrap_or_default();
        match calls.iter().map(agent).find(|agent| is_nameless(agent)) {
            _ if calls.is_empty() => Observation::Pending("no call".to_owned()),
            Some(agent) => Observation::Impossible(format!("user agent '{agent}'")),
            None => Observation::Matched(()),
        }
    })
    .expecting("a user agent that is not a library's own")
}

async fn is_named_to_the_cloud(cx: &CheckCx) -> Verdict {
    let (_, node) = joined(cx, machine("named")).await?;
    node.looks().becomes(named()).await
}

/// The field managers of the fields that a CCM writes when it initialises a Node.
fn writers(node: &Node) -> Vec<String> {
    let fields = node.metadata.managed_fields.iter().flatten();
    let given = fields.filter(|managed| {
        let owned = managed.fields_v1.as_ref().map(|fields| &fields.0["f:spec"]);
        owned.is_some_and(|spec| !spec["f:providerID"].is_null())
    });
    given.map(|managed| managed.manager.clone().unwrap_or_default()).collect()
}

fn has_a_named_writer() -> Matcher<Option<Arc<Node>>> {
    matcher("has a writer with a name", |node: &Option<Arc<Node>>| {
        let writers = node.as_deref().map(writers).unwrap_or_default();
        match writers.iter().find(|writer| is_nameless(writer)) {
            Some(writer) => Observation::Impossible(format!("field manager '{writer}'")),
            None if writers.is_empty() => {
                Observation::Pending("no field manager owns spec.providerID".to_owned())
            }
            None => Observation::Matched(()),
        }
    })
    .expecting("a field manager of spec.providerID that is not a library's own name")
}

async fn is_named_to_kubernetes(cx: &CheckCx) -> Verdict {
    let (_, node) = joined(cx, machine("written")).await?;
    node.becomes(has_a_named_writer()).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_writer_of_the_provider_id_is_the_ccm() {
        let node = |manager: &str| -> Option<Arc<Node>> {
            let managed = json!([
                {"manager": "kubelet", "fieldsV1": {"f:status": {}}},
                {"manager": manager, "fieldsV1": {"f:spec": {"f:providerID": {}}}},
            ]);
            serde_json::from_value(json!({"metadata": {"managedFields": managed}})).ok().map(Arc::new)
        };
        assert_eq!(has_a_named_writer().matches(&node("acme-ccm")), Observation::Matched(()));
        assert!(matches!(has_a_named_writer().matches(&node("Go-http-client")), Observation::Impossible(_)));
        assert!(matches!(has_a_named_writer().matches(&None), Observation::Pending(_)));
    }
}
