//! The objects of a cluster's DNS, as kubeadm installs them.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use embedded_runtime::context::ControllerContext;
use embedded_runtime::settings::Dns;
use embedded_runtime::writing;

const NAMESPACE: &str = "kube-system";

/// Creates the Deployment `coredns` and the Service `kube-dns` if the cluster has DNS.
pub(crate) async fn install(world: &Arc<ControllerContext>) -> Result<(), kube::Error> {
    if world.settings.dns == Dns::Absent {
        return Ok(());
    }
    let labels = json!({"k8s-app": "kube-dns"});
    let mut tolerations = vec![
        json!({"key": "CriticalAddonsOnly", "operator": "Exists"}),
        json!({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}),
    ];
    if world.settings.kubernetes.minor < 25 {
        tolerations.push(json!({"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}));
    }
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "coredns", "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [{"name": "coredns", "image": "simulated/coredns", "ports": [
                        {"name": "dns", "containerPort": 53, "protocol": "UDP"},
                        {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
                    ]}],
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "tolerations": tolerations,
                },
            },
        },
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": NAMESPACE, "labels": labels},
        "spec": {"selector": labels, "ports": [
            {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
            {"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53},
        ]},
    });
    let client = world.client();
    let deployments: Api<Deployment> = writing::api_in(&client, NAMESPACE);
    let services: Api<Service> = writing::api_in(&client, NAMESPACE);
    let made = [
        deployments.create(&PostParams::default(), &typed(deployment)?).await.map(|_| ()),
        services.create(&PostParams::default(), &typed(service)?).await.map(|_| ()),
    ];
    for result in made {
        match result {
            Err(error) if writing::is_already_exists(&error) => {}
            other => other?,
        }
    }
    Ok(())
}

fn typed<K: serde::de::DeserializeOwned>(object: serde_json::Value) -> Result<K, kube::Error> {
    serde_json::from_value(object).map_err(kube::Error::SerdeError)
}
