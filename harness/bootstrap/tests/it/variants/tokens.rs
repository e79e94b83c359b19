//! Variants about service account tokens.

use super::{base, below, boot, changed, container, deadlock};

const FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A volume at the folder of the token.
fn volume(source: &str, automount: bool) -> String {
    let text = container(&format!("volumeMounts:\n- name: v\n  mountPath: {FOLDER}"));
    let refused = if automount { "" } else { "automountServiceAccountToken: false\n" };
    below(&text, "      serviceAccountName: ccm\n", 6, &format!("{refused}volumes:\n- name: v\n  {source}"))
}

fn projected(token: &str, authority: &str) -> String {
    volume(&format!("projected: {{sources: [{{serviceAccountToken: {token}}}{authority}]}}"), false)
}

const AUTHORITY: &str = ", {configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}}";

fn account(lines: &str) -> String {
    changed(
        &base(),
        "kind: ServiceAccount\nmetadata:\n  name: ccm\n  namespace: kube-system\n",
        &format!("kind: ServiceAccount\nmetadata:\n  name: ccm\n  namespace: kube-system\n{lines}"),
    )
}

#[test]
fn a_token_in_its_folder() {
    boot(&[
        ("token and authority", projected("{path: token}", AUTHORITY)),
        ("for an hour", projected("{path: token, expirationSeconds: 3600}", AUTHORITY)),
        (
            "for the API server",
            projected("{path: token, audience: 'https://kubernetes.default.svc.cluster.local'}", AUTHORITY),
        ),
        (
            "the Pod overrides its account",
            below(
                &account("automountServiceAccountToken: false\n"),
                "      serviceAccountName: ccm\n",
                6,
                "automountServiceAccountToken: true",
            ),
        ),
    ]);
    let elsewhere = below(
        &projected("{path: token}", ""),
        "        env:\n",
        8,
        "- {name: SSL_CERT_FILE, value: /etc/own.crt}",
    );
    boot(&[("an authority that Go reads elsewhere", elsewhere)]);
    deadlock(&[
        ("no authority", projected("{path: token}", "")),
        ("another audience", projected("{path: token, audience: vault}", AUTHORITY)),
        ("another name", projected("{path: jwt}", AUTHORITY)),
        (
            "an authority with another name",
            projected(
                "{path: token}",
                ", {configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: root.crt}]}}",
            ),
        ),
        ("a ConfigMap over it", volume("configMap: {name: kube-root-ca.crt}", true)),
        ("none by its account", account("automountServiceAccountToken: false\n")),
    ]);
}

#[test]
fn mountable_secrets() {
    let listed = |list: &str, annotation: &str| {
        let text = changed(
            &base(),
            "kind: ServiceAccount\nmetadata:\n  name: ccm\n  namespace: kube-system\n",
            &format!(
                "kind: ServiceAccount\nmetadata:\n  name: ccm\n  namespace: kube-system\n  annotations: {{kubernetes.io/enforce-mountable-secrets: '{annotation}'}}\n{list}"
            ),
        );
        let text = below(
            &text,
            "        imagePullPolicy: IfNotPresent\n",
            8,
            "envFrom: []\nvolumeMounts: [{name: v, mountPath: /v}]",
        );
        let text = below(
            &text,
            "      serviceAccountName: ccm\n",
            6,
            "volumes: [{name: v, secret: {secretName: conf}}]",
        );
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: conf, namespace: kube-system}}\nstringData: {{a: b}}\n---\n{text}"
        )
    };
    boot(&[("listed", listed("secrets: [{name: conf}]\n", "true")), ("not enforced", listed("", "false"))]);
    deadlock(&[
        ("another one", listed("secrets: [{name: other}]\n", "true")),
        ("by a word of Go", listed("", "1")),
    ]);
    let env = |list: &str| {
        let text = listed(list, "true");
        let text = changed(
            &text,
            "      volumes: [{name: v, secret: {secretName: conf}}]\n",
            "      volumes: [{name: v, emptyDir: {}}]\n",
        );
        below(&text, "        env:\n", 8, "- {name: A, valueFrom: {secretKeyRef: {name: conf, key: a}}}")
    };
    boot(&[("a variable of a listed one", env("secrets: [{name: conf}]\n"))]);
    deadlock(&[("a variable", env(""))]);
}
