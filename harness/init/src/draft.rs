//! Makes a draft of a CCM's profile from its manifests. Pure functions.
//!
//! Facts in the manifests are used, likely values are guessed and marked, and everything else is listed as missing.

use super::container::{Used, addresses, flags, used};
use harness_config::{OWN_PLACEHOLDERS, yaml};
use harness_session::ccm::{Manifests, WorkloadHint, key_of, mentions, pod_spec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Added to the error for a text that contains the braces of a template.
pub(super) const TEMPLATE: &str = "; '{{' is of a template: render it first, a chart with --helm CHART";

/// The known facts about a CCM, by the name of its provider.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    pub(super) provider: String,
    pub(super) id: String,
    pub(super) can: BTreeSet<String>,
    #[serde(default)]
    pub(super) endpoint: Option<String>,
    #[serde(default)]
    pub(super) path: String,
    #[serde(default)]
    pub(super) settings: Option<String>,
    /// Whether it reports zones.
    #[serde(default = "yes")]
    pub(super) zones: bool,
    /// `loadBalancerOwner`, if it is not the default.
    #[serde(default)]
    pub(super) owner: Option<String>,
    /// `serviceAnnotations`, if its load balancers only identify their Service with them.
    #[serde(default)]
    pub(super) annotations: BTreeMap<String, String>,
    /// The order of its addresses, if it is not the cloud's.
    #[serde(default)]
    pub(super) addresses: Vec<String>,
    /// A region of its cloud.
    #[serde(default)]
    pub(super) region: Option<String>,
    /// A zone in that region.
    #[serde(default)]
    pub(super) zone: Option<String>,
    /// Other variables of its container.
    #[serde(default)]
    pub(super) also: BTreeMap<String, String>,
    /// When it programs routes, if that is not always.
    #[serde(default)]
    pub(super) routes: Option<String>,
}

fn yes() -> bool {
    true
}

/// All known facts about CCMs.
fn known() -> Vec<Known> {
    yaml::from_str(include_str!("known.yaml"), Path::new("known.yaml")).expect("checked by a test")
}

/// The facts about a CCM in its manifests.
#[derive(Debug)]
pub(super) struct Draft {
    /// Its name in reports.
    pub(super) name: String,
    /// The image of its container, as in the manifests.
    pub(super) image: Option<String>,
    /// `namespace`, `name` and, if there are several, container; absent if there is one workload with one
    /// container.
    pub(super) workload: Option<(String, String, Option<String>)>,
    /// The flags of its command line.
    pub(super) flags: BTreeMap<String, String>,
    /// The value of `--cloud-provider`, or the provider in the name of the workload or image.
    pub(super) provider: Option<String>,
    /// The known facts about that provider.
    pub(super) known: Option<Known>,
    /// The rights in its roles, as `resource verb`; `None` if the manifests contain no role.
    pub(super) rights: Option<BTreeSet<String>>,
    /// `${NAME}`s in the manifests that the harness does not set.
    pub(super) placeholders: BTreeSet<String>,
    /// Secrets that it uses and that the manifests lack, with the keys that it names.
    pub(super) secrets: BTreeMap<String, BTreeSet<String>>,
    /// Secrets that it uses and that the manifests contain without the harness's credential, with their keys.
    pub(super) held: BTreeMap<String, BTreeSet<String>>,
    /// ConfigMaps that it uses and that the manifests lack.
    pub(super) config_maps: BTreeSet<String>,
    /// Whether the manifests already have the harness's placeholder for the address of the cloud.
    pub(super) has_address: bool,
    /// Variables and flags of its container that may say where its cloud is, by their names.
    pub(super) addresses: Vec<String>,
    /// Its namespace.
    pub(super) namespace: String,
    /// The manifests with `${IMAGE}` in the CCM's container.
    pub(super) documents: Vec<Value>,
}

impl Draft {
    /// Reads the manifests of a CCM.
    ///
    /// # Errors
    /// They contain no workload that could be the CCM, or several.
    pub(super) fn of(
        documents: Vec<Value>,
        hint: &WorkloadHint,
        name: Option<&str>,
    ) -> Result<Draft, String> {
        let documents = objects(documents)?;
        let hint = chosen(&documents, hint)?;
        let several = workloads(&documents).count() > 1;
        let mut manifests = Manifests::new(documents, &hint).map_err(|error| error.to_string())?;
        let workload = &manifests.documents[manifests.workload];
        let key = key_of(workload);
        let namespace = key.namespace;
        let spec = pod_spec(workload).clone();
        let containers = spec["containers"].as_array().map_or(0, Vec::len);
        let container = spec["containers"][manifests.container].clone();
        let flags = flags(&container);
        let short = key.name.trim_end_matches("-cloud-controller-manager").trim_end_matches("-ccm");
        let declared = flags.get("cloud-provider").filter(|value| *value != "external").cloned();
        let image = manifests.image().map(str::to_owned);
        if let Some(template) = image.as_deref().filter(|image| image.contains("{{")) {
            return Err(format!("{} {}: the image is '{template}'{TEMPLATE}", key.kind, key.name));
        }
        // Some have their provider's name built in.
        let provider = declared.or_else(|| named_after(&key.name)).or_else(|| named_after(image.as_deref()?));
        let named = name.map(str::to_owned).or_else(|| provider.clone()).unwrap_or_else(|| short.to_owned());
        let container_name = container["name"].as_str().map(str::to_owned);
        let chosen_workload = (several || containers > 1)
            .then(|| (namespace.clone(), key.name.clone(), container_name.filter(|_| containers > 1)));
        let there = |kind: &str| -> BTreeSet<String> {
            let of = manifests.documents.iter().filter(|document| document["kind"] == kind);
            of.map(|document| key_of(document).name).collect()
        };
        let (secrets, config_maps) = used(&spec, &container);
        let lacks = |all: BTreeMap<String, BTreeSet<String>>, kind| {
            let there = there(kind);
            all.into_iter().filter(|(name, _)| !there.contains(name)).collect::<BTreeMap<_, _>>()
        };
        let held = held(&manifests.documents, &secrets);
        let (secrets, config_maps) = (lacks(secrets, "Secret"), lacks(config_maps, "ConfigMap"));
        let rights = rights(&manifests.documents);
        let known = provider.as_ref().and_then(|name| known().into_iter().find(|one| one.provider == *name));
        set_image(&mut manifests);
        let placeholders = placeholders(&manifests.documents);
        let has_address =
            ADDRESS.iter().any(|name| manifests.documents.iter().any(|one| mentions(one, name)));
        let addresses = addresses(&container, &flags);
        Ok(Draft {
            name: named,
            image: image.filter(|image| !image.contains("${")),
            workload: chosen_workload,
            flags,
            provider,
            known,
            rights,
            placeholders,
            has_address,
            addresses,
            secrets,
            held,
            config_maps: config_maps.into_keys().collect(),
            namespace,
            documents: manifests.documents,
        })
    }

    /// Whether a role allows this; `None` if there are no roles.
    pub(super) fn may(&self, resource: &str, verbs: &[&str]) -> Option<bool> {
        let rights = self.rights.as_ref()?;
        let has = |resource: &str, verb: &str| rights.contains(&format!("{resource} {verb}"));
        let may = |verb: &&str| ["*", resource].iter().any(|of| has(of, verb) || has(of, "*"));
        Some(verbs.iter().any(may))
    }
}

/// The known provider whose name is a word of this one, if it is the only one.
fn named_after(name: &str) -> Option<String> {
    let words: BTreeSet<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let mut named = known().into_iter().map(|one| one.provider).filter(|one| words.contains(one.as_str()));
    named.next().filter(|_| named.next().is_none())
}

/// Objects, with Lists replaced by their items.
fn objects(documents: Vec<Value>) -> Result<Vec<Value>, String> {
    let mut flat = Vec::new();
    for document in documents {
        match document {
            Value::Null => {}
            Value::Object(mut map) if map.get("items").is_some_and(Value::is_array) => {
                let Some(Value::Array(items)) = map.remove("items") else { continue };
                flat.extend(items);
            }
            other => flat.push(other),
        }
    }
    // If the namespace is left to the command that applies them, this is the usual one for a CCM.
    for document in flat.iter_mut().filter(|document| NAMESPACED.iter().any(|kind| document["kind"] == *kind))
    {
        if document["metadata"]["namespace"].is_null() && document["metadata"].is_object() {
            document["metadata"]["namespace"] = json!(NAMESPACE);
        }
    }
    Ok(flat)
}

/// The namespace of objects that name none.
const NAMESPACE: &str = "kube-system";
/// Namespaced kinds in a CCM's manifests.
const NAMESPACED: [&str; 12] = [
    "ConfigMap",
    "DaemonSet",
    "Deployment",
    "NetworkPolicy",
    "Pod",
    "PodDisruptionBudget",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "StatefulSet",
];

pub(super) fn short(value: &Value) -> String {
    value.to_string().chars().take(80).collect()
}

fn workloads(documents: &[Value]) -> impl Iterator<Item = &Value> {
    let is =
        |kind: &Value| ["Deployment", "DaemonSet", "StatefulSet", "Pod"].iter().any(|known| kind == known);
    documents.iter().filter(move |document| is(&document["kind"]))
}

/// The workload that is most likely the CCM, and its container.
fn chosen(documents: &[Value], hint: &WorkloadHint) -> Result<WorkloadHint, String> {
    if hint.name.is_some() {
        return Ok(hint.clone());
    }
    let mut best: Vec<(u32, WorkloadHint, String)> = Vec::new();
    for workload in workloads(documents) {
        let key = key_of(workload);
        let containers = pod_spec(workload)["containers"].as_array().cloned().unwrap_or_default();
        let most = containers
            .iter()
            .map(|container| (likeness(&key.name, container), container))
            .max_by_key(|(n, _)| *n);
        let Some((likeness, container)) = most else { continue };
        let hint = WorkloadHint {
            namespace: Some(key.namespace.clone()),
            name: Some(key.name.clone()),
            container: container["name"].as_str().map(str::to_owned),
        };
        best.push((likeness, hint, key.to_string()));
    }
    let most = best.iter().map(|(likeness, ..)| *likeness).max();
    let like: Vec<_> = best.iter().filter(|(likeness, ..)| Some(*likeness) == most).collect();
    match like.as_slice() {
        [(_, hint, _)] => Ok(hint.clone()),
        [] => {
            let kinds = documents.iter().filter_map(|document| document["kind"].as_str());
            let kinds: BTreeSet<&str> = kinds.collect();
            let found = match kinds.is_empty() {
                true => "they are empty".to_owned(),
                false => format!("found {}", kinds.into_iter().collect::<Vec<_>>().join(", ")),
            };
            Err(format!("the manifests hold no Deployment, DaemonSet, StatefulSet or Pod: {found}"))
        }
        [(_, _, first), others @ ..] if others.iter().all(|(_, _, name)| name == first) => Err(format!(
            "the manifests contain {first} {} times; remove all but one, as each is applied over the one before",
            like.len()
        )),
        several => {
            let names: Vec<&str> = several.iter().map(|(_, _, name)| name.as_str()).collect();
            Err(format!(
                "any of these may be the CCM: {}; say which with --workload NAMESPACE/NAME",
                names.join(", ")
            ))
        }
    }
}

/// How likely it is that a container is a CCM.
fn likeness(workload: &str, container: &Value) -> u32 {
    let flags = flags(container);
    let image = container["image"].as_str().unwrap_or_default();
    let is_named = |text: &str| {
        text.contains("cloud-controller-manager") || text.ends_with("ccm") || text.contains("cloud-provider")
    };
    let provides = flags.get("cloud-provider").is_some_and(|value| value != "external");
    [
        (provides, 8),
        (is_named(image.split([':', '@']).next().unwrap_or_default()), 4),
        (is_named(workload), 2),
    ]
    .into_iter()
    .chain([(flags.contains_key("leader-elect"), 1)])
    .filter(|(is, _)| *is)
    .map(|(_, weight)| weight)
    .sum()
}

/// Placeholders of the harness with the address of the cloud.
const ADDRESS: [&str; 2] = ["CLOUD_ENDPOINT", "CLOUD_HOST"];

/// The Secrets that the manifests contain without placeholders, with their keys.
fn held(documents: &[Value], used: &Used) -> Used {
    let is_one =
        |document: &&Value| document["kind"] == "Secret" && used.contains_key(&key_of(document).name);
    let left = documents.iter().filter(is_one).filter(|document| !document.to_string().contains("${"));
    let keys = |document: &Value| {
        let fields = ["data", "stringData"].into_iter().filter_map(|field| document[field].as_object());
        fields.flat_map(|map| map.keys().cloned()).collect()
    };
    left.map(|document| (key_of(document).name, keys(document))).collect()
}

/// The rights that the roles in the manifests grant.
fn rights(documents: &[Value]) -> Option<BTreeSet<String>> {
    let roles: Vec<&Value> = documents
        .iter()
        .filter(|document| document["kind"] == "ClusterRole" || document["kind"] == "Role")
        .collect();
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let rules = roles.iter().flat_map(|role| role["rules"].as_array().into_iter().flatten());
    let granted = rules.flat_map(|rule| {
        let verbs = texts(&rule["verbs"]);
        texts(&rule["resources"])
            .into_iter()
            .flat_map(move |resource| verbs.clone().into_iter().map(move |verb| format!("{resource} {verb}")))
    });
    let granted = granted.collect();
    (!roles.is_empty()).then_some(granted)
}

/// Replaces the CCM's image by `${IMAGE}`.
fn set_image(manifests: &mut Manifests) {
    let workload = &mut manifests.documents[manifests.workload];
    let spec = if workload["kind"] == "Pod" {
        &mut workload["spec"]
    } else {
        &mut workload["spec"]["template"]["spec"]
    };
    spec["containers"][manifests.container]["image"] = json!("${IMAGE}");
}

/// A placeholder that the harness sets by itself, although a profile may set it.
const CLUSTER_CIDR: &str = "CLUSTER_CIDR";

/// Names between `${` and `}`, as variables of a template are written.
fn placeholders(documents: &[Value]) -> BTreeSet<String> {
    let text = Value::Array(documents.to_vec()).to_string();
    let is_name = |name: &&str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    let names = text.split("${").skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
    let is_left = |name: &&str| *name != CLUSTER_CIDR && !OWN_PLACEHOLDERS.contains(name);
    names.filter(is_name).filter(is_left).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_providers_can_be_read_and_are_unique() {
        let providers: BTreeSet<String> = known().into_iter().map(|one| one.provider).collect();
        assert_eq!(providers.len(), known().len());
        assert!(known().iter().all(|one| one.id.contains("{id}")));
    }

    #[test]
    fn a_provider_is_known_by_the_name_of_the_workload_or_of_the_image() {
        let of = |name: &str, image: &str| {
            let draft = Draft::of(vec![deployment(name, image)], &WorkloadHint::default(), Some("ours"));
            draft.expect("one workload").provider
        };
        assert_eq!(of("ccm-linode", "x/y:1").as_deref(), Some("linode"));
        assert_eq!(
            of("ccm", "registry.example/linode/linode-cloud-controller-manager:v1").as_deref(),
            Some("linode")
        );
        assert_eq!(of("cloud-controller-manager", "r.k8s.io/provider-aws/ccm:v1").as_deref(), Some("aws"));
        assert_eq!(of("ccm", "registry.example/linodes/ccm:v1"), None);
        assert_eq!(of("ccm", "aws.example/openstack/ccm:v1"), None, "either may be meant");
    }

    fn deployment(name: &str, image: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "kube-system"},
               "spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
    }

    #[test]
    fn the_most_likely_ccm_is_chosen_and_a_tie_is_reported() {
        let all =
            vec![deployment("csi", "acme/csi:1"), deployment("acme", "acme/cloud-controller-manager:1")];
        let draft = Draft::of(all, &WorkloadHint::default(), None).expect("one is like a CCM");
        assert_eq!(
            (draft.name.as_str(), draft.image.as_deref()),
            ("acme", Some("acme/cloud-controller-manager:1"))
        );
        assert_eq!(draft.workload, Some(("kube-system".to_owned(), "acme".to_owned(), None)));
        let alike = vec![deployment("a", "x/a:1"), deployment("b", "x/b:1")];
        let why = Draft::of(alike, &WorkloadHint::default(), None).expect_err("it is ambiguous");
        assert!(why.contains("Deployment/a in kube-system, Deployment/b in kube-system; say which"), "{why}");
        let none = Draft::of(vec![json!({"kind": "Secret"})], &WorkloadHint::default(), None)
            .expect_err("no workload");
        assert!(none.contains("no Deployment"), "{none}");
    }
}
