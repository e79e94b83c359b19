//! Slips in manifests that a run shows late: a placeholder that nothing fills in, and a CCM that does not learn where its
//! cloud is or has no credential for it.

use crate::ccm::{Manifests, key_of, mentions, pod_spec};
use harness_config::{CloudSource, Lease, OWN_PLACEHOLDERS, Profile, nearest};
use serde_json::Value;
use std::collections::BTreeSet;

/// Placeholders that the harness fills in although a profile may set them, and one of the recording proxy.
const MORE: [&str; 2] = ["CLUSTER_CIDR", "CLOUD_HTTP_PROXY"];
/// Placeholders with the address of the cloud, or a part of it.
const ADDRESS: [&str; 3] = ["CLOUD_ENDPOINT", "CLOUD_HOST", "CLOUD_HTTP_PROXY"];

/// The placeholder with the credential for the cloud.
const TOKEN: &str = "CLOUD_TOKEN";

/// The value that `init` gives a placeholder that it cannot know.
pub const TO_DO: &str = "TODO";

/// Warnings for the user about a profile and its manifests, in whole sentences: placeholders that nothing fills in, another
/// Lease than the profile's, and a cloud whose address or credential the CCM does not learn.
pub fn unfilled(profile: &Profile, manifests: &Manifests) -> Vec<String> {
    let mut warnings: Vec<String> = unknown_placeholders(profile, manifests)
        .iter()
        .map(|name| unknown(name, profile, manifests))
        .collect();
    let left = profile.placeholders.iter().filter(|(_, value)| *value == TO_DO);
    warnings.extend(left.map(|(name, _)| {
        format!("{}: placeholders.{name} is still {TO_DO}; write its value", profile.file.display())
    }));
    warnings.extend(other_lease(profile, manifests));
    let unless = match &profile.cloud {
        CloudSource::Dialect(_) => "",
        CloudSource::Proxied { proxy, .. } if !proxy.http_proxy => "",
        CloudSource::DriverAt { .. }
        | CloudSource::DriverCommand { .. }
        | CloudSource::DriverImage { .. } => {
            " (no placeholder is needed if the driver's cloud always has the address that the manifests contain)"
        }
        CloudSource::Proxied { .. } | CloudSource::Real { .. } => return warnings,
    };
    if !ADDRESS.iter().any(|name| is_used(profile, manifests, name)) {
        warnings.push(format!(
            "the CCM does not learn where its cloud is: neither the manifests nor 'environment' in {} contain \
             ${{CLOUD_ENDPOINT}}; write it where the CCM reads the address of the cloud's API{unless}",
            profile.file.display()
        ));
    }
    // Other clouds may accept a credential that the manifests contain.
    if matches!(profile.cloud, CloudSource::Dialect(_)) && !is_used(profile, manifests, TOKEN) {
        warnings.push(format!(
            "the CCM gets no credential for its cloud: neither the manifests nor 'environment' in {} contain ${{{TOKEN}}}; write it \
             where the CCM reads its credential, in a Secret under 'stringData'",
            profile.file.display()
        ));
    }
    warnings
}

/// The Lease that the flags in the manifests name, if the profile names another one.
fn other_lease(profile: &Profile, manifests: &Manifests) -> Option<String> {
    if !profile.capabilities.leader_election {
        return None;
    }
    let spec = pod_spec(&manifests.documents[manifests.workload]);
    // Other containers of the Pod may have an election of their own.
    let container = &spec["containers"][manifests.container];
    let words = ["command", "args"].into_iter().filter_map(|field| container[field].as_array());
    let words = words.flatten().filter_map(Value::as_str);
    let words: Vec<&str> = words.chain(profile.extra_arguments.iter().map(String::as_str)).collect();
    let flag = |name: &str| {
        let prefix = format!("--leader-elect-resource-{name}=");
        words
            .iter()
            .rev()
            .find_map(|word| word.strip_prefix(prefix.as_str()))
            .filter(|value| !value.contains("${"))
    };
    let (namespace, name) = (flag("namespace"), flag("name"));
    let Lease { namespace: own_namespace, name: own_name } = &profile.lease;
    let differs = |flag: Option<&str>, own: &str| flag.is_some_and(|value| value != own);
    (differs(namespace, own_namespace) || differs(name, own_name)).then(|| {
        format!(
            "the flags in the manifests name Lease {}/{}, and the profile expects {own_namespace}/{own_name}: write \
             'lease: {{namespace: {0}, name: {1}}}' into {}",
            namespace.unwrap_or(own_namespace),
            name.unwrap_or(own_name),
            profile.file.display()
        )
    })
}

fn is_used(profile: &Profile, manifests: &Manifests, name: &str) -> bool {
    let placeholder = format!("${{{name}}}");
    manifests.documents.iter().any(|document| mentions(document, name))
        || profile
            .environment
            .values()
            .chain(&profile.extra_arguments)
            .any(|text| text.contains(&placeholder))
}

fn unknown(name: &str, profile: &Profile, manifests: &Manifests) -> String {
    let place = match manifests.documents.iter().find(|document| mentions(document, name)) {
        Some(document) => key_of(document).to_string(),
        None => format!("'environment' or 'flags.extra' of {}", profile.file.display()),
    };
    let known = OWN_PLACEHOLDERS.iter().copied().chain(MORE).map(str::to_owned);
    match nearest(name, known.chain(profile.placeholders.keys().cloned())) {
        Some(near) => format!("nothing fills in ${{{name}}} of {place}; did you mean ${{{near}}}?"),
        None => format!(
            "nothing fills in ${{{name}}} of {place}; set it under 'placeholders' in {}, unless a script replaces it itself",
            profile.file.display()
        ),
    }
}

/// Names of placeholders that neither the harness nor the profile fills in. A variable of a container is the shell's.
fn unknown_placeholders(profile: &Profile, manifests: &Manifests) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for document in &manifests.documents {
        collect(document, &mut names);
    }
    for text in profile.environment.values().chain(&profile.extra_arguments) {
        names.extend(placeholders(text));
    }
    let credentials = profile.cloud.real().into_iter().flat_map(|credentials| credentials.keys());
    let given: BTreeSet<&String> = profile.placeholders.keys().chain(credentials).collect();
    let variables = variables(manifests);
    names.retain(|name| {
        let own = OWN_PLACEHOLDERS.contains(&name.as_str()) || MORE.contains(&name.as_str());
        !own && !given.contains(name) && !variables.contains(name) && !profile.environment.contains_key(name)
    });
    names
}

/// The environment variables of the containers of the CCM's Pods.
fn variables(manifests: &Manifests) -> BTreeSet<String> {
    let spec = pod_spec(&manifests.documents[manifests.workload]);
    let containers = ["containers", "initContainers"].into_iter().filter_map(|field| spec[field].as_array());
    let variables = containers.flatten().filter_map(|container| container["env"].as_array());
    variables.flatten().filter_map(|variable| variable["name"].as_str().map(str::to_owned)).collect()
}

fn collect(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => names.extend(placeholders(text)),
        Value::Array(list) => list.iter().for_each(|item| collect(item, names)),
        Value::Object(map) => map.values().for_each(|item| collect(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The names between `${` and `}` in a text that can be placeholders.
fn placeholders(text: &str) -> impl Iterator<Item = String> {
    let names = text.split("${").skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
    let is_name = |name: &&str| {
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    names.filter(is_name).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ccm::WorkloadHint;
    use harness_config::{RunFile, Source, plan};
    use serde_json::json;

    /// The warnings for a CCM with this in a ConfigMap and as an argument, and a profile with these additional lines.
    fn warnings(url: &str, argument: &str, more: &str) -> Vec<String> {
        warnings_with("${CLOUD_TOKEN}", url, argument, more)
    }

    /// The same with this credential.
    fn warnings_with(token: &str, url: &str, argument: &str, more: &str) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let profile = format!(
            "apiVersion: ccm-conformance/v1\nkind: Profile\nname: acme\nimage: {{command: reference-ccm}}\n\
             manifests: [ccm.yaml]\n{}{more}",
            if more.contains("capabilities:") { "" } else { "capabilities: {instances: v2}\n" }
        );
        for (name, text) in [("profile.yaml", profile.as_str()), ("ccm.yaml", "")] {
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        let file = Some(folder.path().display().to_string());
        let plan = plan(&Source::Defaults, RunFile { profile: file, ..RunFile::default() }).expect("a plan");
        let container = json!({"name": "c", "args": [argument], "env": [{"name": "MODE", "value": token}]});
        let documents = vec![
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "where"}, "data": {"url": url}}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ccm"}, "spec": {"containers": [container]}}),
        ];
        let manifests = Manifests::new(documents, &WorkloadHint::default()).expect("a workload");
        let shown = |text: String| text.replace(&format!("{}/", folder.path().display()), "");
        unfilled(&plan.profile, &manifests).into_iter().map(shown).collect()
    }

    #[test]
    fn a_lease_of_another_name_than_the_profiles_is_named() {
        let of = |argument: &str, more: &str| {
            let more = format!("capabilities: {{instances: v2, leaderElection: true}}\n{more}");
            let all = warnings("${CLOUD_ENDPOINT}", argument, &more);
            all.into_iter().find(|warning| warning.contains("Lease"))
        };
        let flag = "--leader-elect-resource-name=acme";
        let warned = of(flag, "").expect("a warning");
        assert!(
            warned.contains("name Lease kube-system/acme, and the profile expects kube-system/cloud-"),
            "{warned}"
        );
        assert!(warned.contains("'lease: {namespace: kube-system, name: acme}'"), "{warned}");
        assert_eq!(of(flag, "lease: {namespace: kube-system, name: acme}\n"), None);
        assert_eq!(of("--leader-elect-resource-name=cloud-controller-manager", ""), None);
        assert_eq!(of("--leader-elect=true", ""), None);
    }

    #[test]
    fn a_ccm_without_a_credential_for_a_fake_cloud_is_reported() {
        let without = warnings_with("secret", "${CLOUD_ENDPOINT}", "--v=2", "");
        assert!(
            matches!(without.as_slice(), [one] if one.contains("'environment' in profile.yaml contain ${CLOUD_TOKEN}")),
            "{without:?}"
        );
        let environment = "environment: {ACME_TOKEN: '${CLOUD_TOKEN}'}\n";
        assert_eq!(warnings_with("secret", "${CLOUD_ENDPOINT}", "--v=2", environment), [""; 0]);
        let driver = "providerId: {format: 'acme://{id}'}\n\
                      cloud: {driver: {command: [sh, '${DRIVER_LISTEN}', '${DRIVER_TOKEN_FILE}']}}\n";
        assert_eq!(
            warnings_with("secret", "${CLOUD_ENDPOINT}", "--v=2", driver),
            [""; 0],
            "it may accept it"
        );
    }

    #[test]
    fn a_misspelt_placeholder_is_named_with_the_one_that_was_meant() {
        assert_eq!(warnings("${CLOUD_ENDPOINT}", "--cidr=${CLUSTER_CIDR}", ""), [""; 0]);
        assert_eq!(
            warnings("${CLOUD_ENDPOINT}", "--token=${CLOUD_TOKN}", ""),
            ["nothing fills in ${CLOUD_TOKN} of Pod/ccm; did you mean ${CLOUD_TOKEN}?"]
        );
        assert_eq!(
            warnings("${CLOUD_ENDPOINT}", "--project=${PROJECT}", ""),
            [
                "nothing fills in ${PROJECT} of Pod/ccm; set it under 'placeholders' in profile.yaml, unless a script replaces it itself"
            ]
        );
        assert_eq!(warnings("${CLOUD_ENDPOINT}", "${PROJECT}", "placeholders: {PROJECT: p}\n"), [""; 0]);
        assert_eq!(
            warnings("${CLOUD_ENDPOINT}", "${PROJECT}", "placeholders: {PROJECT: TODO}\n"),
            ["profile.yaml: placeholders.PROJECT is still TODO; write its value"]
        );
    }

    #[test]
    fn variables_of_a_shell_are_not_placeholders() {
        assert_eq!(warnings("${CLOUD_ENDPOINT}", "exec ccm ${MODE} ${1} ${name:-x} $(NODE)", ""), [""; 0]);
    }

    #[test]
    fn a_ccm_that_does_not_learn_where_its_cloud_is_is_reported() {
        let unknown = warnings("https://api.acme.example", "--v=2", "");
        assert!(
            matches!(unknown.as_slice(), [one] if one.contains("neither the manifests nor 'environment' in profile.yaml")),
            "{unknown:?}"
        );
        let environment = "environment: {ACME_URL: '${CLOUD_ENDPOINT}/v2'}\n";
        assert_eq!(warnings("https://api.acme.example", "--v=2", environment), [""; 0]);
        assert_eq!(warnings("x", "--server=${CLOUD_HOST}", ""), [""; 0]);
        let driver = "providerId: {format: 'acme://{id}'}\n\
                      cloud: {driver: {command: [sh, '${DRIVER_LISTEN}', '${DRIVER_TOKEN_FILE}']}}\n";
        let unknown = warnings("x", "--v=2", driver);
        assert!(
            matches!(unknown.as_slice(), [one] if one.contains("if the driver's cloud always has the address")),
            "{unknown:?}"
        );
    }
}
