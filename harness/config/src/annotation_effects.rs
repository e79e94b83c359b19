//! Annotations of the vendor that change a load balancer, as a profile declares them.

use super::profile_reading::Reading;
use super::schema::ordered;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an annotation of the vendor does to a load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationEffect {
    /// Two values of it.
    pub values: [String; 2],
    /// Where the effect shows: a JSON pointer into the load balancer, as the driver shows it.
    pub at: String,
    /// What stands there with each of the values.
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

impl Reading<'_> {
    /// Annotations whose effect can be told; anything else is a problem.
    pub(super) fn annotation_effects(
        &mut self,
        written: BTreeMap<String, AnnotationEffectKeys>,
    ) -> BTreeMap<String, AnnotationEffect> {
        let mut effects = BTreeMap::new();
        for (annotation, AnnotationEffectKeys { values, at, shows }) in written {
            let key = format!("annotationEffects.{annotation}");
            let shown = shows.clone().unwrap_or_else(|| values.clone());
            let two = |list: &[String]| <[String; 2]>::try_from(list.to_vec()).ok().filter(|[a, b]| a != b);
            match (two(&values), two(&shown)) {
                (Some(values), Some(shows)) if at.starts_with('/') => {
                    effects.insert(annotation, AnnotationEffect { values, at, shows });
                }
                (None, _) => self.problem(&format!("{key}.values"), "has to be two values that differ"),
                (_, None) => self.problem(&format!("{key}.shows"), "has to be two texts that differ"),
                _ => self.problem(
                    &format!("{key}.at"),
                    format!("'{at}' is not a JSON pointer, such as /details/size"),
                ),
            }
        }
        effects
    }
}
