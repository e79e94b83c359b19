//! The number of calls for routes (contract ROUTE-15).

use super::needs::ROUTES;
use futures::future::try_join_all;
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1::Node;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use suites_common::routed_node::routed;

pub(super) const CHECKS: &[Check] = &[Check::of("ROUTE-15", |cx| Box::pin(lists_once_a_period(cx)))
    .by_calls()
    .needs(ROUTES)
    .with(&[Facility::Settings])
    .alone()
    .takes(15)];

/// Routes that lead to no pod network of a Node, and pod networks without a route. Whether a Node of another
/// cloud has a route is up to the CCM.
struct Unsettled<'a> {
    cx: &'a CheckCx,
}

impl Subject for Unsettled<'_> {
    type Snapshot = Vec<String>;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        SubjectName { kind: "the routes", name: "of the cluster".to_owned(), uid: None }
    }

    async fn read(&self, reach: ReadSource) -> Result<Vec<String>, ReadError> {
        let routes = self.cx.cloud().read(reach).await?.routes;
        let routes: BTreeSet<String> = routes.into_iter().map(|route| route.destination).collect();
        let (others, own): (Vec<_>, Vec<_>) =
            self.cx.all_nodes()?.into_iter().partition(|node| self.cx.is_of_another_cloud(node));
        let networks =
            |nodes: &[Arc<Node>]| nodes.iter().flat_map(|node| pod_cidrs(node)).collect::<BTreeSet<_>>();
        let (others, own) = (networks(&others), networks(&own));
        Ok(routes.symmetric_difference(&own).filter(|network| !others.contains(*network)).cloned().collect())
    }

    fn concerns(&self, call: &Entry) -> bool {
        matches!(call.op, Op::RouteCreate | Op::RouteDelete)
    }
}

/// Matches lists of routes that come about once a period, each with this many pages. At least three lists are
/// needed, unless only changes of Nodes prompt them. The upper limit follows from the time between the first
/// and the last list, plus one.
fn once_a_period(period: Duration, pages: usize, trigger: RouteTrigger) -> Matcher<Vec<Entry>> {
    let least = match trigger {
        RouteTrigger::Period => 3,
        RouteTrigger::NodeChanges => 0,
    };
    let period_ms = u64::try_from(period.as_millis()).unwrap_or(u64::MAX).max(1);
    matcher("come once a period", move |calls: &Vec<Entry>| {
        let at = |call: Option<&Entry>| call.map_or(0, |call| call.at_ms);
        let span = at(calls.last()).saturating_sub(at(calls.first()));
        let periods = usize::try_from(span / period_ms).unwrap_or(usize::MAX);
        let (count, most) = (calls.len(), periods.saturating_add(2).saturating_mul(pages));
        if (least..=most).contains(&count) {
            Observation::Matched(())
        } else {
            Observation::Pending(format!("{count} lists in {span} ms, at most {most} fit"))
        }
    })
    .expecting(format!("{least} lists or more, one in {} s, on {pages} page(s) each", period.as_secs_f64()))
}

/// How many Nodes have routes: enough to distinguish one look-up for each Node from one for all.
const ROUTED: u32 = 8;
/// For how long after a list of routes a look-up counts as its consequence, whatever its real reason.
const AFTER_MS: u64 = 1_000;

/// Whether more than `most` machines are looked up by calls of their own. Each call that names no machine
/// counts as about one.
fn are_many(look_ups: &[&Entry], most: usize) -> bool {
    let (of_one, of_any): (Vec<&Entry>, Vec<&Entry>) =
        look_ups.iter().partition(|call| call.op != Op::Other && call.resource.is_some());
    let machines: BTreeSet<_> = of_one.iter().map(|call: &&Entry| &call.resource).collect();
    machines.len() + of_any.len() > most
}

/// The refresh of all Nodes' addresses, which causes look-ups as well.
#[derive(Clone, Copy)]
struct Refresh {
    pause: Duration,
    nodes: usize,
}

/// Whether more than `most` machines were looked up after every list of routes, with at most one exception.
/// The look-ups come soon after the list, or before the next one, and refreshes, however slow, do not explain
/// all of them.
fn are_looked_up_each_time(lists: &[Entry], look_ups: &[Entry], most: usize, refresh: Refresh) -> bool {
    let mut passes: Vec<u64> = lists.iter().map(|list| list.at_ms).collect();
    // Several pages of one list count as one.
    passes.dedup_by(|next, before| *next < *before + AFTER_MS / 2);
    let nexts = passes.iter().skip(1).copied().chain([u64::MAX]);
    let spans: Vec<(u64, u64)> = passes.iter().copied().zip(nexts).collect();
    let times = |until: &dyn Fn(u64, u64, Op) -> u64| {
        let of = |(at, next): &(u64, u64)| -> Vec<&Entry> {
            look_ups.iter().filter(|call| (*at..until(*at, *next, call.op)).contains(&call.at_ms)).collect()
        };
        spans.iter().filter(|span| are_many(&of(span), most)).count()
    };
    let soon = times(&|at, _, _| at + AFTER_MS);
    // A call that is not about a machine may be about anything.
    let ever = times(&|at, next, op| if op == Op::Other { at + AFTER_MS } else { next });
    let span = passes.last().zip(passes.first()).map_or(0, |(last, first)| last - first);
    let refreshes = u128::from(span) / refresh.pause.as_millis().max(1) + 1;
    let explained = refreshes * (refresh.nodes / (most + 1) + 1) as u128;
    passes.len() > 2 && (soon + 1 >= passes.len() || ever + 1 >= passes.len() && ever as u128 > explained)
}

async fn lists_once_a_period(cx: &CheckCx) -> Verdict {
    const PERIODS: u32 = 6;
    let networks =
        (0..ROUTED).map(|number| cx.pod_network(number)).collect::<Result<Vec<_>, CheckError>>()?;
    let suffixes: Vec<String> = (0..ROUTED).map(|number| format!("n{number}")).collect();
    try_join_all(suffixes.iter().zip(&networks).map(|(suffix, network)| routed(cx, suffix, network))).await?;
    let settled =
        holds("are those to its Nodes' pod networks", Vec::is_empty).expecting("no other, and none missing");
    // Leftovers of earlier checks are removed first.
    Unsettled { cx }.becomes(settled).within(2 * cx.limits().route()).await?;
    let (cloud, mark) = (cx.cloud(), cx.cloud().mark_now().await?);
    let changes = cloud.calls().of(&[Op::RouteCreate, Op::RouteDelete]).since(mark);
    let period = cx.limits().route_period();
    changes.keeps(no_calls()).within(PERIODS * period).when("while no Node changes").await?;
    let pages = cloud.pages_of(cloud.read(ReadSource::Origin).await?.routes.len()).await?;
    let lists = cloud.calls().of(&[Op::RouteList]).since(mark);
    lists.is(once_a_period(period, pages, cx.route_trigger())).await?;
    let one = |call: &Entry| matches!(call.op, Op::InstanceGet | Op::InstanceList | Op::Other);
    let (lists, look_ups) = (lists.list().await?, cloud.calls().since(mark).that(one).list().await?);
    cx.record("look_ups", look_ups.len());
    // One list of all machines needs fewer calls than one look-up for each.
    let pages = cloud.pages_of(cloud.read(ReadSource::Origin).await?.instances.len()).await?;
    let most = networks.len() - 2 + pages;
    let refresh = Refresh { pause: cx.limits().status_period(), nodes: cx.all_nodes()?.len() };
    match are_looked_up_each_time(&lists, &look_ups, most, refresh) {
        false => Ok(()),
        true => Err(cloud.breaks(
            "no machine is looked up for a reconciliation in which nothing changes",
            "a list of the routes, and nothing else",
            &format!("{} look-ups of machines next to {} lists", look_ups.len(), lists.len()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many lists, spread over 12 s.
    fn lists(count: u64) -> Vec<Entry> {
        let call = |seq| Entry {
            seq,
            at_ms: (seq - 1) * 12_000 / count,
            took_ms: Some(1),
            peer: [127, 0, 0, 1].into(),
            credential: None,
            op: Op::RouteList,
            write: false,
            resource: None,
            owner: None,
            request: "GET".into(),
            outcome: Outcome::Answered { status: 200 },
            user_agent: None,
            unknown: None,
            change: None,
        };
        (1..=count).map(call).collect()
    }

    #[test]
    fn look_ups_for_each_route_come_after_every_list() {
        let lists = lists(6);
        let look_ups = |at: &[u64]| -> Vec<Entry> {
            let one = |at_ms: u64| Entry { at_ms, op: Op::InstanceGet, ..lists[0].clone() };
            at.iter().flat_map(|at_ms| (0..8).map(|n| one(at_ms + 10 * n)).collect::<Vec<_>>()).collect()
        };
        let refresh = |seconds, nodes| Refresh { pause: Duration::from_secs(seconds), nodes };
        let (often, refresh) = (refresh(2, 11), refresh(10, 11));
        let each =
            |at: &[u64], nodes: usize| are_looked_up_each_time(&lists, &look_ups(at), nodes - 1, refresh);
        assert!(each(&[0, 2_000, 4_000, 6_000, 8_000, 10_000], 8));
        assert!(each(&[0, 2_000, 4_000, 6_000, 8_000], 8), "the last may be cut off");
        assert!(!each(&[100, 10_100], 8), "addresses are refreshed");
        assert!(!each(&[100, 5_100, 10_100], 8), "Nodes that are not Ready are looked after");
        assert!(!each(&[0, 2_000, 4_000, 6_000, 8_000, 10_000], 9), "not one for each");
        let late = look_ups(&[1_900, 3_900, 5_900, 7_900, 9_900, 11_900]);
        assert!(are_looked_up_each_time(&lists, &late, 7, refresh), "up to the next list");
        assert!(!are_looked_up_each_time(&lists, &late, 7, often), "addresses are refreshed as often");
        let many = Refresh { nodes: 100, ..refresh };
        assert!(!are_looked_up_each_time(&lists, &late, 7, many), "a refresh continues until the next one");
        let one = |call: &Entry| Entry { resource: Some("i-1".to_owned()), ..call.clone() };
        let again: Vec<Entry> = late.iter().map(one).collect();
        assert!(!are_looked_up_each_time(&lists, &again, 7, refresh), "one machine again and again");
        let others: Vec<Entry> = late.into_iter().map(|call| Entry { op: Op::Other, ..call }).collect();
        assert!(!are_looked_up_each_time(&lists, &others, 7, refresh), "whatever these are about");
        assert!(
            !are_looked_up_each_time(&lists[..2], &look_ups(&[0, 2_000]), 7, refresh),
            "too few lists to tell"
        );
    }

    #[test]
    fn a_pass_a_period_is_neither_none_nor_two() {
        let fits = |count, pages, trigger| {
            once_a_period(Duration::from_secs(2), pages, trigger).matches(&lists(count))
                == Observation::Matched(())
        };
        for (count, pages, expected) in
            [(0, 1, false), (2, 1, false), (6, 1, true), (7, 1, true), (8, 1, false), (12, 2, true)]
        {
            assert_eq!(fits(count, pages, RouteTrigger::Period), expected, "{count} on {pages}");
        }
        assert!(fits(0, 1, RouteTrigger::NodeChanges) && !fits(8, 1, RouteTrigger::NodeChanges));
    }
}
