//! The whole run, for a check at its end: the cloud of every lane, and every process of the CCM.

use super::aborted::{Origin, origin, owner_in};
use super::{CheckCx, Subject};
use harness_clouds::{Entry, Instance, Inventory};
use harness_config::BackendKind;
use harness_core::check::{CheckError, SubjectName, chain};
use harness_core::events::{End, Fold, LostNode};
use harness_core::probe::{Matcher, Observed, ReadError, ReadSource, holds, poll};
use harness_session::Session;
use std::sync::Arc;
use std::time::Duration;

/// How often the clouds are read while something of unknown origin may still go.
const LOOK: Duration = Duration::from_millis(200);

/// The difference between the clouds' contents now and before the run.
#[derive(Clone, Copy)]
pub struct Leftovers<'a> {
    cx: &'a CheckCx,
}

/// The leftovers: one text for each object, with the Service for which it was created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftObjects {
    /// Those for which the CCM is responsible.
    counts: Vec<String>,
    /// Those of attempts that an error of the environment aborted: the CCM might have removed them.
    of_aborted: Vec<String>,
    /// Those that may belong to either.
    doubtful: Vec<String>,
}

/// Exits of the CCM's processes that were not caused by a check, or by an unresponsive API server or cloud.
#[derive(Clone, Copy)]
pub struct Ends<'a> {
    cx: &'a CheckCx,
}

/// The Nodes of the cluster's own machines that were deleted, but not by the harness.
#[derive(Clone, Copy)]
pub struct OwnNodes<'a> {
    cx: &'a CheckCx,
}

impl Leftovers<'_> {
    /// Whether leftovers can be distinguished from those of attempts that an error of the environment aborted; the report
    /// shows what was not counted because of that.
    ///
    /// # Errors
    /// [`CheckError::Error`] if the origin of a leftover is unknown.
    pub async fn have_known_origin(&self) -> Result<(), CheckError> {
        // The CCM may still be removing what it made for an aborted attempt.
        let mut left = LeftObjects::default();
        let removed = async |seen: &mut String| {
            left = self.read(ReadSource::Origin).await?;
            *seen = left.doubtful.join("; ");
            Ok(left.doubtful.is_empty().then_some(()))
        };
        let limit = self.cx.limits().service_after(1);
        let waited = poll("the cloud holds nothing of unknown origin", limit, LOOK, removed).await;
        if let Err(error) = waited
            && left.doubtful.is_empty()
        {
            return Err(CheckError::Error(error.text));
        }
        if !left.of_aborted.is_empty() {
            self.cx.record("not-counted", left.of_aborted.join("; "));
        }
        match left.doubtful.is_empty() {
            true => Ok(()),
            false => Err(CheckError::Error(format!(
                "the clouds contain resources that did not exist before the run: {}; an error of the environment has \
                 aborted checks, and these resources may be theirs: run again",
                left.doubtful.join("; ")
            ))),
        }
    }
}

impl Ends<'_> {
    /// How long to look for exits: [`Limits::kubelet_report`], after which kubelets have reported them. If the CCM's
    /// processes belong to the harness, a fifth of that is enough once the run has lasted twice as long.
    ///
    /// [`Limits::kubelet_report`]: harness_config::Limits::kubelet_report
    pub fn reporting_time(&self) -> Duration {
        let report = self.cx.limits().kubelet_report();
        match self.cx.session.state().cluster.backend {
            BackendKind::Embedded => {
                let lasted = Duration::from_millis(self.cx.session.events().now_ms());
                (2 * report).saturating_sub(lasted).clamp(report / 5, report)
            }
            BackendKind::Kind | BackendKind::Existing | BackendKind::Absent => report,
        }
    }
}

impl Observed for LeftObjects {
    fn observed(&self) -> String {
        if self.counts.is_empty() { "nothing".to_owned() } else { self.counts.join("; ") }
    }
}

/// Nothing is left.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let leftovers = cx.leftovers();
/// leftovers.have_known_origin().await?;
/// leftovers.becomes(as_before()).within(cx.limits().service_after(1)).await
/// # }
/// ```
pub fn as_before() -> Matcher<LeftObjects> {
    holds("contain the same as before the run", |left: &LeftObjects| left.counts.is_empty())
        .expecting("no object added, removed or changed, except machines")
}

/// There were no exits.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let ends = cx.ends();
/// ends.keeps(none()).within(ends.reporting_time()).await
/// # }
/// ```
pub fn none() -> Matcher<Vec<End>> {
    holds("do not happen", Vec::is_empty).expecting("its process exits only when a check makes it")
}

impl Subject for Leftovers<'_> {
    type Snapshot = LeftObjects;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        SubjectName { kind: "the clouds", name: "of the run".to_owned(), uid: None }
    }

    async fn read(&self, _: ReadSource) -> Result<LeftObjects, ReadError> {
        let fold = self.cx.whole_run()?;
        let mut left = LeftObjects::default();
        for lane in &self.cx.lanes {
            left_in(lane, &fold, &mut left).await?;
        }
        Ok(left)
    }

    fn concerns(&self, call: &Entry) -> bool {
        call.write
    }
}

/// No Node was deleted.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// cx.ccm_runs().await?;
/// cx.own_nodes().is(all_stay()).await
/// # }
/// ```
pub fn all_stay() -> Matcher<Vec<LostNode>> {
    holds("stay", Vec::is_empty).expecting("no deletion of such a Node except by the harness")
}

impl Subject for OwnNodes<'_> {
    type Snapshot = Vec<LostNode>;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        SubjectName { kind: "Nodes", name: "of the cluster's own machines".to_owned(), uid: None }
    }

    async fn read(&self, _: ReadSource) -> Result<Vec<LostNode>, ReadError> {
        let fold = self.cx.whole_run()?;
        let is_real = |lost: &&LostNode| {
            let of = |lane: &&Arc<Session>| lane.events().lane().unwrap_or_default() == lost.lane;
            self.cx.lanes.iter().find(of).is_some_and(|lane| lane.real_nodes().contains(&lost.node))
        };
        Ok(fold.conduct().lost_nodes().iter().filter(is_real).cloned().collect())
    }

    fn concerns(&self, _: &Entry) -> bool {
        false
    }
}

impl Subject for Ends<'_> {
    type Snapshot = Vec<End>;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        SubjectName { kind: "ends", name: "of the CCM's processes".to_owned(), uid: None }
    }

    async fn read(&self, _: ReadSource) -> Result<Vec<End>, ReadError> {
        let fold = self.cx.whole_run()?;
        let excused = |end: &&End| {
            let of = |lane: &&Arc<Session>| lane.events().lane().unwrap_or_default() == end.lane;
            self.cx.lanes.iter().find(of).is_some_and(|lane| lane.excuse_of(end).is_some())
        };
        Ok(fold.conduct().ends().iter().filter(|end| !excused(end)).cloned().collect())
    }

    fn concerns(&self, _: &Entry) -> bool {
        false
    }
}

/// The contents of a cloud without machines, and without routes to machines that are `there`: at the end of a run these
/// are the Nodes' own, and their routes exist as long as the Nodes.
fn for_services(inventory: &Inventory, there: &[Instance]) -> Inventory {
    let mut inventory = inventory.clone();
    inventory.instances.clear();
    inventory.routes.retain(|route| {
        let target = route.target_instance.as_ref();
        !target.is_some_and(|target| there.iter().any(|machine| machine.id == *target))
    });
    inventory
}

/// Whether it is a route whose machine was gone before the run, as an earlier CCM of the cluster may leave one: the next
/// CCM must remove it.
fn led_to_a_deleted_machine(before: &Inventory, id: &str) -> bool {
    let target =
        before.routes.iter().find(|route| route.id == id).and_then(|route| route.target_instance.as_ref());
    target.is_some_and(|target| before.instances.iter().all(|machine| machine.id != *target))
}

/// Adds the differences of one lane's cloud.
async fn left_in(lane: &Session, fold: &Fold, left: &mut LeftObjects) -> Result<(), ReadError> {
    let Some(before) = lane.cloud_before() else {
        return Err(ReadError {
            text: "the contents of the cloud before the run are unknown".to_owned(),
            fatal: true,
        });
    };
    let now = lane.cloud().inventory().await.map_err(|error| ReadError::passing(chain(&error)))?;
    let diff = for_services(before, &now.instances).diff(&for_services(&now, &now.instances));
    let number = lane.events().lane().unwrap_or_default();
    let service_of = |inventory: &Inventory, id: &str| {
        owner_in(inventory, id).and_then(|owner| fold.conduct().service_of(&owner).map(str::to_owned))
    };
    let mut sort = |what: String, service: Option<String>| match origin(fold, number, service.as_deref()) {
        Origin::Judged => left.counts.push(what),
        Origin::Aborted(check) => left
            .of_aborted
            .push(format!("{what} (of an attempt at {check} that an error of the environment aborted)")),
        Origin::Unknown => left.doubtful.push(what),
    };
    for item in &diff.added {
        let service = service_of(&now, &item.id);
        let of = service.as_deref().map(|service| format!(" of Service {service}")).unwrap_or_default();
        sort(format!("{item}{of}"), service);
    }
    for item in diff.removed.iter().filter(|item| !led_to_a_deleted_machine(before, &item.id)) {
        sort(format!("{item} is gone"), service_of(before, &item.id));
    }
    for change in &diff.changed {
        sort(format!("{change} has changed"), service_of(&now, &change.id));
    }
    Ok(())
}

impl CheckCx {
    /// The contents of all lanes' clouds that did not exist before.
    pub fn leftovers(&self) -> Leftovers<'_> {
        Leftovers { cx: self }
    }

    /// Exits of the CCM's processes that no check caused, in all lanes.
    pub fn ends(&self) -> Ends<'_> {
        Ends { cx: self }
    }

    /// The Nodes of the cluster's own machines, in all lanes.
    pub fn own_nodes(&self) -> OwnNodes<'_> {
        OwnNodes { cx: self }
    }

    /// The totals of the run's events so far.
    pub(super) fn whole_run(&self) -> Result<Fold, ReadError> {
        let events = self.session.events();
        if !events.is_begun_here() {
            events.take_others_in().map_err(|error| ReadError { text: chain(&error), fatal: true })?;
        }
        Ok(events.fold())
    }

    /// For checks that can judge nothing before the CCM has done something.
    ///
    /// # Errors
    /// As [`CheckCx::deploy_ccm`]; [`CheckError::Violation`] when a replica does not run.
    pub async fn ccm_runs(&self) -> Result<(), CheckError> {
        self.deploy_ccm().await?;
        for replica in self.replicas() {
            replica.becomes(super::runs()).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn cloud(instances: Value, routes: Value) -> Inventory {
        let all = json!({"instances": instances, "load_balancers": [], "auxiliaries": [], "routes": routes});
        serde_json::from_value(all).expect("an inventory")
    }

    #[test]
    fn a_route_to_a_machine_of_the_run_may_stay_and_one_to_a_machine_of_a_check_may_not() {
        let machine =
            json!({"id": "real", "name": "real", "instance_type": "t", "addresses": [], "state": "running"});
        // The Nodes' machines are created in the cloud after the first look.
        let before = cloud(json!([]), json!([]));
        let route =
            |id: &str, to: &str| json!({"id": id, "destination": "10.0.0.0/24", "target_instance": to});
        let now = cloud(json!([machine]), json!([route("r-1", "real"), route("r-2", "of-a-check")]));
        let diff = for_services(&before, &now.instances).diff(&for_services(&now, &now.instances));
        let added: Vec<&str> = diff.added.iter().map(|item| item.id.as_str()).collect();
        assert_eq!(added, ["r-2"]);
        assert!(diff.removed.is_empty() && diff.changed.is_empty());
    }
    #[test]
    fn a_route_whose_machine_was_gone_before_may_go() {
        let machine =
            json!({"id": "real", "name": "real", "instance_type": "t", "addresses": [], "state": "running"});
        let route = |id: &str, to: Option<&str>| json!({"id": id, "destination": "10.0.0.0/24", "target_instance": to});
        let routes = [route("r-1", Some("real")), route("r-2", Some("gone")), route("r-3", None)];
        let before = cloud(json!([machine]), json!(routes));
        assert_eq!(
            ["r-1", "r-2", "r-3"].map(|id| led_to_a_deleted_machine(&before, id)),
            [false, true, false]
        );
    }
}
