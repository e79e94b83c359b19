//! Writes the profile of a draft, with a comment for each guess, and the list of missing facts. Pure functions.

use super::draft::Draft;
use bootstrap::Controllers;
use harness_config::{DIALECTS, OWN_PLACEHOLDERS, nearest};
use harness_session::TO_DO;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The output.
#[derive(Debug)]
pub(super) struct Written {
    /// The name in the folder, and the text.
    pub(super) files: Vec<(String, String)>,
    /// The facts that are missing, and where to enter them.
    pub(super) unknown: Vec<String>,
    /// Where the CCM gets the address of its cloud, if that is known.
    pub(super) address: Option<String>,
}

/// The version of the framework that is used if none is known.
const FRAMEWORK: &str = "1.36";

/// Quotes a text for YAML.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(plain);
    let is_word =
        ["true", "false", "null", "yes", "no", "on", "off"].contains(&text.to_ascii_lowercase().as_str());
    if is_plain && !is_word { text.to_owned() } else { Value::from(text).to_string() }
}

/// The files of a draft.
pub(super) fn written(draft: &Draft, manifests: String) -> Written {
    let mut unknown = Vec::new();
    let mut profile = profile(draft, &mut unknown);
    let mut files = vec![("manifests/ccm.yaml".to_owned(), manifests)];
    if let Some(secrets) = secrets(draft, &mut unknown) {
        files.push(("manifests/secrets.yaml".to_owned(), secrets));
    }
    for (name, keys) in &draft.held {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let asked = match keys.as_slice() {
            [] => "under which key the CCM reads its credential".to_owned(),
            [key] => format!("whether {key} is the credential"),
            keys => format!("which of {} is the credential", keys.join(", ")),
        };
        unknown.push(format!(
            "manifests/ccm.yaml, Secret {name}: {asked}; put ${{CLOUD_TOKEN}} there, under stringData"
        ));
    }
    for name in &draft.config_maps {
        unknown
            .push(format!("the manifests use ConfigMap {name} and do not hold it: put it into manifests/"));
    }
    if !draft.placeholders.is_empty() {
        let _ = writeln!(
            profile,
            "placeholders: # these are in the manifests, and the harness does not fill them in"
        );
        for name in &draft.placeholders {
            let _ = writeln!(profile, "  {name}: {TO_DO}");
            let near = nearest(name, OWN_PLACEHOLDERS);
            let slip = near.map(|near| {
                format!(
                    "; if ${{{near}}} is meant, correct manifests/ccm.yaml and remove it from the profile"
                )
            });
            unknown.push(format!("placeholders.{name}: its value{}", slip.unwrap_or_default()));
        }
    }
    files.insert(0, ("profile.yaml".to_owned(), profile));
    Written { files, unknown, address: address(draft) }
}

/// Where the CCM gets the address of its cloud, if the manifests or the facts about its provider say it.
fn address(draft: &Draft) -> Option<String> {
    if draft.has_address {
        return Some("where the manifests have ${CLOUD_ENDPOINT} or ${CLOUD_HOST}".to_owned());
    }
    let known = draft.known.as_ref()?;
    let variable = known.endpoint.as_ref()?;
    Some(format!(
        "the variable {variable}, which is \"${{CLOUD_ENDPOINT}}{}\" under 'environment' in profile.yaml",
        known.path
    ))
}

fn profile(draft: &Draft, unknown: &mut Vec<String>) -> String {
    let mut text = String::new();
    let mut put = |line: &str, why: &str| {
        let _ = if why.is_empty() { writeln!(text, "{line}") } else { writeln!(text, "{line} # {why}") };
    };
    put("# Written by 'ccm-conformance init' from the CCM's manifests. A comment says what is a guess.", "");
    put("# yaml-language-server: $schema=./profile.schema.json", "");
    put("apiVersion: ccm-conformance/v1", "");
    put("kind: Profile", "");
    put(&format!("name: {}", quoted(&draft.name)), "");
    let flag = |name: &str| draft.flags.get(name).map(String::as_str);
    match &draft.provider {
        Some(_) => {
            put(
                &format!("framework: {{profile: true, version: \"{FRAMEWORK}\"}}"),
                "guess; the version is k8s.io/cloud-provider v0.NN of its go.mod",
            );
            unknown.push("framework.version: the version of k8s.io/cloud-provider in its go.mod".to_owned());
        }
        None => unknown.push(
            "framework: whether it is built on k8s.io/cloud-provider (it has no flag --cloud-provider), and on which version"
                .to_owned(),
        ),
    }
    match &draft.image {
        Some(image) => put(
            &format!("image: {{reference: {}}}", Value::from(image.as_str())),
            "for ${IMAGE} in the manifests",
        ),
        None => {
            put("# image: {reference: registry.example/ccm:v1}", "the manifests name none");
            unknown
                .push("image.reference: the image; until then each run needs --image or --binary".to_owned());
        }
    }
    put("manifests: [manifests]", "");
    if let Some((namespace, name, container)) = &draft.workload {
        let container =
            container.as_ref().map(|name| format!(", container: {}", quoted(name))).unwrap_or_default();
        put(
            &format!("workload: {{namespace: {}, name: {}{container}}}", quoted(namespace), quoted(name)),
            "the workload of the CCM, as far as the manifests show",
        );
    }
    cloud(draft, &mut put, unknown);
    capabilities(draft, &mut put, unknown);
    let lease = flag("leader-elect-resource-name").or(flag("leader-elect-resource-namespace"));
    if lease.is_some() {
        let namespace = flag("leader-elect-resource-namespace").unwrap_or("kube-system");
        let name = flag("leader-elect-resource-name").unwrap_or("cloud-controller-manager");
        put(&format!("lease: {{namespace: {}, name: {}}}", quoted(namespace), quoted(name)), "");
    }
    let timing = ["leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-retry-period"];
    if let [Some(duration), Some(deadline), Some(period)] = timing.map(flag) {
        let [duration, deadline, period] = [duration, deadline, period].map(quoted);
        put(
            &format!(
                "leaseTiming: {{duration: {duration}, renewDeadline: {deadline}, retryPeriod: {period}}}"
            ),
            "",
        );
    }
    if let Some(port) = flag("secure-port").and_then(|port| port.parse::<u16>().ok()) {
        put(&format!("securePort: {port}"), "");
    }
    let syncs = |name: &str| flag(name).and_then(|n| n.parse::<u32>().ok()).unwrap_or(1);
    let workers = syncs("concurrent-service-syncs").min(syncs("concurrent-node-syncs"));
    if workers > 1 {
        put(&format!("workers: {workers}"), "--concurrent-service-syncs and --concurrent-node-syncs");
    }
    if draft.provider.is_some() {
        put("flags: {accepted: [framework]}", "guess: all flags of the framework; runs are faster with them");
    }
    text
}

fn cloud(draft: &Draft, put: &mut impl FnMut(&str, &str), unknown: &mut Vec<String>) {
    let provider = draft.provider.as_deref().unwrap_or_default();
    match DIALECTS.iter().find(|dialect| **dialect == provider) {
        Some(dialect) => put(&format!("cloud: {{dialect: {dialect}}}"), "the fake cloud speaks its API"),
        None => {
            put(
                "cloud: {dialect: native}",
                "it certainly speaks another one: see 'ccm-conformance docs adding-a-provider'",
            );
            unknown.push(format!(
                "cloud: the fake cloud does not speak its API (it speaks {}). Connect a simulator of yours with a driver: 'ccm-conformance init cloud NAME' writes one to begin with, and 'ccm-conformance docs driver' describes it. Or teach the fake cloud: 'ccm-conformance docs adding-a-provider'",
                DIALECTS.join(", ")
            ));
        }
    }
    match &draft.known {
        Some(known) => put(
            &format!("providerId: {{format: {}}}", Value::from(known.id.as_str())),
            "as its source has it",
        ),
        None if !provider.is_empty() => {
            put(&format!("providerId: {{format: \"{provider}://{{id}}\"}}"), "guess: its provider's name");
            unknown.push("providerId.format: whether the guess is right".to_owned());
        }
        None => unknown.push("providerId.format: the form of its provider ids".to_owned()),
    }
    let known = draft.known.as_ref();
    if let Some(owner) = known.and_then(|known| known.owner.as_ref()) {
        put(&format!("loadBalancerOwner: {owner}"), "as its source has it");
    }
    for (at, (key, value)) in known.into_iter().flat_map(|known| &known.annotations).enumerate() {
        if at == 0 {
            put("serviceAnnotations:", "");
        }
        put(&format!("  {key}: {}", quoted(value)), "so that its load balancers say whose they are");
    }
    if let Some(known) = known.filter(|known| !known.addresses.is_empty()) {
        put(&format!("addressOrder: [{}]", known.addresses.join(", ")), "as its source has it");
    }
    if let Some((known, region)) = known.and_then(|known| Some((known, known.region.as_ref()?))) {
        let zone = known.zone.as_deref().unwrap_or_default();
        put(&format!("location: {{region: {region}, zone: {}}}", Value::from(zone)), "in words of its cloud");
    }
    match known.and_then(|known| known.endpoint.as_ref().map(|variable| (known, variable))) {
        Some((known, variable)) => {
            put("environment:", "");
            put(&format!("  {variable}: \"${{CLOUD_ENDPOINT}}{}\"", known.path), "as its source has it");
            for (variable, value) in &known.also {
                put(&format!("  {variable}: {}", quoted(value)), "it would ask a machine of its cloud");
            }
        }
        None if draft.has_address => {}
        None => {
            let by = known.and_then(|known| known.settings.as_deref());
            let is_variable = |name: &&String| !name.starts_with("--");
            let variable = draft.addresses.iter().find(is_variable).map_or("ACME_URL", String::as_str);
            put(
                &format!("# environment: {{{variable}: \"${{CLOUD_ENDPOINT}}\"}}"),
                "how it learns the address of the cloud",
            );
            unknown.push(match (by, draft.addresses.as_slice()) {
                (Some(settings), _) => format!("where the cloud is: {settings}, as ${{CLOUD_ENDPOINT}}"),
                (None, []) => "environment: the variable, flag or file that says where the cloud is, as ${CLOUD_ENDPOINT}".to_owned(),
                (None, addresses) => format!(
                    "environment: what says where the cloud is, as ${{CLOUD_ENDPOINT}}; by its name it may be {}",
                    addresses.join(" or ")
                ),
            });
        }
    }
}

/// Whether `--controllers` lets one with any of these names run, as far as its names are the framework's.
fn runs(controllers: Option<&str>, names: &[&str]) -> bool {
    let list = controllers.map(|list| Controllers::of([list]));
    list.is_none_or(|list| !list.are_of_framework() || list.run(names))
}

fn capabilities(draft: &Draft, put: &mut impl FnMut(&str, &str), unknown: &mut Vec<String>) {
    let flag = |name: &str| draft.flags.get(name).map(String::as_str);
    let known = draft.known.as_ref();
    let can = |what: &str| known.map(|known| known.can.contains(what));
    put("capabilities: # checks of undeclared capabilities are skipped; checks of declared ones count", "");
    put("  instances: v2", "guess: interface InstancesV2");
    match known.is_none_or(|known| known.zones) {
        true => put("  zones: true", "guess: it reports zone and region"),
        false => put("  zones: false", "as its source has it"),
    }
    if known.is_some_and(|known| !known.zones && known.region.is_some()) {
        put("  regions: true", "as its source has it");
    }
    let balancers = can("loadBalancer").or_else(|| draft.may("services/status", &["patch", "update"]));
    let controllers = flag("controllers");
    let serves = runs(controllers, &["service", "service-lb-controller"]);
    let why = match (can("loadBalancer"), balancers) {
        _ if !serves => "--controllers leaves out service",
        (Some(_), _) => "as its source has it",
        (None, Some(true)) => "guess: its role lets it write the status of Services",
        (None, Some(false)) => "guess: its role does not let it write the status of Services",
        (None, None) => "guess: the manifests hold no role",
    };
    put(&format!("  loadBalancer: {}", serves && balancers.unwrap_or(true)), why);
    let is_on = runs(controllers, &["route", "node-route-controller"]);
    let configures = is_on && flag("configure-cloud-routes") != Some("false");
    let sometimes = known.and_then(|known| known.routes.as_deref());
    let routes = configures
        && (can("routes") == Some(true) || (sometimes.is_some() && flag("cluster-cidr").is_some()));
    let why = match (configures, sometimes) {
        (false, _) if !is_on => "--controllers leaves out route".to_owned(),
        (false, _) => "--configure-cloud-routes=false".to_owned(),
        (true, Some(when)) => format!("guess: it has them {when}"),
        (true, None) if known.is_some() => "as its source has it".to_owned(),
        (true, None) => {
            let cidr = flag("cluster-cidr").map(|_| ", although --cluster-cidr is set").unwrap_or_default();
            format!("guess: most CCMs create none{cidr}; true if it implements Routes")
        }
    };
    put(&format!("  routes: {routes}"), &why);
    if configures && can("routes").is_none() && sometimes.is_none() {
        unknown.push(format!(
            "capabilities.routes: whether it implements Routes (guessed: {routes}); a CCM that makes routes and does not \
             declare them fails CAP-04"
        ));
    }
    if !runs(controllers, &["cloud-node-lifecycle", "cloud-node-lifecycle-controller"]) {
        unknown.push(
            "--controllers leaves out cloud-node-lifecycle, so that most checks of node-lifecycle fail"
                .to_owned(),
        );
    }
    if flag("leader-elect") == Some("false") {
        put("  leaderElection: false", "--leader-elect=false");
        unknown.push("capabilities.leaderElection: its manifests run it without; two replicas need 'flags.extra: [--leader-elect=true]' and true".to_owned());
    }
    unknown.push(
        "capabilities: shutdown, protocols, affinity, sourceRanges, dualStack, ipMode, additionalLabels"
            .to_owned(),
    );
}

/// The Secrets that the CCM cannot start without.
fn secrets(draft: &Draft, unknown: &mut Vec<String>) -> Option<String> {
    let mut text = String::from(
        "# Secrets that the manifests use and do not hold. ${CLOUD_TOKEN} is filled in by the harness.\n",
    );
    for (name, keys) in &draft.secrets {
        let data: serde_json::Map<String, Value> =
            keys.iter().map(|key| (key.clone(), json!("${CLOUD_TOKEN}"))).collect();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": draft.namespace},
            "type": "Opaque", "stringData": data,
        });
        // JSON is valid YAML.
        let _ = writeln!(text, "---\n{secret:#}");
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let which = if keys.is_empty() {
            "which keys it has".to_owned()
        } else {
            format!("value of {}", keys.join(", "))
        };
        unknown.push(format!(
            "manifests/secrets.yaml, Secret {name}: {which}; every value is the credential until then"
        ));
    }
    (!draft.secrets.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn a_controller_that_is_left_out_does_not_run() {
        let route = |list| runs(list, &["route", "node-route-controller"]);
        assert!(route(None) && route(Some("*,-service")) && !route(Some("cloud-node,service")));
        assert!(route(Some("node,service")), "those are names of another program");
    }
}
