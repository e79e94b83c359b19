//! What a fault does to a call that takes effect all the same.

use fake_cloud_driver::Effect;
use fake_cloud_kit::{Answer, Run};
use fake_cloud_model::{Cloud, View};
use fake_cloud_recording::faults::Hit;
use std::time::Duration;

/// How a call takes effect, when not as usual.
#[derive(Debug)]
pub(super) enum Twist {
    /// Its answer is lost, and the caller learns that after so long.
    LoseAnswer(Option<Duration>),
    /// What it creates takes so long.
    Provisioning(Duration),
    /// What it deletes takes so long.
    Deletion(Duration),
    /// Its action fails with this code.
    FailAction(String),
    /// Lists show this.
    View(View),
}

impl Twist {
    /// That of a fault, if it has one: all others put something in the answer's place, or just take time.
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
            Effect::Status { .. }
            | Effect::Malformed
            | Effect::Refuse
            | Effect::Hang { .. }
            | Effect::Latency { .. } => return None,
        })
    }

    /// Carries the call out; whether the caller could see something of the fault in the answer.
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
