//! Variants about what the boot does not depend on, and what decides between Nodes.

use super::{all, base, behind, below, boot, changed, deadlock, judge, pod, variable};
use bootstrap::{Outcome, Topology};

const WEBHOOK: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: guard, namespace: default}\nspec: {selector: {app: guard}, ports: [{port: 443}]}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: guard, namespace: default}\nspec: {selector: {matchLabels: {app: guard}}, template: {metadata: {labels: {app: guard}}, spec: {containers: [{name: guard, image: 'example.test/guard:v1', command: [guard]}]}}}\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: guard}\nwebhooks: [{name: guard.example.com, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {service: {namespace: default, name: guard}}, rules: [{apiGroups: [''], apiVersions: [v1], operations: [UPDATE], resources: [RESOURCE]}]MORE}]";

fn webhook(resource: &str, more: &str) -> String {
    behind(&WEBHOOK.replace("RESOURCE", resource).replace("MORE", more))
}

#[test]
fn a_backend_that_the_boot_does_not_meet_has_no_conditions() {
    boot(&[
        ("another resource", webhook("configmaps", "")),
        (
            "another user",
            webhook(
                "nodes",
                ", matchConditions: [{name: pool, expression: \"object.metadata.annotations['pool'] != 'x'\"}, {name: user, expression: \"!request.userInfo.username.startsWith('system:serviceaccount:kube-system:')\"}]",
            ),
        ),
    ]);
    deadlock(&[("Nodes", webhook("nodes", "")), ("Nodes and what is below them", webhook("nodes/*", ""))]);
}

#[test]
fn another_container_of_the_pod_need_not_start() {
    let second = |more: &str| {
        let text = format!("      - name: second\n        image: 'example.test/second:v1'\n{more}");
        changed(&base(), "      containers:\n", &format!("      containers:\n{text}"))
    };
    boot(&[
        ("its image is not there", second("        imagePullPolicy: Never\n")),
        ("its program is not known", second("        command: [second]\n")),
    ]);
    all(
        Outcome::BootsIf,
        &[("a hook before the CCM", second("        lifecycle: {postStart: {exec: {command: [wait]}}}\n"))],
    );
}

#[test]
fn init_containers_that_only_wait() {
    let init = |command: &str| {
        pod(&format!(
            "initContainers: [{{name: own, image: 'example.test/tools:v1', imagePullPolicy: IfNotPresent, command: {command}}}]"
        ))
    };
    boot(&[
        ("a while", init("[sleep, '10']")),
        ("in a shell", init("[sh, -c, 'echo waiting; sleep 20 && echo done']")),
    ]);
    deadlock(&[
        ("for ever", init("[sleep, infinity]")),
        ("in a loop", init("[/bin/sh, -c, 'while true; do sleep 5; done']")),
        ("an error", init("[sh, -c, 'exit 1']")),
    ]);
    all(
        Outcome::BootsIf,
        &[("for something else", init("[sh, -c, 'until nc -z db 5432; do sleep 1; done']"))],
    );
}

#[test]
fn a_proxy_that_the_api_server_is_not_exempt_from() {
    let proxied = |exempt: &str| {
        below(
            &base(),
            "        env:\n",
            8,
            &format!(
                "- {{name: HTTPS_PROXY, value: 'http://proxy.example.com:3128'}}\n- {{name: NO_PROXY, value: '{exempt}'}}"
            ),
        )
    };
    boot(&[("an address", proxied("172.18.0.2")), ("a network", proxied("localhost,172.18.0.0/16"))]);
    all(Outcome::BootsIf, &[("a pattern", proxied("172.18.*,.svc")), ("nothing", proxied(""))]);
}

#[test]
fn a_preferred_node_is_chosen_if_it_is_free() {
    let selector = "      nodeSelector:\n        node-role.kubernetes.io/control-plane: ''\n";
    let preferring = |operator: &str| {
        let affinity = format!(
            "      affinity: {{nodeAffinity: {{preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 1, preference: {{matchExpressions: [{{key: node-role.kubernetes.io/control-plane, operator: {operator}}}]}}}}]}}}}\n"
        );
        let mounted =
            "      volumes: [{name: own, hostPath: {path: /etc/kubernetes/admin.conf, type: File}}]\n";
        let text = changed(&base(), selector, &format!("{affinity}{mounted}"));
        below(
            &text,
            "        imagePullPolicy: IfNotPresent\n",
            8,
            "volumeMounts: [{name: own, mountPath: /own}]",
        )
    };
    boot(&[("the control plane", preferring("Exists"))]);
    let (single, _) = judge(&preferring("DoesNotExist"), Topology::SingleControlPlane);
    let (two, why) = judge(&preferring("DoesNotExist"), Topology::ControlPlaneAndWorker);
    assert_eq!((single, two), (Outcome::Boots, Outcome::Deadlock), "{why}");
}

#[test]
fn parts_of_coredns_are_added_to_it() {
    let named = |document: &str| {
        let text = variable(
            "http://172.18.0.1:18093/",
            "          value: http://cloud.kube-system.svc.cluster.local/\n",
        );
        let text = changed(&text, "      dnsPolicy: Default\n", "      dnsPolicy: ClusterFirstWithHostNet\n");
        format!("{document}---\n{text}")
    };
    let dns = |tolerations: &str| {
        named(&format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: coredns, namespace: kube-system}}\nspec: {{template: {{spec: {{tolerations: [{tolerations}]}}}}}}\n"
        ))
    };
    deadlock(&[
        ("as it is", named("")),
        ("it tolerates something else", dns("{key: other, operator: Exists}")),
    ]);
    boot(&[("it tolerates everything", dns("{operator: Exists}"))]);
    // The list replaces that of kubeadm, so it no longer tolerates the control plane.
    let lost = dns("{key: node.cloudprovider.kubernetes.io/uninitialized, operator: Exists}");
    let verdict = |topology| judge(&lost, topology).0;
    assert_eq!(verdict(Topology::SingleControlPlane), Outcome::Deadlock);
    assert_eq!(verdict(Topology::ControlPlaneAndWorker), Outcome::Boots);
}

#[test]
fn a_document_that_is_no_object_ends_the_file() {
    let text = base();
    let before = "apiVersion: apps/v1\nkind: Deployment\n";
    deadlock(&[("before the Deployment", changed(&text, before, &format!("release: acme\n---\n{before}")))]);
    boot(&[
        ("after it", format!("{text}---\nrelease: acme\n")),
        ("only a comment", changed(&text, before, &format!("# rendered\n---\n{before}"))),
    ]);
}

#[test]
fn objects_that_were_exported() {
    let exported = changed(
        &base(),
        "  labels:\n    app: ccm\nspec:",
        "  labels:\n    app: ccm\n  resourceVersion: '4711'\n  uid: 5b1f5b0e-5c0e-4a55-9d62-0d7f3c0a9b1e\n  generation: 9\nspec:",
    );
    boot(&[("with what only the API server sets", exported)]);
}
