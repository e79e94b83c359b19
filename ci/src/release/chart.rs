//! The Helm chart, made of the manifests that run the harness inside a cluster: `helm install` creates the
//! service account, its rights and the volume for the results, and `helm test` runs the harness.

use super::names::{IN_CLUSTER, PROGRAM};
use super::version::Version;
use crate::process::root;
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;

/// The files of the chart that are the same for every release but for the name of the image.
const CONSTANT: &str = "ci/chart";
/// Goes in front of the Pod of the Job: a Pod has the name that is fixed, so the one of an earlier test is deleted.
const POD: &str = "\
apiVersion: v1
kind: Pod
metadata:
  name: {{ .Release.Name }}-run
  namespace: {{ .Release.Namespace }}
  annotations:
    helm.sh/hook: test
    helm.sh/hook-delete-policy: before-hook-creation
spec:
";
/// The claim that the chart creates or that the user has.
const CLAIM: &str =
    "claimName: {{ .Values.results.claim | default (printf \"%s-results\" .Release.Name) }}\n";

/// The files of the chart, by their path in the archive.
///
/// # Errors
/// A file cannot be read, or a manifest has another form than the chart expects.
pub(super) fn chart(
    version: &Version,
    image: &str,
    repository: Option<&str>,
) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut about = json!({
        "apiVersion": "v2",
        "name": PROGRAM,
        "description": "Conformance tests for Kubernetes cloud controller managers, run by 'helm test'",
        "type": "application",
        "version": version.name,
        "appVersion": version.cargo,
    });
    if let Some(url) = repository {
        about["home"] = json!(url);
    }
    let about = serde_saphyr::to_string(&about).context("writing Chart.yaml")?;
    let (base, job) = (manifest("base.yaml")?, manifest("job.yaml")?);
    let files = [
        ("Chart.yaml", about),
        ("values.yaml", replaced(&constant("values.yaml")?, "image: IMAGE\n", &format!("image: {image}\n"))?),
        ("values.schema.json", constant("values.schema.json")?),
        ("templates/NOTES.txt", constant("NOTES.txt")?),
        ("templates/base.yaml", installed(&base)?),
        ("templates/tests/run.yaml", tested(&job)?),
    ];
    Ok(files.into_iter().map(|(name, text)| (format!("{PROGRAM}/{name}"), text.into_bytes())).collect())
}

fn manifest(name: &str) -> Result<String> {
    read(&format!("{IN_CLUSTER}/{name}"))
}

fn constant(name: &str) -> Result<String> {
    read(&format!("{CONSTANT}/{name}"))
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| path.to_owned())
}

/// What `helm install` creates: `base.yaml` without the namespace, which is that of the release.
fn installed(base: &str) -> Result<String> {
    let (mut kept, mut claim) = (Vec::new(), None);
    for document in base.split("---\n") {
        if document.contains("\nkind: PersistentVolumeClaim\n") {
            claim = Some(document);
        } else if !document.contains("\nkind: Namespace\n") {
            kept.push(named(document)?);
        }
    }
    let claim = named(claim.context("base.yaml has no PersistentVolumeClaim")?)?;
    let claim = replaced(
        &claim,
        "  accessModes: [ReadWriteOnce]\n",
        "  accessModes: [ReadWriteOnce]\n  {{- with .Values.results.storageClass }}\n  storageClassName: {{ . | quote }}\n  {{- end }}\n",
    )?;
    let claim = replaced(&claim, "storage: 1Gi\n", "storage: {{ .Values.results.size }}\n")?;
    kept.push(format!("{{{{- if not .Values.results.claim }}}}\n{claim}{{{{- end }}}}\n"));
    Ok(kept.join("---\n"))
}

/// What `helm test` creates: the Pod of `job.yaml`.
fn tested(job: &str) -> Result<String> {
    let (_, pod) =
        job.split_once("\n  template:\n    spec:\n").context("job.yaml has no template of a Pod")?;
    let mut spec = String::new();
    for line in pod.lines() {
        let inner = line.strip_prefix("    ").with_context(|| format!("not a line of the Pod: '{line}'"))?;
        spec.push_str(&format!("{inner}\n"));
    }
    let edits = [
        ("serviceAccountName: ccm-conformance\n", "serviceAccountName: {{ .Release.Name }}\n"),
        ("image: ccm-conformance:latest\n", "image: {{ .Values.image | quote }}\n"),
        ("claimName: ccm-conformance-results\n", CLAIM),
        (
            "        - --out=/results/run\n",
            "        - --out=/results/run\n        {{- if .Values.profile }}\n        - --profile=/profile/profile.yaml\n        \
             {{- end }}\n        {{- range .Values.args }}\n        - {{ . | quote }}\n        {{- end }}\n",
        ),
        (
            "          mountPath: /tmp\n",
            "          mountPath: /tmp\n        {{- if .Values.profile }}\n        - name: profile\n          \
             mountPath: /profile\n          readOnly: true\n        {{- end }}\n",
        ),
        (
            "      emptyDir: {}\n",
            "      emptyDir: {}\n    {{- with .Values.profile }}\n    - name: profile\n      configMap:\n        \
             name: {{ . | quote }}\n    {{- end }}\n",
        ),
    ];
    let spec = edits.iter().try_fold(spec, |spec, (from, to)| replaced(&spec, from, to))?;
    Ok(format!("{POD}{spec}"))
}

/// A document of `base.yaml` with the names of the release.
fn named(document: &str) -> Result<String> {
    let mut text = document.replace("namespace: ccm-conformance\n", "namespace: {{ .Release.Namespace }}\n");
    for (from, to) in [
        ("name: ccm-conformance\n", "name: {{ .Release.Name }}\n"),
        ("name: ccm-conformance-results\n", "name: {{ .Release.Name }}-results\n"),
    ] {
        text = text.replace(from, to);
    }
    ensure!(
        text != document,
        "a document of base.yaml has a name that the chart does not replace:\n{document}"
    );
    Ok(text)
}

/// The text with one place replaced.
fn replaced(text: &str, from: &str, to: &str) -> Result<String> {
    let count = text.matches(from).count();
    ensure!(count == 1, "the chart replaces '{}', which is {count} times in:\n{text}", from.trim());
    Ok(text.replacen(from, to, 1))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::Value;

    /// A template as Helm would render it with every condition true and each list of one element: enough to
    /// read its YAML where Helm is not installed.
    pub(in super::super) fn rendered(template: &str, values: &[(&str, &str)]) -> Vec<Value> {
        let kept = template.lines().filter(|line| !line.trim().starts_with("{{-"));
        let mut text = kept.collect::<Vec<_>>().join("\n");
        for (name, value) in values {
            text = text.replace(&format!("{{{{ {name} }}}}"), value);
        }
        assert!(!text.contains("{{"), "a part of the template has no value:\n{text}");
        serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
    }

    fn made() -> BTreeMap<String, String> {
        let version =
            Version { cargo: "1.2.3".to_owned(), name: "1.2.3-gabc".to_owned(), commit: "abc".to_owned() };
        let files =
            chart(&version, "registry.example/ccm:1.2.3", Some("https://h.example/o/n")).expect("a chart");
        files.into_iter().map(|(name, bytes)| (name, String::from_utf8(bytes).expect("a text"))).collect()
    }

    #[test]
    fn a_chart_names_its_version_and_the_image() {
        let files = made();
        let about: Value = serde_saphyr::from_str(&files["ccm-conformance/Chart.yaml"]).expect("YAML");
        assert_eq!(about["apiVersion"], "v2");
        assert_eq!(about["name"], "ccm-conformance");
        assert_eq!((&about["version"], &about["appVersion"]), (&json!("1.2.3-gabc"), &json!("1.2.3")));
        assert_eq!(about["home"], "https://h.example/o/n");
        let values: Value = serde_saphyr::from_str(&files["ccm-conformance/values.yaml"]).expect("YAML");
        let schema: Value =
            serde_json::from_str(&files["ccm-conformance/values.schema.json"]).expect("a schema");
        let keys = |value: &Value| value.as_object().expect("a map").keys().cloned().collect::<Vec<_>>();
        assert_eq!(values["image"], "registry.example/ccm:1.2.3");
        let mut described = schema["properties"].clone();
        described.as_object_mut().expect("a map").remove("global").expect("the values of parent charts");
        assert_eq!(keys(&values), keys(&described));
        assert_eq!(keys(&values["results"]), keys(&schema["properties"]["results"]["properties"]));
    }

    #[test]
    fn install_creates_the_account_its_rights_and_the_volume() {
        let made = made();
        let template = &made["ccm-conformance/templates/base.yaml"];
        let all = rendered(
            template,
            &[
                (".Release.Name", "one"),
                (".Release.Namespace", "place"),
                (". | quote", "fast"),
                (".Values.results.size", "1Gi"),
            ],
        );
        let kinds: Vec<&str> = all.iter().filter_map(|one| one["kind"].as_str()).collect();
        assert_eq!(kinds, ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "PersistentVolumeClaim"]);
        for (one, name) in all.iter().zip(["one", "one", "one", "one-results"]) {
            assert_eq!(one["metadata"]["name"], name);
        }
        let [account, role, binding, claim] = &all[..] else { panic!("four objects") };
        assert_eq!(account["metadata"]["namespace"], "place");
        let own: Vec<Value> =
            serde_saphyr::from_multiple(&manifest("base.yaml").expect("a file")).expect("YAML");
        let own = own.iter().find(|one| one["kind"] == "ClusterRole").expect("a role");
        assert_eq!(role["rules"], own["rules"]);
        assert_eq!(binding["roleRef"]["name"], "one");
        assert_eq!(
            binding["subjects"],
            json!([{"kind": "ServiceAccount", "name": "one", "namespace": "place"}])
        );
        assert_eq!(claim["spec"]["storageClassName"], "fast");
    }

    #[test]
    fn helm_test_runs_the_pod_of_the_job() {
        let made = made();
        let claim = CLAIM.trim().trim_start_matches("claimName: {{ ").trim_end_matches(" }}");
        let [pod] = &rendered(
            &made["ccm-conformance/templates/tests/run.yaml"],
            &[
                (".Release.Name", "one"),
                (".Release.Namespace", "place"),
                (".Values.image | quote", "the-image"),
                (claim, "the-claim"),
                (". | quote", "given"),
            ],
        )[..] else {
            panic!("one object")
        };
        assert_eq!(pod["metadata"]["annotations"]["helm.sh/hook"], "test");
        let own: Value = serde_saphyr::from_str(&manifest("job.yaml").expect("a file")).expect("YAML");
        let mut own = own["spec"]["template"]["spec"].clone();
        own["serviceAccountName"] = json!("one");
        let container = &mut own["containers"][0];
        container["image"] = json!("the-image");
        let push = |list: &mut Value, more: Value| list.as_array_mut().expect("a list").push(more);
        push(&mut container["args"], json!("--profile=/profile/profile.yaml"));
        push(&mut container["args"], json!("given"));
        push(
            &mut container["volumeMounts"],
            json!({"name": "profile", "mountPath": "/profile", "readOnly": true}),
        );
        own["volumes"][0]["persistentVolumeClaim"]["claimName"] = json!("the-claim");
        push(&mut own["volumes"], json!({"name": "profile", "configMap": {"name": "given"}}));
        assert_eq!(pod["spec"], own);
    }

    #[test]
    fn manifests_of_another_form_are_refused() {
        let error = installed("\nkind: ServiceAccount\nname: ccm-conformance\n").expect_err("no claim");
        assert!(error.to_string().contains("no PersistentVolumeClaim"), "{error}");
        let error = named("\nkind: Role\nmetadata:\n  name: other\n").expect_err("an unknown name");
        assert!(error.to_string().contains("that the chart does not replace"), "{error}");
        assert!(tested("kind: Job\n").is_err());
    }
}
