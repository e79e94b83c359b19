//! Which webhooks are sent the requests of a boot.

use bootstrap_manifests::known::{Truth, Webhook};
use bootstrap_manifests::manifest::Objects;
use bootstrap_manifests::workload::{Role, Stage, Workload};

/// The webhooks that are sent requests about one workload, or by it, by kind of request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// Creation of its Pods, or of what stands between them.
    pub(crate) creation: Vec<usize>,
    /// Binding of its Pods to Nodes.
    pub(crate) bindings: Vec<usize>,
    /// Requests for the tokens of its Pods.
    pub(crate) tokens: Vec<usize>,
    /// The first write of its Lease.
    pub(crate) leases: Vec<usize>,
    /// Updates by it of Nodes with a taint that stays.
    pub(crate) tainted_nodes: Vec<usize>,
    /// Updates by it of Nodes without one.
    pub(crate) untainted_nodes: Vec<usize>,
    /// Updates of the status of Nodes by it.
    pub(crate) statuses: Vec<usize>,
}

impl Asked {
    /// Finds the webhooks of each workload. Those whose conditions the manifests do not decide, and those outside of the
    /// cluster, become conditions.
    pub(super) fn new(objects: &Objects, hooks: &[Webhook], workloads: &mut [Workload]) -> Vec<Asked> {
        workloads.iter_mut().map(|workload| Asked::of(objects, hooks, workload)).collect()
    }

    /// Takes a webhook out, as if it failed open.
    pub(crate) fn forget(&mut self, hook: usize) {
        let Asked { creation, bindings, tokens, leases, tainted_nodes, untainted_nodes, statuses } = self;
        for list in [creation, bindings, tokens, leases, tainted_nodes, untainted_nodes, statuses] {
            list.retain(|own| *own != hook);
        }
    }

    /// The webhooks of one workload.
    pub(super) fn of(objects: &Objects, hooks: &[Webhook], workload: &mut Workload) -> Asked {
        let mut asked = Asked::default();
        // What other programs write does not matter for the boot.
        let writes = matches!(workload.role, Role::Ccm | Role::NodeManager);
        let written = |truth: Truth| if writes { truth } else { Truth::No };
        for (index, hook) in hooks.iter().enumerate() {
            let first = workload.object.is_some_and(|own| hook.object < own);
            let all = [
                (Stage::Creation, hook.sees_creation(objects, workload, first), &mut asked.creation),
                (Stage::Scheduling, hook.sees_bindings(objects, workload), &mut asked.bindings),
                (Stage::Start, hook.sees_tokens(objects, workload), &mut asked.tokens),
                (Stage::Work, written(hook.sees_leases(objects, workload)), &mut asked.leases),
                (
                    Stage::TaintedNodes,
                    written(hook.sees_nodes(objects, workload, true)),
                    &mut asked.tainted_nodes,
                ),
                (
                    Stage::UntaintedNodes,
                    written(hook.sees_nodes(objects, workload, false)),
                    &mut asked.untainted_nodes,
                ),
                (Stage::Initialisation, written(hook.sees_statuses(objects, workload)), &mut asked.statuses),
            ];
            let (mut depends, mut refused) = (false, Vec::new());
            for (stage, truth, list) in all {
                match truth {
                    Truth::Yes => list.push(index),
                    Truth::Unknown => depends = true,
                    Truth::No => {}
                    Truth::Fails => refused.push(hook.fails(stage)),
                }
                depends |= truth == Truth::Yes && hook.backends.is_none();
            }
            workload.hindrances.extend(refused);
            let condition = hook.allows();
            if depends && !workload.conditions.iter().any(|known| known.words == condition.words) {
                workload.conditions.push(condition);
            }
        }
        asked
    }
}
