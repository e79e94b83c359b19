//! What the container of a CCM names: its flags, where its cloud may be, and the Secrets and ConfigMaps that it uses. Pure
//! functions.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The flags in a container's command line, including those in a shell script; flags without a value are `true`.
pub(super) fn flags(container: &Value) -> BTreeMap<String, String> {
    let words =
        ["command", "args"].into_iter().flat_map(|field| container[field].as_array().into_iter().flatten());
    let words: Vec<&str> = words.filter_map(Value::as_str).flat_map(str::split_whitespace).collect();
    let mut flags = BTreeMap::new();
    for (at, word) in words.iter().enumerate() {
        let Some(flag) = word.strip_prefix("--") else { continue };
        let next = || words.get(at + 1).filter(|next| !next.starts_with('-'));
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, value),
            None => (flag, next().copied().unwrap_or("true")),
        };
        flags.insert(name.to_owned(), value.trim_matches(['"', '\'']).to_owned());
    }
    flags
}

/// Variables and flags of a container whose names are those of an address, such as `ACME_API_URL` and `--api-endpoint`.
/// Those about the API server and the Node are not.
pub(super) fn addresses(container: &Value, flags: &BTreeMap<String, String>) -> Vec<String> {
    let is_one = |name: &str| {
        let name = name.to_ascii_uppercase().replace('-', "_");
        let ends = ["URL", "URI", "ENDPOINT", "API_SERVER", "API_HOST", "API_ADDRESS", "BASE_PATH"];
        let others = ["KUBE", "NODE", "POD", "PROXY", "WEBHOOK", "METRICS", "OTEL"];
        ends.iter().any(|end| name.ends_with(end)) && !others.iter().any(|other| name.contains(other))
    };
    let variables = container["env"].as_array().into_iter().flatten();
    let variables = variables.filter_map(|variable| variable["name"].as_str()).filter(|name| is_one(name));
    let flags = flags.keys().filter(|name| is_one(name)).map(|name| format!("--{name}"));
    variables.map(str::to_owned).chain(flags).collect()
}

/// Names of objects, each with the keys that are named.
pub(super) type Used = BTreeMap<String, BTreeSet<String>>;

/// The Secrets and ConfigMaps that a Pod cannot start without, with the keys that it names.
pub(super) fn used(spec: &Value, container: &Value) -> (Used, Used) {
    let (mut secrets, mut config_maps) = (Used::new(), Used::new());
    let mut take = |reference: &Value, name: &str, into_secrets: bool| {
        let Some(name) = reference[name].as_str().filter(|_| reference["optional"] != true) else { return };
        let keys =
            if into_secrets { &mut secrets } else { &mut config_maps }.entry(name.to_owned()).or_default();
        keys.extend(reference["key"].as_str().map(str::to_owned));
        let items = reference["items"].as_array().into_iter().flatten();
        keys.extend(items.filter_map(|item| item["key"].as_str().map(str::to_owned)));
    };
    for variable in container["env"].as_array().into_iter().flatten() {
        take(&variable["valueFrom"]["secretKeyRef"], "name", true);
        take(&variable["valueFrom"]["configMapKeyRef"], "name", false);
    }
    for source in container["envFrom"].as_array().into_iter().flatten() {
        take(&source["secretRef"], "name", true);
        take(&source["configMapRef"], "name", false);
    }
    for volume in spec["volumes"].as_array().into_iter().flatten() {
        take(&volume["secret"], "secretName", true);
        take(&volume["configMap"], "name", false);
        for source in volume["projected"]["sources"].as_array().into_iter().flatten() {
            take(&source["secret"], "name", true);
            take(&source["configMap"], "name", false);
        }
    }
    (secrets, config_maps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_of_projected_volumes_are_used() {
        let source = json!({"secret": {"name": "cloud", "items": [{"key": "token", "path": "token"}]}});
        let spec = json!({"volumes": [{"name": "v", "projected": {"sources": [source, {"configMap": {"name": "conf"}}]}}]});
        let (secrets, config_maps) = used(&spec, &json!({}));
        assert_eq!(secrets, BTreeMap::from([("cloud".to_owned(), BTreeSet::from(["token".to_owned()]))]));
        assert_eq!(config_maps.keys().collect::<Vec<_>>(), ["conf"]);
    }

    #[test]
    fn flags_are_read_in_every_spelling() {
        let container = json!({
            "command": ["/bin/sh", "-c", "exec /ccm --cloud-provider=acme --leader-elect"],
            "args": ["--secure-port", "1234", "--v=2"],
        });
        let flags = flags(&container);
        let all: Vec<(&str, &str)> =
            flags.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            all,
            [("cloud-provider", "acme"), ("leader-elect", "true"), ("secure-port", "1234"), ("v", "2")]
        );
    }
}
