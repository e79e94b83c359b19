//! `subPathExpr`: the kubelet does not start a container if a variable of the expression is not defined.

use super::hindrance::{Hindrance, each_container};
use super::kind::{Role, spec_path, template_path};
use super::pods::Workload;
use super::refs::Stage;
use super::variables::is_added_label;
use crate::cluster::CLOUD_LABELS;
use crate::manifest::{Node, Object, Objects};

/// Variables that the kubelet defines for every container.
const OF_KUBELET: &[&str] = &["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_PORT"];

/// The first expression with an undefined variable. Variables that come from an object outside of the manifests are
/// assumed to be defined.
pub(super) fn undefined(objects: &Objects, workload: &Workload) -> Option<Hindrance> {
    let object = &objects.all[workload.object?];
    let spec = object.node.at(spec_path(workload.kind))?;
    each_container(spec).find_map(|container| {
        let mounts = container.get("volumeMounts").map(Node::items).unwrap_or_default();
        mounts.iter().find_map(|mount| {
            let expression = mount.get("subPathExpr")?;
            let names = variables(expression.text()?);
            let fault = |name: &&str| match (
                defined(objects, workload, container, name),
                is_empty(object, workload, container, name),
            ) {
                (false, _) => Some("which its container does not define"),
                (true, true) => Some("which is empty"),
                (true, false) => None,
            };
            let (name, why) = names.into_iter().find_map(|name| Some((name, fault(&name)?)))?;
            Some(Hindrance::new(
                Stage::Start,
                format!("its subPathExpr uses the variable '{name}', {why}"),
                object.place(expression),
                format!("define the variable '{name}' in 'env', or remove it from subPathExpr"),
            ))
        })
    })
}

fn defined(objects: &Objects, workload: &Workload, container: &Node, name: &str) -> bool {
    let own = container.get("env").map(Node::items).unwrap_or_default();
    let listed = own.iter().any(|variable| variable.text_at("name") == Some(name));
    let from = container.get("envFrom").map(Node::items).unwrap_or_default();
    let of_object = |source: &Node| {
        let prefix = source.text_at("prefix").unwrap_or_default();
        let Some(key) = name.strip_prefix(prefix) else { return false };
        [("configMapRef", "ConfigMap"), ("secretRef", "Secret")].iter().any(|(field, kind)| {
            let Some(named) = source.get(field).and_then(|reference| reference.text_at("name")) else {
                return false;
            };
            objects.find(kind, &workload.namespace, named).is_none_or(|found| {
                ["data", "stringData"].iter().any(|map| found.node.at(&[*map, key]).is_some())
            })
        })
    };
    listed || OF_KUBELET.contains(&name) || from.iter().any(of_object)
}

/// Whether a variable is certainly empty, which counts as undefined (`ExpandContainerVolumeMounts`): its value, or that of a
/// label or an annotation that the Pod does not have. The labels of zone and region come from an initialised Node.
fn is_empty(object: &Object, workload: &Workload, container: &Node, name: &str) -> bool {
    let own = container.get("env").map(Node::items).unwrap_or_default();
    let Some(variable) = own.iter().rfind(|variable| variable.text_at("name") == Some(name)) else {
        return false;
    };
    let Some(field) = variable.at(&["valueFrom", "fieldRef", "fieldPath"]).and_then(Node::text) else {
        return variable.get("valueFrom").is_none()
            && variable.get("value").and_then(Node::scalar).is_none_or(|value| value.is_empty());
    };
    let template = object.node.at(template_path(workload.kind));
    let lacks = |map: &str, key: &str| {
        let value = template.and_then(|template| template.at(&["metadata", map, key])).and_then(Node::scalar);
        value.is_none_or(|value| value.is_empty())
    };
    let key = |prefix: &str| field.strip_prefix(prefix)?.strip_prefix("['")?.strip_suffix("']");
    match (key("metadata.labels"), key("metadata.annotations")) {
        (Some(label), _) => {
            // A CCM is bound before its Node is initialised.
            let of_cloud = workload.role == Role::Ccm && CLOUD_LABELS.contains(&label);
            lacks("labels", label) && (of_cloud || !is_added_label(label))
        }
        (_, Some(annotation)) => lacks("annotations", annotation),
        _ => false,
    }
}

/// The names of `$(NAME)` in a text; `$$` is an escaped dollar sign.
fn variables(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            rest = after;
        } else if let Some(inside) = rest.strip_prefix('(')
            && let Some((name, after)) = inside.split_once(')')
        {
            names.push(name);
            rest = after;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::variables;

    #[test]
    fn variables_of_an_expression() {
        assert_eq!(variables("$(A)/b/$(C_D)"), ["A", "C_D"]);
        assert!(variables("$$(A)/$B/plain$").is_empty());
    }
}
