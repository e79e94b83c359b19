//! Dialect `digitalocean`: load balancers.

use crate::digitalocean_cloud::{Calls, created, load_balancer, start};
use crate::support::{TestCloud, until};
use fake_cloud_driver::{Frontend, HealthCheck, LbState, LoadBalancer, Op, Settings};
use serde_json::{Value, json};

async fn only(cloud: &TestCloud) -> LoadBalancer {
    let inventory = cloud.driver.inventory().await.expect("inventory");
    let [lb] = inventory.load_balancers.as_slice() else { panic!("not one: {inventory:?}") };
    lb.clone()
}

#[tokio::test]
async fn a_load_balancer_is_what_was_asked_for() {
    let cloud = start().await;
    let answer = cloud.call("POST", "/v2/load_balancers", Some(load_balancer("a1"))).await.answers(202);
    let shown = &answer["load_balancer"];
    let id = shown["id"].as_str().expect("an id");
    assert!(id.len() == 36 && id.split('-').map(str::len).eq([8, 4, 4, 4, 12]), "{id}");
    for (field, value) in [
        ("name", json!("a1")),
        ("ip", json!("203.0.113.1")),
        ("status", json!("active")),
        ("type", json!("REGIONAL_NETWORK")),
        ("network", json!("EXTERNAL")),
        ("network_stack", json!("IPV4")),
        ("algorithm", json!("round_robin")),
        ("size_unit", json!(1)),
        ("droplet_ids", json!([101, 102])),
        ("tag", json!("")),
        ("tags", json!([])),
        ("firewall", json!({"deny": [], "allow": []})),
        ("sticky_sessions", json!({"type": "none"})),
        ("enable_proxy_protocol", json!(false)),
        ("http_idle_timeout_seconds", json!(60)),
    ] {
        assert_eq!(shown[field], value, "{field}");
    }
    assert_eq!(shown["region"]["slug"], "fra1");
    assert_eq!(shown["health_check"], load_balancer("a1")["health_check"]);
    let rule = json!({
        "entry_protocol": "tcp", "entry_port": 80, "target_protocol": "tcp", "target_port": 80,
        "certificate_id": "", "tls_passthrough": false,
    });
    assert_eq!(shown["forwarding_rules"], json!([rule]));
    let again = cloud.call("GET", &format!("/v2/load_balancers/{id}"), None).await.answers(200);
    assert_eq!(again, answer);
    let listed = cloud.call("GET", "/v2/load_balancers?page=1&per_page=50", None).await.answers(200);
    assert_eq!(listed, json!({"load_balancers": [shown], "links": {}, "meta": {"total": 1}}));

    let lb = only(&cloud).await;
    assert_eq!((lb.id.as_str(), lb.name.as_str(), lb.owner.as_str()), (id, "a1", "a1"));
    assert_eq!(lb.frontends, [Frontend::new(80, "TCP", 80)]);
    let check = HealthCheck { protocol: "HTTP".to_owned(), path: "/healthz".to_owned(), port: 10256 };
    assert_eq!((lb.backends, lb.health_check), (vec!["101".to_owned(), "102".to_owned()], Some(check)));
}

#[tokio::test]
async fn omitted_fields_have_defaults() {
    let cloud = start().await;
    let rule =
        json!({"entry_protocol": "http", "entry_port": 80, "target_protocol": "http", "target_port": 30080});
    let least = json!({"name": "a", "region": "fra1", "forwarding_rules": [rule], "size": "lb-medium"});
    let shown = cloud.call("POST", "/v2/load_balancers", Some(least)).await.answers(202);
    let shown = &shown["load_balancer"];
    assert_eq!((&shown["type"], &shown["network"]), (&json!("REGIONAL"), &json!("EXTERNAL")));
    assert_eq!((&shown["size"], &shown["size_unit"]), (&json!("lb-medium"), &json!(3)));
    assert_eq!((&shown["health_check"]["port"], &shown["health_check"]["path"]), (&json!(80), &json!("/")));
    assert_eq!(shown["droplet_ids"], json!([]));
}

#[tokio::test]
async fn it_is_new_without_an_address_and_then_active() {
    let cloud = start().await;
    cloud.set(Settings { provisioning_ms: Some(3_600_000), ..Settings::default() }).await;
    let fresh = cloud.call("POST", "/v2/load_balancers", Some(load_balancer("a"))).await.answers(202);
    assert_eq!(
        (&fresh["load_balancer"]["status"], &fresh["load_balancer"]["ip"]),
        (&json!("new"), &json!(""))
    );
    let id = fresh["load_balancer"]["id"].as_str().expect("an id");
    let path = format!("/v2/load_balancers/{id}");
    let updated = cloud.call("PUT", &path, Some(load_balancer("a"))).await.answers(200);
    assert_eq!(updated["load_balancer"]["status"], "new");

    cloud.set(Settings { provisioning_ms: Some(20), ..Settings::default() }).await;
    let id = created(&cloud, "b").await;
    let path = format!("/v2/load_balancers/{id}");
    let active = until(async || {
        let shown = cloud.call("GET", &path, None).await.answers(200);
        (shown["load_balancer"]["status"] == "active").then_some(shown)
    });
    assert_eq!(active.await["load_balancer"]["ip"], "203.0.113.2");
}

#[tokio::test]
async fn both_families_give_two_addresses() {
    let cloud = start().await;
    let mut wanted = load_balancer("a");
    wanted["network_stack"] = json!("DUALSTACK");
    let shown = cloud.call("POST", "/v2/load_balancers", Some(wanted)).await.answers(202);
    let shown = &shown["load_balancer"];
    assert_eq!((&shown["ip"], &shown["ipv6"]), (&json!("203.0.113.1"), &json!("2001:db8::cb00:7101")));
    assert_eq!(only(&cloud).await.addresses.len(), 2);
}

#[tokio::test]
async fn put_replaces_all_but_what_stays_for_ever() {
    let cloud = start().await;
    let id = created(&cloud, "a").await;
    let path = format!("/v2/load_balancers/{id}");
    let before = cloud.call("GET", &path, None).await.answers(200);
    let mut wanted = load_balancer("b");
    wanted["forwarding_rules"] = json!([
        {"entry_protocol": "udp", "entry_port": 53, "target_protocol": "udp", "target_port": 53},
    ]);
    wanted["droplet_ids"] = json!([102]);
    wanted["firewall"] = json!({"allow": ["cidr:192.0.2.0/24", "ip:192.0.2.7", "ip:2001:db8::1"]});
    let after = cloud.call("PUT", &path, Some(wanted)).await.answers(200);
    let (before, after) = (&before["load_balancer"], &after["load_balancer"]);
    for same in ["id", "ip", "created_at", "region", "vpc_uuid"] {
        assert_eq!(before[same], after[same], "{same}");
    }
    assert_eq!((&after["name"], &after["droplet_ids"]), (&json!("b"), &json!([102])));
    let lb = only(&cloud).await;
    assert_eq!(lb.frontends, [Frontend::new(53, "UDP", 53)]);
    assert_eq!(lb.source_ranges, ["192.0.2.0/24", "192.0.2.7/32", "2001:db8::1/128"]);
    assert_eq!(lb.owner, "b");
    for (field, value) in [
        ("region", json!("nyc1")),
        ("type", json!("REGIONAL")),
        ("network", json!("INTERNAL")),
        ("network_stack", json!("DUALSTACK")),
        ("vpc_uuid", json!("760e09ef-dc84-11e8-981e-3cfdfeaae000")),
    ] {
        let mut changed = load_balancer("b");
        changed[field] = value;
        let message = cloud.call("PUT", &path, Some(changed)).await.fails(422, "unprocessable_entity");
        assert_eq!(message, format!("{field} cannot be changed after creation"));
    }
}

#[tokio::test]
async fn deletion_is_at_once_and_final() {
    let cloud = start().await;
    cloud.set(Settings { deletion_ms: Some(3_600_000), ..Settings::default() }).await;
    let id = created(&cloud, "a").await;
    let path = format!("/v2/load_balancers/{id}");
    assert_eq!(cloud.call("DELETE", &path, None).await.answers(204), Value::Null);
    for (method, body) in [("GET", None), ("DELETE", None), ("PUT", Some(load_balancer("a")))] {
        cloud.call(method, &path, body).await.fails(404, "not_found");
    }
    let inventory = cloud.driver.inventory().await.expect("inventory");
    assert!(inventory.load_balancers.is_empty() && inventory.auxiliaries.is_empty());
    assert_ne!(created(&cloud, "a").await, id);
}

#[tokio::test]
async fn a_deleted_droplet_cannot_be_a_target() {
    let cloud = start().await;
    let id = created(&cloud, "a").await;
    cloud.driver.delete_instance("101").await.expect("deleted");
    let path = format!("/v2/load_balancers/{id}");
    let shown = cloud.call("GET", &path, None).await.answers(200);
    assert_eq!(shown["load_balancer"]["droplet_ids"], json!([102]));
    let message = cloud.call("PUT", &path, Some(load_balancer("a"))).await.fails(422, "unprocessable_entity");
    assert_eq!(message, "droplet 101 was not found");
}

#[tokio::test]
async fn nonsense_is_refused() {
    let cloud = start().await;
    let id = created(&cloud, "taken").await;
    let rule = |entry: &str, port: Value, target: &str, to: u32| json!({"entry_protocol": entry, "entry_port": port, "target_protocol": target, "target_port": to});
    let cases = [
        ("name", json!(null), "name is required"),
        ("name", json!("taken"), "name is not unique"),
        ("name", json!("x".repeat(256)), "name is longer than 255 characters"),
        ("name", json!("no spaces"), "name may only contain letters, numbers, dashes and periods"),
        ("region", json!(""), "region is required"),
        ("type", json!("BIG"), "type must be one of REGIONAL, REGIONAL_NETWORK"),
        ("droplet_ids", json!([101, 999]), "droplet 999 was not found"),
        ("droplet_ids", json!(["101"]), "request payload validation failed"),
        ("droplet_ids", json!([-1]), "request payload validation failed"),
        ("forwarding_rules", json!([]), "forwarding_rules must have at least one rule"),
        ("forwarding_rules", json!(null), "forwarding_rules must have at least one rule"),
        ("forwarding_rules", json!([rule("tcp", json!(0), "tcp", 1)]), "ports must be between 1 and 65535"),
        (
            "forwarding_rules",
            json!([rule("tcp", json!(65_536), "tcp", 1)]),
            "request payload validation failed",
        ),
        (
            "forwarding_rules",
            json!([rule("tcp", json!("80"), "tcp", 1)]),
            "request payload validation failed",
        ),
        (
            "forwarding_rules",
            json!([rule("http", json!(80), "http", 1)]),
            "forwards tcp to tcp and udp to udp only",
        ),
        (
            "forwarding_rules",
            json!([rule("tcp", json!(80), "tcp", 1), rule("tcp", json!(80), "tcp", 2)]),
            "forwarding rules have the same entry port and protocol: tcp 80",
        ),
        ("size_unit", json!(201), "size_unit must be between 1 and 200"),
        ("size", json!("huge"), "size must be lb-small, lb-medium or lb-large"),
        ("health_check", json!({"protocol": "udp"}), "health check protocol must be http, https or tcp"),
        ("health_check", json!({"path": "x"}), "health check path must begin with /"),
        ("health_check", json!({"port": 0}), "health check port must be between 1 and 65535"),
        ("health_check", json!({"healthy_threshold": 1}), "healthy_threshold must be between 2 and 10"),
        ("sticky_sessions", json!({"type": "cookies"}), "cookie_name and cookie_ttl_seconds are required"),
        ("firewall", json!({"allow": ["192.0.2.1"]}), "is neither ip:ADDRESS nor cidr:CIDR"),
        ("firewall", json!({"allow": ["cidr:x/33"]}), "source range x/33 is not a CIDR"),
        ("http_idle_timeout_seconds", json!(5), "http_idle_timeout_seconds must be between 30 and 600"),
        ("tags", json!(["no spaces"]), "tag name must have 1 to 255 characters"),
    ];
    for (field, value, words) in cases {
        let mut wanted = load_balancer("a");
        wanted[field] = value.clone();
        let answer = cloud.call("POST", "/v2/load_balancers", Some(wanted)).await;
        let message = answer.fails(422, "unprocessable_entity");
        assert!(message.contains(words), "{field} {value}: {message}");
    }
    let mut both = load_balancer("a");
    both["size"] = json!("lb-small");
    both["size_unit"] = json!(2);
    let answer = cloud.call("POST", "/v2/load_balancers", Some(both)).await;
    assert_eq!(answer.fails(422, "unprocessable_entity"), "only one of size and size_unit can be provided");
    created(&cloud, "other").await;
    let path = format!("/v2/load_balancers/{id}");
    let answer = cloud.call("PUT", &path, Some(load_balancer("other"))).await;
    assert_eq!(answer.fails(422, "unprocessable_entity"), "name is not unique");
    assert_eq!(cloud.driver.inventory().await.expect("inventory").load_balancers.len(), 2);
}

#[tokio::test]
async fn rules_and_checks_follow_what_a_test_has_changed() {
    let cloud = start().await;
    let id = created(&cloud, "a").await;
    let mut lb = only(&cloud).await;
    lb.frontends = vec![Frontend::new(81, "UDP", 30081)];
    lb.health_check = Some(HealthCheck { protocol: "TCP".to_owned(), path: String::new(), port: 9 });
    cloud.driver.put_load_balancer(&lb).await.expect("put");
    let shown = cloud.call("GET", &format!("/v2/load_balancers/{id}"), None).await.answers(200);
    let rule = &shown["load_balancer"]["forwarding_rules"][0];
    assert_eq!(
        (&rule["entry_protocol"], &rule["entry_port"], &rule["target_port"]),
        (&json!("udp"), &json!(81), &json!(30081))
    );
    let check = &shown["load_balancer"]["health_check"];
    assert_eq!(
        (&check["protocol"], &check["port"], &check["check_interval_seconds"]),
        (&json!("tcp"), &json!(9), &json!(3))
    );

    let bare =
        LoadBalancer { id: "bare".to_owned(), name: "bare".to_owned(), details: Value::Null, ..lb.clone() };
    cloud.driver.put_load_balancer(&bare).await.expect("put");
    let shown = cloud.call("GET", "/v2/load_balancers/bare", None).await.answers(200);
    assert_eq!(shown["load_balancer"]["type"], "REGIONAL");
    let leaving = LoadBalancer { state: LbState::Deleting, ..bare };
    cloud.driver.put_load_balancer(&leaving).await.expect("put");
    cloud.call("GET", "/v2/load_balancers/bare", None).await.fails(404, "not_found");
    let listed = cloud.call("GET", "/v2/load_balancers", None).await.answers(200);
    assert_eq!(listed["meta"]["total"], 1);
}

#[tokio::test]
async fn a_restored_inventory_is_the_same_to_callers() {
    let cloud = start().await;
    let id = created(&cloud, "a").await;
    let path = format!("/v2/load_balancers/{id}");
    let before = cloud.call("GET", &path, None).await.answers(200);
    let baseline = cloud.driver.inventory().await.expect("inventory");
    cloud.call("DELETE", &path, None).await.answers(204);
    cloud.driver.restore(&baseline).await.expect("restored");
    assert_eq!(cloud.call("GET", &path, None).await.answers(200), before);
    let entry = cloud.journal().await.into_iter().find(|entry| entry.op == Op::LbDelete).expect("deleted");
    assert_eq!((entry.resource.as_deref(), entry.owner.as_deref()), (Some(id.as_str()), Some("a")));
}
