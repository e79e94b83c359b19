//! Dialect `digitalocean`: tags, certificates and firewalls.

use crate::digitalocean_cloud::{Calls, created, load_balancer, start};
use serde_json::{Value, json};

#[tokio::test]
async fn tags_are_made_carried_and_outlive_their_carriers() {
    let cloud = start().await;
    let id = created(&cloud, "a").await;
    let carry = json!({"resources": [
        {"resource_id": id, "resource_type": "load_balancer"},
        {"resource_id": "101", "resource_type": "droplet"},
    ]});
    let path = "/v2/tags/k8s:c-1/resources";
    cloud.call("POST", path, Some(carry.clone())).await.fails(404, "not_found");
    for _ in 0..2 {
        let made = cloud.call("POST", "/v2/tags", Some(json!({"name": "k8s:c-1"}))).await.answers(201);
        assert_eq!(
            (&made["tag"]["name"], &made["tag"]["resources"]["count"]),
            (&json!("k8s:c-1"), &json!(0))
        );
    }
    for _ in 0..2 {
        assert_eq!(cloud.call("POST", path, Some(carry.clone())).await.answers(204), Value::Null);
    }
    let shown = cloud.call("GET", "/v2/tags/k8s:c-1", None).await.answers(200);
    assert_eq!(shown["tag"]["resources"]["count"], 2);
    assert_eq!(shown["tag"]["resources"]["droplets"]["count"], 1);
    let shown = cloud.call("GET", &format!("/v2/load_balancers/{id}"), None).await.answers(200);
    assert_eq!(shown["load_balancer"]["tags"], json!(["k8s:c-1"]));
    let shown = cloud.call("GET", "/v2/droplets/101", None).await.answers(200);
    assert_eq!(shown["droplet"]["tags"], json!(["k8s:c-1"]));
    let one = json!({"resources": [{"resource_id": "101", "resource_type": "droplet"}]});
    cloud.call("DELETE", path, Some(one)).await.answers(204);
    cloud.call("DELETE", &format!("/v2/load_balancers/{id}"), None).await.answers(204);
    let inventory = cloud.driver.inventory().await.expect("inventory");
    let [tag] = inventory.auxiliaries.as_slice() else { panic!("not one: {inventory:?}") };
    assert_eq!(
        (tag.kind.as_str(), tag.name.as_str(), &tag.spec),
        ("tag", "k8s:c-1", &json!({"resources": []}))
    );
}

#[tokio::test]
async fn a_load_balancer_may_be_born_with_tags() {
    let cloud = start().await;
    let mut wanted = load_balancer("a");
    wanted["tags"] = json!(["k8s:c-1", "b"]);
    let shown = cloud.call("POST", "/v2/load_balancers", Some(wanted)).await.answers(202);
    assert_eq!(shown["load_balancer"]["tags"], json!(["k8s:c-1", "b"]));
    let shown = cloud.call("GET", "/v2/tags/b", None).await.answers(200);
    assert_eq!(shown["tag"]["resources"]["count"], 1);
}

#[tokio::test]
async fn tags_make_sense() {
    let cloud = start().await;
    for bad in ["", "no spaces", "ümlaut", &"x".repeat(256)] {
        cloud.call("POST", "/v2/tags", Some(json!({"name": bad}))).await.fails(422, "unprocessable_entity");
    }
    cloud.call("POST", "/v2/tags", Some(json!({"name": "t"}))).await.answers(201);
    for (kind, id) in [("load_balancer", "9"), ("droplet", "999"), ("volume", "1"), ("", "")] {
        let carry = json!({"resources": [{"resource_id": id, "resource_type": kind}]});
        let answer = cloud.call("POST", "/v2/tags/t/resources", Some(carry)).await;
        answer.fails(422, "unprocessable_entity");
    }
    cloud.call("GET", "/v2/tags/none", None).await.fails(404, "not_found");
}

#[tokio::test]
async fn certificates_in_use_stay() {
    let cloud = start().await;
    let new = json!({"name": "web", "type": "lets_encrypt", "dns_names": ["www.example.com"]});
    let made = cloud.call("POST", "/v2/certificates", Some(new)).await.answers(201);
    let id = made["certificate"]["id"].as_str().expect("an id");
    assert_eq!(
        (&made["certificate"]["type"], &made["certificate"]["name"]),
        (&json!("lets_encrypt"), &json!("web"))
    );
    let path = format!("/v2/certificates/{id}");
    assert_eq!(cloud.call("GET", &path, None).await.answers(200), made);
    let listed = cloud.call("GET", "/v2/certificates?name=web&page=1&per_page=1", None).await.answers(200);
    assert_eq!((&listed["certificates"][0], &listed["meta"]["total"]), (&made["certificate"], &json!(1)));
    let none = cloud.call("GET", "/v2/certificates?name=we", None).await.answers(200);
    assert_eq!(none["certificates"], json!([]));

    let mut wanted = load_balancer("a");
    wanted["type"] = json!("REGIONAL");
    let rule = |certificate: &str| {
        json!([{
            "entry_protocol": "https", "entry_port": 443, "target_protocol": "http", "target_port": 30443,
            "certificate_id": certificate,
        }])
    };
    for (certificate, words) in
        [("", "a certificate is required to accept https"), ("x", "certificate x was not found")]
    {
        wanted["forwarding_rules"] = rule(certificate);
        let answer = cloud.call("POST", "/v2/load_balancers", Some(wanted.clone())).await;
        assert_eq!(answer.fails(422, "unprocessable_entity"), words);
    }
    wanted["forwarding_rules"] = rule(id);
    let lb = cloud.call("POST", "/v2/load_balancers", Some(wanted)).await.answers(202);
    let words = "Make sure the certificate is not in use before deleting it";
    assert_eq!(cloud.call("DELETE", &path, None).await.fails(403, "forbidden"), words);
    let lb_path = format!("/v2/load_balancers/{}", lb["load_balancer"]["id"].as_str().expect("an id"));
    cloud.call("DELETE", &lb_path, None).await.answers(204);
    cloud.call("DELETE", &path, None).await.answers(204);
    cloud.call("DELETE", &path, None).await.fails(404, "not_found");
    cloud.call("GET", &path, None).await.fails(404, "not_found");
}

#[tokio::test]
async fn certificates_never_show_their_key() {
    let cloud = start().await;
    let incomplete = [
        json!({"name": "web"}),
        json!({"name": "web", "type": "lets_encrypt"}),
        json!({"name": "web", "type": "other"}),
        json!({"name": "", "type": "lets_encrypt", "dns_names": ["a"]}),
    ];
    for bad in incomplete {
        cloud.call("POST", "/v2/certificates", Some(bad)).await.fails(422, "unprocessable_entity");
    }
    let new = json!({"name": "web", "private_key": "s3cr3t-k3y", "leaf_certificate": "PEM"});
    let made = cloud.call("POST", "/v2/certificates", Some(new)).await;
    assert_eq!(made.answers(201)["certificate"]["type"], "custom");
    let inventory = cloud.driver.inventory().await.expect("inventory");
    assert!(!made.text.contains("s3cr3t") && !format!("{inventory:?}").contains("s3cr3t"));
}

fn firewall(name: &str) -> Value {
    json!({
        "name": name,
        "inbound_rules": [{"protocol": "tcp", "ports": "31000", "sources": {"addresses": ["0.0.0.0/0", "::/0"]}}],
        "outbound_rules": [{"protocol": "tcp", "ports": "all", "destinations": {"addresses": ["0.0.0.0/0"]}}],
        "droplet_ids": [101],
        "tags": ["k8s:c-1"],
    })
}

#[tokio::test]
async fn firewalls_come_back_as_they_were_sent() {
    let cloud = start().await;
    let made = cloud.call("POST", "/v2/firewalls", Some(firewall("public"))).await.answers(202);
    let shown = &made["firewall"];
    for (field, value) in firewall("public").as_object().expect("an object") {
        assert_eq!(shown[field], *value, "{field}");
    }
    assert_eq!((&shown["status"], &shown["pending_changes"]), (&json!("succeeded"), &json!([])));
    let path = format!("/v2/firewalls/{}", shown["id"].as_str().expect("an id"));
    assert_eq!(cloud.call("GET", &path, None).await.answers(200), made);
    let listed = cloud.call("GET", "/v2/firewalls?page=1&per_page=50", None).await.answers(200);
    assert_eq!(listed, json!({"firewalls": [shown], "links": {}, "meta": {"total": 1}}));
    let mut changed = firewall("public");
    changed["inbound_rules"][0]["ports"] = json!("30000-32767");
    changed["droplet_ids"] = json!(null);
    let after = cloud.call("PUT", &path, Some(changed)).await.answers(200);
    assert_eq!(after["firewall"]["created_at"], shown["created_at"]);
    assert_eq!(after["firewall"]["inbound_rules"][0]["ports"], "30000-32767");
    assert_eq!(cloud.driver.inventory().await.expect("inventory").auxiliaries[0].kind, "firewall");
    cloud.call("DELETE", &path, None).await.answers(204);
    for (method, body) in [("GET", None), ("DELETE", None), ("PUT", Some(firewall("public")))] {
        cloud.call(method, &path, body).await.fails(404, "not_found");
    }
}

#[tokio::test]
async fn firewalls_make_sense() {
    let cloud = start().await;
    cloud.call("POST", "/v2/firewalls", Some(firewall("a"))).await.answers(202);
    let taken = cloud.call("POST", "/v2/firewalls", Some(firewall("a"))).await;
    assert_eq!(taken.fails(409, "conflict"), "duplicate name");
    let other = cloud.call("POST", "/v2/firewalls", Some(firewall("b"))).await.answers(202);
    let path = format!("/v2/firewalls/{}", other["firewall"]["id"].as_str().expect("an id"));
    cloud.call("PUT", &path, Some(firewall("a"))).await.fails(409, "conflict");
    let rule = |protocol: &str, ports: Value, address: &str| json!([{"protocol": protocol, "ports": ports, "sources": {"addresses": [address]}}]);
    let cases = [
        ("name", json!("-a"), "name must begin with a letter or number"),
        ("droplet_ids", json!([999]), "droplet 999 was not found"),
        ("tags", json!(["no spaces"]), "tag name must have"),
        ("inbound_rules", rule("tcp", json!("0-70000"), "::/0"), "ports 0-70000 are none"),
        ("inbound_rules", rule("tcp", json!("90-80"), "::/0"), "ports 90-80 are none"),
        ("inbound_rules", rule("tcp", json!(null), "::/0"), "ports are required for tcp and udp rules"),
        ("inbound_rules", rule("sctp", json!("80"), "::/0"), "protocol must be tcp, udp or icmp"),
        ("inbound_rules", rule("icmp", json!(null), "everywhere"), "everywhere is not an address or CIDR"),
        ("inbound_rules", rule("udp", json!("53"), "192.0.2.0/33"), "192.0.2.0/33 is not an address or CIDR"),
        (
            "inbound_rules",
            json!([{"protocol": "tcp", "ports": 80, "sources": {}}]),
            "request payload validation failed",
        ),
    ];
    for (field, value, words) in cases {
        let mut wanted = firewall("c");
        wanted[field] = value;
        let answer = cloud.call("POST", "/v2/firewalls", Some(wanted)).await;
        let message = answer.fails(422, "unprocessable_entity");
        assert!(message.contains(words), "{field}: {message}");
    }
    let empty = json!({"name": "c", "inbound_rules": [], "outbound_rules": []});
    let answer = cloud.call("POST", "/v2/firewalls", Some(empty)).await;
    assert_eq!(answer.fails(422, "unprocessable_entity"), "must have at least one rule");
}
