//! One requirement of a label selector.

use serde_json::Value;

/// The operator of one requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    pub(super) key: String,
    pub(super) operator: Operator,
    pub(super) values: Vec<String>,
}

impl Requirement {
    pub(super) fn matches(&self, labels: &Value) -> bool {
        let value = labels.get(&self.key).and_then(Value::as_str);
        match self.operator {
            Operator::In => value.is_some_and(|value| self.values.iter().any(|wanted| wanted == value)),
            Operator::NotIn => {
                value.is_none_or(|value| !self.values.iter().any(|unwanted| unwanted == value))
            }
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let limit = self.values.first().and_then(|limit| limit.parse::<i64>().ok());
                let value = value.and_then(|value| value.parse::<i64>().ok());
                match (value, limit) {
                    (Some(value), Some(limit)) if self.operator == Operator::GreaterThan => value > limit,
                    (Some(value), Some(limit)) => value < limit,
                    _ => false,
                }
            }
        }
    }
}
