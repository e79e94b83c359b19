//! Label selectors and node selectors. Pure functions.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// Whether a label selector selects these labels. An empty one selects everything, as in Kubernetes.
pub fn selects(selector: &LabelSelector, labels: &Labels) -> bool {
    let by_labels = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    by_labels
        && selector.match_expressions.iter().flatten().all(|expression| {
            requirement(
                &expression.operator,
                labels.get(&expression.key),
                expression.values.as_deref().unwrap_or_default(),
            )
        })
}

/// Whether the equality-based selector of a Service selects these labels. An empty one selects nothing.
pub fn service_selects(selector: Option<&Labels>, labels: &Labels) -> bool {
    selector.is_some_and(|selector| {
        !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    })
}

/// Whether one requirement holds for a value that may be missing. An unknown operator never holds.
fn requirement(operator: &str, value: Option<&String>, values: &[String]) -> bool {
    match operator {
        "In" => value.is_some_and(|value| values.contains(value)),
        "NotIn" => value.is_none_or(|value| !values.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" | "Lt" => {
            let number = |text: &String| text.parse::<i64>().ok();
            match (value.and_then(number), values.first().and_then(number)) {
                (Some(value), Some(limit)) if operator == "Gt" => value > limit,
                (Some(value), Some(limit)) => value < limit,
                _ => false,
            }
        }
        _ => false,
    }
}

/// Whether a term of a required node affinity holds for a Node. An empty term holds for none.
pub fn term_matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let name = node.name_any();
    let holds = |one: &NodeSelectorRequirement, value: Option<&String>| {
        requirement(&one.operator, value, one.values.as_deref().unwrap_or_default())
    };
    expressions.iter().all(|one| holds(one, node.labels().get(&one.key)))
        && fields.iter().all(|one| one.key == "metadata.name" && holds(one, Some(&name)))
}

/// Whether `nodeSelector` and the required node affinity allow this Node.
pub fn node_affinity_holds(spec: &PodSpec, node: &Node) -> bool {
    let selected =
        spec.node_selector.iter().flatten().all(|(key, value)| node.labels().get(key) == Some(value));
    let required = spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    selected
        && required
            .is_none_or(|required| required.node_selector_terms.iter().any(|term| term_matches(term, node)))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;

    use super::*;

    #[test]
    fn operators_mean_what_they_say() {
        let labels = Labels::from([("a".to_owned(), "5".to_owned())]);
        let cases = [
            ("In", "a", vec!["5"], true),
            ("In", "b", vec!["5"], false),
            ("NotIn", "a", vec!["5"], false),
            ("NotIn", "b", vec!["5"], true),
            ("Exists", "a", vec![], true),
            ("DoesNotExist", "a", vec![], false),
            ("Unheard", "a", vec![], false),
        ];
        for (operator, key, values, expected) in cases {
            let selector = LabelSelector {
                match_expressions: Some(vec![LabelSelectorRequirement {
                    key: key.to_owned(),
                    operator: operator.to_owned(),
                    values: Some(values.into_iter().map(str::to_owned).collect()),
                }]),
                ..LabelSelector::default()
            };
            assert_eq!(selects(&selector, &labels), expected, "{operator} {key}");
        }
        assert!(requirement("Gt", Some(&"5".to_owned()), &["4".to_owned()]));
        assert!(!requirement("Lt", Some(&"x".to_owned()), &["4".to_owned()]));
        assert!(selects(&LabelSelector::default(), &labels), "an empty label selector selects everything");
        assert!(!service_selects(Some(&Labels::new()), &labels), "an empty Service selector selects nothing");
    }

    #[test]
    fn terms_match_names_and_labels() {
        let mut node = Node::default();
        node.metadata.name = Some("n1".to_owned());
        let by_name = |name: &str| NodeSelectorTerm {
            match_fields: Some(vec![NodeSelectorRequirement {
                key: "metadata.name".to_owned(),
                operator: "In".to_owned(),
                values: Some(vec![name.to_owned()]),
            }]),
            match_expressions: None,
        };
        assert!(term_matches(&by_name("n1"), &node));
        assert!(!term_matches(&by_name("n2"), &node));
        assert!(!term_matches(&NodeSelectorTerm::default(), &node), "an empty term matches nothing");
    }
}
