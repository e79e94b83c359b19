//! Whether a CCM's metrics show which calls it makes to the cloud and how they end (contract OBS-06).

use super::serving::{REACHED, ports};
use harness_testkit::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use suites_common::failures::unless_it_lists;
use suites_common::joining::joined;
use tokio::time::Instant;

pub(super) const CHECKS: &[Check] = &[Check::of("OBS-06", |cx| Box::pin(counts_calls(cx)))
    .needs(&[Capability::SecurePort, Capability::Instances])
    .with(REACHED)
    .with(&[Facility::Faults])
    .alone()
    .takes(6)];

/// Prefixes of the metrics that every such program has, whatever it calls: language runtime, process, client
/// of the API server, framework.
const OF_EVERYBODY: [&str; 20] = [
    "aggregator_",
    "apiserver_",
    "authenticated_",
    "authentication_",
    "authorization_",
    "cardinality_",
    "disabled_metrics",
    "go_",
    "hidden_metrics",
    "kubernetes_",
    "leader_election_",
    "node_controller_",
    "process_",
    "promhttp_",
    "registered_metrics",
    "rest_client_",
    "route_controller_",
    "running_managed_controllers",
    "service_controller_",
    "workqueue_",
];
/// Parts of a histogram that depend on the duration of calls, not on which calls they are.
const OF_TIME: [&str; 3] = ["_bucket", "_sum", "_created"];

/// The provider's own series in a metrics text, with their values.
fn own(text: &str) -> BTreeMap<String, f64> {
    let line = |line: &str| {
        let (series, value) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))?;
        let name = series.split_once('{').map_or(series, |(name, _)| name);
        let usual = OF_EVERYBODY.iter().any(|prefix| name.starts_with(prefix));
        let timed = OF_TIME.iter().any(|part| name.ends_with(part)) || series.contains("quantile=");
        (!usual && !timed).then(|| Some((series.to_owned(), value.parse().ok()?))).flatten()
    };
    text.lines().filter_map(line).collect()
}

/// The series that have grown or are new.
fn grown(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> BTreeSet<String> {
    let more = |(series, value): &(&String, &f64)| before.get(*series).is_none_or(|old| old < value);
    after.iter().filter(more).map(|(series, _)| series.clone()).collect()
}

/// The provider's own series of all replicas.
async fn scraped(cx: &CheckCx, reader: &Reader) -> Result<BTreeMap<String, f64>, CheckError> {
    let mut all = BTreeMap::new();
    for port in ports(cx).await? {
        let text = port.get_as("/metrics", reader).becomes(answers(200)).when("by one who may").await?;
        all.extend(
            own(&text).into_iter().map(|(series, value)| (format!("{} {series}", port.replica()), value)),
        );
    }
    Ok(all)
}

/// Work that a CCM was given, and the series that have grown because of it.
struct Work {
    what: &'static str,
    counted: BTreeSet<String>,
}

impl Work {
    /// Checks that some series distinguishes this work from `other`.
    fn is_distinguished_from(&self, other: &Work) -> Result<(), String> {
        match self.counted.difference(&other.counted).next() {
            Some(_) => Ok(()),
            None if self.counted.is_empty() => {
                Err(format!("no series of the provider's grows by {}", self.what))
            }
            None => Err(format!("no series grows by {} that does not grow by {}", self.what, other.what)),
        }
    }
}

async fn counts_calls(cx: &CheckCx) -> Verdict {
    let reader = cx.reader().await?;
    // A call that is made for the first time creates new series, which may hide the difference between two works.
    joined(cx, machine("first")).await?;
    let mut before = scraped(cx, &reader).await?;
    let mut done = async |what: &'static str| -> Result<Work, CheckError> {
        let after = scraped(cx, &reader).await?;
        let counted = grown(&before, &after);
        before = after;
        Ok(Work { what, counted })
    };
    joined(cx, machine("looked-up")).await?;
    let mut looked_up = done("a look-up that succeeds").await?;
    let began = Instant::now();
    let refused = cx.machine(machine("refused")).await?;
    let refusals = refused.cloud().answers(503).to(&[Op::InstanceGet]).await?;
    cx.node(refused.node()).await?;
    refusals.hits(2).await.map_err(|stop| unless_it_lists(cx, stop))?;
    let failed = done("a look-up that fails").await?;
    refusals.clear().await?;
    let mut worked = vec![failed];
    if cx.declares(Capability::LoadBalancer) {
        cx.service(load_balancer("made").port(80)).await?.provisioned().await?;
        worked.push(done("a load balancer that is made").await?);
    }
    // Periodic work of the CCM may have happened at the same time; then it happens again.
    let (_, again) = joined(cx, machine("again")).await?;
    again.keeps(initialised()).within(began.elapsed()).when("while nothing more is asked for").await?;
    looked_up.counted.extend(done("a look-up that succeeds").await?.counted);
    let distinguished: Vec<_> = worked.iter().map(|work| work.is_distinguished_from(&looked_up)).collect();
    let lacks: Vec<String> = distinguished.into_iter().filter_map(Result::err).collect();
    match lacks.is_empty() {
        true => Ok(()),
        false => Err(cx.lease().breaks(
            "its metrics tell calls to the cloud apart by operation and by outcome",
            "a separate series that grows only with them",
            &lacks.join("; "),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_counters_and_durations_are_not_counts_of_the_provider() {
        let text = "# HELP a b\nacme_calls_total{op=\"get\",code=\"200\"} 3\nacme_seconds_bucket{le=\"1\"} 3\n\
                    acme_seconds_sum 0.2\nacme_seconds_count 3\ngo_goroutines 9\nrest_client_requests_total{code=\"200\"} 7\n";
        let series: Vec<String> = own(text).into_keys().collect();
        assert_eq!(series, ["acme_calls_total{op=\"get\",code=\"200\"}", "acme_seconds_count"]);
    }

    #[test]
    fn two_kinds_of_work_differ_by_a_series_that_only_one_changes() {
        let of = |series: &[(&str, f64)]| -> BTreeMap<String, f64> {
            series.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
        };
        let undivided = of(&[("all", 3.0)]);
        let (start, ok) = (of(&[("all", 1.0)]), of(&[("all", 2.0), ("ok", 1.0)]));
        let bad = of(&[("all", 3.0), ("ok", 1.0), ("bad", 1.0)]);
        let counted = |before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>| Work {
            what: "work",
            counted: grown(before, after),
        };
        let good = counted(&start, &ok);
        assert!(counted(&ok, &bad).is_distinguished_from(&good).is_ok());
        assert!(counted(&start, &undivided).is_distinguished_from(&good).is_err());
        assert!(counted(&bad, &bad).is_distinguished_from(&good).is_err());
    }
}
