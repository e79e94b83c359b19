//! Variants about a cloud that the CCM reaches through a Service of the cluster.

use super::{base, boot, changed, deadlock, judge};
use bootstrap::{Outcome, Topology};

const CLOUD: &str = "http://172.18.0.1:18093/";

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: cloud, namespace: kube-system}\nspec: {clusterIP: 10.96.7.7, SELECTOR ports: [{name: http, port: 80, targetPort: 8093}]}\n---\n";

fn slice(port: &str, node: &str) -> String {
    format!(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: cloud-1, namespace: kube-system, labels: {{kubernetes.io/service-name: cloud}}}}\naddressType: IPv4\nendpoints: [{{addresses: [172.18.0.1]{node}}}]\nports: [{{{port}port: 8093}}]\n---\n"
    )
}

fn proxy(fields: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: proxy, namespace: kube-system}}\nspec: {{selector: {{matchLabels: {{app: proxy}}}}, template: {{metadata: {{labels: {{app: proxy}}}}, spec: {{{fields}containers: [{{name: proxy, image: 'example.test/proxy:v1', imagePullPolicy: IfNotPresent}}]}}}}}}\n---\n"
    )
}

/// The base with these documents before it, and a cloud at this address.
fn at(url: &str, documents: &[String]) -> String {
    format!("{}{}", documents.concat(), changed(&base(), CLOUD, url))
}

fn service(selector: &str) -> String {
    SERVICE.replace("SELECTOR", selector)
}

const TOLERANT: &str = "hostNetwork: true, tolerations: [{operator: Exists}], ";

#[test]
fn pods_behind_the_service_have_to_run_first() {
    let selector = service("selector: {app: proxy},");
    boot(&[
        ("they tolerate everything", at("http://10.96.7.7/", &[selector.clone(), proxy(TOLERANT)])),
        ("another address", at("http://10.96.7.8/", &[selector.clone(), proxy("")])),
    ]);
    deadlock(&[
        ("they wait for the CCM", at("http://10.96.7.7/", &[selector.clone(), proxy("")])),
        ("there are none", at("http://10.96.7.7/", std::slice::from_ref(&selector))),
        ("by the variable", at("http://$(CLOUD_SERVICE_HOST)/", &[selector.clone(), proxy("")])),
    ]);
    let (_, why) = judge(&at("http://10.96.7.7/", &[selector, proxy("")]), Topology::SingleControlPlane);
    assert!(why.contains("Deployment/proxy") || why.contains("Service/cloud"), "{why}");
}

#[test]
fn addresses_behind_the_service_are_joined_by_the_name_of_the_port() {
    let bare = || service("");
    boot(&[
        ("its name", at("http://10.96.7.7/", &[bare(), slice("name: http, ", "")])),
        ("by the variable", at("http://$(CLOUD_SERVICE_HOST)/", &[bare(), slice("name: http, ", "")])),
    ]);
    let local = || bare().replace("spec: {", "spec: {internalTrafficPolicy: Local, ");
    deadlock(&[
        ("without a name", at("http://10.96.7.7/", &[bare(), slice("", "")])),
        ("without addresses", at("http://10.96.7.7/", &[bare()])),
        ("only on its own Node", at("http://10.96.7.7/", &[local(), slice("name: http, ", "")])),
        (
            "the variable of a Service without an address",
            at(
                "http://$(CLOUD_SERVICE_HOST)/",
                &[bare().replace("10.96.7.7", "None"), slice("name: http, ", "")],
            ),
        ),
    ]);
}

#[test]
fn only_pods_on_the_same_node_answer_a_local_service() {
    let local =
        service("selector: {app: proxy},").replace("spec: {", "spec: {internalTrafficPolicy: Local, ");
    let on_worker = "nodeSelector: {kubernetes.io/hostname: worker}, ";
    let text = at("http://10.96.7.7/", &[local.clone(), proxy(&format!("{TOLERANT}{on_worker}"))]);
    let (found, why) = judge(&text, Topology::ControlPlaneAndWorker);
    assert_ne!(found, Outcome::Boots, "the CCM runs on the control plane: {why}");
    boot(&[(
        "on the same Node",
        at(
            "http://10.96.7.7/",
            &[
                local,
                proxy(&format!("{TOLERANT}nodeSelector: {{node-role.kubernetes.io/control-plane: ''}}, ")),
            ],
        ),
    )]);
}
