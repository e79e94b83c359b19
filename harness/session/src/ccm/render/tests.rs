//! Copies and originals of a small set of manifests.

use super::super::arguments::flag_of;
use super::super::manifests::WorkloadHint;
use super::super::pod_spec;
use super::replica::host_and_port;
use super::*;

fn manifests() -> Manifests {
    let documents = vec![
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "ccm", "namespace": "kube-system"},
            "spec": {"updateStrategy": {}, "selector": {"matchLabels": {"app": "ccm"}}, "template": {
                "metadata": {"labels": {"app": "ccm"}},
                "spec": {"hostNetwork": true, "affinity": {"podAntiAffinity": {}}, "containers": [{
                    "ports": [{"containerPort": 8233}, {"containerPort": 10258}],
                    "resources": {"limits": {"memory": "64Mi"}},
                    "name": "ccm", "image": "${IMAGE}", "args": ["--secure-port", "10258", "--leader-elect"],
                    "env": [{"name": "T", "valueFrom": {"secretKeyRef": {"name": "cloud", "key": "token"}}}],
                    "livenessProbe": {"httpGet": {"port": 10258, "path": "/healthz"}}}]}}}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cloud"}, "stringData": {"token": "${CLOUD_TOKEN}"}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ccm"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "where"}, "data": {"url": "${CLOUD_ENDPOINT}/v1"}}),
    ];
    Manifests::new(documents, &WorkloadHint::default()).expect("a fine set")
}

fn around() -> RenderContext {
    RenderContext {
        placeholders: BTreeMap::from([("IMAGE".to_owned(), "x:1".to_owned())]),
        api_server: Some(("172.18.0.2".to_owned(), 6443)),
        environment: BTreeMap::from([("WHERE".to_owned(), "${IMAGE}/x".to_owned())]),
        metadata: None,
        cloud_ca: Some("PEM".to_owned()),
        flags: vec![
            Flag::of("--leader-elect-lease-duration=6s", SetBy::RunFile),
            Flag::of("--debug", SetBy::Profile),
        ],
        secure_port: 10258,
        takes_secure_port: true,
        ..RenderContext::default()
    }
}

#[test]
fn copies_differ_in_groups_where_the_cluster_needs_it() {
    let list: Vec<Replica> = ["a", "b"]
        .map(|name| Replica {
            name: name.into(),
            token: "t".into(),
            secure_port: 10258,
            endpoint: String::new(),
        })
        .into();
    let groups = |rendered: &Rendered| -> Vec<Value> {
        let pods = rendered.documents.iter().filter(|document| !document["spec"]["template"].is_null());
        pods.map(|pod| pod_spec(pod)["securityContext"]["supplementalGroups"].clone()).collect()
    };
    let grouped = RenderContext { group: Some(61_000), ..around() };
    assert_eq!(groups(&replicas(&manifests(), &list, &grouped)), [json!([61_000]), json!([61_001])]);
    assert_eq!(groups(&as_shipped(&manifests(), list.first(), &grouped)), [json!([61_000])]);
    assert_eq!(groups(&replicas(&manifests(), &list, &around())), [Value::Null, Value::Null]);
}

#[test]
fn a_ccm_may_reach_the_cloud_through_the_variable_of_a_proxy() {
    let list: Vec<Replica> = [("a", "http://127.0.0.1:1"), ("b", "http://127.0.0.1:2")]
        .map(|(name, endpoint)| Replica {
            name: name.into(),
            token: "t".into(),
            secure_port: 10258,
            endpoint: endpoint.into(),
        })
        .into();
    let through = RenderContext { http_proxy: true, ..around() };
    let rendered = replicas(&manifests(), &list, &through);
    let pods = rendered.documents.iter().filter(|document| !document["spec"]["template"].is_null());
    let variables = |pod: &Value, name: &str| -> Vec<String> {
        let all = pod_spec(pod)["containers"][0]["env"].as_array().cloned().unwrap_or_default();
        let named = all.iter().filter(|variable| variable["name"] == *name);
        named.map(|variable| variable["value"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let proxies: Vec<Vec<String>> = pods.map(|pod| variables(pod, "HTTP_PROXY")).collect();
    assert_eq!(proxies, [["http://127.0.0.1:1"], ["http://127.0.0.1:2"]]);
    let urls: Vec<&Value> = rendered.documents.iter().filter(|one| one["kind"] == "ConfigMap").collect();
    assert!(
        urls.iter().any(|one| one["data"]["url"] == "http://cloud.ccm-conformance.internal/v1"),
        "{urls:?}"
    );
    assert!(rendered.changes.iter().any(|change| change.to_string().contains("HTTP_PROXY")));
    let plain = replicas(&manifests(), &list, &around());
    let pods = plain.documents.iter().filter(|document| !document["spec"]["template"].is_null());
    assert!(pods.into_iter().all(|pod| variables(pod, "HTTP_PROXY").is_empty()));
}

#[test]
fn the_image_of_the_harness_gets_the_name_of_the_program_to_run() {
    let own = RenderContext { command: vec!["/ccm-conformance".into(), "reference-ccm".into()], ..around() };
    let list = [Replica { name: "a".into(), token: "t".into(), secure_port: 10258, endpoint: String::new() }];
    let command = |documents: &[Value]| {
        let mut workloads = documents.iter().filter(|document| !document["spec"]["template"].is_null());
        let workload = workloads.next();
        pod_spec(workload.expect("a workload"))["containers"][0]["command"].clone()
    };
    for rendered in [replicas(&manifests(), &list, &own), as_shipped(&manifests(), list.first(), &own)] {
        assert_eq!(command(&rendered.documents), json!(["/ccm-conformance", "reference-ccm"]));
        assert!(
            rendered
                .changes
                .iter()
                .any(|change| change.to_string().contains("/ccm-conformance reference-ccm"))
        );
    }
    assert_eq!(command(&replicas(&manifests(), &list, &around()).documents), Value::Null);
    // Manifests with a command know their image.
    let mut changed = manifests();
    let workload = changed.workload;
    changed.documents[workload]["spec"]["template"]["spec"]["containers"][0]["command"] = json!(["/ccm"]);
    assert_eq!(command(&replicas(&changed, &list, &own).documents), json!(["/ccm"]));
}

#[test]
fn copies_differ_in_name_label_credential_and_port() {
    let list = [("a", 10258), ("b", 10259)];
    let list: Vec<Replica> = list
        .iter()
        .map(|(name, port)| Replica {
            name: (*name).into(),
            token: format!("t-{name}"),
            secure_port: *port,
            endpoint: format!("http://cloud/{name}"),
        })
        .collect();
    let rendered = replicas(&manifests(), &list, &around());
    let kinds: Vec<&str> = rendered.documents.iter().filter_map(|d| d["kind"].as_str()).collect();
    let first = ["ServiceAccount", "ConfigMap", "Secret", "ConfigMap", "Secret", "ConfigMap"];
    assert_eq!(kinds, [&first[..], &["Deployment", "Deployment"]].concat());
    assert_eq!(rendered.documents[4]["stringData"]["token"], "t-b");
    // With its own endpoint, each copy gets its own ConfigMap.
    assert_eq!(rendered.documents[5]["data"]["url"], "http://cloud/b/v1");
    assert_eq!(rendered.documents[5]["metadata"]["name"], "where-b");
    let certificates = &rendered.documents[1];
    assert!(certificates["data"]["ca-bundle.crt"].as_str().is_some_and(|text| text.starts_with("PEM")));
    let copy = &rendered.documents[7];
    assert_eq!(copy["metadata"]["name"], "ccm-b");
    assert_eq!(copy["spec"]["selector"]["matchLabels"][REPLICA_LABEL], "b");
    assert!(copy["spec"].get("updateStrategy").is_none());
    let container = &copy["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "x:1");
    assert_eq!(
        container["args"],
        json!(["--secure-port=10259", "--leader-elect", "--leader-elect-lease-duration=6s", "--debug"])
    );
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/etc/ccm-conformance/cloud");
    assert_eq!(container["env"][0]["valueFrom"]["secretKeyRef"]["name"], "cloud-b");
    assert_eq!(container["env"][1], json!({"name": "KUBERNETES_SERVICE_HOST", "value": "172.18.0.2"}));
    assert_eq!(container["livenessProbe"]["httpGet"]["port"], 10259);
    assert_eq!(container["ports"], json!([{"containerPort": 10259}]));
    let resources = json!({"limits": {"memory": "64Mi", "cpu": "1"}, "requests": {"cpu": "10m"}});
    assert_eq!(container["resources"], resources);
    assert_eq!(rendered.workloads[1].name, "ccm-b");
    let flag = |name: &str| flag_of(container, name);
    assert_eq!((flag("secure-port"), flag("leader-elect")), (Some("10259".into()), Some("true".into())));
    assert_eq!((flag("leader-elect-lease-duration"), flag("port")), (Some("6s".into()), None));
    let by = |what: &str| rendered.changes.iter().find(|c| c.value.contains(what)).map(|c| c.from);
    assert_eq!(by("DaemonSet"), Some(SetBy::Harness), "{:?}", rendered.changes);
    assert_eq!(by("limits of cpu 1, to protect"), Some(SetBy::Harness), "{:?}", rendered.changes);
    assert_eq!(by("6s, as the timing requires"), Some(SetBy::RunFile), "{:?}", rendered.changes);
    assert_eq!(by("--debug, as the profile requires"), Some(SetBy::Profile), "{:?}", rendered.changes);
}

#[test]
fn each_copy_that_runs_elsewhere_has_a_kubeconfig_of_its_own() {
    let mut documents = manifests().documents;
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "served"},
        "stringData": {"kubeconfig": "${KUBECONFIG}"}});
    documents.push(kubeconfig);
    pod_spec_mut(&mut documents[0])["volumes"] = json!([{"name": "k", "secret": {"secretName": "served"}}]);
    let hosted = Manifests::new(documents, &WorkloadHint::default()).expect("a fine set");
    let replica = |name: &str| Replica {
        name: name.to_owned(),
        token: "t".to_owned(),
        secure_port: 10258,
        endpoint: String::new(),
    };
    let rendered = replicas(&hosted, &[replica("a"), replica("b")], &around());
    for name in ["a", "b"] {
        let own = |kind: &str| {
            let is_own = |document: &&Value| {
                document["kind"] == kind && document["metadata"]["labels"][REPLICA_LABEL] == name
            };
            rendered.documents.iter().filter(is_own).cloned().collect::<Vec<Value>>()
        };
        let secrets: Vec<Value> =
            own("Secret").iter().map(|secret| secret["metadata"]["name"].clone()).collect();
        assert_eq!(secrets, [format!("cloud-{name}"), format!("served-{name}")]);
        let volumes = pod_spec(&own("Deployment")[0])["volumes"].clone();
        assert!(volumes.to_string().contains(&format!("served-{name}")), "{volumes}");
    }
    let said =
        |change: &Setting| change.to_string().contains("cloud credential and kubeconfig and secure port");
    assert!(rendered.changes.iter().any(said), "{:?}", rendered.changes);
}

#[test]
fn as_shipped_changes_nothing_but_what_it_says() {
    let around = RenderContext { api_server: None, cloud_ca: None, ..around() };
    let rendered = as_shipped(&manifests(), None, &around);
    let workload = rendered.documents.last().expect("the workload comes last");
    assert_eq!(workload["kind"], "DaemonSet");
    assert_eq!(pod_args(workload), &json!(["--secure-port", "10258", "--leader-elect"]));
    assert_eq!(rendered.changes.len(), 2, "{:?}", rendered.changes);
    let env = &workload["spec"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!(env[1], json!({"name": "WHERE", "value": "x:1/x"}));
}

fn pod_args(workload: &Value) -> &Value {
    &workload["spec"]["template"]["spec"]["containers"][0]["args"]
}

#[test]
fn the_metadata_service_is_reached_by_variables_where_its_address_leads_nowhere() {
    let at = "127.0.0.1:8082".parse().expect("an address");
    let metadata = Metadata::ByVariables { at, direct: vec!["127.0.0.1".to_owned(), "cloud".to_owned()] };
    let environment = BTreeMap::from([
        ("WHERE".to_owned(), "${METADATA}/v1".to_owned()),
        ("HOST".to_owned(), "${METADATA_HOST}".to_owned()),
    ]);
    let around = RenderContext { metadata: Some(metadata), environment, ..around() };
    let shipped = as_shipped(&manifests(), None, &around);
    let env = |rendered: &Rendered| {
        let workload = rendered.documents.last().expect("it comes last");
        workload["spec"]["template"]["spec"]["containers"][0]["env"].clone()
    };
    let found = env(&shipped);
    // Variables that others refer to come first.
    assert_eq!(found[0]["valueFrom"]["fieldRef"]["fieldPath"], "spec.nodeName");
    let value = |found: &Value, name: &str| {
        let entry =
            found.as_array().and_then(|list| list.iter().find(|entry| entry["name"] == name).cloned());
        entry.map(|entry| entry["value"].clone())
    };
    let url = "http://$(CCM_CONFORMANCE_NODE)@127.0.0.1:8082";
    assert_eq!(value(&found, "HTTP_PROXY"), Some(json!(url)));
    assert_eq!(value(&found, "NO_PROXY"), Some(json!("localhost,127.0.0.0/8,127.0.0.1,cloud")));
    assert_eq!(value(&found, "WHERE"), Some(json!(format!("{url}/v1"))));
    assert_eq!(value(&found, "HOST"), Some(json!("$(CCM_CONFORMANCE_NODE)@127.0.0.1:8082")));
    // A proxy of the profile stays.
    let own = BTreeMap::from([("HTTP_PROXY".to_owned(), "http://own".to_owned())]);
    let around = RenderContext { environment: own, ..around };
    assert_eq!(
        value(&env(&as_shipped(&manifests(), None, &around)), "HTTP_PROXY"),
        Some(json!("http://own"))
    );
    // If the machines route the address, nothing is changed.
    let environment = BTreeMap::from([("WHERE".to_owned(), "${METADATA}/v1".to_owned())]);
    let around = RenderContext { metadata: Some(Metadata::AtItsAddress), environment, ..around };
    let found = env(&as_shipped(&manifests(), None, &around));
    assert_eq!(value(&found, "HTTP_PROXY"), None);
    assert_eq!(value(&found, "WHERE"), Some(json!("http://169.254.169.254/v1")));
}

#[test]
fn host_and_port_of_the_cloud_are_separated() {
    let found = |url: &str| host_and_port(url);
    let both = |host: &str, port: &str| Some((host.to_owned(), port.to_owned()));
    assert_eq!(found("https://172.18.0.1:8443"), both("172.18.0.1", "8443"));
    assert_eq!(found("https://cloud.example/v2"), both("cloud.example", "443"));
    assert_eq!(found("http://[fd00::1]:80/v2"), both("fd00::1", "80"));
    assert_eq!(found("http://[fd00::1]"), both("fd00::1", "80"));
    assert_eq!(found("cloud"), None);
    let replica = Replica {
        name: "a".into(),
        token: "t".into(),
        secure_port: 10258,
        endpoint: "https://172.18.0.1:8443".into(),
    };
    let mut written = manifests();
    let whole = written.documents.iter_mut().find(|document| document["data"]["url"].is_string());
    whole.expect("one says where the cloud is")["data"]["url"] = json!("${CLOUD_HOST} ${CLOUD_PORT}");
    let shipped = as_shipped(&written, Some(&replica), &around());
    let url = shipped.documents.iter().find_map(|document| document["data"]["url"].as_str());
    assert_eq!(url, Some("172.18.0.1 8443"));
}
