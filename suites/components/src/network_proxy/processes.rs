//! Server and agents as local processes. The harness sends HTTP CONNECT requests as an API server does
//! (contract ANP-05, -07, -08, -10).

use harness_component_testkit::components::network_proxy::Asked;
use harness_component_testkit::prelude::*;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpSocket;

pub(super) const CHECKS: &[Check] = &[
    Check::of("ANP-07", |cx| Box::pin(says_nothing_of_its_own(cx))).without_a_cluster(),
    Check::of("ANP-07.refused", |cx| Box::pin(refuses(cx))).without_a_cluster(),
    Check::of("ANP-07.carried", |cx| Box::pin(carries(cx))).without_a_cluster(),
    Check::of("ANP-05.agent", |cx| Box::pin(takes_an_agent_back(cx))).without_a_cluster(),
    Check::of("ANP-08.agent", |cx| Box::pin(does_with_one_of_two(cx))).without_a_cluster(),
    Check::of("ANP-10.no-agent", |cx| Box::pin(fails_without_agents(cx))).without_a_cluster(),
    Check::of("ANP-10.silent-agent", |cx| Box::pin(fails_with_silent_agents(cx))).without_a_cluster(),
];

/// How long agents may take to connect to a server that listens.
const FIRST: Duration = Duration::from_secs(20);
/// How long agents may take to reconnect (contract ANP-05).
const BACK: Duration = Duration::from_secs(120);
/// How long the server has to stay silent before the tunnel is established.
const QUIET: Duration = Duration::from_millis(500);
/// How long an agent that has started may take to connect.
const CONNECTS: Duration = Duration::from_secs(20);
/// How many tunnels are requested while an agent is lost.
const TUNNELS: usize = 20;
/// The number of bytes that are sent: more than the buffers on the way hold.
const MUCH: usize = 4 << 20;
/// How long sending these bytes may take.
const CARRIED: Duration = Duration::from_secs(30);

const WORKS: &str = "it makes a tunnel by an agent that is there";

/// Starts an agent and waits until it serves.
async fn serves(proxy: &mut ProxyProcesses<'_>, agent: &str) -> Verdict {
    proxy.start_agent(agent)?;
    proxy.tunnel_within(WORKS, FIRST).await.map(drop)
}

async fn says_nothing_of_its_own(cx: &CheckCx) -> Verdict {
    let proxy = NetworkProxy::of(cx)?;
    let mut proxy = proxy.as_processes().await?;
    serves(&mut proxy, "first").await?;
    let mut tunnel = proxy.tunnel(WORKS).await?;
    cx.record("took_ms", tunnel.took.as_millis());
    let promise = "nothing comes before what the peer says";
    let said = tunnel.unasked(QUIET).await;
    if !said.is_empty() {
        let seen = format!("{} bytes: {}", said.len(), json!(String::from_utf8_lossy(&said)));
        return Err(proxy.broken(promise, "a head and no byte behind it", &seen));
    }
    let echoed = tunnel.echoed(b"are you there?", CARRIED).await;
    echoed.map_err(|why| proxy.broken(promise, "what the peer sends back", &why))
}

async fn refuses(cx: &CheckCx) -> Verdict {
    let proxy = NetworkProxy::of(cx)?;
    let mut proxy = proxy.as_processes().await?;
    serves(&mut proxy, "first").await?;
    // A port that is taken, so that no other program can listen there.
    let taken = TcpSocket::new_v4()?;
    taken.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let unused = taken.local_addr()?;
    let asked = proxy.asked(unused, DIAL_LIMIT).await?;
    drop(taken);
    cx.record("answer", &asked);
    match asked {
        Asked::Refused(..) | Asked::Ended(..) => {}
        Asked::Tunnel(_) | Asked::Silent(_) => {
            let promise = format!("asked for {unused}, where no program listens, it refuses");
            return Err(proxy.broken(&promise, "another status than 200, or the end", &asked.to_string()));
        }
    }
    proxy.tunnel_within("once it has refused a tunnel it makes others", FIRST).await.map(drop)
}

async fn carries(cx: &CheckCx) -> Verdict {
    let proxy = NetworkProxy::of(cx)?;
    let mut proxy = proxy.as_processes().await?;
    serves(&mut proxy, "first").await?;
    let content: Vec<u8> = (0..MUCH).map(|at| u8::try_from(at % 251).unwrap_or_default()).collect();
    let echoed = proxy.tunnel(WORKS).await?.echoed(&content, CARRIED).await;
    let expected = format!("{MUCH} bytes there and back");
    echoed.map_err(|why| proxy.broken("what is sent through a tunnel arrives", &expected, &why))
}

async fn takes_an_agent_back(cx: &CheckCx) -> Verdict {
    let proxy = NetworkProxy::of(cx)?;
    let mut proxy = proxy.as_processes().await?;
    serves(&mut proxy, "first").await?;
    proxy.kill_agent("first").await?;
    proxy.start_agent("first")?;
    let tunnel = proxy.tunnel_within("an agent that is back serves new tunnels", BACK).await?;
    let echoed = tunnel.echoed(b"are you there?", CARRIED).await;
    echoed.map_err(|why| {
        proxy.broken("an agent that is back serves new tunnels", "what the peer sends back", &why)
    })
}

/// Checks that each of many tunnels is served.
async fn all_are_served(proxy: &ProxyProcesses<'_>, promise: &str) -> Verdict {
    for _ in 0..TUNNELS {
        let echoed = proxy.tunnel(promise).await?.echoed(b"are you there?", CARRIED).await;
        echoed.map_err(|why| proxy.broken(promise, "what the peer sends back", &why))?;
    }
    Ok(())
}

async fn does_with_one_of_two(cx: &CheckCx) -> Verdict {
    let proxy = NetworkProxy::of(cx)?;
    let mut proxy = proxy.as_processes().await?;
    serves(&mut proxy, "first").await?;
    proxy.start_agent("second")?;
    let seen = proxy.agent_connects("second", CONNECTS).await?;
    cx.record("second_agent", if seen { "connected" } else { "its connections cannot be seen" });
    proxy.kill_agent("second").await?;
    all_are_served(&proxy, "with the second of two agents killed every new tunnel is served").await?;
    proxy.start_agent("second")?;
    proxy.agent_connects("second", CONNECTS).await?;
    proxy.kill_agent("first").await?;
    let promise = "with the first of two agents killed every new tunnel is served";
    all_are_served(&proxy, promise).await
}

/// Checks that a dial fails, and that it does so in time.
async fn fails_in_time(cx: &CheckCx, proxy: &ProxyProcesses<'_>, promise: &str) -> Verdict {
    let asked = proxy.asked(proxy.peer(), DIAL_LIMIT).await?;
    cx.record("answer", &asked);
    match asked {
        Asked::Refused(..) | Asked::Ended(..) => Ok(()),
        Asked::Tunnel(_) | Asked::Silent(_) => {
            Err(proxy.broken(promise, "another status than 200, or the end, within 30 s", &asked.to_string()))
        }
    }
}

async fn fails_without_agents(cx: &CheckCx) -> Verdict {
    let proxy = NetworkProxy::of(cx)?;
    let mut proxy = proxy.as_processes().await?;
    fails_in_time(cx, &proxy, "without an agent a dial fails").await?;
    serves(&mut proxy, "first").await
}

async fn fails_with_silent_agents(cx: &CheckCx) -> Verdict {
    let proxy = NetworkProxy::of(cx)?;
    let mut proxy = proxy.as_processes().await?;
    serves(&mut proxy, "first").await?;
    proxy.freeze_agent("first")?;
    fails_in_time(cx, &proxy, "with an agent that is silent a dial fails").await?;
    proxy.kill_agent("first").await?;
    serves(&mut proxy, "second").await
}
