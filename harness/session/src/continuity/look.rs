//! Whether the load balancer of an address that left a status still exists: asked of the cloud at once, and once more later, since
//! it may be on its way out.

use super::timeline::{Lost, Timeline, Withdrawal};
use harness_clouds::{Cloud, Inventory, LbState};
use harness_core::probe::pause;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long after the first look the second one comes.
const AGAIN: Duration = Duration::from_secs(2);

/// Looks at the cloud, and notes in the timeline what they find.
#[derive(Clone)]
pub(super) struct Looks {
    cloud: Cloud,
    timeline: Arc<Mutex<Timeline>>,
}

impl Looks {
    pub(super) fn new(cloud: Cloud, timeline: Arc<Mutex<Timeline>>) -> Looks {
        Looks { cloud, timeline }
    }

    /// Looks for the load balancer that has what the Service of that owner no longer publishes.
    pub(super) fn look(&self, owner: String, lost: Lost) {
        let this = self.clone();
        tokio::spawn(async move {
            let Some(first) = this.balancer(&owner, &lost).await else { return };
            pause(AGAIN).await;
            if this.balancer(&owner, &lost).await.as_ref() == Some(&first) {
                let withdrawal = Withdrawal { owner, balancer: first, lost };
                this.timeline.lock().expect("no holder of this lock panics").withdrawals.push(withdrawal);
            }
        });
    }

    /// The active load balancer of that owner that has one of the addresses. A cloud that does not answer shows none.
    async fn balancer(&self, owner: &str, lost: &Lost) -> Option<String> {
        holder(&self.cloud.inventory().await.ok()?, owner, lost)
    }
}

fn holder(held: &Inventory, owner: &str, lost: &Lost) -> Option<String> {
    let of_owner = |lb: &&harness_clouds::LoadBalancer| lb.owner == owner && lb.state == LbState::Active;
    let has = |lb: &&harness_clouds::LoadBalancer| {
        lb.addresses.iter().any(|address| {
            let ip = address.ip.map(|ip| ip.to_string());
            ip.into_iter().chain(address.hostname.clone()).any(|name| lost.addresses.contains(&name))
        })
    };
    held.load_balancers.iter().filter(of_owner).find(has).map(|lb| lb.id.clone())
}
