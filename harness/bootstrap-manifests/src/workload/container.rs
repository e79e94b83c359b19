//! Containers: command line, environment, image, probes.

use super::refs::{Ref, Stage};
use crate::manifest::{Node, Object, Place};

/// A container of a Pod template.
#[derive(Clone, Debug)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// Whether it is an init container, which ends before the others start.
    pub init: bool,
    /// Its position in the list `containers`; `None` if it is one of `initContainers`.
    pub position: Option<usize>,
    /// The image, as written.
    pub image: String,
    /// Where the image is.
    pub image_place: Place,
    /// `command` and `args`, each word with its place.
    pub arguments: Vec<(String, Place)>,
    /// Environment variables with plain values: name, value, place.
    pub env: Vec<(String, String, Place)>,
    /// Names of all environment variables.
    pub env_names: Vec<String>,
    /// Config maps and secrets whose keys all become environment variables.
    pub env_from: Vec<(&'static str, String)>,
    /// HTTP probes.
    pub probes: Vec<Probe>,
    /// Whether it requests cpu and memory.
    pub requests: bool,
    /// The place of the resources, or of the container.
    pub resources_place: Place,
}

/// An HTTP probe.
#[derive(Clone, Debug)]
pub struct Probe {
    /// `livenessProbe`, `readinessProbe` or `startupProbe`.
    pub kind: &'static str,
    pub path: String,
    pub path_place: Place,
    /// `HTTP` or `HTTPS`.
    pub scheme: String,
    /// The port: a number or a name, resolved to a number where it is known.
    pub port: Option<i64>,
    pub port_place: Place,
}

impl Container {
    /// The value of a flag: `--name=value`, `-name=value` or `--name value`; the last one wins, as in pflag.
    pub fn flag(&self, name: &str) -> Option<(String, Place)> {
        self.flags(name).pop()
    }

    /// All values of a flag that may be given several times, in order.
    pub fn flags(&self, name: &str) -> Vec<(String, Place)> {
        let mut found = Vec::new();
        let words = self.words();
        for (at, (word, place)) in words.iter().enumerate() {
            let Some(rest) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { continue };
            match rest.split_once('=') {
                Some((flag, value)) if flag == name => found.push((value.to_owned(), place.clone())),
                None if rest == name => {
                    let next = words.get(at + 1).filter(|(next, _)| !next.starts_with('-'));
                    let value = next.map_or_else(|| String::from("true"), |(next, _)| next.clone());
                    found.push((value, place.clone()));
                }
                _ => {}
            }
        }
        found
    }

    /// The words of the command line, each with the name of the flag that it is the value of, or an empty name.
    pub(crate) fn values(&self) -> Vec<(String, String, Place)> {
        let mut all = Vec::new();
        let mut before = String::new();
        for (word, place) in self.words() {
            let flag = word.strip_prefix("--").map(str::to_owned);
            match flag {
                Some(flag) => match flag.split_once('=') {
                    Some((name, value)) => all.push((name.to_owned(), value.to_owned(), place)),
                    None => {
                        before = flag;
                        continue;
                    }
                },
                None => all.push((std::mem::take(&mut before), word, place)),
            }
            before.clear();
        }
        all
    }

    /// The words of the command line; a shell script in one argument is divided into its words.
    fn words(&self) -> Vec<(String, Place)> {
        let mut words = Vec::new();
        for (argument, place) in &self.arguments {
            if argument.contains(char::is_whitespace) && argument.contains("--") {
                // A shell takes the quotes away.
                let clean = |word: &str| {
                    let word = word.trim_matches(['"', '\'', '\\', ';']);
                    word.replace("=\"", "=").replace("='", "=")
                };
                words.extend(
                    argument
                        .split_whitespace()
                        .map(|w| (clean(w), place.clone()))
                        .filter(|w| !w.0.is_empty()),
                );
            } else {
                words.push((argument.clone(), place.clone()));
            }
        }
        words
    }

    /// Reads a container; adds its references.
    pub(super) fn read(object: &Object, node: &Node, init: bool, refs: &mut Vec<Ref>) -> Container {
        let words = |key: &str| {
            let items = node.get(key).map(Node::items).unwrap_or_default();
            items.iter().filter_map(|item| Some((item.scalar()?, object.place(item)))).collect::<Vec<_>>()
        };
        let mut arguments = words("command");
        arguments.extend(words("args"));
        let requests = node.at(&["resources", "requests"]);
        // A limit without a request is taken as the request (API defaulting).
        let limits = node.at(&["resources", "limits"]);
        let asks = |what: &str| [requests, limits].into_iter().flatten().any(|map| map.get(what).is_some());
        let mut container = Container {
            name: node.text_at("name").unwrap_or_default().to_owned(),
            init,
            position: None,
            image: node.text_at("image").unwrap_or_default().to_owned(),
            image_place: object.place_of(node, "image"),
            arguments,
            env: Vec::new(),
            env_names: Vec::new(),
            env_from: Vec::new(),
            probes: Vec::new(),
            requests: asks("cpu") && asks("memory"),
            resources_place: object.place_of(node, "resources"),
        };
        container.environment(object, node, refs);
        for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
            container.probes.extend(probe(object, node, kind));
        }
        container
    }

    fn environment(&mut self, object: &Object, node: &Node, refs: &mut Vec<Ref>) {
        for item in node.get("env").map(Node::items).unwrap_or_default() {
            let name = item.text_at("name").unwrap_or_default().to_owned();
            if let Some(value) = item.get("value").and_then(Node::scalar) {
                self.env.push((name.clone(), value, object.place(item)));
            }
            self.env_names.push(name);
            for (source, kind) in [("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")] {
                let Some(reference) = item.at(&["valueFrom", source]) else { continue };
                let key = reference.text_at("key").map(str::to_owned);
                let found = object_ref(object, reference, kind, "name", key);
                refs.extend(found.map(|found| Ref { of_variable: true, ..found }));
            }
        }
        for item in node.get("envFrom").map(Node::items).unwrap_or_default() {
            for (source, kind) in [("configMapRef", "ConfigMap"), ("secretRef", "Secret")] {
                let Some(reference) = item.get(source) else { continue };
                self.env_from.push((kind, reference.text_at("name").unwrap_or_default().to_owned()));
                refs.extend(object_ref(object, reference, kind, "name", None));
            }
        }
    }
}

/// A reference to a config map or secret that the container needs to start; `None` if it is optional.
pub(super) fn object_ref(
    object: &Object,
    node: &Node,
    kind: &'static str,
    field: &str,
    key: Option<String>,
) -> Option<Ref> {
    if node.get("optional").and_then(Node::bool) == Some(true) {
        return None;
    }
    let name = node.text_at(field)?.to_owned();
    let place = object.place_of(node, field);
    Some(Ref {
        kind,
        namespace: object.namespace.clone(),
        name,
        key,
        of_variable: false,
        stage: Stage::Start,
        place,
    })
}

fn probe(object: &Object, container: &Node, kind: &'static str) -> Option<Probe> {
    let probe = container.get(kind)?;
    let get = probe.get("httpGet")?;
    let port = get.get("port").and_then(|port| match port.int() {
        Some(number) => Some(number),
        None => named_port(container, port.text()?),
    });
    Some(Probe {
        kind,
        path: get.text_at("path").unwrap_or("/").to_owned(),
        path_place: object.place_of(get, "path"),
        scheme: get.text_at("scheme").unwrap_or("HTTP").to_owned(),
        port,
        port_place: object.place_of(get, "port"),
    })
}

fn named_port(container: &Node, name: &str) -> Option<i64> {
    let ports = container.get("ports").map(Node::items).unwrap_or_default();
    ports.iter().find(|port| port.text_at("name") == Some(name))?.get("containerPort")?.int()
}

/// Why an image reference cannot be parsed (`distribution/reference`); `None` if it can, or is a placeholder.
pub fn image_fault(image: &str) -> Option<String> {
    if image.contains("${") || image.contains("$(") {
        return None;
    }
    if image.is_empty() {
        return Some(String::from("no image is given"));
    }
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    if let Some(digest) = digest {
        let hex = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit() && !c.is_ascii_uppercase());
        let good = digest.split_once(':').is_some_and(|(algorithm, sum)| match algorithm {
            "sha256" => sum.len() == 64 && hex(sum),
            "sha512" => sum.len() == 128 && hex(sum),
            _ => !algorithm.is_empty() && sum.len() >= 32 && hex(sum),
        });
        if !good {
            return Some(format!(
                "'@{digest}' is not a digest (ALGORITHM:HEX); a tag is written ':{digest}'"
            ));
        }
    }
    let (path, tag) = match rest.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (rest, None),
    };
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if let Some(tag) = tag
        && (tag.is_empty() || tag.len() > 128 || !tag.chars().all(word) || tag.starts_with(['.', '-']))
    {
        return Some(format!("'{tag}' is not a tag"));
    }
    let (host, name) = match path.split_once('/') {
        Some((host, name)) if host.contains(['.', ':']) || host == "localhost" => (Some(host), name),
        _ => (None, path),
    };
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.' | '-');
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let component = |part: &str| {
        !part.is_empty() && part.chars().all(lower) && part.starts_with(edge) && part.ends_with(edge)
    };
    let host_good = host.is_none_or(|host| {
        host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']'))
    });
    (!host_good || !name.split('/').all(component))
        .then(|| format!("'{path}' is not an image name: image names are lower case and have no spaces"))
}

/// The reference that was probably meant by `name@tag`.
pub fn fixed_image(image: &str) -> Option<String> {
    let (name, tag) = image.split_once('@')?;
    let fixed = format!("{name}:{tag}");
    image_fault(&fixed).is_none().then_some(fixed)
}

#[cfg(test)]
mod tests {
    use super::image_fault;

    #[test]
    fn images_parse_as_the_kubelet_parses_them() {
        let sum = "a".repeat(64);
        for good in
            ["ccm", "ccm:v1", "registry.example:5000/a/ccm:v1.2", &format!("ccm@sha256:{sum}"), "${IMAGE}"]
        {
            assert_eq!(image_fault(good), None, "{good}");
        }
        for bad in ["registry/ccm@latest", "", "Ccm:v1", "ccm:", "ccm:a b", "a//b", "ccm@sha256:abc"] {
            assert!(image_fault(bad).is_some(), "{bad}");
        }
    }
}
