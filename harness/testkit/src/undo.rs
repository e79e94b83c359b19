//! The undo steps of a check, in reverse order.

use super::CheckCx;
use super::undo_steps::{Undo, UndoStep};
use harness_clusters::PowerOp;
use std::future::Future;
use tokio::task::AbortHandle;

/// The steps in which a list is undone; entries of one step are undone at the same time.
///
/// In reverse order, with three exceptions. Faults, barriers and settings are undone before anything else, because an
/// active one must not block the cleanup. The CCM is restored before Services that need it to release them. Services are
/// removed together, in place of the last of them, since they wait for the same CCM. Machines are removed last of all
/// ([`CheckCx::clean_up`]).
fn steps(made: Vec<Undo>) -> Vec<Vec<Undo>> {
    let turn = |undo: &Undo| match undo {
        Undo::Fault(_) | Undo::Barrier(_) | Undo::Settings(_) | Undo::Watches | Undo::Reach => 0,
        Undo::Frozen { .. } | Undo::Power(_) => 0,
        Undo::Step(step) if step.is_first => 0,
        Undo::Ccm { .. } | Undo::Newcomers | Undo::Crash => 1,
        _ => 2,
    };
    let mut list: Vec<Undo> = made.into_iter().rev().collect();
    list.sort_by_key(turn);
    let (services, others): (Vec<Undo>, Vec<Undo>) =
        list.iter().cloned().partition(|undo| matches!(undo, Undo::Service(_)));
    let first = list.iter().position(|undo| matches!(undo, Undo::Service(_)));
    let mut steps: Vec<Vec<Undo>> = others.into_iter().map(|undo| vec![undo]).collect();
    if let Some(first) = first {
        steps.insert(first, services);
    }
    steps
}

/// Undoes all entries, even if some fail; returns those that could not be undone, with the reasons.
async fn undo_all<F: Future<Output = Result<(), String>>>(
    steps: Vec<Vec<Undo>>,
    undo: impl Fn(Undo) -> F,
) -> Vec<(Undo, String)> {
    let mut failures = Vec::new();
    for step in steps {
        let outcomes = step.into_iter().map(|one| {
            let outcome = undo(one.clone());
            async move { outcome.await.map_err(|why| (one, why)) }
        });
        failures.extend(futures::future::join_all(outcomes).await.into_iter().filter_map(Result::err));
    }
    failures
}

impl CheckCx {
    pub(super) fn on_end(&self, undo: Undo) {
        self.undo.lock().expect("no holder of this lock panics").push(undo);
    }

    /// Undoes what a subject in another crate has done when the check ends, in reverse order.
    pub fn undo_at_end(&self, step: UndoStep) {
        self.on_end(Undo::Step(step));
    }

    /// Removes a step that the check itself has carried out.
    pub fn already_undone(&self, step: &UndoStep) {
        self.is_undone(&Undo::Step(step.clone()));
    }

    pub(super) fn is_to_be_undone(&self, undo: &Undo) -> bool {
        self.undo.lock().expect("no holder of this lock panics").contains(undo)
    }

    /// The trials ([`Trial`](super::Trial)) that the check has started and not ended.
    pub(super) fn trials(&self) -> Vec<String> {
        let undo = self.undo.lock().expect("no holder of this lock panics");
        let name = |one: &Undo| if let Undo::Trial(name) = one { Some(name.clone()) } else { None };
        undo.iter().filter_map(name).collect()
    }

    /// Removes an entry that the check itself has undone.
    pub(super) fn is_undone(&self, undo: &Undo) {
        self.undo.lock().expect("no holder of this lock panics").retain(|other| other != undo);
    }

    /// Undoes all entries, trying each of them. Those that fail stay on the list, in case this is called again.
    ///
    /// # Errors
    /// The failures, one line each.
    pub async fn clean_up(&self) -> Result<(), String> {
        let made = std::mem::take(&mut *self.undo.lock().expect("no holder of this lock panics"));
        let needs_a_ccm = made.iter().any(|undo| matches!(undo, Undo::Service(_)));
        let (machines, others): (Vec<Undo>, Vec<Undo>) =
            made.into_iter().partition(|undo| matches!(undo, Undo::Instance(_)));
        let undo = async |undo| self.undo_one(undo, needs_a_ccm).await;
        let mut failures = undo_all(steps(others), undo).await;
        self.get_no_traffic(&machines).await;
        failures.extend(undo_all(vec![machines], undo).await);
        if failures.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = failures.iter().map(|(undo, why)| format!("{undo}: {why}")).collect();
        // The list is in the order in which things were made, and they are undone in the opposite one.
        let again = failures.into_iter().rev().map(|(undo, _)| undo);
        self.undo.lock().expect("no holder of this lock panics").extend(again);
        Err(lines.join("\n"))
    }

    /// Undoes nothing, because the check's environment is removed; stops its background tasks.
    pub fn leaves_it_to_its_environment(&self) {
        self.undo.lock().expect("no holder of this lock panics").clear();
        let heartbeats = std::mem::take(&mut *self.heartbeats.lock().expect("no holder of this lock panics"));
        heartbeats.values().for_each(AbortHandle::abort);
    }

    async fn undo_one(&self, undo: Undo, needs_a_ccm: bool) -> Result<(), String> {
        match undo {
            Undo::Service(key) => self.undo_service(&key).await,
            Undo::Node(name) => self.undo_node(&name).await,
            Undo::Heartbeat(name) => self.undo_heartbeat(&name).await,
            Undo::Namespace(name) => self.undo_namespace(&name).await,
            Undo::Instance(id) => self.undo_instance(&id).await,
            Undo::Fault(id) => self.undo_fault(id).await,
            Undo::Barrier(id) => self.undo_barrier(id).await,
            Undo::LoadBalancer(id) => self.undo_load_balancer(&id).await,
            Undo::PodCidrs => self.undo_pod_cidrs().await,
            Undo::Route(id) => self.undo_route(&id).await,
            Undo::Taint { node, key } => self.undo_taint(&node, &key).await,
            Undo::Labels { node, before } => self.undo_labels(&node, &before).await,
            Undo::Cordon(node) => self.undo_cordon(&node).await,
            Undo::Scale { deployment, replicas } => self.undo_scale(&deployment, replicas).await,
            Undo::Unavailable(node) => self.undo_unavailable(&node).await,
            Undo::Settings(before) => self.undo_settings(&before).await,
            Undo::Ccm { ended } => self.undo_ccm(Some(&ended), needs_a_ccm).await,
            Undo::Newcomers => self.undo_newcomers().await,
            Undo::Crash => self.undo_crash(needs_a_ccm).await,
            Undo::Right(name) => self.undo_right(&name).await,
            Undo::Rules { role, rules } => self.undo_rules(&role, &rules).await,
            Undo::Account(account) => self.undo_account(&account).await,
            Undo::Trial(name) => self.undo_trial(&name).await,
            Undo::Replaced => self.undo_replaced().await,
            Undo::Releases => self.undo_releases().await,
            Undo::Power(machines) => self.power(&machines, PowerOp::On).await,
            Undo::Reach => self.undo_reach().await,
            Undo::Frozen { node, id } => self.undo_frozen(&node, &id).await,
            Undo::Lease { namespace, name } => self.undo_lease(&namespace, &name).await,
            Undo::Watches => self.undo_watches().await,
            Undo::Cold => self.undo_cold().await,
            Undo::Step(step) => step.carry_out(&self.session).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::undo_steps::ServiceKey;
    use super::*;
    use std::cell::RefCell;

    fn node(name: &str) -> Undo {
        Undo::Node(name.to_owned())
    }

    fn service(name: &str) -> Undo {
        let [namespace, name, uid, owner] = ["ns", name, "uid", "owner"].map(str::to_owned);
        Undo::Service(ServiceKey { namespace, name, uid, owner })
    }

    #[test]
    fn the_newest_object_is_removed_first() {
        let made = vec![node("a"), node("b")];
        assert_eq!(steps(made), [[node("b")], [node("a")]]);
        assert!(steps(Vec::new()).is_empty());
    }

    #[test]
    fn faults_go_before_all_then_the_ccm_comes_back() {
        let ccm = Undo::Ccm { ended: "r".into() };
        let made = vec![Undo::Fault(1), node("a"), ccm.clone(), Undo::Barrier(2), service("s")];
        let expected = [[Undo::Barrier(2)], [Undo::Fault(1)], [ccm], [service("s")], [node("a")]];
        assert_eq!(steps(made), expected);
    }

    #[test]
    fn services_go_together_before_what_was_made_before_the_last_of_them() {
        let namespace = Undo::Namespace("ns".into());
        let made = vec![namespace.clone(), service("a"), node("n"), service("b"), Undo::Cold];
        let expected = [vec![Undo::Cold], vec![service("b"), service("a")], vec![node("n")], vec![namespace]];
        assert_eq!(steps(made), expected);
    }

    #[tokio::test]
    async fn everything_is_tried_and_every_failure_reported() {
        let tried = RefCell::new(Vec::new());
        let undo = async |undo: Undo| {
            tried.borrow_mut().push(undo.clone());
            if undo == node("b") || undo == service("s") { Err("it is stuck".to_owned()) } else { Ok(()) }
        };
        let made = vec![node("a"), node("b"), service("s"), service("t")];
        let failed = undo_all(steps(made), undo).await;
        assert_eq!(*tried.borrow(), [service("t"), service("s"), node("b"), node("a")]);
        let stuck = |undo| (undo, "it is stuck".to_owned());
        assert_eq!(failed, [stuck(service("s")), stuck(node("b"))]);
        assert_eq!(undo_all(steps(vec![node("a")]), async |_| Ok(())).await, []);
    }
}
