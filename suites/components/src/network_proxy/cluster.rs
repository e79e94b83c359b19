//! How an API server uses a proxy while the direct route is closed (contract ANP-03 to -06, -08, -10). Needs
//! a cluster whose API server has an egress selector: kind.

use harness_component_testkit::prelude::*;
use serde_json::json;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check::of("ANP-03.logs", |cx| Box::pin(goes_through(cx, Way::Logs))).through_the_proxy(),
    Check::of("ANP-03.exec", |cx| Box::pin(goes_through(cx, Way::Exec))).through_the_proxy(),
    Check::of("ANP-03.attach", |cx| Box::pin(goes_through(cx, Way::Attach))).through_the_proxy(),
    Check::of("ANP-03.port-forward", |cx| Box::pin(goes_through(cx, Way::PortForward))).through_the_proxy(),
    Check::of("ANP-03.metrics", |cx| Box::pin(goes_through(cx, Way::Metrics))).through_the_proxy(),
    Check::of("ANP-03.webhook", |cx| Box::pin(goes_through(cx, Way::Webhook))).through_the_proxy(),
    Check::of("ANP-03.aggregated", |cx| Box::pin(goes_through(cx, Way::Aggregated))).through_the_proxy(),
    Check::of("ANP-04", |cx| Box::pin(does_without_agents(cx))).through_the_proxy(),
    Check::of("ANP-05", |cx| Box::pin(takes_agents_back(cx))).through_the_proxy(),
    Check::of("ANP-06", |cx| Box::pin(is_counted(cx))).through_the_proxy(),
    Check::of("ANP-08", |cx| Box::pin(does_with_one_of_two(cx))).through_the_proxy().takes(60),
    Check::of("ANP-10", |cx| Box::pin(fails_without_server(cx))).through_the_proxy(),
];

/// How long the connection may take to open while nothing is broken: an API server may dial for 30 s before
/// it dials again.
const OPENS: Duration = Duration::from_secs(40);
/// How long agents may take to reconnect (contract ANP-05).
const BACK: Duration = Duration::from_secs(120);
/// How long running agents may take to connect.
const CONNECTS: Duration = Duration::from_secs(20);
/// How many programs are executed after an agent was killed.
const TIMES: usize = 10;
/// The metric that says since when an API server runs.
const STARTED: &str = "process_start_time_seconds";
const STARTS: &str = "apiserver_egress_dialer_dial_start_total";
const TAKEN: &str = "apiserver_egress_dialer_dial_duration_seconds_count";
const FAILURES: &str = "apiserver_egress_dialer_dial_failure_count";

async fn goes_through(cx: &CheckCx, way: Way) -> Verdict {
    let proxy = NetworkProxy::of(cx)?;
    let cluster = proxy.on_a_cluster().await?;
    let peer = cluster.peer().await?;
    let promise = format!("{way} works with the direct way closed");
    peer.is_reached(way, &promise, OPENS).await?;
    if let Ok(took) = peer.tried(way).await? {
        cx.record("took_ms", took.as_millis());
    }
    Ok(())
}

/// Checks that the logs of a Node cannot be read.
async fn has_no_logs(cx: &CheckCx, peer: &Peer<'_>, without: &str) -> Verdict {
    match peer.tried(Way::Logs).await? {
        Err(astray) => {
            cx.record("said", &astray);
            Ok(())
        }
        Ok(_) => {
            let promise = format!("{without} nothing reaches a Node");
            Err(NetworkProxy::of(cx)?.violation(
                &promise,
                "no logs",
                "logs, so there is another way than the proxy",
            ))
        }
    }
}

async fn does_without_agents(cx: &CheckCx) -> Verdict {
    let proxy = NetworkProxy::of(cx)?;
    let cluster = proxy.on_a_cluster().await?;
    let peer = cluster.peer().await?;
    peer.is_reached(Way::Logs, "logs can be read before", OPENS).await?;
    cluster.agents_go().await?;
    has_no_logs(cx, &peer, "without agents").await?;
    let took = reads_and_writes(cx).await;
    let took = took.map_err(|why| {
        proxy.violation("without agents objects are read and written", "Nodes listed, a ConfigMap made", why)
    })?;
    cx.record("read_and_written_ms", took.as_millis());
    cluster.agents_come().await
}

async fn takes_agents_back(cx: &CheckCx) -> Verdict {
    let proxy = NetworkProxy::of(cx)?;
    let cluster = proxy.on_a_cluster().await?;
    let peer = cluster.peer().await?;
    peer.is_reached(Way::Logs, "logs can be read before", OPENS).await?;
    let since = api_server_counts(cx, STARTED).await?;
    cluster.agents_go().await?;
    has_no_logs(cx, &peer, "without agents").await?;
    cluster.agents_come().await?;
    for way in Way::ALL {
        peer.is_reached(way, "agents that are back serve everything", BACK).await?;
    }
    let now = api_server_counts(cx, STARTED).await?;
    if now != since {
        let promise = "the API server need not be started again";
        return Err(proxy.violation(promise, &json!(since).to_string(), json!(now).to_string()));
    }
    Ok(())
}

async fn is_counted(cx: &CheckCx) -> Verdict {
    let proxy = NetworkProxy::of(cx)?;
    let cluster = proxy.on_a_cluster().await?;
    let peer = cluster.peer().await?;
    peer.is_reached(Way::Logs, "logs can be read before", OPENS).await?;
    let taken = api_server_counts(cx, TAKEN).await?;
    let (started, before) = (api_server_counts(cx, STARTS).await?, api_server_counts(cx, FAILURES).await?);
    let ours = |all: &std::collections::BTreeMap<String, f64>| {
        let ours = all.iter().filter(|(series, _)| {
            let by =
                ["http_connect", "grpc"].iter().any(|one| series.contains(&format!("protocol=\"{one}\"")));
            by && ["tcp", "uds"].iter().any(|one| series.contains(&format!("transport=\"{one}\"")))
        });
        ours.map(|(_, count)| *count).sum::<f64>()
    };
    cx.record("dials", ours(&taken));
    cx.record(
        "started",
        if started.is_empty() { "not counted".to_owned() } else { ours(&started).to_string() },
    );
    if ours(&taken) < 1.0 {
        let seen = json!(taken).to_string();
        return Err(proxy.violation(
            "dials are counted by protocol and transport",
            &format!("{TAKEN} above 0"),
            seen,
        ));
    }
    cluster.agents_go().await?;
    has_no_logs(cx, &peer, "without agents").await?;
    let after = api_server_counts(cx, FAILURES).await?;
    let staged =
        after.keys().any(|series| series.contains("stage=\"proxy\"") || series.contains("stage=\"connect\""));
    cx.record("failures", format!("{} before, {} after", ours(&before), ours(&after)));
    if ours(&after) <= ours(&before) || !staged {
        let seen = format!("{}, then {}", json!(before), json!(after));
        return Err(proxy.violation(
            "failed dials are counted by their stage",
            &format!("{FAILURES} rises"),
            seen,
        ));
    }
    cluster.agents_come().await
}

async fn does_with_one_of_two(cx: &CheckCx) -> Verdict {
    let proxy = NetworkProxy::of(cx)?;
    let cluster = proxy.on_a_cluster().await?;
    let peer = cluster.peer().await?;
    peer.is_reached(Way::Exec, "programs can be executed before", OPENS).await?;
    // One of the agents dials.
    for agent in cluster.several_agents()? {
        // The others may be ready before the server knows them.
        pause(CONNECTS).await;
        let killed = cluster.agent_is_killed(&agent).await?;
        for time in 1..=TIMES {
            if let Err(astray) = peer.tried(Way::Exec).await? {
                let promise = format!("with the agent {agent} killed every execution succeeds");
                let seen = format!("execution {time} of {TIMES}: {astray}");
                return Err(proxy.violation(&promise, "an answer", seen));
            }
        }
        cluster.agent_is_back(&agent, &killed).await?;
    }
    Ok(())
}

async fn fails_without_server(cx: &CheckCx) -> Verdict {
    let proxy = NetworkProxy::of(cx)?;
    let cluster = proxy.on_a_cluster().await?;
    let peer = cluster.peer().await?;
    peer.is_reached(Way::Logs, "logs can be read before", OPENS).await?;
    cluster.server_goes().await?;
    let promise = "without a server a request for logs fails within 30 s with a status of 5xx";
    match peer.tried(Way::Logs).await? {
        Ok(_) => Err(proxy.violation(promise, "a failure", "logs, so there is another way than the proxy")),
        Err(astray) => {
            cx.record("said", &astray);
            let in_time = astray.took <= DIAL_LIMIT && astray.status.is_some_and(|status| status >= 500);
            if in_time {
                Ok(())
            } else {
                Err(proxy.violation(promise, "a status of 5xx in time", astray.to_string()))
            }
        }
    }
}
