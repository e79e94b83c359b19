//! Placeholders such as `${TAG}` that are not filled in yet, in images and command lines. A kubelet replaces `$(NAME)`, and
//! nothing else.

use super::node::{Node, Value};

/// The images, commands and arguments of containers that contain a placeholder. Scripts are left out: a shell fills in its own
/// variables.
pub(super) fn placeholders(object: &Node) -> Vec<&Node> {
    let mut found = Vec::new();
    let mut open = vec![object];
    while let Some(node) = open.pop() {
        let Value::Map(entries) = &node.value else { continue };
        for entry in entries {
            match entry.key.as_str() {
                "containers" | "initContainers" => {
                    found.extend(entry.value.items().iter().flat_map(of_container))
                }
                _ => open.push(&entry.value),
            }
        }
    }
    found
}

/// The image in the manifests of a profile, which a run replaces.
const OF_A_PROFILE: &str = "${IMAGE}";
/// The pod networks in such manifests, which a run fills in, too.
const OF_A_CLUSTER: &str = "${CLUSTER_CIDR}";

fn of_container(container: &Node) -> Vec<&Node> {
    const SHELLS: [&str; 4] = ["sh", "bash", "ash", "dash"];
    let items = |key| container.get(key).map(Node::items).unwrap_or_default();
    let program =
        items("command").iter().chain(items("args")).next().and_then(Node::text).unwrap_or_default();
    let is_script = SHELLS.contains(&program.rsplit('/').next().unwrap_or_default());
    let line = items("command").iter().chain(items("args")).filter(|_| !is_script);
    let image = container.get("image").filter(|image| image.text() != Some(OF_A_PROFILE));
    let is_open =
        |node: &&Node| node.is_placeholder() && name_in(node.text().unwrap_or_default()) != OF_A_CLUSTER;
    image.into_iter().chain(line).filter(is_open).collect()
}

/// The placeholder in a text that has one.
pub(super) fn name_in(text: &str) -> &str {
    let from = text.find("${").unwrap_or(0);
    let to = text[from..].find('}').map_or(text.len(), |end| from + end + 1);
    &text[from..to]
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::super::{Objects, Severity};

    fn found(container: &str) -> Vec<(String, u32)> {
        let text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: ccm}}\nspec:\n  template:\n    spec:\n      \
             containers:\n      - {container}\n"
        );
        let objects = Objects::read(vec![Source::new("ccm.yaml", &text)]);
        assert_eq!(objects.all.len(), 1, "it is read all the same");
        assert!(objects.problems.iter().all(|problem| problem.severity == Severity::Ignored));
        objects.problems.into_iter().map(|problem| (problem.what, problem.place.line)).collect()
    }

    #[test]
    fn images_and_arguments_that_are_not_filled_in_are_named() {
        let image = found("{name: ccm, image: 'acme/ccm:${TAG}'}");
        assert_eq!(image.len(), 1);
        assert!(image[0].0.contains("${TAG}") && image[0].1 == 8, "{image:?}");
        assert_eq!(found("{name: ccm, image: a, args: ['--cluster-name=${NAME}', --v=2]}").len(), 1);
        assert_eq!(found("{name: ccm, image: a, command: [/ccm, '${FLAGS}']}").len(), 1);
    }

    #[test]
    fn variables_of_a_shell_and_of_kubernetes_are_not_placeholders() {
        assert!(found("{name: ccm, image: '${IMAGE}'}").is_empty(), "a run fills it in");
        assert!(found("{name: ccm, image: a, command: [/bin/sh, -c, 'exec ccm --node=${NODE}']}").is_empty());
        assert!(
            found("{name: ccm, image: a, args: ['--node=$(NODE)'], env: [{name: A, value: '${B}'}]}")
                .is_empty()
        );
    }
}
