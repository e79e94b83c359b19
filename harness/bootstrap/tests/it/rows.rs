//! Every row of the lint finds its defect at the right place, and nothing in a good manifest.

use super::{bootstrap, on_variant};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Breaks every row; the lines are counted below.
const BAD: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: cloud-controller-manager, namespace: kube-system}
spec:
  replicas: 2
  selector: {matchLabels: {app: ccm}}
  template:
    metadata: {labels: {app: ccm}}
    spec:
      serviceAccountName: nobody
      nodeSelector:
        node-role.kubernetes.io/control-plane: ""
      tolerations:
        - key: node.cloudprovider.kubernetes.io/uninitialized
          effect: NoSchedule
        - key: node.kubernetes.io/not-ready
          operator: Exists
          effect: NoExecute
          tolerationSeconds: 120
      containers:
        - name: main
          image: registry/ccm@latest
          args:
            - --cloud-provider=external
            - --leader-elect=false
            - --configure-cloud-routes=true
          env:
            - name: HOST_IP
              valueFrom: {fieldRef: {fieldPath: status.hostIP}}
          livenessProbe:
            httpGet: {scheme: HTTPS, path: /livez, port: 10258}
      volumes:
        - name: state
          persistentVolumeClaim: {claimName: state}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: more, namespace: kube-system}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: cloud-controller-manager}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: first-ccm, namespace: kube-system}
spec:
  selector: {matchLabels: {app: first}}
  template:
    metadata: {labels: {app: first}}
    spec: {hostNetwork: true, containers: [{name: main, image: "ccm:v1"}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: second-ccm, namespace: kube-system}
spec:
  selector: {matchLabels: {app: second}}
  template:
    metadata: {labels: {app: second}}
    spec: {hostNetwork: true, containers: [{name: main, image: "ccm:v1"}]}
---
apiVersion: v1
kind: Service
metadata: {name: hook, namespace: kube-system}
spec: {selector: {app: ccm}, ports: [{port: 443}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook}
webhooks:
  - name: a.example.org
    admissionReviewVersions: [v1]
    sideEffects: None
    clientConfig: {service: {name: hook, namespace: kube-system}}
    rules: [{apiGroups: [""], apiVersions: [v1], resources: [nodes], operations: [UPDATE]}]
"#;

fn findings(options: &[&str]) -> Vec<Value> {
    let (_, text, err) = bootstrap(&[&["check", "-", "--output", "json"], options].concat(), BAD);
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}{err}"));
    value["findings"].as_array().expect("findings").clone()
}

fn ids(findings: &[Value]) -> BTreeSet<String> {
    findings.iter().filter_map(|finding| finding["id"].as_str()).map(str::to_owned).collect()
}

#[test]
fn every_row_finds_what_it_is_for() {
    let found = ids(&findings(&["--kube-proxy", "no"]));
    let mut wanted: BTreeSet<String> = (1..=22).map(|row| format!("BOOT-LINT-{row:02}")).collect();
    // Which of several CCMs is meant, and objects that do not exist.
    wanted.extend(["BOOT-READ", "BOOT-REF"].map(String::from));
    assert_eq!(found, wanted);
}

#[test]
fn findings_stand_at_their_lines() {
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for finding in findings(&["--kube-proxy", "no"]) {
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        lines.entry(text("id")).or_default().push(text("place"));
        assert!(!text("why").is_empty() && !text("what").is_empty(), "{finding}");
    }
    for (id, line) in [
        ("BOOT-LINT-03", 13),
        ("BOOT-LINT-06", 16),
        ("BOOT-LINT-10", 25),
        ("BOOT-LINT-12", 38),
        ("BOOT-LINT-14", 28),
        ("BOOT-LINT-15", 33),
        ("BOOT-LINT-16", 31),
        ("BOOT-LINT-17", 24),
        ("BOOT-LINT-18", 22),
        ("BOOT-LINT-22", 10),
    ] {
        assert!(lines[id].contains(&format!("<stdin>:{line}")), "{id}: {:?}", lines[id]);
    }
}

#[test]
fn a_hosted_control_plane_skips_the_rows_about_its_place() {
    let found = ids(&findings(&["--topology", "hosted", "--kube-proxy", "no"]));
    for row in [1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 15, 19] {
        assert!(!found.contains(&format!("BOOT-LINT-{row:02}")), "row {row}: {found:?}");
    }
    for row in [10, 11, 12, 13, 16, 17, 18, 21, 22] {
        assert!(found.contains(&format!("BOOT-LINT-{row:02}")), "row {row}: {found:?}");
    }
}

#[test]
fn rows_without_a_network_are_binding_when_that_is_asked_for() {
    let level = |options: &[&str]| {
        let all = findings(options);
        let row = all.iter().find(|finding| finding["id"] == "BOOT-LINT-05").expect("row 05");
        row["level"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(level(&[]), "SHOULD");
    assert_eq!(level(&["--cni", "none"]), "MUST");
    assert_eq!(level(&["--cni", "independent"]), "SHOULD");
}

#[test]
fn a_good_manifest_has_no_finding() {
    let (_, text, _) =
        on_variant("check", "good-deployment", &["--output", "json", "--cloud-endpoint", "name"]);
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["findings"], serde_json::json!([]));
}
