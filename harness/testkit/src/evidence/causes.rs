//! The probable causes of a failure, read from its evidence. A hint for the reader, never part of a verdict.

use k8s_openapi::api::core::v1::{Node, Pod, Taint, Toleration};
use kube::ResourceExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of causes.
const MOST: usize = 3;

/// API requests that a CCM makes only to authenticate clients of its ports.
const REVIEWS: [&str; 2] = [" tokenreviews", " subjectaccessreviews"];

/// The evidence that is examined.
#[derive(Debug, Default)]
pub(super) struct Traces<'a> {
    /// When the check began, RFC 3339: earlier lines are ignored.
    pub(super) since: &'a str,
    /// Whether the check is about the CCM's ports.
    pub(super) connects: bool,
    /// Lines of Events and of the CCM's logs, each beginning with its time.
    pub(super) lines: Vec<&'a str>,
    /// The cloud's journal since the check began; calls about the check's own objects are marked.
    pub(super) journal: &'a str,
    /// Webhooks that refuse the CCM's requests, one sentence each.
    pub(super) webhooks: Vec<String>,
}

/// The likely causes, the most certain first, one line each.
pub(super) fn causes(traces: &Traces<'_>, pods: &[Arc<Pod>], nodes: &[Arc<Node>]) -> Vec<String> {
    let recent = || traces.lines.iter().copied().filter(|line| is_since(line, traces.since));
    let counts = |right: &String| traces.connects || !REVIEWS.iter().any(|review| right.ends_with(review));
    let refused: BTreeSet<String> = recent().filter_map(refused_right).filter(counts).collect();
    let nameless: BTreeSet<String> = recent().filter_map(unresolved_name).collect();
    let mut all = traces.webhooks.clone();
    all.extend(untolerated(pods, nodes));
    all.extend(refused.into_iter().map(|right| format!("the API server refuses the CCM: {right}")));
    all.extend(nameless.into_iter().map(|name| format!("the CCM cannot resolve the name {name}")));
    all.extend(refused_credential(traces.journal));
    all.extend(never_returned(traces.journal));
    all.extend(slow_polls(traces.journal));
    all.truncate(MOST);
    all
}

/// Whether a line that begins with its time belongs to the check's time.
fn is_since(line: &str, since: &str) -> bool {
    // To the second: `2026-03-01T12:00:42`.
    const SECOND: usize = 19;
    match (line.get(..SECOND), since.get(..SECOND)) {
        (Some(at), Some(since)) => at >= since,
        _ => false,
    }
}

/// The permission that a refusal of the API server names: `cannot patch resource "services/status" in API group ""`.
fn refused_right(line: &str) -> Option<String> {
    let plain = line.replace('\\', "");
    // The CCM may begin its own sentence with what it cannot do.
    plain.split(" cannot ").skip(1).find_map(|rest| {
        let (verb, rest) = rest.split_once(" resource \"")?;
        let (resource, _) = rest.split_once('"')?;
        let is_verb = !verb.is_empty() && verb.bytes().all(|byte| byte.is_ascii_lowercase());
        is_verb.then(|| format!("it may not {verb} {resource}"))
    })
}

/// The name that a resolver did not find: `lookup api.example on 10.96.0.10:53: no such host`.
fn unresolved_name(line: &str) -> Option<String> {
    if !["no such host", "Name or service not known", "Temporary failure in name resolution"]
        .iter()
        .any(|said| line.contains(said))
    {
        return None;
    }
    let named = line.split_once("lookup ").and_then(|(_, rest)| rest.split([' ', ':']).next());
    Some(named.filter(|name| name.contains('.')).unwrap_or("of the cloud or the API server").to_owned())
}

/// A call that the cloud refused because of its credential, without a fault of a check.
fn refused_credential(journal: &str) -> Option<String> {
    let refused = |line: &&str| line.ends_with("-> 401") || line.ends_with("-> 403");
    let line = journal.lines().rfind(refused)?;
    let call = line.trim_start_matches(['*', ' ']);
    Some(format!(
        "the cloud refuses the CCM's credential: {call}; the right one is ${{CLOUD_TOKEN}} in the manifests or in 'environment'"
    ))
}

/// The newest call about the check's own objects that was still open at the end.
fn never_returned(journal: &str) -> Option<String> {
    let open = |line: &&str| line.starts_with('*') && line.ends_with("-> under way");
    let line = journal.lines().rfind(open)?;
    Some(format!("a call never returned: {}", line.trim_start_matches(['*', ' '])))
}

/// Parts of paths at which a cloud shows how far an operation is.
const OPERATIONS: [&str; 8] =
    ["operation", "action", "task", "job", "load-balancer", "loadbalancer", "load_balancer", "nlb"];

/// Reads of one operation or load balancer at a steady pace of seconds: the cloud works asynchronously, and the CCM waits for it.
fn slow_polls(journal: &str) -> Option<String> {
    let mut reads: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for line in journal.lines() {
        let Some((at, request)) = read_of_operation(line) else { continue };
        reads.entry(request).or_default().push(at);
    }
    let slowest = reads.into_iter().filter_map(|(request, at)| Some((steady_pace(&at)?, request, at.len())));
    let (pace, request, count) = slowest.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(format!(
        "the CCM waits for operations of the cloud: {request} {count} times, {pace:.1} s apart; if they take long, 'budgets' in the \
         profile can allow for it (load-balancer: how long the cloud works on a load balancer)"
    ))
}

/// When and what a line of the journal reads, if that may be an operation or a load balancer.
fn read_of_operation(line: &str) -> Option<(f64, &str)> {
    let (_, rest) = line.split_once('#')?;
    let (_, rest) = rest.split_once(' ')?;
    let (at, rest) = rest.split_once("s ")?;
    let (_, rest) = rest.split_once(": ")?;
    let (request, _) = rest.split_once(" -> ")?;
    let path = request.strip_prefix("GET ")?.to_ascii_lowercase();
    OPERATIONS.iter().any(|word| path.contains(word)).then_some((at.parse().ok()?, request))
}

/// The pause between these moments, if there are three or more and each pause is from 1.5 s to 30 s and about the same.
fn steady_pace(at: &[f64]) -> Option<f64> {
    let pauses: Vec<f64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (least, most) =
        pauses.iter().fold((f64::MAX, 0.0_f64), |(least, most), pause| (least.min(*pause), most.max(*pause)));
    (pauses.len() >= 2 && least >= 1.5 && most <= 30.0 && most <= 1.3 * least).then_some(least)
}

/// Taints that prevent the scheduling of the CCM's Pods.
fn untolerated(pods: &[Arc<Pod>], nodes: &[Arc<Node>]) -> Vec<String> {
    let waits = |pod: &&Arc<Pod>| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none());
    let Some(pod) = pods.iter().find(waits) else { return Vec::new() };
    let tolerations: Vec<&Toleration> =
        pod.spec.iter().flat_map(|spec| spec.tolerations.iter().flatten()).collect();
    let mut blocking = BTreeSet::new();
    for node in nodes {
        let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        let keeps = taints.filter(|taint| taint.effect != "PreferNoSchedule");
        let of_node: Vec<&Taint> =
            keeps.filter(|taint| !tolerations.iter().any(|one| bears(one, taint))).collect();
        if of_node.is_empty() {
            // It could run on this Node.
            return Vec::new();
        }
        blocking.extend(of_node.into_iter().map(shown));
    }
    let line =
        |taint: String| format!("Pod {} waits for a Node, and does not tolerate {taint}", pod.name_any());
    blocking.into_iter().map(line).collect()
}

/// Whether a toleration matches a taint, as in the scheduler.
fn bears(toleration: &Toleration, taint: &Taint) -> bool {
    let same = |asked: &Option<String>, is: &str| {
        asked.as_deref().is_none_or(|asked| asked.is_empty() || asked == is)
    };
    let value =
        || toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default();
    same(&toleration.effect, &taint.effect)
        && same(&toleration.key, &taint.key)
        && (toleration.operator.as_deref() == Some("Exists") || value())
}

fn shown(taint: &Taint) -> String {
    let value = taint.value.as_deref().map(|value| format!("={value}")).unwrap_or_default();
    format!("the taint {}{value}:{}", taint.key, taint.effect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(lines: &[&str], journal: &str) -> Vec<String> {
        let (since, connects, webhooks) = ("2026-03-01T12:00:42Z", false, Vec::new());
        causes(&Traces { since, connects, lines: lines.to_vec(), journal, webhooks }, &[], &[])
    }

    #[test]
    fn reviews_that_are_refused_count_for_who_connects_to_the_ccm() {
        let line =
            "2026-03-01T12:00:50Z E1 User \"ccm\" cannot create resource \"tokenreviews\" in API group \"a\"";
        let said_to = |connects| {
            let traces =
                Traces { since: "2026-03-01T12:00:42Z", connects, lines: vec![line], ..Traces::default() };
            causes(&traces, &[], &[])
        };
        assert_eq!(said_to(true), ["the API server refuses the CCM: it may not create tokenreviews"]);
        assert_eq!(said_to(false), Vec::<String>::new());
    }

    #[test]
    fn a_missing_right_and_an_unresolvable_name_are_reported_if_they_belong_to_this_check() {
        let forbidden = "services \"web\" is forbidden: User \"ccm\" cannot patch resource \"services/status\" in API group \"\"";
        let refused = format!("2026-03-01T12:00:50.123Z E1 {forbidden}");
        let escaped = format!("2026-03-01T12:00:51Z Warning {}", forbidden.replace('"', "\\\""));
        let own = format!(
            "2026-03-01T12:00:52Z  WARN ccm: cannot publish the address service=\"web\" error={forbidden}"
        );
        let older = format!("2026-03-01T12:00:41Z {}", forbidden.replace("patch", "delete"));
        let nameless =
            "2026-03-01T12:00:50Z dial tcp: lookup api.acme.example on 10.96.0.10:53: no such host";
        assert_eq!(
            of(&[&older, &refused, &escaped, &own, nameless, "what cannot be read", ""], ""),
            [
                "the API server refuses the CCM: it may not patch services/status",
                "the CCM cannot resolve the name api.acme.example",
            ]
        );
        assert_eq!(of(&[&own], ""), ["the API server refuses the CCM: it may not patch services/status"]);
        let rust = "2026-03-01T12:00:50Z failed to lookup address information: Name or service not known";
        assert_eq!(of(&[rust], ""), ["the CCM cannot resolve the name of the cloud or the API server"]);
    }

    #[test]
    fn a_webhook_in_the_way_is_the_first_cause() {
        let (webhooks, journal) =
            (vec!["webhook x stands before Pods".to_owned()], "* #2 0.2s a: GET /v1/x -> 401\n");
        let traces = Traces { journal, webhooks, ..Traces::default() };
        let named = causes(&traces, &[], &[]);
        assert_eq!((named.len(), named[0].as_str()), (2, "webhook x stands before Pods"));
    }

    #[test]
    fn a_credential_that_is_refused_and_a_call_that_never_returns_are_named_unless_a_check_made_it_so() {
        let journal = "  #1 0.1s a: GET /v1/instances/i-1 -> 401 (fault)\n\
                       * #2 0.2s a: GET /v1/instances/i-2 -> 401\n\
                       \x20 #3 0.3s a: POST /v1/load-balancers -> under way\n\
                       * #4 0.4s a: DELETE /v1/load-balancers/lb-1 -> under way\n";
        assert_eq!(
            of(&[], journal),
            [
                "the cloud refuses the CCM's credential: #2 0.2s a: GET /v1/instances/i-2 -> 401; the right one is \
                 ${CLOUD_TOKEN} in the manifests or in 'environment'",
                "a call never returned: #4 0.4s a: DELETE /v1/load-balancers/lb-1 -> under way",
            ]
        );
        assert_eq!(of(&[], "* #1 0.1s a: GET /v1/instances/i-1 -> 401 (fault)\n"), [""; 0]);
    }

    #[test]
    fn an_operation_that_is_polled_slowly_is_named_with_the_way_out() {
        let polls = |path: &str, pause: u32| -> String {
            let line = |n: u32| format!("* #{n} {}.000s a: GET {path} -> 200\n", 10 + n * pause);
            (0..4).map(line).collect()
        };
        let causes = of(&[], &polls("/v2/operation/4f", 3));
        assert_eq!(causes.len(), 1, "{causes:?}");
        let named = "the CCM waits for operations of the cloud: GET /v2/operation/4f 4 times, 3.0 s apart";
        assert!(causes[0].starts_with(named) && causes[0].contains("'budgets'"), "{causes:?}");
        for other in
            [polls("/v1/instances/i-1", 5), polls("/v2/operation/4f", 1), polls("/v2/operation/4f", 40)]
        {
            assert_eq!(of(&[], &other), [""; 0], "{other}");
        }
    }

    #[test]
    fn a_pending_pod_is_reported_with_the_taints_that_it_does_not_tolerate() {
        let pod = |tolerations: serde_json::Value, node: Option<&str>| -> Arc<Pod> {
            let spec = json!({"containers": [], "nodeName": node, "tolerations": tolerations});
            Arc::new(
                serde_json::from_value(json!({"metadata": {"name": "ccm"}, "spec": spec})).expect("a Pod"),
            )
        };
        let node: Arc<Node> = Arc::new(
            serde_json::from_value(json!({"spec": {"taints": [
                {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
                {"key": "soft", "effect": "PreferNoSchedule"},
            ]}}))
            .expect("a Node"),
        );
        let of = |pod: Arc<Pod>| untolerated(&[pod], std::slice::from_ref(&node));
        let uninitialized = "node.cloudprovider.kubernetes.io/uninitialized";
        let bare = json!([{"key": uninitialized, "effect": "NoSchedule"}, {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]);
        assert_eq!(
            of(pod(bare.clone(), None)),
            [
                "Pod ccm waits for a Node, and does not tolerate the taint node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule"
            ]
        );
        assert_eq!(of(pod(json!([]), None)).len(), 2);
        assert_eq!(of(pod(json!([{"operator": "Exists"}]), None)), [""; 0]);
        assert_eq!(of(pod(bare, Some("n1"))), [""; 0]);
    }
}
