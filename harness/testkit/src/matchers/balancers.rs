//! Matchers for a Service's resources in the cloud.

use harness_clouds::{Instance, Inventory, LbState, LoadBalancer};
use harness_core::probe::{Matcher, Observation, holds, matcher};

/// Exactly one load balancer, active and with an address; returns it.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let web = cx.service(load_balancer("web").port(80)).await?;
/// let lb = web.balancer().becomes(one_active()).await?;
/// cx.record("addresses", lb.addresses.len());
/// # Ok(()) }
/// ```
pub fn one_active() -> Matcher<Inventory, LoadBalancer> {
    matcher("exists once, active and with an address", |held: &Inventory| {
        match held.load_balancers.as_slice() {
            [lb] if lb.state == LbState::Active && !lb.addresses.is_empty() => {
                Observation::Matched(lb.clone())
            }
            [_, _, ..] => Observation::Impossible("more than one".to_owned()),
            _ => Observation::Pending(String::new()),
        }
    })
    .expecting("exactly one active load balancer with an address")
}

/// Exactly one load balancer, for which `wanted` holds.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// let listens = one_balancer("listens on port 80", |lb| lb.frontends.iter().any(|port| port.port == 80));
/// web.balancer().becomes(listens).await
/// # }
/// ```
pub fn one_balancer(
    claim: impl Into<String>,
    wanted: impl Fn(&LoadBalancer) -> bool + 'static,
) -> Matcher<Inventory> {
    holds(claim, move |held: &Inventory| matches!(held.load_balancers.as_slice(), [lb] if wanted(lb)))
}

/// A load balancer, in any state.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// web.balancer().becomes(at_least_one()).when("before the CCM ends").await
/// # }
/// ```
pub fn at_least_one() -> Matcher<Inventory> {
    holds("exists, ready or not", |held: &Inventory| !held.load_balancers.is_empty())
        .expecting("at least one load balancer")
}

/// The same load balancer as before with the same addresses, and as wanted once `arrived` says so. Never, if it was
/// replaced.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// let before = web.balancer().becomes(one_active()).await?;
/// web.patch(&serde_json::json!({"spec": {"sessionAffinity": "ClientIP"}})).await?;
/// let follows = no_other_than(&before, "keeps a client on its backend", |held| {
///     held.load_balancers.iter().all(|lb| lb.session_affinity == "ClientIP")
/// });
/// web.balancer().becomes(follows).await
/// # }
/// ```
pub fn no_other_than(
    before: &LoadBalancer,
    claim: impl Into<String>,
    arrived: impl Fn(&Inventory) -> bool + 'static,
) -> Matcher<Inventory> {
    let (id, addresses) = (before.id.clone(), before.addresses.clone());
    let claim = claim.into();
    let expected = format!("load balancer {id} with its addresses unchanged: {claim}");
    matcher(claim, move |held: &Inventory| match held.load_balancers.as_slice() {
        [lb] if lb.id != id => Observation::Impossible("it was replaced".to_owned()),
        [lb] if lb.addresses != addresses => Observation::Impossible("its address changed".to_owned()),
        [_] if arrived(held) => Observation::Matched(()),
        _ => Observation::Pending(String::new()),
    })
    .expecting(expected)
}

/// Whether a load balancer sends traffic to a machine on each of its ports, by the machine's id or address.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>, machine: &Machine<'_>) -> Verdict {
/// let machine = machine.instance();
/// let wanted = one_balancer("sends traffic to the new machine", move |lb| targets(lb, &machine));
/// web.balancer().becomes(wanted).await
/// # }
/// ```
pub fn targets(lb: &LoadBalancer, machine: &Instance) -> bool {
    behind(lb).iter().all(|backends| name(backends, machine))
}

/// Whether it does so on any port.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>, machine: &Machine<'_>) -> Verdict {
/// let machine = machine.instance();
/// let wanted = one_balancer("sends no traffic to the machine", move |lb| !reaches(lb, &machine));
/// web.balancer().becomes(wanted).await
/// # }
/// ```
pub fn reaches(lb: &LoadBalancer, machine: &Instance) -> bool {
    name(&lb.backends, machine) || behind(lb).iter().any(|backends| name(backends, machine))
}

/// The backends of each port, or the common ones.
fn behind(lb: &LoadBalancer) -> Vec<&[String]> {
    let of_ports = lb.frontends.iter().map(|port| port.backends.as_deref().unwrap_or(&lb.backends));
    match of_ports.len() {
        0 => vec![&lb.backends],
        _ => of_ports.collect(),
    }
}

fn name(backends: &[String], machine: &Instance) -> bool {
    backends.iter().any(|backend| {
        *backend == machine.id || machine.addresses.iter().any(|address| address.address == *backend)
    })
}

/// There are no resources at all.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// web.delete().await?;
/// web.balancer().becomes(nothing_left()).await
/// # }
/// ```
pub fn nothing_left() -> Matcher<Inventory> {
    holds("is gone with all of its resources", |held: &Inventory| {
        held.load_balancers.is_empty() && held.auxiliaries.is_empty()
    })
    .expecting("nothing in the cloud")
}
