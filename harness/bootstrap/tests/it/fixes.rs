//! `bootstrap fix`: its output boots, keeps comments and layout, and matches the printed difference.

use super::{bootstrap, on_variant, variants};

/// Fixes a variant and checks the outcome.
#[track_caller]
fn fixed(name: &str, options: &[&str]) -> String {
    let path = variants().join(name).join("ccm.yaml");
    let before = std::fs::read_to_string(&path).expect("the variant");
    let (code, out, err) = on_variant("fix", name, options);
    assert_eq!(code, 0, "{name}: {out}{err}");
    // The whole output is a manifest: the difference is in comments.
    let (code, checked, _) = bootstrap(&[&["check", "-"], options].concat(), &out);
    assert_eq!(code, 0, "{name} does not boot after the fix:\n{checked}\n{out}");
    let after = out.split("\n# --- a/").next().expect("the manifest").to_owned();
    for comment in before.lines().filter_map(|line| line.split_once(" # ").map(|(_, comment)| comment)) {
        assert!(after.contains(comment), "{name}: the comment '{comment}' is gone");
    }
    assert_eq!(std::fs::read_to_string(&path).expect("the variant"), before, "fix changes no file");
    after
}

#[test]
fn fixed_manifests_boot() {
    let address = ["--cloud-endpoint", "address"];
    for name in [
        "mbt-01-no-uninitialized-toleration",
        "mbt-02-toleration-without-operator",
        "mbt-03-no-control-plane-toleration",
        "mbt-04-no-not-ready-toleration",
        "mbt-05-no-host-network",
        "mbt-07-host-ip",
        "effect-no-execute",
        "absent-service-account",
        "vendor-aws",
        "vendor-hcloud",
        "vendor-digitalocean",
        "vendor-cloudstack",
        "webhook-before-its-own-pods",
    ] {
        fixed(name, &address);
    }
    fixed("mbt-06-cluster-dns", &["--cloud-endpoint", "name"]);
}

#[test]
fn the_seeds_example_is_fixed_in_both_places() {
    let after = fixed("seed-example", &["--assume", "ServiceAccount/kube-system/default"]);
    assert!(after.contains("image: registry/my-infrastructure-cloud-controller-manager:latest\n"), "{after}");
    assert!(
        after.contains("- key: node-role.kubernetes.io/control-plane\n        operator: Exists"),
        "{after}"
    );
    let with_rights = fixed("seed-example", &[]);
    assert!(with_rights.contains("kind: ClusterRoleBinding"), "{with_rights}");
    assert!(with_rights.contains("serviceAccountName: cloud-controller-manager"), "{with_rights}");
}

#[test]
fn a_toleration_without_operator_is_completed_not_doubled() {
    let after = fixed("mbt-02-toleration-without-operator", &[]);
    assert_eq!(after.matches("node.cloudprovider.kubernetes.io/uninitialized").count(), 1, "{after}");
}

#[test]
fn recommendations_are_inserted_where_they_are_missing() {
    let text = "apiVersion: apps/v1
kind: Deployment
metadata: {name: a-ccm, namespace: kube-system}
spec:
  replicas: 2
  selector: {matchLabels: {app: a-ccm}}
  template:
    metadata: {labels: {app: a-ccm}}
    spec:
      hostNetwork: true
      affinity:
        nodeAffinity: {}
      containers:
        - name: c
          image: c:v1
          args: [--cloud-provider=a, --leader-elect=true]
          resources: {} # none
        - name: sidecar
          image: s:v1
";
    let assume = ["fix", "-", "--recommended", "--assume", "ServiceAccount/default"];
    let (code, out, err) = bootstrap(&assume, text);
    assert_eq!(code, 0, "{out}{err}");
    let after = out.split("\n# --- a/").next().expect("the manifest");
    for part in [
        "      nodeSelector:\n        node-role.kubernetes.io/control-plane: \"\"\n",
        "        nodeAffinity: {}\n        podAntiAffinity:\n          requiredDuringSchedulingIgnoredDuringExecution:\n            - \
         topologyKey: kubernetes.io/hostname\n              labelSelector:\n                matchLabels:\n                  app: \
         a-ccm\n",
        "          resources:\n            requests:\n              cpu: 50m\n              memory: 64Mi # none\n",
        "          image: s:v1\n          resources:\n            requests:\n              cpu: 50m\n              memory: 64Mi\n",
    ] {
        assert!(after.contains(part), "{part}\nis missing:\n{out}{err}");
    }
    for row in ["BOOT-LINT-08", "BOOT-LINT-09", "BOOT-LINT-18"] {
        assert!(!err.contains(row) && !out.contains(&format!("by hand: {row}")), "{row}: {out}{err}");
    }
}

#[test]
fn a_toleration_for_a_time_becomes_one_without_a_limit() {
    let text = |toleration: &str| {
        format!(
            "apiVersion: apps/v1
kind: Deployment
metadata: {{name: a-ccm, namespace: kube-system}}
spec:
  selector: {{matchLabels: {{app: a-ccm}}}}
  template:
    metadata: {{labels: {{app: a-ccm}}}}
    spec:
      tolerations:
{toleration}
      containers:
        - name: c
          image: c:v1
          args: [--cloud-provider=a]
"
        )
    };
    let not_ready = "        - key: node.kubernetes.io/not-ready
          operator: Exists
          effect: NoExecute";
    let options = ["fix", "-", "--recommended", "--assume", "ServiceAccount/default"];
    let counted = |manifest: &str| {
        let (_, out, err) = bootstrap(&options, manifest);
        assert!(err.is_empty(), "{err}");
        let after = out.split("\n# --- a/").next().expect("the manifest").to_owned();
        (after.matches("key: node.kubernetes.io/not-ready\n").count(), after)
    };
    let (plain, _) = counted(&text(not_ready));
    let (limited, after) = counted(&text(&format!("{not_ready}\n          tolerationSeconds: 300")));
    assert_eq!(limited, plain, "{after}");
    assert!(!after.contains("tolerationSeconds: 300"), "{after}");
}

#[test]
fn a_second_fix_changes_nothing_and_line_ends_stay() {
    let text = "apiVersion: apps/v1\r
kind: Deployment\r
metadata:\r
  name: a-ccm\r
  namespace: kube-system\r
spec:\r
  selector: {matchLabels: {app: a-ccm}}\r
  template:\r
    metadata: {labels: {app: a-ccm}}\r
    spec:\r
      tolerations: []\r
      containers:\r
        - name: c\r
          image: c:v1\r
          args: [--cloud-provider=a]\r
";
    let options = ["fix", "-", "--recommended", "--assume", "ServiceAccount/default"];
    let (code, out, err) = bootstrap(&options, text);
    assert_eq!(code, 0, "{out}{err}");
    let after = out.split("\n# --- a/").next().expect("the manifest");
    assert!(after.contains("node-role.kubernetes.io/master"), "{after}");
    assert_eq!(after.trim_end().matches('\n').count(), after.trim_end().matches("\r\n").count(), "{after:?}");
    let (code, again, err) = bootstrap(&options, after.trim_end());
    assert_eq!(code, 0, "{again}{err}");
    assert!(again.contains("# nothing to change"), "{again}");
}

#[test]
fn the_difference_is_a_patch() {
    let (_, out, _) = on_variant("fix", "mbt-01-no-uninitialized-toleration", &["--diff-only"]);
    assert!(out.starts_with("--- a/"), "{out}");
    let added: Vec<&str> =
        out.lines().filter(|line| line.starts_with('+') && !line.starts_with("+++")).collect();
    assert_eq!(added.len(), 3, "{out}");
    assert!(!out.lines().any(|line| line.starts_with('-') && !line.starts_with("---")), "{out}");
}

#[test]
fn values_that_only_a_person_knows_are_listed() {
    let (code, out, _) = on_variant("fix", "absent-secret", &["--diff-only"]);
    assert_eq!(code, 1);
    assert!(out.contains("by hand") && out.contains("Secret/kube-system/reference-ccm"), "{out}");
    let (code, out, _) = on_variant("fix", "good-deployment", &["--diff-only"]);
    assert_eq!((code, out.contains("nothing to change")), (0, true), "{out}");
}

#[test]
fn json_and_brackets_are_fixed_in_their_own_style() {
    let text = r#"{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "a-ccm", "namespace": "kube-system"},
 "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
  "hostNetwork": true, "containers": [{"name": "c", "image": "c:v1"}]}}}}"#;
    let assume = ["fix", "-", "--assume", "ServiceAccount/default"];
    let (code, out, err) = bootstrap(&assume, text);
    assert_eq!(code, 0, "{out}{err}");
    let json = out.split("\n# --- a/").next().expect("the manifest");
    let value: serde_json::Value = serde_json::from_str(json).expect("still JSON");
    let tolerations = value["spec"]["template"]["spec"]["tolerations"].as_array().expect("tolerations");
    assert!(tolerations.len() >= 2, "{json}");
}
