//! What a copy of the CCM may take of its machine.

use super::manifests::pod_spec_mut;
use serde_json::{Value, json};

/// What a copy may take of its machine, where its manifests do not say: one that runs away fails, and the machine stays. What
/// it asks for stays as it was, as a limit alone is taken for a request, too; who asks for more than that has what it asks for.
/// What was set, in words.
pub(super) fn set(workload: &mut Value, container: usize) -> Option<String> {
    let container = &mut pod_spec_mut(workload)["containers"][container];
    if !container["resources"].is_object() {
        container["resources"] = json!({});
    }
    let resources = &mut container["resources"];
    let mut told = Vec::new();
    for (what, most, asked) in [("memory", "2Gi", "16Mi"), ("cpu", "1", "10m")] {
        if resources["limits"].get(what).is_some() {
            continue;
        }
        let own = resources["requests"].get(what).map(|own| match own {
            Value::String(text) => text.clone(),
            number => number.to_string(),
        });
        let most = match &own {
            Some(own) if bootstrap::billionths(own) > bootstrap::billionths(most) => own.as_str(),
            _ => most,
        };
        resources["limits"][what] = json!(most);
        if own.is_none() {
            resources["requests"][what] = json!(asked);
        }
        told.push(format!("{what} {most}"));
    }
    let told = told.join(" and ");
    (!told.is_empty())
        .then(|| format!("limits of {told}, so that one that runs away leaves the machine to others"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_for_more_than_the_usual_limit_has_it_as_limit() {
        let mut workload = json!({"kind": "Deployment", "spec": {"template": {"spec": {"containers": [
            {"resources": {"requests": {"memory": "3Gi", "cpu": 2}}}]}}}});
        let told = set(&mut workload, 0).unwrap_or_default();
        let resources = &workload["spec"]["template"]["spec"]["containers"][0]["resources"];
        let expected =
            json!({"requests": {"memory": "3Gi", "cpu": 2}, "limits": {"memory": "3Gi", "cpu": "2"}});
        assert_eq!(*resources, expected);
        assert!(told.contains("memory 3Gi and cpu 2"), "{told}");
    }
}
