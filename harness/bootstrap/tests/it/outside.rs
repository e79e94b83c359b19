//! Settings that keep Pods from running, field by field: what the manifests decide is a deadlock that names the field,
//! what they do not decide is a named condition, and unknown fields are reported.

use super::bootstrap;
use serde_json::Value;

/// The good manifest with a change; the first occurrence of the text is replaced.
fn changed(from: &str, to: &str) -> String {
    let path = super::variants().join("good-deployment/ccm.yaml");
    let text = std::fs::read_to_string(path).expect("the variant");
    assert!(text.contains(from), "'{from}' is not in the manifest");
    text.replacen(from, to, 1)
}

/// The good manifest with lines below the Pod's specification.
fn with_spec(lines: &str) -> String {
    let anchor = "      serviceAccountName: reference-ccm\n";
    changed(anchor, &format!("{anchor}{lines}"))
}

/// The good manifest with lines below its container.
fn with_container(lines: &str) -> String {
    let anchor = "          imagePullPolicy: IfNotPresent\n";
    changed(anchor, &format!("{anchor}{lines}"))
}

/// The good manifest and another document.
fn with_document(document: &str) -> String {
    format!("{}---\n{document}", changed("", ""))
}

/// The cell of a control plane with a worker and an independent pod network.
fn cell(text: &str) -> Value {
    let options = ["--topology", "control-plane-and-worker", "--cni", "independent", "--output", "json"];
    let (_, out, err) = bootstrap(&[&["check", "-"], &options[..]].concat(), text);
    let value: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("no JSON: {out}{err}"));
    value["cells"][0].clone()
}

#[track_caller]
fn boots_if(text: &str, condition: &str) {
    let cell = cell(text);
    assert_eq!(cell["outcome"], "boots-if", "{cell:#}");
    let conditions = cell["conditions"].as_array().expect("conditions");
    let named =
        conditions.iter().any(|own| own["text"].as_str().is_some_and(|text| text.contains(condition)));
    assert!(named, "'{condition}' is missing: {conditions:#?}");
    assert!(conditions.iter().all(|own| own["place"].as_str().is_some_and(|place| place.contains(':'))));
}

#[track_caller]
fn never_boots(text: &str, because: &str) {
    let cell = cell(text);
    assert_eq!(cell["outcome"], "deadlock", "{cell:#}");
    let explanation = cell["explanation"].to_string();
    assert!(explanation.contains(because), "'{because}' is missing: {explanation}");
}

#[test]
fn facts_outside_the_manifests_are_named_conditions() {
    boots_if(&with_container("          command: [/bin/ccm]\n"), "contains the program '/bin/ccm'");
    boots_if(&changed("imagePullPolicy: IfNotPresent", "imagePullPolicy: Never"), "is already on the Nodes");
    boots_if(
        &changed("image: ${IMAGE}\n          imagePullPolicy: IfNotPresent", "image: a/ccm"),
        "its tag is latest",
    );
    boots_if(&changed("            runAsUser: 65532\n", ""), "sets a numeric user other than 0");
    boots_if(
        &with_container("          lifecycle: {postStart: {exec: {command: [a]}}}\n"),
        "the postStart hook",
    );
    boots_if(
        &changed("              memory: 32Mi\n", "              memory: 3Gi\n"),
        "room for its requests (memory: 3Gi)",
    );
    boots_if(
        &changed(
            "            requests: # BOOT-LINT-18\n",
            "            limits: {example.org/gpu: 1}\n            requests:\n",
        ),
        "(example.org/gpu: 1)",
    );
    boots_if(
        &changed("            requests:", "            limits: {memory: 8Mi, cpu: 1}\n            requests:")
            .replace("memory: 32Mi", "memory: 4Mi"),
        "needs at most 8Mi",
    );
    boots_if(&with_spec("      nodeName: here\n"), "there is a Node called 'here'");
    boots_if(&with_spec("      imagePullSecrets: [{name: pull}]\n"), "can be pulled with the Secret 'pull'");
    boots_if(
        &with_spec("      resourceClaims: [{name: nic, resourceClaimName: nic}]\n"),
        "resource claim 'nic'",
    );
    boots_if(
        &with_spec("      securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}\n"),
        "allow the sysctl 'kernel.msgmax'",
    );
    boots_if(
        &with_spec("      securityContext: {seccompProfile: {type: Localhost, localhostProfile: p.json}}\n"),
        "the seccompProfile 'p.json'",
    );
    let volume = |source: &str| {
        changed("      volumes:\n", &format!("      volumes:\n        - name: more\n          {source}\n"))
            .replace(
                "          volumeMounts:\n",
                "          volumeMounts:\n            - {name: more, mountPath: /more}\n",
            )
    };
    boots_if(&volume("hostPath: {path: /etc/cloud, type: File}"), "'/etc/cloud' is a File on the Node");
    boots_if(&volume("nfs: {server: a, path: /}"), "can mount the nfs volume 'more'");
    boots_if(&volume("emptyDir: {medium: HugePages}"), "huge pages");
    boots_if(
        &changed(
            "  name: reference-ccm\n  namespace: kube-system\n  labels:",
            "  name: reference-ccm\n  ownerReferences: [{apiVersion: acme.example/v1, kind: Cloud, name: own, uid: u}]\n  namespace: kube-system\n  labels:",
        ),
        "its owner Cloud/own exists",
    );
    boots_if(
        &format!(
            "{}---\napiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {{name: box}}\nhandler: box\n",
            with_spec("      runtimeClassName: box\n")
        ),
        "the handler of the RuntimeClass 'box'",
    );
}

#[test]
fn objects_other_than_the_workload_may_block_it() {
    let quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: kube-system}\n\
                 spec: {hard: {pods: '2'}, scopes: [VolumeAttributesClass]}\n";
    boots_if(&with_document(quota), "ResourceQuota/q allows its Pods");
    let policy = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\n\
                  spec:\n  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], \
                  operations: [CREATE]}]}\n  validations: [{expression: 'object.metadata.name > \"a\"'}]\n---\n\
                  apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
                  metadata: {name: p}\nspec: {policyName: p, validationActions: [Deny]}\n";
    boots_if(&with_document(policy), "ValidatingAdmissionPolicy/p");
    let hook = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: h}\n\
                webhooks: [{name: w.example.org, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {url: \
                'https://a.example'}, rules: [{apiGroups: [''], apiVersions: [v1], \
                resources: [pods], operations: [CREATE]}]}]\n";
    boots_if(&with_document(hook), "the webhook 'w.example.org' of ValidatingWebhookConfiguration/h");
    let network = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: net, namespace: kube-system}\n\
                   spec: {podSelector: {}, policyTypes: [Egress]}\n";
    // Network policies do not apply on the host's network.
    let untouched = cell(&with_document(network));
    assert_eq!(untouched["outcome"], "boots", "{untouched:#}");
    let own_network = changed("hostNetwork: true", "hostNetwork: false");
    boots_if(&format!("{own_network}---\n{network}"), "NetworkPolicy/net");
    let scheduler = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: placer, namespace: kube-system}\nspec:\n  \
                     selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec:\n      \
                     containers: [{name: c, image: 'c:v1'}]\n";
    boots_if(
        &format!("{}---\n{scheduler}", with_spec("      schedulerName: placer\n")),
        "the scheduler 'placer'",
    );
}

#[test]
fn facts_in_the_manifests_lead_to_deadlocks_that_name_them() {
    never_boots(
        &with_spec("      schedulerName: placer\n"),
        "no workload of the manifests is the scheduler 'placer'",
    );
    never_boots(
        &changed("hostNetwork: true", "hostNetwork: false").replace("dnsPolicy: Default", "dnsPolicy: None"),
        "must provide `dnsConfig`",
    );
    never_boots(&with_spec("      hostUsers: false\n"), "when `hostUsers` is false");
    let job = |more: &str| {
        changed("apiVersion: apps/v1\nkind: Deployment", "apiVersion: batch/v1\nkind: Job")
            .replace("  replicas: 2\n  revisionHistoryLimit: 2\n  selector:\n    matchLabels:\n      app.kubernetes.io/name: reference-ccm\n", more)
            .replace("  strategy:\n    # A replacement on the same host needs the port of its predecessor.\n    rollingUpdate:\n      maxSurge: 0\n      maxUnavailable: 1\n", "")
            .replace("      serviceAccountName: reference-ccm\n", "      serviceAccountName: reference-ccm\n      restartPolicy: OnFailure\n")
    };
    assert_eq!(cell(&job(""))["outcome"], "boots");
    never_boots(&job("  suspend: true\n"), "a Job that is suspended creates no Pods");
    never_boots(&job("  parallelism: 0\n"), "a Job with parallelism 0");
    let cron_job = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: ccm, namespace: kube-system}\nspec:\n  schedule: 0 0 31 2 *\n  \
                    jobTemplate:\n    spec:\n      template:\n        spec:\n          restartPolicy: OnFailure\n          \
                    hostNetwork: true\n          tolerations: [{operator: Exists}]\n          containers: [{name: ccm, \
                    image: 'acme/cloud-controller-manager:v1', args: [--cloud-provider=acme]}]\n";
    never_boots(cron_job, "no day fits the schedule '0 0 31 2 *'");
    never_boots(
        &job("  parallelism: two\n"),
        "spec.parallelism: expected a 32-bit integer, got the string 'two'",
    );
    boots_if(&job("  managedBy: example.org/other\n"), "the controller 'example.org/other' creates its Pods");
    let set = changed("kind: Deployment", "kind: StatefulSet")
        .replace("  strategy:\n    # A replacement on the same host needs the port of its predecessor.\n    rollingUpdate:\n      maxSurge: 0\n      maxUnavailable: 1\n", "  volumeClaimTemplates: [{metadata: {name: state}}]\n");
    never_boots(&set, "it waits for the storage system");
}

#[test]
fn a_token_may_come_by_another_way() {
    let refused = "      automountServiceAccountToken: false\n";
    never_boots(&with_spec(refused), "it gets no service account token");
    // The Pod's setting overrides its account's.
    let account = "  name: reference-ccm\n  namespace: kube-system\n";
    let by_account = changed(account, &format!("{account}automountServiceAccountToken: false\n"));
    never_boots(&by_account, "it gets no service account token");
    let anchor = "      serviceAccountName: reference-ccm\n";
    let overruled =
        by_account.replace(anchor, &format!("{anchor}      automountServiceAccountToken: true\n"));
    assert_eq!(cell(&overruled)["outcome"], "boots");
    let mounted = with_spec(refused)
        .replace("      volumes:\n", "      volumes:\n        - name: token\n          projected: {sources: [{serviceAccountToken: {path: token}}, {configMap: {name: kube-root-ca.crt}}]}\n")
        .replace("          volumeMounts:\n", "          volumeMounts:\n            - {name: token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount}\n");
    assert_eq!(cell(&mounted)["outcome"], "boots");
    let elsewhere = with_spec(refused)
        .replace("            - --v=4\n", "            - --kubeconfig=/etc/own/kubeconfig\n");
    assert_eq!(cell(&elsewhere)["outcome"], "boots");
    let mounted = elsewhere
        .replace("      volumes:\n", "      volumes:\n        - {name: own, hostPath: {path: /etc/own}}\n")
        .replace(
            "          volumeMounts:\n",
            "          volumeMounts:\n            - {name: own, mountPath: /etc/own}\n",
        );
    assert_eq!(cell(&mounted)["outcome"], "boots-if", "the Node need not have the file");
}

#[test]
fn unknown_fields_are_named() {
    boots_if(
        &with_container("          securityContext: {seLinuxOptions: {type: t}}\n").replacen(
            "          securityContext:\n",
            "          x-security:\n",
            1,
        ),
        "spec.template.spec.containers[0].securityContext.seLinuxOptions",
    );
    boots_if(
        &with_spec("      hostNetwok: true\n"),
        "it is applied without spec.template.spec.hostNetwok, a field that Kubernetes does not know",
    );
    let (_, out, _) = bootstrap(&["check", "-"], &with_spec("      hostNetwok: true\n"));
    assert!(
        out.contains("SHOULD BOOT-API")
            && out.contains("Kubernetes has no field spec.template.spec.hostNetwok"),
        "{out}"
    );
    assert!(out.contains("boots if it is applied without"), "{out}");
}

#[test]
fn objects_refused_by_the_api_server_are_named_with_file_and_document() {
    let refused = |text: &str, words: &str| {
        let (code, out, _) = bootstrap(&["check", "-", "--explain"], text);
        assert_eq!(code, 1, "{out}");
        assert!(out.contains(words), "'{words}' is missing:\n{out}");
    };
    let without_replicas = changed("replicas: 2", "replicas: two");
    refused(&without_replicas, "MUST BOOT-API: document 10 (Deployment/reference-ccm): spec.replicas");
    never_boots(&without_replicas, "API server refuses");
    // kubectl goes on after other objects.
    refused(
        &with_document("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ../../x}\n"),
        "document 11 (ConfigMap/../../x): metadata.name",
    );
    refused(
        &with_document("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: 1}\n"),
        "data[a]: expected a string, got a number (1)",
    );
    refused(
        &with_document("apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 0}]}\n"),
        "spec.ports[0].port",
    );
    refused(
        &with_document("apiVersion: rbac.authorization.k8s.io/v1beta1\nkind: Role\nmetadata: {name: r}\n"),
        "is not served since Kubernetes 1.22",
    );
    refused(
        &with_document(
            "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h, labels: {a: 1}}\n",
        ),
        "metadata.labels[a]",
    );
    // A placeholder is replaced before the manifest is applied.
    assert_eq!(cell(&changed("replicas: 2", "replicas: ${REPLICAS}"))["outcome"], "boots");
}

#[test]
fn pod_security_counts_since_it_is_on() {
    let code = |version: &str| {
        let options = ["--kubernetes", version, "--topology", "single-node", "--cni", "independent"];
        super::on_variant("check", "namespace-with-pod-security", &options).0
    };
    assert_eq!((code("1.22"), code("1.23")), (0, 1));
}
