//! Changes whose effect only a real kubelet and API server show: tokens, ways to the API server, containers before the CCM,
//! hooks, images, ports and Pods of the control plane, the order of documents.

use super::set::{Change, Set, list, pick};
use fastrand::Rng;
use serde_json::{Value, json};

pub(super) const CHANGES: &[Change] = &[
    with_its_token_covered,
    with_a_token_of_its_own,
    with_few_secrets_allowed,
    at_another_address,
    with_a_kubeconfig,
    after_another_container,
    with_a_hook,
    with_another_command,
    with_another_pull_policy,
    next_to_the_control_plane,
    on_a_port_of_the_control_plane,
    in_another_order,
    with_a_part_of_a_volume,
    on_a_read_only_disk,
    with_a_deadline,
    with_a_large_disk,
    as_another_group,
];

/// Where a Pod's token is.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Adds a volume that is mounted at a path.
fn mounted_at(set: &mut Set, path: &str, mut source: Value) -> Option<()> {
    let spec = set.spec()?;
    let name = format!("at-{}", spec["volumes"].as_array().map_or(0, Vec::len));
    source["name"] = json!(name);
    list(spec, "volumes")?.push(source);
    list(&mut spec["containers"][0], "volumeMounts")?.push(json!({"name": name, "mountPath": path}));
    Some(())
}

fn with_its_token_covered(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let path = pick(rng, &[TOKEN, "/var/run/secrets", "/var/run/secrets/other"]);
    mounted_at(set, path, json!({"emptyDir": {}}))?;
    Some(format!("an empty folder at {path}"))
}

fn with_a_token_of_its_own(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let (audience, authority) = (pick(rng, &["", "https://other.example"]), rng.bool());
    let mut token = json!({"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}});
    if !audience.is_empty() {
        token["serviceAccountToken"]["audience"] = json!(audience);
    }
    let mut sources = vec![token];
    if authority {
        sources.push(json!({"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}));
    }
    set.spec()?["automountServiceAccountToken"] = json!(false);
    mounted_at(set, TOKEN, json!({"projected": {"sources": sources}}))?;
    Some(format!("a projected token, audience '{audience}', with the authority: {authority}"))
}

fn with_few_secrets_allowed(set: &mut Set, _: &mut Rng) -> Option<String> {
    let account = set.documents.iter_mut().find(|one| one["kind"] == "ServiceAccount")?;
    account["metadata"]["annotations"]["kubernetes.io/enforce-mountable-secrets"] = json!("true");
    Some("an account that may mount no Secrets".to_owned())
}

fn at_another_address(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let host = pick(rng, &["localhost", "127.0.0.1", "kubernetes.default.svc", "192.0.2.1"]);
    let env = list(&mut set.spec()?["containers"][0], "env")?;
    env.retain(|one| one["name"] != "KUBERNETES_SERVICE_HOST" && one["name"] != "KUBERNETES_SERVICE_PORT");
    env.push(json!({"name": "KUBERNETES_SERVICE_HOST", "value": host}));
    env.push(json!({"name": "KUBERNETES_SERVICE_PORT", "value": "6443"}));
    Some(format!("the API server at {host}:6443"))
}

fn with_a_kubeconfig(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let file = pick(rng, &["/etc/kubernetes/controller-manager.conf", "/etc/kubernetes/absent.conf"]);
    let container = &mut set.spec()?["containers"][0];
    let place = if container["args"].is_array() { "args" } else { "command" };
    list(container, place)?.push(json!(format!("--kubeconfig={file}")));
    mounted_at(set, "/etc/kubernetes", json!({"hostPath": {"path": "/etc/kubernetes"}}))?;
    Some(format!("the kubeconfig {file} of the host"))
}

fn after_another_container(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let ends = rng.bool();
    let command = if ends { "--version" } else { "--no-such-option" };
    let first = json!({"name": "first", "image": "${IMAGE}", "args": [command]});
    list(set.spec()?, "initContainers")?.push(first);
    Some(format!("an init container that ends well: {ends}"))
}

fn with_a_hook(set: &mut Set, _: &mut Rng) -> Option<String> {
    let hook = json!({"postStart": {"exec": {"command": ["/absent-program"]}}});
    set.spec()?["containers"][0]["lifecycle"] = hook;
    Some("a hook after the start that fails".to_owned())
}

fn with_another_command(set: &mut Set, _: &mut Rng) -> Option<String> {
    set.spec()?["containers"][0]["command"] = json!(["/absent-program"]);
    Some("a command that the image lacks".to_owned())
}

fn with_another_pull_policy(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let policy = pick(rng, &["Never", "IfNotPresent"]);
    let container = &mut set.spec()?["containers"][0];
    if container["imagePullPolicy"] == policy {
        return None;
    }
    container["imagePullPolicy"] = json!(policy);
    Some(format!("imagePullPolicy {policy}"))
}

fn next_to_the_control_plane(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let component = pick(rng, &["kube-apiserver", "etcd", "absent"]);
    let kind = pick(rng, &["podAffinity", "podAntiAffinity"]);
    let term = json!({
        "labelSelector": {"matchLabels": {"component": component}}, "topologyKey": "kubernetes.io/hostname",
    });
    let spec = set.spec()?;
    spec["affinity"][kind] = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    Some(format!("{kind} to {component}"))
}

fn on_a_port_of_the_control_plane(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let port = pick(rng, &[&6443_u16, &2379, &10_257, &10_259, &10_250, &8443]);
    let spec = set.spec()?;
    list(&mut spec["containers"][0], "ports")?
        .push(json!({"name": "more", "containerPort": port, "hostPort": port}));
    Some(format!("the host port {port}"))
}

fn in_another_order(set: &mut Set, _: &mut Rng) -> Option<String> {
    let before = set.documents.clone();
    set.documents.reverse();
    (set.documents != before).then(|| "its documents in reverse order".to_owned())
}

fn with_a_part_of_a_volume(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let expression = pick(rng, &["$(POD_NAME)", "$(ABSENT)"]);
    let spec = set.spec()?;
    list(spec, "volumes")?.push(json!({"name": "part", "emptyDir": {}}));
    let container = &mut spec["containers"][0];
    list(container, "env")?
        .push(json!({"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}));
    let mount = json!({"name": "part", "mountPath": "/part", "subPathExpr": expression});
    list(container, "volumeMounts")?.push(mount);
    Some(format!("the part {expression} of a volume"))
}

fn on_a_read_only_disk(set: &mut Set, _: &mut Rng) -> Option<String> {
    let read_only = &mut set.spec()?["containers"][0]["securityContext"]["readOnlyRootFilesystem"];
    if *read_only == true {
        return None;
    }
    *read_only = json!(true);
    Some("a root file system that cannot be written".to_owned())
}

fn with_a_deadline(set: &mut Set, _: &mut Rng) -> Option<String> {
    let ccm = set.ccm()?;
    if ccm["kind"] != "Deployment" {
        return None;
    }
    ccm["spec"]["progressDeadlineSeconds"] = json!(30);
    ccm["spec"]["minReadySeconds"] = json!(5);
    Some("a rollout with a deadline of 30 s".to_owned())
}

fn with_a_large_disk(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let amount = pick(rng, &["1Mi", "1Pi"]);
    let requests = &mut set.spec()?["containers"][0]["resources"]["requests"];
    requests["ephemeral-storage"] = json!(amount);
    Some(format!("a request of {amount} of disk"))
}

fn as_another_group(set: &mut Set, _: &mut Rng) -> Option<String> {
    let context = &mut set.spec()?["securityContext"];
    (context["fsGroup"], context["runAsUser"], context["runAsGroup"]) =
        (json!(65_532), json!(65_532), json!(65_532));
    Some("the user and group 65532".to_owned())
}
