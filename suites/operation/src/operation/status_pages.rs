//! The information that a CCM serves about itself: metrics, configuration, and which replica leads (OBS-05,
//! -07, -08, AUTH-26, HA-12).

use super::serving::{PORT, REACHED, ports};
use harness_testkit::prelude::*;
use serde_json::Value;

/// The CCM elects a leader and serves on a port.
pub(super) const ELECTED_PORT: &[Capability] = &[Capability::LeaderElection, Capability::SecurePort];

pub(super) const CHECKS: &[Check] = &[
    Check::of("AUTH-26", |cx| Box::pin(refuses_strangers(cx))).needs(PORT).of_the_cloud(&[]).with(REACHED),
    Check::of("OBS-05", |cx| Box::pin(shows_metrics(cx))).needs(PORT).with(REACHED),
    Check::of("OBS-07", |cx| Box::pin(shows_slis(cx))).needs(PORT).of_the_cloud(&[]).with(REACHED),
    Check::of("OBS-08", |cx| Box::pin(shows_its_configuration(cx)))
        .needs(PORT)
        .of_the_cloud(&[])
        .with(REACHED),
    Check::of("HA-12.metric", |cx| Box::pin(one_says_that_it_leads(cx)))
        .needs(ELECTED_PORT)
        .of_the_cloud(&[])
        .with(REACHED),
    Check::of("HA-12.event", |cx| Box::pin(tells_who_leads(cx)))
        .needs(&[Capability::LeaderElection])
        .of_the_cloud(&[]),
];

async fn refuses_strangers(cx: &CheckCx) -> Verdict {
    for port in ports(cx).await? {
        for path in ["/metrics", "/configz", "/debug/pprof/", "/debug/pprof/heap"] {
            port.get(path).becomes(shows_nothing()).when("without a credential").await?;
        }
    }
    Ok(())
}

/// Metrics of the framework, each with the capability that it needs and the minor version that introduced it.
const OF_THE_FRAMEWORK: [(&str, Option<Capability>, u32); 9] = [
    ("leader_election_master_status", Some(Capability::LeaderElection), 0),
    ("running_managed_controllers", None, 0),
    ("node_controller_cloud_provider_taint_removal_delay_seconds", Some(Capability::Instances), 28),
    ("node_controller_initial_node_sync_delay_seconds", Some(Capability::Instances), 28),
    ("service_controller_loadbalancer_sync_total", Some(Capability::LoadBalancer), 0),
    ("service_controller_nodesync_latency_seconds", Some(Capability::LoadBalancer), 0),
    ("service_controller_nodesync_error_total", Some(Capability::LoadBalancer), 0),
    ("service_controller_update_loadbalancer_host_latency_seconds", Some(Capability::LoadBalancer), 0),
    ("route_controller_route_sync_total", Some(Capability::Routes), 36),
];
/// The metric that counts syncs of load balancers.
const SYNCS: &str = "service_controller_loadbalancer_sync_total";

/// The samples of a metric (name with labels, and value). A histogram's samples are those of its parts.
fn samples<'a>(text: &'a str, metric: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
    let parts = ["", "_bucket", "_sum", "_count"];
    text.lines().filter_map(move |line| {
        let (series, value) = line.rsplit_once(' ')?;
        let name = series.split_once('{').map_or(series, |(name, _)| name);
        let fits = name.strip_prefix(metric).is_some_and(|rest| parts.contains(&rest));
        Some((series, value.parse().ok()?)).filter(|_| fits)
    })
}

/// The metrics in `wanted` that the text does not contain.
fn without(text: &str, wanted: &[&str]) -> Vec<String> {
    let missing = wanted.iter().filter(|metric| samples(text, metric).next().is_none());
    missing.map(|metric| (*metric).to_owned()).collect()
}

/// The ports of the replicas, the leader's first. Only the leader has started its controllers and counts
/// their work.
async fn leader_s_port<'a>(cx: &'a CheckCx, reader: &Reader) -> Result<SecurePort<'a>, CheckError> {
    let ports = ports(cx).await?;
    for port in &ports {
        let text = port.get_as("/metrics", reader).becomes(answers(200)).when("by one who may").await?;
        if samples(&text, "running_managed_controllers").any(|(_, value)| value == 1.0) {
            return Ok(port.clone());
        }
    }
    let first = ports.into_iter().next().ok_or_else(|| CheckError::Error("no replica".to_owned()))?;
    let promise = "a replica shows running_managed_controllers";
    Err(first.get("/metrics").breaks(promise, "a sample of it that is 1", "no replica with one"))
}

async fn shows_metrics(cx: &CheckCx) -> Verdict {
    let reader = cx.reader().await?;
    let port = leader_s_port(cx, &reader).await?;
    let page = port.get_as("/metrics", &reader);
    let wanted = OF_THE_FRAMEWORK
        .iter()
        .filter(|(_, needs, since)| needs.is_none_or(|needs| cx.declares(needs)) && cx.framework_has(*since));
    let wanted: Vec<&'static str> = wanted.map(|(metric, ..)| *metric).collect();
    let before = page.becomes(shows("the framework's metrics", move |text| without(text, &wanted))).await?;
    if !cx.declares(Capability::LoadBalancer) {
        return Ok(());
    }
    let total = |text: &str| samples(text, SYNCS).map(|(_, value)| value).sum::<f64>();
    let counted = total(&before);
    cx.service(load_balancer("counted").port(80)).await?.provisioned().await?;
    let more = move |text: &str| match total(text) > counted {
        true => Vec::new(),
        false => vec![format!("more than {counted} in {SYNCS}")],
    };
    page.becomes(shows("that a Service was worked on", more)).await?;
    Ok(())
}

async fn shows_slis(cx: &CheckCx) -> Verdict {
    let reader = cx.reader().await?;
    let health = |text: &str| {
        let mut samples = samples(text, "kubernetes_healthcheck");
        let there = samples.any(|(series, _)| series.contains("type=\"healthz\""));
        if there { Vec::new() } else { vec!["kubernetes_healthcheck{type=\"healthz\"}".to_owned()] }
    };
    for port in ports(cx).await? {
        port.get_as("/metrics/slis", &reader).becomes(shows("its health checks", health)).await?;
    }
    Ok(())
}

/// The key of a framework CCM's configuration.
const CONFIGURATION: &str = "cloudcontrollermanager.config.k8s.io";

async fn shows_its_configuration(cx: &CheckCx) -> Verdict {
    let reader = cx.reader().await?;
    let key = |text: &str| {
        let there = serde_json::from_str::<Value>(text).is_ok_and(|all| all.get(CONFIGURATION).is_some());
        if there { Vec::new() } else { vec![format!("the key {CONFIGURATION}")] }
    };
    for port in ports(cx).await? {
        port.get_as("/configz", &reader).becomes(shows("its configuration", key)).await?;
    }
    Ok(())
}

async fn one_says_that_it_leads(cx: &CheckCx) -> Verdict {
    let reader = cx.reader().await?;
    let mut leaders = Vec::new();
    for port in ports(cx).await? {
        let page = port.get_as("/metrics", &reader);
        let text = page.becomes(answers(200)).when("by one who may").await?;
        if samples(&text, "leader_election_master_status").any(|(_, value)| value == 1.0) {
            leaders.push(port.replica().to_owned());
        }
    }
    if leaders.len() == 1 {
        return Ok(());
    }
    let seen = format!("{}: {}", leaders.len(), leaders.join(", "));
    Err(cx.lease().breaks("one replica says that it leads", "leader_election_master_status 1 of one", &seen))
}

async fn tells_who_leads(cx: &CheckCx) -> Verdict {
    // There may be Events of earlier leaders, and of deleted Leases with this name.
    let lease = cx.lease().becomes(held()).within(cx.limits().failover()).await?;
    let holder = holder_of(&lease).unwrap_or_default();
    let events = cx.lease().events();
    events.becomes(tells_of("Normal", "LeaderElection", holder)).within(cx.limits().event()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_those_of_the_metric_and_of_its_parts() {
        let text = "# TYPE a_seconds histogram\na_seconds_bucket{le=\"1\"} 2\na_seconds_sum 3.5\nab 1\nother{a=\"b c\"} 1\n";
        let all: Vec<(&str, f64)> = samples(text, "a_seconds").collect();
        assert_eq!(all, [("a_seconds_bucket{le=\"1\"}", 2.0), ("a_seconds_sum", 3.5)]);
        assert_eq!(samples(text, "other").collect::<Vec<_>>(), [("other{a=\"b c\"}", 1.0)]);
        assert_eq!(without(text, &["ab", "a"]), ["a"]);
    }
}
