//! Admission policies (validating and mutating) with their bindings: what they are about, and what they know.

use super::Assumed;
use super::evaluation::{Truth, truth};
use super::matching::{Rules, namespace_labels};
use super::request::Request;
use crate::manifest::{Node, Object, Objects};
use crate::workload::{Labels, Selector, labels};
use serde_json::Value;

/// What a binding does about the parameters of its policy.
#[derive(Clone, PartialEq)]
pub(super) enum Parameters {
    /// There are some, if the manifests show them, or none are needed: the expressions decide.
    There(Option<Value>),
    /// There are none, and then it does nothing to any request.
    AbsentAllowed,
    /// There are none although there must be, or they cannot be looked up: the failure policy decides.
    Error,
    /// The manifests do not show it.
    Unknown,
}

/// A policy with one of its bindings, which may narrow what it is about. Without a binding a policy has no effect.
#[derive(Clone, Copy)]
pub(super) struct Bound<'o> {
    pub(super) policy: &'o Object,
    pub(super) binding: &'o Object,
}

impl<'o> Bound<'o> {
    /// The policies of a kind, each with each of its bindings.
    pub(super) fn all(objects: &'o Objects, kind: &str) -> Vec<Bound<'o>> {
        let bindings = format!("{kind}Binding");
        let of = |policy: &'o Object| {
            let named = |binding: &&Object| {
                binding.node.at(&["spec", "policyName"]).and_then(Node::text) == Some(policy.name.as_str())
            };
            objects.of_kind(&bindings).filter(named).map(move |binding| Bound { policy, binding })
        };
        objects.of_kind(kind).flat_map(of).collect()
    }

    /// `ValidatingAdmissionPolicy/name`.
    pub(super) fn title(&self) -> String {
        format!("{}/{}", self.policy.kind, self.policy.name)
    }

    fn constraints(&self) -> Option<&'o Node> {
        self.policy.node.at(&["spec", "matchConstraints"])
    }

    fn narrowed(&self) -> Option<&'o Node> {
        self.binding.node.at(&["spec", "matchResources"])
    }

    fn chooses(&self, field: &str, labels: &Labels) -> bool {
        chosen(self.constraints(), field, labels) && chosen(self.narrowed(), field, labels)
    }

    /// Whether its selectors of objects choose these labels.
    pub(super) fn chooses_object(&self, labels: &Labels) -> bool {
        self.chooses("objectSelector", labels)
    }

    /// Whether it has no selector of objects.
    pub(super) fn chooses_every_object(&self) -> bool {
        let has = |node: Option<&Node>| node.is_some_and(|node| node.get("objectSelector").is_some());
        !has(self.constraints()) && !has(self.narrowed())
    }

    /// Whether its selectors of namespaces choose this one.
    pub(super) fn in_namespace(&self, objects: &Objects, name: &str) -> bool {
        self.chooses("namespaceSelector", &namespace_labels(objects, name))
    }

    /// Whether its rules are about a request.
    pub(super) fn has(&self, check: &dyn Fn(&Rules<'_>) -> bool) -> bool {
        let Some(constraints) = self.constraints() else { return false };
        let rules = |node: Option<&Node>| node.is_some_and(|rules| check(&Rules::of(Some(rules))));
        let of_binding = |field: &str| self.narrowed().and_then(|own| own.get(field));
        rules(constraints.get("resourceRules"))
            && of_binding("resourceRules").is_none_or(|own| rules(Some(own)))
            && !rules(constraints.get("excludeResourceRules"))
            && !rules(of_binding("excludeResourceRules"))
    }

    /// What it does about its parameters for a request in this namespace: once for each object that a selector chooses, and
    /// all of them count.
    pub(super) fn parameters(
        &self,
        objects: &Objects,
        assumed: &Assumed,
        namespace: Option<&str>,
    ) -> Vec<Parameters> {
        let selected = self.selected(objects, namespace);
        selected.unwrap_or_else(|| vec![self.named(objects, assumed, namespace)])
    }

    /// The parameters that a selector chooses among ConfigMaps and Secrets; `None` without a selector that the manifests
    /// decide.
    fn selected(&self, objects: &Objects, namespace: Option<&str>) -> Option<Vec<Parameters>> {
        let kind = self.policy.node.at(&["spec", "paramKind"])?;
        let wanted = self.binding.node.at(&["spec", "paramRef"])?;
        let kind = kind.text_at("kind").filter(|own| is_namespaced(objects, "", own) == Some(true))?;
        let selector = Selector::read(wanted.get("selector"))?;
        let namespace = wanted.text_at("namespace").or(namespace)?;
        // Objects that Kubernetes creates have no labels.
        if selector.chooses(&Labels::new()) {
            return None;
        }
        let chosen = |object: &&Object| {
            object.namespace == namespace
                && selector.chooses(&labels(object.node.at(&["metadata", "labels"])))
        };
        let found = objects.of_kind(kind).filter(chosen);
        let all: Vec<Parameters> = found.map(|object| Parameters::There(Some(object.node.json()))).collect();
        Some(match wanted.text_at("parameterNotFoundAction") {
            _ if !all.is_empty() => all,
            Some("Allow") => vec![Parameters::AbsentAllowed],
            _ => vec![Parameters::Error],
        })
    }

    /// The same for an object with a name.
    fn named(&self, objects: &Objects, assumed: &Assumed, namespace: Option<&str>) -> Parameters {
        let Some(kind) = self.policy.node.at(&["spec", "paramKind"]) else {
            return Parameters::There(None);
        };
        let Some(wanted) = self.binding.node.at(&["spec", "paramRef"]) else { return Parameters::Unknown };
        let group = kind.text_at("apiVersion").and_then(|version| version.split_once('/'));
        let group = group.map_or("", |(group, _)| group);
        let (Some(kind), Some(name)) = (kind.text_at("kind"), wanted.text_at("name")) else {
            return Parameters::Unknown;
        };
        // Without a namespace it is that of the object, and an object without one is an error (`CollectParams`).
        let namespace = wanted.text_at("namespace").or(namespace);
        let namespace = match (namespace, is_namespaced(objects, group, kind)) {
            (_, None) => return Parameters::Unknown,
            (_, Some(false)) => "default",
            (Some(namespace), Some(true)) => namespace,
            (None, Some(true)) => return Parameters::Error,
        };
        // A custom resource does not exist if the manifests define its kind: kubectl does not know the kind yet when it reads
        // the object, and refuses it.
        let found = objects.find(kind, namespace, name).filter(|_| group.is_empty());
        let found = found.map(|object| object.node.json());
        let exists = found.is_some() || assumed.holds(kind, namespace, name);
        match wanted.text_at("parameterNotFoundAction") {
            _ if exists => Parameters::There(found),
            Some("Allow") => Parameters::AbsentAllowed,
            _ => Parameters::Error,
        }
    }

    /// The items of a list of the policy.
    pub(super) fn items(&self, field: &str) -> &'o [Node] {
        self.policy.node.at(&["spec", field]).map(Node::items).unwrap_or_default()
    }

    /// Its variables: name and expression.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let variable =
            |item: &Node| Some((item.text_at("name")?.to_owned(), item.text_at("expression")?.to_owned()));
        self.items("variables").iter().filter_map(variable).collect()
    }

    /// Whether all expressions of a list are true for the request.
    pub(super) fn all_true(&self, field: &str, request: &Request, variables: &[(String, String)]) -> Truth {
        let of_item = |item: &Node| truth(item.text_at("expression").unwrap_or_default(), request, variables);
        Truth::all(self.items(field).iter().map(of_item))
    }

    /// Whether it is about the request, as far as its conditions say. They are evaluated before the variables.
    pub(super) fn conditions(&self, request: &Request) -> Truth {
        self.all_true("matchConditions", request, &[])
    }

    /// Whether it lets requests pass for which it cannot be evaluated.
    pub(super) fn fails_open(&self) -> bool {
        self.policy.node.at(&["spec", "failurePolicy"]).and_then(Node::text) == Some("Ignore")
    }
}

/// Whether objects of a kind of parameters have a namespace; `None` if the manifests do not define the kind.
fn is_namespaced(objects: &Objects, group: &str, kind: &str) -> Option<bool> {
    if group.is_empty() {
        return matches!(kind, "ConfigMap" | "Secret").then_some(true);
    }
    let mut definitions = objects.of_kind("CustomResourceDefinition");
    let own = definitions.find(|own| {
        let text = |path: &[&str]| own.node.at(path).and_then(Node::text);
        text(&["spec", "names", "kind"]) == Some(kind) && text(&["spec", "group"]) == Some(group)
    })?;
    own.node.at(&["spec", "scope"]).and_then(Node::text).map(|scope| scope == "Namespaced")
}

/// Whether a selector in a field chooses these labels; an absent one chooses all.
fn chosen(node: Option<&Node>, field: &str, labels: &Labels) -> bool {
    let selector = Selector::read(node.and_then(|node| node.get(field)));
    selector.is_none_or(|selector| selector.chooses(labels))
}
