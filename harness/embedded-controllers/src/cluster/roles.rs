//! ClusterRoles that aggregate the rules of others: `view`, `edit`, `admin` and those that users add.

use std::sync::Arc;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use embedded_runtime::cache::Key;
use embedded_runtime::context::ControllerContext;
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::selectors;
use embedded_runtime::writing;

/// The manager of the aggregated rules.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// Registers for every change of a ClusterRole and starts the worker.
pub(crate) fn start(world: &Arc<ControllerContext>) {
    let queue: Arc<Queue<String>> = Queue::new();
    let (own, known) = (queue.clone(), world.clone());
    // Any role may be part of any aggregation, and there are few: after each change, all aggregations are
    // computed again.
    world.cluster_roles.on_change(move |_, after| {
        let changed = after.filter(|role| role.aggregation_rule.is_some()).map(|role| role.name_any());
        let others = known.cluster_roles.list().into_iter().filter(|role| role.aggregation_rule.is_some());
        others.map(|role| role.name_any()).chain(changed).for_each(|name| own.add(name));
    });
    let world = world.clone();
    queue.clone().spawn(&world.tasks.clone(), "clusterrole-aggregation", 1, move |name| {
        let world = world.clone();
        async move { gather(&world, &name).await }
    });
}

async fn gather(world: &ControllerContext, name: &str) -> Outcome {
    let Some(role) = world.cluster_roles.get(&Key::cluster(name)) else { return Ok(Next::Done) };
    let mut roles: Vec<Arc<ClusterRole>> = world.cluster_roles.list();
    roles.sort_by_key(|role| role.name_any());
    let Some(rules) = gathered(&role, &roles) else { return Ok(Next::Done) };
    if rules == role.rules.clone().unwrap_or_default() {
        return Ok(Next::Done);
    }
    let applied = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules,
    });
    let api = writing::api::<ClusterRole>(&world.client());
    let changed = api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(applied)).await?;
    world.cluster_roles.observe(changed);
    Ok(Next::Done)
}

/// The rules of the roles that this one selects, each once; `None` if it does not aggregate. `roles` are
/// sorted by name. A pure function.
fn gathered(role: &ClusterRole, roles: &[Arc<ClusterRole>]) -> Option<Vec<PolicyRule>> {
    let selectors = role.aggregation_rule.as_ref()?.cluster_role_selectors.iter().flatten();
    let mut rules: Vec<PolicyRule> = Vec::new();
    for selector in selectors {
        let selected = roles.iter().filter(|other| {
            other.name_any() != role.name_any() && selectors::selects(selector, other.labels())
        });
        for rule in selected.flat_map(|other| other.rules.iter().flatten()) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    Some(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str, labels: &[(&str, &str)], verbs: &[&str]) -> Arc<ClusterRole> {
        let mut role = ClusterRole::default();
        role.metadata.name = Some(name.to_owned());
        role.metadata.labels =
            Some(labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect());
        let rule = |verb: &&str| PolicyRule { verbs: vec![(*verb).to_owned()], ..PolicyRule::default() };
        role.rules = Some(verbs.iter().map(rule).collect());
        Arc::new(role)
    }

    #[test]
    fn the_rules_of_selected_roles_are_gathered_once() {
        let gathers = |labels: &[(&str, &str)]| {
            let mut gathers = role("b", labels, &["own"]).as_ref().clone();
            let rule = json!({"clusterRoleSelectors": [{"matchLabels": {"to": "b"}}]});
            gathers.aggregation_rule = Some(serde_json::from_value(rule).expect("an aggregation rule"));
            gathers
        };
        let others = [
            role("a", &[("to", "b")], &["get", "list"]),
            role("c", &[("to", "b")], &["list", "watch"]),
            role("d", &[], &["*"]),
        ];
        let verbs = |role: &ClusterRole, roles: &[Arc<ClusterRole>]| -> Option<Vec<String>> {
            Some(gathered(role, roles)?.into_iter().flat_map(|rule| rule.verbs).collect())
        };
        let expected = Some(["get", "list", "watch"].map(str::to_owned).to_vec());
        assert_eq!(verbs(&gathers(&[]), &others), expected);
        let own = gathers(&[("to", "b")]);
        let with_itself: Vec<_> = others.iter().cloned().chain([Arc::new(own.clone())]).collect();
        assert_eq!(verbs(&own, &with_itself), expected, "a role does not gather itself");
        assert_eq!(verbs(&others[0], &others), None);
    }
}
