//! Whether an existing cluster appears to be in use.

use crate::SessionError;
use crate::k8s::client_for;
use harness_clusters::{ClusterRecord, Ownership};
use harness_config::{DesiredCluster, ProviderIdFormat, RunPlan};
use harness_core::events::Events;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::{Api, ListParams};

/// How many objects of a kind are named.
const NAMED: usize = 3;
/// Prefix of the `spec.providerID` that kubelets of a kind cluster set without a cloud controller manager.
const KIND: &str = "kind://";

/// Prints what a run does to an existing cluster, and refuses one that appears to be in use before anything is changed.
///
/// # Errors
/// It has Services of type LoadBalancer, or Nodes that another cloud controller manager has initialised, and the user has
/// not allowed that; or the API server does not answer.
pub(super) async fn spare(
    cluster: &ClusterRecord,
    nodes: &[Node],
    plan: &RunPlan,
    events: &Events,
) -> Result<(), SessionError> {
    let DesiredCluster::Existing(existing) = plan.cluster.desired() else { return Ok(()) };
    if cluster.ownership == Ownership::Ours {
        return Ok(());
    }
    events.say(format!(
        "  checks deploy the CCM and create and delete Nodes, Services, Pods and namespaces in the cluster of {}",
        cluster.name
    ));
    let client = client_for(&cluster.kubeconfig, "ccm-conformance").await?;
    let services = Api::<Service>::all(client).list(&ListParams::default()).await?.items;
    let signs = signs(nodes, &services, &plan.profile.provider_id);
    match signs.as_slice() {
        [] => Ok(()),
        signs if existing.allow_foreign => {
            events.say(format!("warning: {}", signs.join("; ")));
            Ok(())
        }
        signs => Err(SessionError::Usage(format!(
            "the cluster of {} appears to be in use: {}; use another one, or pass '--allow-foreign-cluster' if \
             everything in it may be lost",
            cluster.name,
            signs.join("; ")
        ))),
    }
}

/// Signs that a cluster is in use, one sentence each.
fn signs(nodes: &[Node], services: &[Service], own: &ProviderIdFormat) -> Vec<String> {
    let is_balanced = |service: &&Service| {
        service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
    };
    let balanced = services.iter().filter(is_balanced).map(|service| {
        let (namespace, name) = (&service.metadata.namespace, &service.metadata.name);
        format!("{}/{}", namespace.as_deref().unwrap_or_default(), name.as_deref().unwrap_or_default())
    });
    let initialised = nodes.iter().filter_map(|node| {
        let id = node.spec.as_ref()?.provider_id.as_deref().filter(|id| !id.is_empty())?;
        let is_others = !id.starts_with(KIND) && own.instance(id).is_none();
        is_others.then(|| format!("{} ({id})", node.metadata.name.as_deref().unwrap_or_default()))
    });
    let summary = |what: &str, all: Vec<String>| {
        let more = if all.len() > NAMED { ", ..." } else { "" };
        let named = all.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        (!all.is_empty()).then(|| format!("{} {what}: {named}{more}", all.len()))
    };
    let balanced = summary("Services of type LoadBalancer", balanced.collect());
    let initialised = summary("Nodes of another provider", initialised.collect());
    balanced.into_iter().chain(initialised).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{NodeSpec, ServiceSpec};

    fn node(name: &str, provider_id: Option<&str>) -> Node {
        let spec = NodeSpec { provider_id: provider_id.map(str::to_owned), ..NodeSpec::default() };
        let mut node = Node { spec: Some(spec), ..Node::default() };
        node.metadata.name = Some(name.to_owned());
        node
    }

    fn service(name: &str, kind: &str) -> Service {
        let spec = ServiceSpec { type_: Some(kind.to_owned()), ..ServiceSpec::default() };
        let mut service = Service { spec: Some(spec), ..Service::default() };
        service.metadata.namespace = Some("shop".to_owned());
        service.metadata.name = Some(name.to_owned());
        service
    }

    #[test]
    fn a_cluster_in_use_is_recognised_by_load_balancers_and_provider() {
        let own = ProviderIdFormat::new("acme://{id}").expect("a format");
        let fresh = [
            node("a", None),
            node("b", Some("")),
            node("c", Some("kind://docker/k/c")),
            node("d", Some("acme://i-1")),
        ];
        assert_eq!(signs(&fresh, &[service("web", "ClusterIP")], &own), Vec::<String>::new());
        let others = [node("e", Some("aws:///eu-1/i-2")), node("f", Some("acme-2://i-1"))];
        let balanced: Vec<Service> =
            ["a", "b", "c", "d"].iter().map(|name| service(name, "LoadBalancer")).collect();
        assert_eq!(
            signs(&others, &balanced, &own),
            [
                "4 Services of type LoadBalancer: shop/a, shop/b, shop/c, ...",
                "2 Nodes of another provider: e (aws:///eu-1/i-2), f (acme-2://i-1)"
            ]
        );
    }
}
