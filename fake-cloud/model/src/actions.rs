//! Actions: work that runs after a call was accepted, in clouds whose API shows it.
//!
//! The effect of the work comes with the call; an action only determines how long it takes.

use super::Cloud;
use std::collections::BTreeMap;
use std::time::Duration;

/// How many actions can still be read; the oldest are removed first.
const KEPT: usize = 10_000;

/// An action of the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The cloud's own identifier.
    pub id: String,
    /// The command, in the dialect's words.
    pub command: String,
    /// The objects in question: kind in the dialect's words, and id. The first is the one that is changed.
    pub resources: Vec<(String, String)>,
    /// When it began.
    pub started: Duration,
    /// When it ends.
    pub ends: Duration,
    /// Why it failed: a code in the dialect's words.
    pub error: Option<String>,
}

impl Action {
    /// Whether it still runs.
    pub fn runs(&self, now: Duration) -> bool {
        now < self.ends
    }

    /// Its progress in percent.
    pub fn progress(&self, now: Duration) -> u64 {
        let (whole, done) =
            (self.ends - self.started, now.saturating_sub(self.started).min(self.ends - self.started));
        match whole.as_millis() {
            0 => 100,
            whole => u64::try_from(done.as_millis() * 100 / whole).unwrap_or(100),
        }
    }

    /// Whether it is about this object.
    pub fn concerns(&self, kind: &str, id: &str) -> bool {
        self.resources.iter().any(|resource| resource.0 == kind && resource.1 == id)
    }
}

/// All actions by id.
#[derive(Debug, Default)]
pub(super) struct Actions {
    by_id: BTreeMap<String, Action>,
    /// The error of the next action.
    failure: Option<String>,
}

impl Actions {
    pub(super) fn add(&mut self, action: Action) -> &Action {
        if self.by_id.len() >= KEPT {
            self.by_id.pop_first();
        }
        self.by_id.entry(action.id.clone()).or_insert(action)
    }

    pub(super) fn get(&self, id: &str) -> Option<&Action> {
        self.by_id.get(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Action> {
        self.by_id.values()
    }

    /// Makes the next action fail, or cancels that.
    pub(super) fn fail_next(&mut self, code: Option<String>) {
        self.failure = code;
    }

    /// Takes the error of the next action.
    pub(super) fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }
}

impl Cloud {
    /// Begins an action about these objects, which has failed if there is an `error`. It ends after the time
    /// in the settings, and not before `not_before`.
    pub fn begin_action(
        &mut self,
        command: &str,
        resources: Vec<(String, String)>,
        error: Option<String>,
        (now, not_before): (Duration, Duration),
    ) -> &Action {
        let ends = now.saturating_add(self.action_time()).max(not_before);
        let id = self.ids.next("action");
        self.actions.add(Action { id, command: command.to_owned(), resources, started: now, ends, error })
    }

    /// One action.
    pub fn action(&self, id: &str) -> Option<&Action> {
        self.actions.get(id)
    }

    /// All actions by id.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.actions.iter()
    }

    /// Makes the next action fail with this code, or cancels that.
    pub fn fail_next_action(&mut self, code: Option<String>) {
        self.actions.fail_next(code);
    }

    /// Takes the error that the next action has to fail with. Called once for each action, before anything is done.
    pub fn take_action_failure(&mut self) -> Option<String> {
        self.actions.take_failure()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(id: u64, seconds: u64) -> Action {
        let resources = vec![("load_balancer".to_owned(), "1".to_owned())];
        let started = Duration::from_secs(10);
        let ends = started + Duration::from_secs(seconds);
        Action {
            id: format!("{id:08}"),
            command: "add_target".to_owned(),
            resources,
            started,
            ends,
            error: None,
        }
    }

    #[test]
    fn an_action_runs_until_it_ends() {
        let slow = action(1, 10);
        let seen = |at| (slow.runs(Duration::from_secs(at)), slow.progress(Duration::from_secs(at)));
        assert_eq!(
            [seen(0), seen(10), seen(15), seen(20), seen(99)],
            [(true, 0), (true, 0), (true, 50), (false, 100), (false, 100)]
        );
        let immediate = action(2, 0);
        assert!(!immediate.runs(Duration::from_secs(10)));
        assert_eq!(immediate.progress(Duration::from_secs(10)), 100);
        assert!(slow.concerns("load_balancer", "1") && !slow.concerns("server", "1"));
    }

    #[test]
    fn memory_is_bounded_and_the_youngest_stay() {
        let mut actions = Actions::default();
        for id in 0..=KEPT as u64 {
            actions.add(action(id, 0));
        }
        assert_eq!(actions.iter().count(), KEPT);
        assert!(actions.get("00000000").is_none() && actions.get(&format!("{KEPT:08}")).is_some());
    }

    #[test]
    fn a_failure_is_ordered_for_one_action() {
        let mut actions = Actions::default();
        actions.fail_next(Some("server_error".to_owned()));
        assert_eq!((actions.take_failure(), actions.take_failure()), (Some("server_error".to_owned()), None));
    }
}
