//! Parts of a Service's status and load balancer that the CCM does not own: the mode of an address, which the
//! API server fills in, and the whole load balancer if another controller implements it (contract
//! SVC-CREATE-07, -13, SVC-ERR-07).

use super::needs::LB;
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use serde_json::json;
use std::net::IpAddr;
use std::sync::Arc;

const IP_MODE: &str = "Service status ipMode";

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-CREATE-07.default", |cx| Box::pin(leaves_the_mode_to_the_api_server(cx)))
        .without_machines()
        .needs(LB)
        .lacks(&[Capability::IpMode])
        .served_since(30, IP_MODE),
    Check::of("SVC-CREATE-07.declared", |cx| Box::pin(keeps_the_mode(cx)))
        .without_machines()
        .needs(&[Capability::LoadBalancer, Capability::IpMode])
        .served_since(30, IP_MODE),
    Check::of("SVC-CREATE-13", |cx| Box::pin(serves_both_families_or_tells(cx)))
        .without_machines()
        .needs(LB)
        .with(&[Facility::Settings])
        .alone()
        .served_since(23, "dual-stack Services"),
    Check::of("SVC-ERR-07", |cx| Box::pin(leaves_to_others(cx)))
        .by_calls()
        .without_machines()
        .needs(&[Capability::LoadBalancer, Capability::ImplementedElsewhere])
        .takes(46),
];

type MaybeService = Option<Arc<core::Service>>;

/// Matches a Service with an ingress whose entries all have a mode that `fits` accepts.
fn has_modes(
    claim: &str,
    fits: impl Fn(bool, Option<&str>) -> bool + 'static,
) -> Matcher<MaybeService, Vec<Option<String>>> {
    matcher(claim, move |service: &MaybeService| {
        let modes = service.as_ref().map(|s| ip_modes(s)).unwrap_or_default();
        match !modes.is_empty() && modes.iter().all(|(ip, mode)| fits(*ip, mode.as_deref())) {
            true => Observation::Matched(modes.into_iter().map(|(_, mode)| mode).collect()),
            false => Observation::Pending(format!("modes {}", json!(modes))),
        }
    })
}

async fn leaves_the_mode_to_the_api_server(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    let usual = has_modes("has addresses of mode VIP", |ip, mode| mode == ip.then_some("VIP"));
    web.is(usual.expecting("mode VIP of each IP, none of a host name without")).await.map(drop)
}

async fn keeps_the_mode(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    let known = has_modes("has addresses of a mode that there is", |ip, mode| match mode {
        Some(mode) => ip && (mode == "VIP" || mode == "Proxy"),
        None => !ip,
    });
    let modes = web.is(known.expecting("mode VIP or Proxy of each IP, none of a host name without")).await?;
    cx.record("ip_modes", json!(modes));
    web.rests().await?;
    web.patch(&json!({"metadata": {"annotations": {"example.com/touched": "1"}}})).await?;
    web.rests().await?;
    let same = holds("has addresses of the same modes", move |service: &MaybeService| {
        let now = service.as_ref().map(|s| ip_modes(s)).unwrap_or_default();
        now.into_iter().map(|(_, mode)| mode).eq(modes.iter().cloned())
    });
    web.keeps(same).when("after an edit").await
}

/// The IP families of the published addresses; a host name may stand for both.
fn families(service: &core::Service) -> (bool, bool) {
    let published = ingress(service);
    let ips = published.iter().filter_map(|(ip, _)| ip.as_deref()?.parse::<IpAddr>().ok());
    let named = published.iter().any(|(ip, name)| ip.is_none() && name.is_some());
    ips.fold((named, named), |(v4, v6), ip| (v4 || ip.is_ipv4(), v6 || ip.is_ipv6()))
}

fn serves_both() -> Matcher<MaybeService> {
    holds("publishes an address of each IP family", |service: &MaybeService| {
        service.as_ref().is_some_and(|service| families(service) == (true, true))
    })
}

async fn serves_both_families_or_tells(cx: &CheckCx) -> Verdict {
    cx.cloud().gives_both_families().await?;
    let plan = load_balancer("web").port(80).with(|spec| {
        spec.ip_family_policy = Some("PreferDualStack".to_owned());
    });
    let web: Service<'_> = cx.service(plan).await?;
    if web.spec().await?.ip_families.is_none_or(|families| families.len() < 2) {
        let why = "the cluster gives Services one IP family; topology dual-stack has both";
        return Err(CheckError::NotObservable(why.to_owned()));
    }
    let limit = cx.limits().load_balancer() + cx.limits().event();
    if cx.declares(Capability::DualStack) {
        return web.becomes(serves_both()).within(limit).await;
    }
    let events = web.events();
    let warned_of_nothing =
        matcher("publishes an address of each IP family, or warns", |(service, events)| {
            match serves_both().matches(service) {
                Observation::Matched(()) => Observation::Matched(()),
                _ => warns().matches(events),
            }
        });
    (&web, &events).becomes(warned_of_nothing).within(limit).await
}

/// How many times a CCM may look at a Service before it has learnt that another controller owns it.
const LEARNS: u32 = 5;

async fn leaves_to_others(cx: &CheckCx) -> Verdict {
    let plan = cx.implemented_elsewhere().iter();
    let plan = plan.fold(load_balancer("theirs").port(80), |plan, (key, value)| plan.annotation(key, value));
    let theirs = cx.service(plan).await?;
    // The CCM is working and has processed both Services.
    cx.service(load_balancer("ours").port(80)).await?.provisioned().await?;
    let nothing = holds("has no address", |service: &MaybeService| {
        service.as_ref().is_some_and(|service| ingress(service).is_empty())
    });
    let quiet = cx.limits().quiet_services();
    let settled = quiet / LEARNS;
    theirs.keeps(nothing).within(settled).when("because another controller implements it").await?;
    let mark = cx.cloud().mark_now().await?;
    let nothing = holds("has no address", |service: &MaybeService| {
        service.as_ref().is_some_and(|service| ingress(service).is_empty())
    });
    let calls = theirs.calls().since(mark);
    let both_of_it = (&theirs, &calls);
    both_of_it
        .keeps(both(nothing, no_calls()))
        .within(quiet - settled)
        .when("because another controller implements it")
        .await?;
    theirs.calls().writes().is(no_calls()).await?;
    let warned_of_nothing = holds("are not warnings", |events: &Vec<core::Event>| {
        warns().matches(events) != Observation::Matched(())
    });
    theirs.events().is(warned_of_nothing).await?;
    theirs.delete().await?;
    theirs
        .becomes(gone())
        .within(cx.limits().load_balancer())
        .when("though there is nothing to take away")
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(ingress: serde_json::Value) -> core::Service {
        serde_json::from_value(json!({"status": {"loadBalancer": {"ingress": ingress}}})).expect("a Service")
    }

    #[test]
    fn families_are_those_of_ips_and_a_host_name_may_be_both() {
        assert_eq!(families(&service(json!([{"ip": "203.0.113.1"}]))), (true, false));
        assert_eq!(families(&service(json!([{"ip": "203.0.113.1"}, {"ip": "2001:db8::1"}]))), (true, true));
        assert_eq!(families(&service(json!([{"hostname": "lb.example"}]))), (true, true));
        assert_eq!(families(&service(json!([]))), (false, false));
    }

    #[test]
    fn a_mode_is_an_ips_and_no_host_names() {
        let usual = || has_modes("", |ip, mode| mode == ip.then_some("VIP"));
        let fits =
            |ingress| matches!(usual().matches(&Some(Arc::new(service(ingress)))), Observation::Matched(_));
        assert!(fits(json!([{"ip": "203.0.113.1", "ipMode": "VIP"}, {"hostname": "lb.example"}])));
        for wrong in
            [json!([{"ip": "203.0.113.1", "ipMode": "Proxy"}]), json!([{"ip": "203.0.113.1"}]), json!([])]
        {
            assert!(!fits(wrong));
        }
    }
}
