//! The cluster as its users see it: through its public interface alone.

mod clients;
mod lag;
mod parts;
mod remote;
mod request_faults;

use embedded_cluster::{Cluster, User};
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Config, Resource};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::fmt::Debug;
use std::time::Duration;

/// The longest time that a test waits for something that has to happen.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits until the object meets the condition; fails with its last state.
async fn wait<K>(api: &Api<K>, name: &str, what: &str, holds: impl Fn(&K) -> bool) -> K
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + 'static,
{
    let condition = |object: Option<&K>| object.is_some_and(&holds);
    match tokio::time::timeout(LIMIT, await_condition(api.clone(), name, condition)).await {
        Ok(Ok(Some(object))) => object,
        Ok(other) => panic!("{what}: {other:?}"),
        Err(_) => panic!("{what}: not within {LIMIT:?}; last seen: {:#?}", api.get_opt(name).await),
    }
}

/// A client on the network for a service account with all rights.
async fn account(cluster: &Cluster) -> Client {
    let user = User::service_account("kube-system", "acme", "uid");
    let binding = json!({
        "metadata": {"name": "acme"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "kube-system", "name": "acme"}],
    });
    let bindings: Api<k8s_openapi::api::rbac::v1::ClusterRoleBinding> = Api::all(cluster.client());
    let binding = serde_json::from_value(binding).expect("a binding");
    bindings.create(&PostParams::default(), &binding).await.expect("a binding");
    let kubeconfig = cluster.kubeconfig_for(&user).expect("a kubeconfig");
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig).expect("a kubeconfig");
    let config =
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("a config");
    Client::try_from(config).expect("a client")
}
