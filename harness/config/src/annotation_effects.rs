//! Annotations of the vendor that change a load balancer, as a profile declares them.

use super::schema::ordered;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The effect of a vendor's annotation on a load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationEffect {
    /// Two values of the annotation.
    pub values: [String; 2],
    /// Where the effect shows: a JSON pointer into the load balancer, as the driver shows it.
    pub at: String,
    /// The value at this place for each of the two values.
    pub shows: [String; 2],
}

/// One of `annotationEffects` of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>, extend("required" = ["values", "at"]))]
pub(crate) struct AnnotationEffectKeys {
    /// Two values of the annotation.
    #[schemars(example = ["round-robin", "least-connections"], extend("x-missing" = "write two values"))]
    pub(crate) values: Vec<String>,
    /// Where the effect shows: a JSON pointer into the load balancer in the inventory of the driver.
    #[schemars(example = &"/details/algorithm", extend("x-missing" = "write a JSON pointer"))]
    pub(crate) at: String,
    /// What the load balancer shows there for each of the values.
    #[schemars(example = ["rr", "lc"], extend("x-default" = "the values"))]
    pub(crate) shows: Option<Vec<String>>,
}
