//! The effect of a fault on a call that still takes effect.

use fake_cloud_driver::Effect;
use fake_cloud_kit::{Answer, Run};
use fake_cloud_model::{Cloud, View};
use fake_cloud_recording::faults::Hit;
use std::time::Duration;

/// An unusual way in which a call takes effect.
#[derive(Debug)]
pub(super) enum Twist {
    /// Its answer is lost, and the caller learns that after this time.
    LoseAnswer(Option<Duration>),
    /// An object that it creates takes this time.
    Provisioning(Duration),
    /// An object that it deletes takes this time.
    Deletion(Duration),
    /// Its action fails with this code.
    FailAction(String),
    /// Lists show this view.
    View(View),
}

impl Twist {
    /// The twist of a fault, if it has one: all other faults replace the answer, or just take time.
    pub(super) fn of(hit: &Hit) -> Option<Twist> {
        Some(match &hit.effect {
            Effect::LoseAnswer { ms } => Twist::LoseAnswer(ms.map(Duration::from_millis)),
            Effect::SlowProvisioning { ms } => Twist::Provisioning(Duration::from_millis(*ms)),
            Effect::SlowDeletion { ms } => Twist::Deletion(Duration::from_millis(*ms)),
            Effect::FailAction { code } => Twist::FailAction(code.clone()),
            Effect::Empty => Twist::View(View::Nothing),
            Effect::Without { names } => Twist::View(View::Without(names.iter().cloned().collect())),
            Effect::Stale => Twist::View(View::AsOf(hit.then.clone().unwrap_or_default())),
            Effect::EmptyFirstPage => Twist::View(View::EmptyFirstPage),
            Effect::ShiftedPages => Twist::View(View::ShiftedPages),
            Effect::Status { .. }
            | Effect::Malformed
            | Effect::Refuse
            | Effect::Hang { .. }
            | Effect::Latency { .. } => return None,
        })
    }

    /// Carries the call out; returns whether the caller could see something of the fault in the answer.
    pub(super) fn carry_out(self, run: Run, cloud: &mut Cloud, now: Duration) -> (Answer, bool) {
        match self {
            Twist::LoseAnswer(_) => (run(cloud, now), true),
            Twist::Provisioning(time) => (cloud.with_provisioning(time, |cloud| run(cloud, now)), false),
            Twist::Deletion(time) => (cloud.with_deletion(time, |cloud| run(cloud, now)), false),
            Twist::View(view) => (cloud.with_view(view, |cloud| run(cloud, now)), true),
            Twist::FailAction(code) => {
                cloud.fail_next_action(Some(code));
                let answer = run(cloud, now);
                // A call that began no action was carried out as usual.
                let failed = cloud.take_action_failure().is_none();
                (answer, failed)
            }
        }
    }
}
