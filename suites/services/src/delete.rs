//! Deletion (contract SVC-DEL).

use super::needs::{FOREIGN, LB};
use super::retry::{Attempts, backed_off};
use futures::future::try_join;
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use kube::ResourceExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-DEL-01.held", |cx| Box::pin(waits_for_the_cloud(cx)))
        .without_machines()
        .needs(LB)
        .with(&[Facility::Barriers]),
    Check::of("SVC-DEL-01.client-timeout", |cx| Box::pin(outlasts_client_timeouts(cx)))
        .without_machines()
        .needs(LB)
        .with(&[Facility::Barriers])
        .hanging()
        .takes(36),
    Check::of("SVC-DEL-01.auxiliaries", |cx| Box::pin(waits_for_auxiliaries(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Barriers]),
    Check::of("SVC-DEL-01.slow-cloud", |cx| Box::pin(waits_for_a_slow_cloud(cx)))
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults, Facility::Settings])
        .takes(7),
    Check::of("SVC-DEL-01.expired-watch", |cx| Box::pin(cleans_up_after_missed_deletions(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::CcmControl, Facility::WatchControl])
        .on_a_fresh_cluster()
        .takes_on_machines(12),
    Check::of("SVC-DEL-02", |cx| Box::pin(retries_deletion(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults])
        .takes(16),
    Check::of("SVC-DEL-03", |cx| Box::pin(accepts_absence(cx))).on_objects().without_machines().needs(LB),
    Check::of("SVC-DEL-07", |cx| Box::pin(keeps_foreign_finalizers(cx))).without_machines().needs(LB),
    Check::of("SVC-DEL-12", |cx| Box::pin(touches_no_other_balancer(cx)))
        .on_objects()
        .by_calls()
        .without_machines()
        .needs(LB),
    Check::of("SVC-DEL-09", |cx| Box::pin(leaves_nothing(cx))).by_calls().without_machines().needs(LB),
    Check::of("SVC-DEL-09.whole-run", |cx| Box::pin(leaves_the_cloud_as_it_was(cx)))
        .without_machines()
        .needs(LB)
        .after_the_run(),
];

/// Waits until the cloud has removed everything of a Service, within the limit plus the time that the cloud
/// itself takes, and then until the Service is gone.
pub(super) async fn goes(cx: &CheckCx, web: &Service<'_>, limit: Duration) -> Verdict {
    let limit = limit + cx.limits().load_balancer_work();
    web.balancer().becomes(nothing_left()).within(limit).await?;
    web.becomes(gone()).within(cx.limits().load_balancer()).when("once the cloud holds nothing for it").await
}

async fn waits_for_the_cloud(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    let deletion = web.cloud().holds(&[Op::LbDelete]).await?;
    web.delete().await?;
    deletion.is_reached_unless(web.is_cleaned_up()).await?;
    web.keeps(waits_to_be_deleted()).when("while the cloud has its load balancer").await?;
    deletion.release().await?;
    goes(cx, &web, cx.limits().watch()).await
}

/// How long a deletion gets no answer: longer than any client waits.
const SILENCE: Duration = Duration::from_secs(35);

async fn outlasts_client_timeouts(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    let deletion = web.cloud().holds(&[Op::LbDelete]).await?;
    web.delete().await?;
    deletion.is_reached_unless(web.is_cleaned_up()).await?;
    let waits = web.keeps(waits_to_be_deleted()).within(SILENCE);
    waits.when("while no deletion of its load balancer is answered").await?;
    deletion.release().await?;
    goes(cx, &web, cx.limits().services_after(SILENCE)).await
}

async fn waits_for_auxiliaries(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.rests().await?;
    let made = web.balancer().read(ReadSource::Origin).await?.auxiliaries.len();
    cx.record("auxiliaries", made);
    let deletion = web.cloud().holds(&[Op::AuxDelete]).await?;
    web.delete().await?;
    if made > 0 {
        deletion.is_reached_unless(web.is_cleaned_up()).await?;
        web.keeps(waits_to_be_deleted())
            .when("while the cloud has what belongs to its load balancer")
            .await?;
    }
    deletion.release().await?;
    goes(cx, &web, cx.limits().watch()).await
}

async fn waits_for_a_slow_cloud(cx: &CheckCx) -> Verdict {
    let takes = Duration::from_secs(6);
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.cloud().deletes_for(takes).to(&[Op::LbDelete]).await?;
    web.delete().await?;
    let balancer = web.balancer();
    balancer.becomes(is_being_deleted()).await?;
    let both = (&web, &balancer);
    let waits = both.keeps(outlasts_its_balancer()).within(takes - Duration::from_secs(2));
    waits.when("while its load balancer is being deleted").await?;
    goes(cx, &web, takes + cx.limits().service_after(1)).await
}

/// Matches a Service that still exists while the cloud has anything of its load balancer.
fn outlasts_its_balancer() -> Matcher<(Option<Arc<core::Service>>, Inventory)> {
    let waits = waits_to_be_deleted();
    let expected = waits.expected().to_owned();
    matcher(
        "stays, held by the finalizer",
        move |(service, held): &(Option<Arc<core::Service>>, Inventory)| {
            if held.load_balancers.is_empty() { Observation::Matched(()) } else { waits.matches(service) }
        },
    )
    .expecting(expected)
}

/// Matches a cloud in which the load balancer is being deleted.
fn is_being_deleted() -> Matcher<Inventory> {
    one_balancer("is being deleted", |lb| lb.state == LbState::Deleting)
}

/// Matches a Service whose only finalizer is that of another client.
fn only_foreign_finalizer() -> Matcher<Option<Arc<core::Service>>> {
    holds("keeps a foreign finalizer", |service: &Option<Arc<core::Service>>| {
        service.as_ref().is_some_and(|service| service.finalizers() == [FOREIGN])
    })
    .expecting(format!("the Service with finalizer {FOREIGN} and no other"))
}

async fn keeps_foreign_finalizers(cx: &CheckCx) -> Verdict {
    let plan = load_balancer("web").port(80).finalizer(FOREIGN);
    let web = cx.service(plan).await?.provisioned().await?;
    web.delete().await?;
    web.balancer().becomes(nothing_left()).within(cx.limits().load_balancer()).await?;
    web.becomes(only_foreign_finalizer()).when("once the cloud holds nothing for it").await?;
    web.keeps(only_foreign_finalizer()).await?;
    web.patch(&json!({"metadata": {"finalizers": null}})).await?;
    web.becomes(gone()).when("once no finalizer holds it").await
}

async fn touches_no_other_balancer(cx: &CheckCx) -> Verdict {
    let foreign = cx.foreign_balancer("foreign").await?;
    // Its name begins with the name of the Service that is deleted.
    let bystander = cx.service(restricted(cx, load_balancer("web-2").port(80))).await?.provisioned().await?;
    let web = cx.service(restricted(cx, load_balancer("web").port(80))).await?.provisioned().await?;
    bystander.rests().await?;
    let held = bystander.balancer().read(ReadSource::Origin).await?;
    let before = bystander.balancer().has_shown(&held, one_active())?;
    web.delete().await?;
    goes(cx, &web, cx.limits().watch()).await?;
    let as_it_was = facts(&held);
    let same =
        no_other_than(&before, "is there with all that belongs to it", move |held| facts(held) == as_it_was);
    let same = same.expecting(format!("as it was, whatever Nodes are behind it: {}", held.observed()));
    bystander.balancer().keeps(same).when("after the deletion of another Service").await?;
    bystander.is(publishes(&before)).await?;
    cx.cloud().is(holds_untouched(foreign)).await
}

/// Adds source ranges to the plan if they are declared, so that there may be a separate firewall.
pub(super) fn restricted(cx: &CheckCx, plan: ServicePlan) -> ServicePlan {
    match cx.declares(Capability::SourceRanges) {
        true => plan.with(|s| s.load_balancer_source_ranges = Some(vec!["192.0.2.0/24".to_owned()])),
        false => plan,
    }
}

/// The parts of a Service's load balancer that only change with the Service, and the ranges that its
/// firewalls admit. The Nodes behind it are not included, because they come and go.
#[derive(Debug, PartialEq)]
struct Facts {
    balancers: Vec<(Vec<Frontend>, Option<HealthCheck>, Vec<String>)>,
    auxiliaries: BTreeMap<String, (String, [Value; 2])>,
}

fn facts(held: &Inventory) -> Facts {
    let of_balancer = |lb: &LoadBalancer| {
        // Nodes come and go with other checks.
        let port = |port: &Frontend| Frontend::new(port.port, &*port.protocol, port.node_port);
        let mut frontends: Vec<Frontend> = lb.frontends.iter().map(port).collect();
        let mut ranges = lb.source_ranges.clone();
        frontends.sort();
        ranges.sort();
        (frontends, lb.health_check.clone(), ranges)
    };
    let of_auxiliary = |aux: &Auxiliary| {
        let lets_in = ["source_ranges", "ports"].map(|key| aux.spec[key].clone());
        (aux.id.clone(), (aux.kind.clone(), lets_in))
    };
    Facts {
        balancers: held.load_balancers.iter().map(of_balancer).collect(),
        auxiliaries: held.auxiliaries.iter().map(of_auxiliary).collect(),
    }
}

/// Matches a cloud that has this load balancer exactly as the check created it.
fn holds_untouched(foreign: LoadBalancer) -> Matcher<Inventory> {
    let expected = foreign.observed();
    let alone = |load_balancers: Vec<LoadBalancer>| Inventory { load_balancers, ..Inventory::default() };
    matcher("keeps foreign objects as they were", move |held: &Inventory| {
        let now = held.load_balancers.iter().filter(|lb| lb.id == foreign.id).cloned().collect();
        match alone(vec![foreign.clone()]).diff(&alone(now)) {
            same if same.is_empty() => Observation::Matched(()),
            difference => Observation::Pending(difference.to_string()),
        }
    })
    .expecting(expected)
}

async fn cleans_up_after_missed_deletions(cx: &CheckCx) -> Verdict {
    let alone = cx.ccm_without_election().await?;
    let web = cx.service(load_balancer("web").port(80)).await?;
    let web = alone.while_it_runs(web.provisioned()).await?;
    web.rests().await?;
    let interruption = cx.interrupt_watches().await?;
    web.delete().await?;
    let pauses = interruption.expire().await?;
    goes(cx, &web, cx.limits().watch() + pauses).await
}

/// For how long attempts to delete are watched. The second attempt comes after 5 s; a CCM without pauses is
/// detected earlier.
const PACED: Duration = Duration::from_secs(7);

async fn retries_deletion(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    // Long enough to see a second try. How often a client repeats a call within one try is up to the client.
    let refusals = web.cloud().fails().to(&[Op::LbDelete]).await?;
    let began = Instant::now();
    web.delete().await?;
    refusals.hits_unless(1, web.is_cleaned_up()).await?;
    let calls = web.calls().of(&[Op::LbDelete]);
    let paced = Attempts::of(&calls);
    let paced = paced.keeps(backed_off()).within(PACED).when("while its deletion fails");
    let held = web.keeps(keeps_finalizer()).within(PACED).when("after a failed deletion");
    try_join(paced.into_future(), held.into_future()).await?;
    refusals
        .clone()
        .becomes(met_by(2))
        .within(cx.limits().service_after(1))
        .when("as it is tried again")
        .await?;
    web.is(keeps_finalizer()).await?;
    // Each failure has doubled the pause, and a change of the Service or of Nodes may have caused an earlier
    // attempt.
    let failures = u32::try_from(refusals.read(ReadSource::Origin).await?).unwrap_or(u32::MAX).min(4);
    refusals.clear().await?;
    goes(cx, &web, cx.limits().services_after(began.elapsed()).max(cx.limits().service_after(failures))).await
}

async fn accepts_absence(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.balancer().vanishes().await?;
    web.delete().await?;
    web.becomes(gone()).when("though its load balancer was absent").await
}

async fn leaves_nothing(cx: &CheckCx) -> Verdict {
    let web =
        cx.service(restricted(cx, load_balancer("web").port(80).port(443))).await?.provisioned().await?;
    web.rests().await?;
    cx.record("auxiliaries", web.balancer().read(ReadSource::Origin).await?.auxiliaries.len());
    web.delete().await?;
    goes(cx, &web, cx.limits().watch()).await
}

async fn leaves_the_cloud_as_it_was(cx: &CheckCx) -> Verdict {
    cx.deploy_ccm().await?;
    // If nothing was ever created, nothing can be left.
    let web = cx.service(load_balancer("last").port(80)).await?.provisioned().await?;
    web.delete().await?;
    web.becomes(gone()).within(cx.limits().load_balancer()).await?;
    cx.leftovers().becomes(as_before()).within(cx.limits().service_after(1)).when("again").await?;
    cx.leftovers().have_known_origin().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bystander_keeps_what_lets_clients_in_whatever_nodes_do() {
        let held = |change: &dyn Fn(&mut Value)| -> Inventory {
            let lb = json!({"id": "a", "name": "a", "frontends": [{"port": 80, "protocol": "TCP", "node_port": 30080}],
                            "backends": ["i-1"], "addresses": [], "state": "active", "source_ranges": ["192.0.2.0/24"]});
            let firewall = json!({"id": "f", "kind": "firewall", "name": "f",
                                  "spec": {"source_ranges": ["192.0.2.0/24"], "targets": ["i-1"]}});
            let mut all =
                json!({"instances": [], "load_balancers": [lb], "auxiliaries": [firewall], "routes": []});
            change(&mut all);
            serde_json::from_value(all).expect("an inventory")
        };
        let before = facts(&held(&|_| ()));
        for nodes in ["/load_balancers/0/backends", "/auxiliaries/0/spec/targets"] {
            let changed = held(&|all| *all.pointer_mut(nodes).expect(nodes) = json!(["i-1", "i-2"]));
            assert_eq!(facts(&changed), before, "{nodes}");
        }
        for gone in ["/load_balancers/0/frontends", "/load_balancers/0/source_ranges", "/auxiliaries"] {
            let changed = held(&|all| *all.pointer_mut(gone).expect(gone) = json!([]));
            assert_ne!(facts(&changed), before, "{gone}");
        }
        let opened = held(&|all| all["auxiliaries"][0]["spec"]["source_ranges"] = json!(["0.0.0.0/0"]));
        assert_ne!(facts(&opened), before);
    }

    #[test]
    fn only_a_foreign_finalizer_is_left() {
        let of = |finalizers: &[&str]| {
            serde_json::from_value(json!({"metadata": {"finalizers": finalizers}})).ok().map(Arc::new)
        };
        assert_eq!(only_foreign_finalizer().matches(&of(&[FOREIGN])), Observation::Matched(()));
        for other in [of(&[]), of(&[F_LB]), of(&[FOREIGN, F_LB]), None] {
            assert_eq!(only_foreign_finalizer().matches(&other), Observation::when(false));
        }
    }
}
