//! Label selectors and node selector terms (`k8s.io/apimachinery` labels, `component-helpers` nodeaffinity).

use crate::manifest::{Node, Place};
use std::collections::BTreeMap;

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// The operator of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The value is one of these.
    In,
    /// The value is none of these, or absent.
    NotIn,
    /// The key exists.
    Exists,
    /// The key is absent.
    DoesNotExist,
    /// The value is a greater number.
    Gt,
    /// The value is a smaller number.
    Lt,
}

/// One requirement on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// The key of the label, or the name of the field.
    pub key: String,
    /// How the value is compared.
    pub operator: Operator,
    /// The values that it is compared with.
    pub values: Vec<String>,
    /// Where it is; `None` for those that Kubernetes adds.
    pub place: Option<Place>,
    /// Whether it is about `metadata.name` instead of a label.
    pub field: bool,
}

impl Expression {
    /// Whether an object with this value of the label, or without the label, matches.
    pub fn holds(&self, value: Option<&String>) -> bool {
        let listed = |value: &String| self.values.contains(value);
        let number = |text: &String| text.parse::<i64>().ok();
        let bound = self.values.first().and_then(number);
        let compared = |better: fn(&i64, &i64) -> bool| {
            value.and_then(number).zip(bound).is_some_and(|(value, bound)| better(&value, &bound))
        };
        match self.operator {
            Operator::In => value.is_some_and(listed),
            Operator::NotIn => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt => compared(i64::gt),
            Operator::Lt => compared(i64::lt),
        }
    }

    /// Reads `{key, operator, values}`; `None` when the API server would refuse it.
    pub fn read(node: &Node, place: Option<Place>) -> Option<Expression> {
        let operator = match node.text_at("operator")? {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            "Gt" => Operator::Gt,
            "Lt" => Operator::Lt,
            _ => return None,
        };
        let values = node.get("values").map(Node::texts).unwrap_or_default();
        Some(Expression { key: node.text_at("key")?.to_owned(), operator, values, place, field: false })
    }

    /// The requirement, as people write it.
    pub fn words(&self) -> String {
        let values = self.values.join(", ");
        match self.operator {
            Operator::In if self.values.len() == 1 => format!("{}={values}", self.key),
            Operator::In => format!("{} in ({values})", self.key),
            Operator::NotIn => format!("{} not in ({values})", self.key),
            Operator::Exists => self.key.clone(),
            Operator::DoesNotExist => format!("no {}", self.key),
            Operator::Gt => format!("{} > {values}", self.key),
            Operator::Lt => format!("{} < {values}", self.key),
        }
    }
}

/// A node selector term: all of its requirements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// All of them have to be met.
    pub expressions: Vec<Expression>,
}

/// A label selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// All of them have to be met; none selects everything.
    pub expressions: Vec<Expression>,
}

impl Selector {
    /// Reads `{matchLabels, matchExpressions}`; an absent selector matches nothing.
    pub fn read(node: Option<&Node>) -> Option<Selector> {
        let node = node.filter(|node| !node.is_null())?;
        let mut expressions = Vec::new();
        for entry in node.get("matchLabels").map(Node::entries).unwrap_or_default() {
            expressions.push(Expression {
                key: entry.key.clone(),
                operator: Operator::In,
                values: entry.value.scalar().into_iter().collect(),
                place: None,
                field: false,
            });
        }
        for item in node.get("matchExpressions").map(Node::items).unwrap_or_default() {
            expressions.push(Expression::read(item, None)?);
        }
        Some(Selector { expressions })
    }

    /// Whether the labels match; a selector without requirements matches everything.
    pub fn chooses(&self, labels: &Labels) -> bool {
        self.expressions.iter().all(|expression| expression.holds(labels.get(&expression.key)))
    }
}

/// Reads labels from a map.
pub fn labels(node: Option<&Node>) -> Labels {
    let entries = node.map(Node::entries).unwrap_or_default();
    entries.iter().filter_map(|entry| Some((entry.key.clone(), entry.value.scalar()?))).collect()
}
