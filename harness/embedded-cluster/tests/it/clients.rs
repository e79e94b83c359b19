//! Clients in the process and with a kubeconfig, and what each may do.

use embedded_cluster::{Cluster, ClusterSpec, User};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;

#[tokio::test]
async fn the_kubeconfig_is_its_owners_alone_and_works() {
    let cluster = Cluster::start(ClusterSpec::api_server()).await.expect("a cluster");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kubeconfig");
    cluster.write_kubeconfig(&path).expect("written");
    let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = cluster.write_kubeconfig(&path).expect_err("the clusters in an existing file are kept");
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    let kubeconfig = Kubeconfig::read_from(&path).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let client = Client::try_from(config.expect("a config")).expect("a client");
    let namespaces: Api<Namespace> = Api::all(client);
    assert!(namespaces.get_opt("kube-system").await.expect("an answer").is_some());
    cluster.stop().await;
    namespaces.get("kube-system").await.expect_err("the server has stopped");
}

#[tokio::test]
async fn users_may_do_what_rbac_says() {
    let cluster = Cluster::start(ClusterSpec::api_server()).await.expect("a cluster");
    let user = User::service_account("default", "nobody", "");
    let secrets: Api<Secret> = Api::namespaced(cluster.client_as(user.clone()), "kube-system");
    let refused = secrets.list(&Default::default()).await.expect_err("it may not");
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 403));
    let text = cluster.kubeconfig_for(&user).expect("a kubeconfig");
    assert!(text.contains("system:serviceaccount:default:nobody"));
    cluster.stop().await;
}
