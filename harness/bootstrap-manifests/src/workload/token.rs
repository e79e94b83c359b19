//! The token of the service account: whether the program finds it, and the certificate of the API server, at the usual
//! path.

use super::hindrance::Hindrance;
use super::kind::{WorkloadKind, spec_path};
use super::pods::Workload;
use super::refs::Stage;
use crate::manifest::{Node, Object, Objects, Place};

/// The path at which programs look for their service account token.
pub const FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Audiences of tokens that the API server of kubeadm accepts.
/// (`--api-audiences` is by default the issuer.)
const AUDIENCES: &[&str] = &["", "https://kubernetes.default.svc.cluster.local"];

/// Whether the Pods get no usable token although they need one. `account` is the setting of the service account, which
/// the Pod's overrides. A volume of the Pod at the usual path replaces the one that admission adds.
pub(super) fn without_token(
    objects: &Objects,
    object: &Object,
    spec: &Node,
    account: Option<(bool, Place)>,
) -> Option<Hindrance> {
    let containers = spec.get("containers").map(Node::items).unwrap_or_default();
    let field = "automountServiceAccountToken";
    let own = spec.get(field).and_then(Node::bool).map(|mounts| (mounts, object.place_of(spec, field)));
    let automount = own.or(account);
    // Admission compares the paths as they are written: next to a path with a slash at its end it adds the token, which covers
    // the volume.
    let is_added = automount.as_ref().is_none_or(|(mounts, _)| *mounts);
    let at_folder = |container| mount_at_folder(container, !is_added);
    let mounted: Vec<&Node> = containers.iter().filter_map(at_folder).collect();
    if let Some(mount) = mounted.first() {
        let (words, advice) = fault_of(objects, object, spec, mount.text_at("name")?)?;
        return Some(Hindrance::new(Stage::Work, words, object.place(mount), advice));
    }
    if let Some(volume) = taken_for_it(spec).filter(|_| is_added) {
        let (words, _) = fault_of(objects, object, spec, volume.text_at("name")?)?;
        let words = format!("admission takes a volume with this name for that of the token: {words}");
        let advice = format!("give the volume a name that does not begin with {ADDED}");
        return Some(Hindrance::new(Stage::Work, words, object.place(volume), advice));
    }
    if let Some(mount) = containers.iter().find_map(|container| sealed(spec, container)) {
        let path = mount.text_at("mountPath").unwrap_or_default();
        let words = format!("the token has to be mounted below {path}, which is mounted read-only");
        let advice = format!("mount '{}' elsewhere", mount.text_at("name").unwrap_or_default());
        return Some(Hindrance::new(Stage::Start, words, object.place(mount), advice));
    }
    let (mounts, place) = automount?;
    if mounts {
        return None;
    }
    let path = spec_path(WorkloadKind::parse(&object.api_version, &object.kind)?);
    Some(Hindrance {
        stage: Stage::Work,
        words: String::from(
            "it gets no service account token, so the API server does not accept its requests",
        ),
        place,
        advice: format!("set '{field}: true'"),
        since: 0,
        edit: Some((path.iter().map(|key| (*key).to_owned()).collect(), field, "true")),
    })
}

/// Whether a kubelet has to request a token before the Pods of the workload start.
pub fn mounts_token(objects: &Objects, workload: &Workload) -> bool {
    let field = "automountServiceAccountToken";
    let Some(object) = workload.object.map(|index| &objects.all[index]) else { return true };
    let Some(spec) = object.node.at(spec_path(workload.kind)) else { return true };
    let volumes = spec.get("volumes").map(Node::items).unwrap_or_default();
    let sources =
        volumes.iter().filter_map(|volume| volume.at(&["projected", "sources"])).flat_map(Node::items);
    let projected = sources.into_iter().any(|source| source.get("serviceAccountToken").is_some());
    let account = objects.find("ServiceAccount", &workload.namespace, &workload.service_account);
    let automount = spec.get(field).or_else(|| account.and_then(|account| account.node.get(field)));
    projected || automount.and_then(Node::bool) != Some(false)
}

/// How the names of volumes begin that admission adds for tokens.
const ADDED: &str = "kube-api-access-";

/// A volume that admission takes for one of its own and mounts at the usual path (`mountServiceAccountToken`).
fn taken_for_it(spec: &Node) -> Option<&Node> {
    let volumes = spec.get("volumes").map(Node::items).unwrap_or_default();
    volumes.iter().find(|volume| volume.text_at("name").is_some_and(|name| name.starts_with(ADDED)))
}

/// The mount at the usual path; with `loosely` also if it is written with a slash at its end.
fn mount_at_folder(container: &Node, loosely: bool) -> Option<&Node> {
    let mounts = container.get("volumeMounts").map(Node::items).unwrap_or_default();
    mounts.iter().find(|mount| {
        let path = mount.text_at("mountPath").unwrap_or_default();
        path == FOLDER || (loosely && path.trim_end_matches('/') == FOLDER)
    })
}

/// A read-only mount above the usual path in which the runtime cannot create that path. A kubelet does so only in volumes
/// whose files it writes itself (`pkg/volume/util/nested_volumes.go`).
fn sealed<'n>(spec: &Node, container: &'n Node) -> Option<&'n Node> {
    let volumes = spec.get("volumes").map(Node::items).unwrap_or_default();
    let is_empty = |name: Option<&str>| {
        let volume = volumes.iter().find(|volume| volume.text_at("name") == name);
        volume.is_some_and(|volume| volume.get("emptyDir").is_some())
    };
    let mounts = container.get("volumeMounts").map(Node::items).unwrap_or_default();
    mounts.iter().find(|mount| {
        let path = mount.text_at("mountPath").unwrap_or_default().trim_end_matches('/');
        let above = FOLDER.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        above && mount.get("readOnly").and_then(Node::bool) == Some(true) && is_empty(mount.text_at("name"))
    })
}

/// What the volume at the usual path lacks, and the remedy.
fn fault_of(objects: &Objects, object: &Object, spec: &Node, name: &str) -> Option<(String, String)> {
    let volumes = spec.get("volumes").map(Node::items).unwrap_or_default();
    let volume = volumes.iter().find(|volume| volume.text_at("name") == Some(name))?;
    let remove = format!("remove the mount of '{name}' at {FOLDER}");
    if let Some(secret) = volume.get("secret") {
        let secret = objects.find("Secret", &object.namespace, secret.text_at("secretName")?)?;
        let filled = secret.node.text_at("type") == Some("kubernetes.io/service-account-token");
        let account = "kubernetes.io/service-account.name";
        let account =
            secret.node.at(&["metadata", "annotations", account]).and_then(Node::text).unwrap_or_default();
        let is_there =
            account == "default" || objects.find("ServiceAccount", &object.namespace, account).is_some();
        // No account of a new cluster has a uid that was written before.
        let uid = "kubernetes.io/service-account.uid";
        if filled && secret.node.at(&["metadata", "annotations", uid]).is_some() {
            let words = format!(
                "its Secret names a uid of ServiceAccount/{account} that it does not have, so it is deleted"
            );
            return Some((words, format!("remove the annotation {uid} of the Secret")));
        }
        if filled && !is_there {
            let words = format!(
                "its Secret is a token of ServiceAccount/{account}, which does not exist, so it is deleted"
            );
            return Some((
                words,
                "name an account of the manifests in the annotation of the Secret".to_owned(),
            ));
        }
        let holds =
            |key: &str| ["data", "stringData"].iter().any(|map| secret.node.at(&[*map, key]).is_some());
        let complete = filled || (holds("token") && holds("ca.crt"));
        let words =
            format!("the volume '{name}' covers {FOLDER}, and its Secret has not the keys token and ca.crt");
        return (!complete).then_some((words, remove));
    }
    // A folder of the Node may contain anything.
    if volume.get("hostPath").is_some() || volume.get("csi").is_some() {
        return None;
    }
    let sources = volume.at(&["projected", "sources"]).map(Node::items).unwrap_or_default();
    let tokens: Vec<&Node> = sources.iter().filter_map(|source| source.get("serviceAccountToken")).collect();
    let Some(token) = tokens.iter().find(|token| token.text_at("path") == Some("token")) else {
        let words = format!("the volume '{name}' covers {FOLDER}, so the program finds no token there");
        return Some((words, remove));
    };
    let audience = token.text_at("audience").unwrap_or_default();
    if !AUDIENCES.contains(&audience) {
        let words =
            format!("its token is for the audience '{audience}', which the API server does not accept");
        return Some((words, String::from("remove 'audience' from the token")));
    }
    // Go reads further authorities from the files of these variables.
    let elsewhere = ["SSL_CERT_FILE", "SSL_CERT_DIR"];
    let mut variables =
        containers_of(spec).flat_map(|own| own.get("env").map(Node::items).unwrap_or_default());
    let brought = variables.any(|own| own.text_at("name").is_some_and(|name| elsewhere.contains(&name)));
    if !brought && !sources.iter().any(brings_authority) {
        let words = format!(
            "the volume '{name}' at {FOLDER} has no ca.crt, so the program does not trust the API server"
        );
        let advice = String::from("add the ConfigMap kube-root-ca.crt to the projected volume");
        return Some((words, advice));
    }
    None
}

fn containers_of(spec: &Node) -> impl Iterator<Item = &Node> {
    spec.get("containers").map(Node::items).unwrap_or_default().iter()
}

/// Whether a source of a projected volume may contain `ca.crt`. The contents of a Secret or another ConfigMap are not
/// examined.
fn brings_authority(source: &Node) -> bool {
    ["configMap", "secret", "clusterTrustBundle"].iter().any(|kind| {
        let Some(own) = source.get(kind) else { return false };
        let items = own.get("items").map(Node::items).unwrap_or_default();
        own.text_at("path") == Some("ca.crt")
            || items.iter().any(|item| item.text_at("path") == Some("ca.crt"))
            || (items.is_empty() && *kind != "clusterTrustBundle")
    })
}
