//! How long a check may wait: one method for each kind of wait, with the numbers of contract section 21.
//!
//! Budgets limit how long something may take that must happen; quiet windows are the time for which something
//! must not happen. One factor stretches both for slow machines. A factor below 1 only shortens budgets,
//! because a shorter quiet window would prove less; to shorten a window, override it by name. An override is
//! used unchanged, without the factor.

use super::enums::Budget;
use super::flags::LeaseTiming;
use std::collections::BTreeMap;
use std::time::Duration;

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The budgets of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    lease: LeaseTiming,
    scale: f64,
    overrides: BTreeMap<Budget, Duration>,
    instance_cache: Duration,
    status_period: Duration,
    route_period: Duration,
}

impl Limits {
    /// The pause between two passes of the CCM's lifecycle loop, `--node-monitor-period`: 5 s.
    pub const MONITOR_PERIOD: Duration = secs(5);
    /// The longest time that a Service waits in the controller's queue between two tries: 300 s.
    pub const SERVICE_BACKOFF_MOST: Duration = secs(300);

    /// How long a CCM may cache data about a machine, unless its profile sets another time: 10 s.
    pub const INSTANCE_CACHE: Duration = secs(10);
    /// The default time between two refreshes of all Nodes, `--node-status-update-frequency`: 5 min.
    pub const USUAL_STATUS_PERIOD: Duration = secs(300);

    /// The default time between two reconciliations of routes, `--route-reconciliation-period`, and the
    /// shortest time for a CCM that is prompted by changes of Nodes: 10 s.
    pub const ROUTE_PERIOD: Duration = secs(10);

    /// Unscaled limits for a CCM with this timing of leader election.
    pub fn new(lease: LeaseTiming) -> Limits {
        Limits {
            lease,
            scale: 1.0,
            overrides: BTreeMap::new(),
            instance_cache: Self::INSTANCE_CACHE,
            status_period: Self::USUAL_STATUS_PERIOD,
            route_period: Self::ROUTE_PERIOD,
        }
    }

    /// Limits for a CCM that caches data about a machine for this time.
    #[must_use]
    pub fn with_instance_cache(mut self, age: Duration) -> Limits {
        self.instance_cache = age;
        self
    }

    /// Limits for a CCM that refreshes all Nodes with this period.
    #[must_use]
    pub fn with_status_period(mut self, period: Duration) -> Limits {
        self.status_period = period;
        self
    }

    /// Limits for a CCM that reconciles routes with this period.
    #[must_use]
    pub fn with_route_period(mut self, period: Duration) -> Limits {
        self.route_period = period;
        self
    }

    /// Multiplies every budget by `factor`, and also the quiet windows if it is above 1.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Limits {
        self.scale = factor;
        self
    }

    /// Sets single budgets to exactly the given values.
    #[must_use]
    pub fn with(mut self, overrides: BTreeMap<Budget, Duration>) -> Limits {
        self.overrides = overrides;
        self
    }

    /// The current lease timing.
    pub fn lease(&self) -> LeaseTiming {
        self.lease
    }

    /// The CCM reacts to a watch event. B-WATCH: 10 s.
    pub fn watch(&self) -> Duration {
        self.budget(Budget::Watch)
    }

    /// A started CCM Pod has synced its caches and leads (image present, no lease to wait for). B-START: 60 s.
    pub fn start(&self) -> Duration {
        self.budget(Budget::Start)
    }

    /// The leader is gone; another replica is active. B-FAILOVER, from the current lease timing: the lease,
    /// two of a standby's longest polls (it may have seen the last renewal late, and it notices the end
    /// late), 6.2 s for its caches. 30 s with default timing, 16.6 s with fast flags.
    pub fn failover(&self) -> Duration {
        self.budget(Budget::Failover)
    }

    /// Like [`Limits::failover`], for a CCM with another timing of leader election than the current one.
    pub fn failover_of(&self, lease: LeaseTiming) -> Duration {
        Limits { lease, ..self.clone() }.failover()
    }

    /// A leader that cannot renew its Lease has exited (HA-05): the renew deadline, one retry period and 2 s.
    /// 14 s by default.
    pub fn step_down(&self) -> Duration {
        self.budget(Budget::StepDown)
    }

    /// A boot that has made no progress for this time will not continue, if its manifests cannot work: 40 s,
    /// stretched but never shortened. `None` if B-BOOT has an override: then the check waits for that.
    pub fn boot_stands_still(&self) -> Option<Duration> {
        let usual = !self.overrides.contains_key(&Budget::Boot);
        usual.then(|| secs(40).mul_f64(self.scale.max(1.0)))
    }

    /// A CCM of which nothing has run for this time will not run, if its manifests cannot work: 15 s, stretched but never
    /// shortened. `None` if B-START has an override: then the run waits for that.
    pub fn hindered(&self) -> Option<Duration> {
        let usual = !self.overrides.contains_key(&Budget::Start);
        usual.then(|| secs(15).mul_f64(self.scale.max(1.0)))
    }

    /// A kubelet has reported the end of a container to the API server. It looks every second and reports a
    /// little later: 5 s.
    pub fn kubelet_report(&self) -> Duration {
        secs(5).mul_f64(self.scale)
    }

    /// An Event is written: B-EVENT, 10 s, and 20 s for Events that are written before it. Recorders write
    /// one after the other within their client's rate limit, 20 a second by default.
    pub fn event(&self) -> Duration {
        secs(30).mul_f64(self.scale)
    }

    /// The lifecycle loop has checked every Node. B-LIFE: 10 s, two of its periods.
    pub fn life(&self) -> Duration {
        self.budget(Budget::Life)
    }

    /// The lifecycle loop has checked every Node with current data about its machine: B-LIFE, plus the time
    /// for which the CCM may cache that data.
    pub fn life_of_machine(&self) -> Duration {
        self.life() + self.instance_cache
    }

    /// How long the CCM may cache data about a machine.
    pub fn instance_cache(&self) -> Duration {
        self.instance_cache
    }

    /// The periodic refresh has reached every Node. B-ADDR: its period and 5 s.
    pub fn refresh(&self) -> Duration {
        self.status_period + secs(5).mul_f64(self.scale.max(1.0))
    }

    /// The cloud has provisioned or removed a load balancer, and the CCM has noticed: B-WATCH, and twice the
    /// time of the cloud, as the CCM's next look may come after a pause that has doubled.
    pub fn load_balancer(&self) -> Duration {
        self.watch() + self.load_balancer_work()
    }

    /// The time that the cloud itself needs for a load balancer, which is added to a limit; none unless the
    /// profile sets it.
    pub fn load_balancer_work(&self) -> Duration {
        match self.budget(Budget::LoadBalancer) {
            Duration::ZERO => Duration::ZERO,
            work => 2 * work + secs(5),
        }
    }

    /// The period of the refresh of all Nodes.
    pub fn status_period(&self) -> Duration {
        self.status_period
    }

    /// The period of the reconciliation of routes.
    pub fn route_period(&self) -> Duration {
        self.route_period
    }

    /// Every route is correct. B-ROUTE: two periods and 5 s; 25 s by default.
    pub fn route(&self) -> Duration {
        self.budget(Budget::Route)
    }

    /// Nothing happens to routes: three periods; 30 s by default.
    pub fn quiet_routes(&self) -> Duration {
        (3 * self.route_period).mul_f64(self.scale.max(1.0))
    }

    /// The taint was removed; the cloud's addresses are on the Node (NODE-INIT-05): 5 s.
    pub fn addresses_after_taint(&self) -> Duration {
        secs(5).mul_f64(self.scale.max(1.0))
    }

    /// The pause between two refreshes of all Nodes' addresses with fast timing, `--node-status-update-frequency`: 10 s.
    pub const STATUS_PERIOD: Duration = secs(10);

    /// A change in the cloud is visible on a Node (B-ADDR): two of these periods, as the data that the CCM
    /// gets may be one period old, and 5 s.
    pub fn addresses_refreshed(&self) -> Duration {
        let kept = self.instance_cache.saturating_sub(Self::INSTANCE_CACHE);
        (2 * Self::STATUS_PERIOD + secs(5)).mul_f64(self.scale.max(1.0)) + kept
    }

    /// Nothing happens to a Node's addresses: three of these periods, plus the additional age of cached data about a
    /// machine.
    pub fn quiet_addresses(&self) -> Duration {
        let kept = self.instance_cache.saturating_sub(Self::INSTANCE_CACHE);
        (3 * Self::STATUS_PERIOD).mul_f64(self.scale.max(1.0)) + kept
    }

    /// A call that is held stays held until it is released: 2 s, far longer than a CCM needs for a wrong action.
    pub fn settle(&self) -> Duration {
        secs(2)
    }

    /// A Service is correct after its last `failures` tries failed in a row. B-SVC(n): the controller's
    /// pauses of 5 s doubling up to 300 s, and 10 s. 10 s after none; 15, 25, 45, 85 s after 1 to 4. The
    /// pauses are scaled too.
    pub fn service_after(&self, failures: u32) -> Duration {
        let most = Self::SERVICE_BACKOFF_MOST.as_secs();
        let pause = |n: u32| 5_u64.checked_shl(n).filter(|_| n < 32).map_or(most, |s| s.min(most));
        let waited = secs((0..failures).map(pause).sum());
        waited.mul_f64(self.scale.max(1.0)) + self.budget(Budget::Service)
    }

    /// The CCM's manifests are applied to a cold cluster; every Node is initialised. B-BOOT: 180 s.
    pub fn boot(&self) -> Duration {
        self.budget(Budget::Boot)
    }

    /// A credential for the cloud was replaced in the place that the CCM's manifests name; the CCM works with
    /// the new one. 5 min.
    pub fn credential(&self) -> Duration {
        self.budget(Budget::Credential)
    }

    /// A container can start after its dependency was missing for `away`: its kubelet starts it once more.
    /// The pauses between starts double from 10 s to 5 min, so a pause is as long as all earlier ones
    /// together, plus 10 s.
    pub fn restart_after(&self, away: Duration) -> Duration {
        (away + secs(10)).min(secs(300)).mul_f64(self.scale.max(1.0))
    }

    /// An outage of the cloud that lasted `outage` is over; Nodes are correct. Their back-off doubles: a
    /// pause is 1.4 times as long as the time waited before it, and begins at the outage's end at the latest.
    /// Each change of the Node in between (its network condition, for example) is one more failed try and
    /// doubles the pause without time having passed; one such change is allowed for. Three times the outage,
    /// and 10 s.
    pub fn nodes_after(&self, outage: Duration) -> Duration {
        3 * outage + self.watch()
    }

    /// An outage of the cloud that lasted `outage` is over; Services are correct: at most the same time again
    /// or 300 s, and 10 s.
    pub fn services_after(&self, outage: Duration) -> Duration {
        outage.min(Self::SERVICE_BACKOFF_MOST) + self.budget(Budget::Service)
    }

    /// Nothing happens to a Node. 30 s.
    pub fn quiet_nodes(&self) -> Duration {
        self.budget(Budget::QuietNodes)
    }

    /// The lifecycle loop does nothing. 20 s, four of its periods.
    pub fn quiet_life(&self) -> Duration {
        self.budget(Budget::QuietLife)
    }

    /// Nothing happens to a Service and its load balancer. 45 s: longer than the 30 s after which the
    /// controller looks at every Service again.
    pub fn quiet_services(&self) -> Duration {
        self.budget(Budget::QuietServices)
    }

    /// The value of a budget by its name: the override, otherwise the contract's number times the factor.
    pub fn budget(&self, budget: Budget) -> Duration {
        if let Some(exact) = self.overrides.get(&budget) {
            return *exact;
        }
        let lease = &self.lease;
        let (base, factor) = match budget {
            Budget::Watch | Budget::Life | Budget::Service => (secs(10), self.scale),
            Budget::Start => (secs(60), self.scale),
            Budget::Failover => {
                // The lease runs on the CCM's clock, so only the time in addition to it grows on a slow machine.
                let slack = Duration::from_millis(6_200).mul_f64(self.scale);
                return lease.duration + 2 * lease.longest_poll() + slack;
            }
            Budget::StepDown => {
                return lease.renew_deadline + lease.retry_period + secs(2).mul_f64(self.scale);
            }
            Budget::Route => (2 * self.route_period + secs(5), self.scale),
            Budget::LoadBalancer => (Duration::ZERO, self.scale),
            Budget::Boot => (secs(180), self.scale),
            Budget::Credential => (secs(300), self.scale),
            Budget::QuietNodes => (secs(30), self.scale.max(1.0)),
            Budget::QuietLife => (secs(20), self.scale.max(1.0)),
            Budget::QuietServices => (secs(45), self.scale.max(1.0)),
        };
        base.mul_f64(factor)
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, secs};
    use crate::{Budget, LeaseTiming};
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn default() -> Limits {
        Limits::new(LeaseTiming::DEFAULT)
    }

    fn fast() -> Limits {
        Limits::new(LeaseTiming::FAST)
    }

    #[test]
    fn are_the_contracts_numbers() {
        let limits = default();
        for (got, contract_s) in [
            (limits.watch(), 10),
            (limits.start(), 60),
            (limits.failover(), 30),
            (limits.step_down(), 14),
            (limits.life(), 10),
            (limits.service_after(0), 10),
            (limits.service_after(1), 15),
            (limits.service_after(2), 25),
            (limits.service_after(3), 45),
            (limits.service_after(4), 85),
            (limits.boot(), 180),
            (limits.nodes_after(secs(60)), 190),
            (limits.services_after(secs(60)), 70),
            (limits.services_after(secs(900)), 310),
            (limits.quiet_nodes(), 30),
            (limits.quiet_life(), 20),
            (limits.quiet_services(), 45),
            (limits.route(), 25),
            (limits.quiet_routes(), 30),
        ] {
            assert_eq!(got, secs(contract_s));
        }
    }

    #[test]
    fn follow_the_fast_flags() {
        let limits = fast();
        assert_eq!(limits.failover(), Duration::from_millis(16_600));
        assert_eq!(limits.failover_of(LeaseTiming::DEFAULT), default().failover());
        assert_eq!(limits.step_down(), secs(7));
    }

    #[test]
    fn service_pauses_stop_growing_at_300_s() {
        let limits = default();
        for failures in 7..100 {
            assert_eq!(limits.service_after(failures + 1) - limits.service_after(failures), secs(300));
        }
    }

    #[test]
    fn one_factor_stretches_all_but_shortens_no_quiet_window() {
        let slow = default().scaled(2.0);
        assert_eq!((slow.watch(), slow.quiet_services()), (secs(20), secs(90)));
        assert_eq!(slow.service_after(1), secs(30));
        assert_eq!(slow.failover(), Duration::from_millis(36_200));
        let quick = default().scaled(0.5);
        assert_eq!((quick.watch(), quick.quiet_services()), (secs(5), secs(45)));
        assert_eq!(quick.service_after(1), secs(10));
    }

    #[test]
    fn a_profile_may_say_what_takes_longer() {
        let slow = BTreeMap::from([(Budget::LoadBalancer, secs(20))]);
        let limits = default().with_instance_cache(secs(60)).with_status_period(secs(10)).with(slow);
        assert_eq!((limits.life(), limits.life_of_machine()), (secs(10), secs(70)));
        assert_eq!((limits.watch(), limits.load_balancer()), (secs(10), secs(55)));
        assert_eq!((limits.refresh(), default().refresh()), (secs(15), secs(305)));
        assert_eq!((default().life_of_machine(), default().load_balancer()), (secs(20), secs(10)));
    }

    #[test]
    fn routes_follow_their_period() {
        let limits = default().with_route_period(secs(2));
        assert_eq!((limits.route(), limits.quiet_routes()), (secs(9), secs(6)));
        let slow = limits.clone().scaled(2.0);
        assert_eq!((slow.route(), slow.quiet_routes()), (secs(18), secs(12)));
        assert_eq!(limits.scaled(0.5).quiet_routes(), secs(6));
    }

    #[test]
    fn an_override_is_exact() {
        let limits = default().scaled(3.0).with(BTreeMap::from([(Budget::Watch, secs(7))]));
        assert_eq!((limits.watch(), limits.life()), (secs(7), secs(30)));
    }
}
