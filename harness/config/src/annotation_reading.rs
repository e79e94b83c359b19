//! Reads and checks a profile's annotations that change a load balancer.

use super::annotation_effects::{AnnotationEffect, AnnotationEffectKeys};
use super::profile_reading::Reading;
use std::collections::BTreeMap;

impl Reading<'_> {
    /// The annotations whose effect can be checked; all others are reported as problems.
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
