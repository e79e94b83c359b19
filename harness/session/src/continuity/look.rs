//! Whether the load balancer of an address that was removed from a status still exists. The cloud is queried at once, and
//! again later, as the load balancer may be about to be deleted.

use super::timeline::{Lost, Timeline, Withdrawal};
use harness_clouds::{Cloud, Inventory, LbState};
use harness_core::probe::pause;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Delay between the first and the second query.
const AGAIN: Duration = Duration::from_secs(2);

/// Queries the cloud, and records the results in the timeline.
#[derive(Clone)]
pub(super) struct Looks {
    cloud: Cloud,
    timeline: Arc<Mutex<Timeline>>,
}

impl Looks {
    pub(super) fn new(cloud: Cloud, timeline: Arc<Mutex<Timeline>>) -> Looks {
        Looks { cloud, timeline }
    }

    /// Looks for the load balancer with the addresses that the Service of that owner no longer publishes.
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

    /// The active load balancer of that owner with one of the addresses; none if the cloud does not answer.
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
