//! Resource limits of a copy of the CCM.

use super::manifests::pod_spec_mut;
use serde_json::{Value, json};

/// Limits a copy's resources if its manifests do not: a runaway CCM then fails without affecting the machine. Its
/// requests stay unchanged, as a limit alone would also count as a request; a CCM with larger requests gets what it
/// requests. Returns what was set, as text.
pub(super) fn set(workload: &mut Value, container: usize) -> Option<String> {
    let container = &mut pod_spec_mut(workload)["containers"][container];
    if !container["resources"].is_object() {
        container["resources"] = json!({});
    }
    let resources = &mut container["resources"];
    let mut limits = Vec::new();
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
        limits.push(format!("{what} {most}"));
    }
    let limits = limits.join(" and ");
    (!limits.is_empty()).then(|| format!("limits of {limits}, to protect the machine from a runaway CCM"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_above_the_usual_limit_becomes_the_limit() {
        let mut workload = json!({"kind": "Deployment", "spec": {"template": {"spec": {"containers": [
            {"resources": {"requests": {"memory": "3Gi", "cpu": 2}}}]}}}});
        let limits = set(&mut workload, 0).unwrap_or_default();
        let resources = &workload["spec"]["template"]["spec"]["containers"][0]["resources"];
        let expected =
            json!({"requests": {"memory": "3Gi", "cpu": 2}, "limits": {"memory": "3Gi", "cpu": "2"}});
        assert_eq!(*resources, expected);
        assert!(limits.contains("memory 3Gi and cpu 2"), "{limits}");
    }
}
