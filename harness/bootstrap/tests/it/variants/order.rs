//! Variants about the order of documents, Jobs, mirrors, paths and variables.

use super::{argument, base, below, boot, changed, container, deadlock, in_namespace};

/// The Deployment as a Job with these fields.
fn job(fields: &str) -> String {
    let text = changed(&base(), "apiVersion: apps/v1\nkind: Deployment", "apiVersion: batch/v1\nkind: Job");
    let text = changed(&text, "  selector:\n    matchLabels:\n      app: ccm\n", fields);
    let text = changed(&text, "  replicas: 1\n  strategy:\n    type: Recreate\n", "");
    changed(
        &text,
        "      serviceAccountName: ccm\n",
        "      serviceAccountName: ccm\n      restartPolicy: OnFailure\n",
    )
}

/// The documents in another order.
fn reordered(text: &str, order: &[usize]) -> String {
    let all: Vec<&str> = text.split("---\n").collect();
    let chosen: Vec<String> = order.iter().map(|at| format!("{}\n", all[*at].trim_end())).collect();
    chosen.join("---\n")
}

#[test]
fn order_of_documents() {
    boot(&[
        ("a Deployment before its account", reordered(&base(), &[2, 0, 1])),
        ("the account last", reordered(&base(), &[1, 2, 0])),
        (
            "the namespace first",
            in_namespace("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: ccm-system}"),
        ),
    ]);
    let spaced = in_namespace("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: ccm-system}");
    deadlock(&[
        ("the namespace after its account", reordered(&spaced, &[1, 0, 2, 3, 4])),
        ("the namespace after its Deployment", reordered(&spaced, &[1, 2, 3, 4, 0])),
    ]);
}

#[test]
fn jobs() {
    boot(&[("one", job("")), ("of several", job("  completions: 3\n  parallelism: 2\n"))]);
    deadlock(&[
        ("no completions", job("  completions: 0\n")),
        ("suspended", job("  suspend: true\n")),
        ("nothing at once", job("  completions: 1\n  parallelism: 0\n")),
    ]);
}

#[test]
fn mirrors_and_paths() {
    let path = |expression: &str, env: &str| {
        let text =
            container(&format!("volumeMounts: [{{name: v, mountPath: /v, subPathExpr: '{expression}'}}]"));
        let text = below(&text, "      serviceAccountName: ccm\n", 6, "volumes: [{name: v, emptyDir: {}}]");
        if env.is_empty() { text } else { below(&text, "        env:\n", 8, env) }
    };
    boot(&[
        ("a plain path", path("a/b", "")),
        ("a variable", path("$(REGION)", "")),
        (
            "a variable of a field",
            path("$(POD)", "- {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}"),
        ),
        ("an escaped one", path("$$(ABSENT)", "")),
        ("a variable of the API server's Service", path("$(KUBERNETES_PORT)", "")),
    ]);
    deadlock(&[
        ("one of two", path("$(REGION)/$(ABSENT)", "")),
        (
            "the mirror of a static Pod",
            below(
                &base(),
                "      labels:\n        app: ccm\n",
                6,
                "annotations: {kubernetes.io/config.mirror: abc}",
            ),
        ),
    ]);
}

#[test]
fn flags_and_variables() {
    let with = |env: &str, flag: &str| below(&argument(flag), "        env:\n", 8, env);
    boot(&[
        ("all but another", argument("--controllers=*,-service")),
        ("all but another, first", argument("--controllers=-service,*")),
        (
            "given twice",
            below(
                &argument("--controllers=-service"),
                "        - --controllers=-service\n",
                8,
                "- --controllers=*",
            ),
        ),
        ("by a variable", with("- {name: LIST, value: '*'}", "--controllers=$(LIST)")),
        ("a provider by a variable", with("- {name: NAME, value: digitalocean}", "--cloud-provider=$(NAME)")),
    ]);
    deadlock(&[
        ("all but its own", argument("--controllers=*,-cloud-node")),
        ("all but its own, first", argument("--controllers=-cloud-node,*")),
        ("others", argument("--controllers=service,route")),
        (
            "given twice",
            below(
                &argument("--controllers=*"),
                "        - --controllers=*\n",
                8,
                "- --controllers=-cloud-node-controller",
            ),
        ),
        ("by a variable", with("- {name: LIST, value: service}", "--controllers=$(LIST)")),
        ("no provider by a variable", with("- {name: NAME, value: external}", "--cloud-provider=$(NAME)")),
        (
            "no election by a variable",
            with("- {name: LEASE, value: kube-scheduler}", "--leader-elect-resource-name=$(LEASE)"),
        ),
    ]);
}
