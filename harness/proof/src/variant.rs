//! A variant's manifests, completed so that they run: placeholders are filled in, and the reference CCM gets settings
//! that they leave to the reader. What the boot model uses stays unchanged. Pure functions.

use bootstrap::image_fault;
use harness_config::yaml;
use harness_core::files::{self, built_in};
use harness_session::ccm::{TOKEN, pod_spec, rank, substitute};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Kinds that create Pods.
pub(super) const WORKLOADS: [&str; 4] = ["Deployment", "DaemonSet", "StatefulSet", "Pod"];
/// The variables with which the reference CCM gets the address of its cloud, and its token.
const ENDPOINT_VARIABLE: &str = "NATIVE_CLOUD_ENDPOINT";
const TOKEN_VARIABLE: &str = "NATIVE_CLOUD_TOKEN";

/// The values of the placeholders.
#[derive(Clone, Debug)]
pub(super) struct PlaceholderValues {
    /// The image of the reference CCM.
    pub(super) image: String,
    /// The cloud's URL for the CCM.
    pub(super) endpoint: String,
    /// The CCM's token there.
    pub(super) token: String,
    /// The API server, for manifests that name it.
    pub(super) api_server: (String, u16),
}

/// Manifests ready to be applied.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    /// Everything except workloads; webhooks come after what they refer to.
    pub(super) surroundings: Vec<Value>,
    /// The CCM's workloads.
    pub(super) ccm: Vec<Value>,
    /// Other workloads, and webhooks.
    pub(super) others: Vec<Value>,
    /// Images that are replaced by the reference CCM.
    pub(super) images: BTreeSet<String>,
    /// Flags that the reference CCM needs and the manifests do not contain.
    pub(super) arguments: Vec<String>,
    /// Variables that the reference CCM needs and the manifests do not contain.
    pub(super) environment: BTreeMap<String, String>,
}

/// The file of a built-in variant.
fn manifests(name: &str) -> PathBuf {
    built_in(&format!("bootstrap/{name}/ccm.yaml"))
}

/// The unchanged manifests of a built-in variant.
///
/// # Errors
/// There is no such variant.
pub(super) fn text_of(name: &str) -> Result<Arc<str>, String> {
    files::read(&manifests(name)).map(Arc::from).map_err(|error| error.to_string())
}

impl Variant {
    /// Reads manifests and fills in the placeholders; errors name `name`. `ccms` are the workloads that are the CCM, as
    /// `KIND/NAME`; none are named if they have the image `${IMAGE}`, or if there is only one workload.
    ///
    /// # Errors
    /// Manifests that cannot be read, or without a CCM.
    pub(super) fn parse(
        name: &str,
        text: &str,
        ccms: &[String],
        around: &PlaceholderValues,
    ) -> Result<Variant, String> {
        let documents = yaml::from_str_multi(text, Path::new(name))
            .map_err(|error| harness_core::check::chain(&error))?;
        Variant::of(documents, ccms, around).ok_or_else(|| {
            let kinds = WORKLOADS.join(", ");
            format!(
                "{name}: cannot tell which workload ({kinds}) is the CCM; give its container the image ${{IMAGE}}"
            )
        })
    }

    fn of(mut documents: Vec<Value>, ccms: &[String], around: &PlaceholderValues) -> Option<Variant> {
        documents.retain(|document| !document.is_null());
        let is_workload =
            |document: &Value| document["kind"].as_str().is_some_and(|kind| WORKLOADS.contains(&kind));
        let named = |document: &Value| containers(document).iter().any(|c| c["image"] == "${IMAGE}");
        let marked = documents.iter().any(|document| is_workload(document) && named(document));
        let is_ccm = |document: &Value| {
            let title = [document["kind"].as_str(), document["metadata"]["name"].as_str()]
                .map(Option::unwrap_or_default);
            let alone = ccms.is_empty() && !marked;
            is_workload(document)
                && (named(document) || alone || (!marked && ccms.contains(&title.join("/"))))
        };
        let count = documents.iter().filter(|document| is_ccm(document)).count();
        if count == 0 || (count > 1 && !marked && ccms.is_empty()) {
            return None;
        }
        let table = BTreeMap::from([
            ("IMAGE".to_owned(), around.image.clone()),
            ("CLOUD_ENDPOINT".to_owned(), around.endpoint.clone()),
            (TOKEN.to_owned(), around.token.clone()),
        ]);
        let mut variant = Variant {
            surroundings: Vec::new(),
            ccm: Vec::new(),
            others: Vec::new(),
            images: BTreeSet::new(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
        };
        for mut document in documents {
            let own = is_ccm(&document);
            let webhook =
                document["kind"].as_str().is_some_and(|kind| kind.ends_with("WebhookConfiguration"));
            substitute(&mut document, &table);
            if own {
                // A variant of the table may be about its image.
                if !ccms.is_empty() {
                    take_the_place(&mut document, &around.image);
                }
                name_api_server(&mut document, &around.api_server);
                variant.complete(&document, around);
                variant.ccm.push(document);
            } else if webhook || is_workload(&document) {
                variant.others.push(document);
            } else {
                variant.surroundings.push(document);
            }
        }
        variant.surroundings.sort_by_key(|document| rank(document["kind"].as_str().unwrap_or_default()));
        variant.others.sort_by_key(|document| rank(document["kind"].as_str().unwrap_or_default()));
        Some(variant)
    }

    /// Records what the reference CCM needs in addition to the manifests.
    fn complete(&mut self, workload: &Value, around: &PlaceholderValues) {
        let Some(container) = containers(workload).first() else { return };
        self.images.extend(container["image"].as_str().map(str::to_owned));
        let texts = |field: &str| container[field].as_array().cloned().unwrap_or_default();
        let line = [texts("command"), texts("args")].concat();
        let has = |flag: &str| {
            line.iter()
                .filter_map(Value::as_str)
                .any(|part| part.trim_start_matches('-').split('=').next() == Some(flag))
        };
        if !has("cloud-provider") {
            self.arguments.push("--cloud-provider=native".to_owned());
        }
        if !has("configure-cloud-routes") {
            self.arguments.push("--configure-cloud-routes=false".to_owned());
        }
        if !has("cloud-config") {
            self.environment.insert(ENDPOINT_VARIABLE.to_owned(), around.endpoint.clone());
            self.environment.insert(TOKEN_VARIABLE.to_owned(), around.token.clone());
        }
    }

    /// Completes the CCM's containers for clusters that run images: adds the flags and variables of
    /// [`Variant::arguments`], the API server's address if its Service address does not work without kube-proxy, and the
    /// image's own program instead of another one, unless the variant `keeps_programs`. Other workloads get an image that
    /// idles.
    pub(super) fn inline(
        &mut self,
        api_server: Option<&(String, u16)>,
        idle_image: &str,
        keeps_programs: bool,
    ) {
        let mut environment: Vec<Value> =
            self.environment.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        if let Some((host, port)) = api_server {
            environment.push(json!({"name": "KUBERNETES_SERVICE_HOST", "value": host}));
            environment.push(json!({"name": "KUBERNETES_SERVICE_PORT", "value": port.to_string()}));
        }
        for container in self.ccm.iter_mut().filter_map(first_container) {
            let texts = |field: &str| container[field].as_array().cloned().unwrap_or_default();
            let carried: Vec<Value> =
                if keeps_programs { Vec::new() } else { texts("command").into_iter().skip(1).collect() };
            let more = self.arguments.iter().map(|argument| json!(argument)).collect();
            let (line, known) = ([carried, texts("args"), more].concat(), texts("env"));
            container["args"] = json!(line);
            let new = environment.iter().filter(|new| known.iter().all(|one| one["name"] != new["name"]));
            container["env"] = known.iter().chain(new).cloned().collect();
            if let Some(map) = container.as_object_mut().filter(|_| !keeps_programs) {
                map.remove("command");
            }
        }
        for container in self.others.iter_mut().filter_map(first_container) {
            container["image"] = json!(idle_image);
            container["args"] = json!(["idle"]);
        }
    }

    /// All objects, in the order in which they are applied.
    pub(super) fn all(&self) -> Vec<Value> {
        [self.surroundings.as_slice(), &self.ccm, &self.others].concat()
    }

    /// Objects that give an assumed service account the permissions that it is assumed to have; Kubernetes creates the
    /// account itself.
    ///
    /// # Errors
    /// Something else is assumed.
    pub(super) fn assumed(names: &[String]) -> Result<Vec<Value>, String> {
        let binding = |name: &String| match name.split('/').collect::<Vec<_>>().as_slice() {
            ["ServiceAccount", namespace, "default"] => Ok(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": format!("assumed-{namespace}-default")},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": "default"}],
            })),
            _ => Err(format!(
                "'{name}' is assumed, but only service accounts named default exist on every cluster"
            )),
        };
        names.iter().map(binding).collect()
    }

    /// The service accounts of the CCM's Pods, as namespace and name.
    pub(super) fn accounts(&self) -> BTreeSet<(String, String)> {
        let account = |document: &Value| {
            let namespace = document["metadata"]["namespace"].as_str().unwrap_or("default");
            let name = pod_spec(document)["serviceAccountName"].as_str().unwrap_or("default");
            (namespace.to_owned(), name.to_owned())
        };
        self.ccm.iter().map(account).collect()
    }

    /// The Node labels that the CCM's Pods require, which an administrator would set.
    pub(super) fn labels_asked_for(&self) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::new();
        for spec in self.ccm.iter().map(pod_spec) {
            for (key, value) in spec["nodeSelector"].as_object().into_iter().flatten() {
                labels.insert(key.clone(), value.as_str().unwrap_or_default().to_owned());
            }
            let required =
                &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
            // One term is enough.
            let term = &required["nodeSelectorTerms"][0]["matchExpressions"];
            for expression in term.as_array().into_iter().flatten() {
                let value = match expression["operator"].as_str() {
                    Some("In") => expression["values"][0].as_str().unwrap_or_default(),
                    Some("Exists") => "",
                    _ => continue,
                };
                labels.insert(expression["key"].as_str().unwrap_or_default().to_owned(), value.to_owned());
            }
        }
        labels
    }
}

fn containers(workload: &Value) -> &[Value] {
    pod_spec(workload)["containers"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn spec_mut(workload: &mut Value) -> &mut Value {
    match workload["kind"].as_str() {
        Some("Pod") => &mut workload["spec"],
        _ => &mut workload["spec"]["template"]["spec"],
    }
}

/// The first container of a workload; `None` for other objects, which stay unchanged.
fn first_container(document: &mut Value) -> Option<&mut Value> {
    if !document["kind"].as_str().is_some_and(|kind| WORKLOADS.contains(&kind)) {
        return None;
    }
    spec_mut(document).get_mut("containers")?.get_mut(0)
}

/// Gives all containers with the image of the first one the image of the reference CCM. A name that no kubelet accepts
/// stays.
fn take_the_place(workload: &mut Value, image: &str) {
    let Some(own) = containers(workload).first().map(|container| container["image"].clone()) else { return };
    if own.as_str().is_none_or(|name| image_fault(name).is_some()) {
        return;
    }
    let spec = spec_mut(workload);
    for list in ["initContainers", "containers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            if container["image"] == own {
                container["image"] = json!(image);
            }
        }
    }
}

/// If the manifests name an API server, it is this cluster's.
fn name_api_server(workload: &mut Value, (host, port): &(String, u16)) {
    let spec = spec_mut(workload);
    let containers = spec["containers"].as_array_mut().into_iter().flatten();
    for variable in containers.flat_map(|c| c["env"].as_array_mut().into_iter().flatten()) {
        match variable["name"].as_str() {
            Some("KUBERNETES_SERVICE_HOST") => variable["value"] = json!(host),
            Some("KUBERNETES_SERVICE_PORT") => variable["value"] = json!(port.to_string()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around() -> PlaceholderValues {
        PlaceholderValues {
            image: "reference:1".into(),
            endpoint: "http://127.0.0.1:1".into(),
            token: "t".into(),
            api_server: ("10.1.2.3".into(), 6443),
        }
    }

    fn variant(name: &str) -> Variant {
        let text = text_of(name).expect("a variant of ours");
        Variant::parse(name, &text, &[], &around()).expect("manifests with a CCM")
    }

    #[test]
    fn the_reference_ccm_takes_the_place_of_the_users_image() {
        let text = "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: own-cni}, spec: {template: {spec: {containers: \
                    [{name: a, image: 'own/cni:1'}]}}}}\n---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: \
                    own-ccm}, spec: {template: {spec: {initContainers: [{name: i, image: 'own/ccm:1'}], containers: [{name: \
                    a, image: 'own/ccm:1'}, {name: b, image: 'own/log:1'}]}}}}\n";
        let ccms = ["Deployment/own-ccm".to_owned()];
        let variant = Variant::parse("own.yaml", text, &ccms, &around()).expect("it has a CCM");
        let images = |document: &Value, list: &str| -> Vec<String> {
            let all = pod_spec(document)[list].as_array().cloned().unwrap_or_default();
            all.iter().map(|one| one["image"].as_str().unwrap_or_default().to_owned()).collect()
        };
        let [ccm] = variant.ccm.as_slice() else { panic!("one CCM, not {:?}", variant.ccm) };
        assert_eq!(images(ccm, "containers"), ["reference:1", "own/log:1"]);
        assert_eq!(images(ccm, "initContainers"), ["reference:1"]);
        assert_eq!(images(&variant.others[0], "containers"), ["own/cni:1"]);
        let unnamed = Variant::parse("own.yaml", text, &[], &around()).expect_err("which is the CCM?");
        assert!(
            unnamed.contains("which workload (Deployment, DaemonSet, StatefulSet, Pod) is the CCM"),
            "{unnamed}"
        );
        let invalid = text.replace("own/ccm:1", "own/ccm@1");
        let variant = Variant::parse("own.yaml", &invalid, &ccms, &around()).expect("it has a CCM");
        assert_eq!(images(&variant.ccm[0], "containers")[0], "own/ccm@1");
    }

    #[test]
    fn the_seeds_example_lists_what_it_leaves_to_the_reader() {
        let seed = variant("seed-example-mended");
        assert_eq!(seed.arguments, ["--cloud-provider=native", "--configure-cloud-routes=false"]);
        assert_eq!(seed.environment[ENDPOINT_VARIABLE], "http://127.0.0.1:1");
        assert_eq!(seed.images, BTreeSet::from(["reference:1".to_owned()]));
        let unparsable = variant("seed-example");
        assert!(unparsable.images.iter().all(|image| image.ends_with("@latest")), "{:?}", unparsable.images);
        let good = variant("good-deployment");
        assert!(good.arguments.is_empty() && good.environment.is_empty());
        assert_eq!(good.accounts(), BTreeSet::from([("kube-system".to_owned(), "reference-ccm".to_owned())]));
    }

    #[test]
    fn for_clusters_that_run_images_only_workloads_are_completed() {
        let mut hooked = variant("webhook-before-its-own-pods");
        let before = hooked.others.clone();
        hooked.inline(Some(&("10.1.2.3".into(), 6443)), "idle:1", false);
        let is_hook = |document: &&Value| document["kind"] == "ValidatingWebhookConfiguration";
        assert_eq!(hooked.others.iter().find(is_hook), before.iter().find(is_hook));
        let mut seed = variant("seed-example-mended");
        seed.inline(None, "idle:1", false);
        let container = &pod_spec(&seed.ccm[0])["containers"][0];
        let args =
            ["--leader-elect=true", "-v=1", "--cloud-provider=native", "--configure-cloud-routes=false"];
        assert_eq!((container.get("command"), &container["args"]), (None, &json!(args)));
        let mut lacking = variant("command-that-the-image-lacks");
        lacking.inline(None, "idle:1", true);
        let container = &pod_spec(&lacking.ccm[0])["containers"][0];
        assert_eq!(container["command"], json!(["/usr/local/bin/no-such-program"]));
    }

    #[test]
    fn an_api_server_that_is_named_is_this_clusters() {
        let named = variant("good-explicit-api-server");
        let env = &pod_spec(&named.ccm[0])["containers"][0]["env"];
        let values: Vec<&str> =
            env.as_array().into_iter().flatten().filter_map(|v| v["value"].as_str()).collect();
        assert_eq!(values, ["10.1.2.3", "6443"]);
    }

    #[test]
    fn workloads_are_distinguished_and_their_labels_collected() {
        let taken = variant("port-taken");
        assert_eq!((taken.ccm.len(), taken.others.len()), (1, 1));
        let labels = variant("mbt-11-selector-without-node").labels_asked_for();
        assert!(labels.contains_key("example.org/cloud-controllers"), "{labels:?}");
        assert!(Variant::assumed(&["Secret/a/b".to_owned()]).is_err());
    }
}
