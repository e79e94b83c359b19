//! The dialect `openstack` and everything that works in the same way in every dialect: faults, barriers,
//! journal, inventory, the strict and the lenient cloud. Its individual calls are tested with its own client
//! (`tests/clients/openstack`).

use crate::support::{LIMIT, OTHER_TOKEN, Reply, TestCloud, about, instance, on, until};
use fake_cloud::Unknown;
use fake_cloud_driver::{Effect, Instance, Match, Op, Route, Settings};
use reqwest::Method;
use serde_json::{Value, json};

const SUBNET: &str = "fa4ec10d-0000-8000-8000-a00000000002";
const EXTERNAL: &str = "fa4ec10d-0000-8000-8000-a00000000003";
const ROUTER: &str = "/network/v2.0/routers/fa4ec10d-0000-8000-8000-a00000000005";
const LBS: &str = "/load-balancer/v2.0/lbaas/loadbalancers";

async fn start(unknown: Unknown) -> TestCloud {
    let machine = |id: &str| Instance { provider_id: Some(format!("openstack:///{id}")), ..instance(id) };
    TestCloud::speaking("openstack", unknown, &[machine("s-1"), machine("s-2")]).await
}

async fn call(cloud: &TestCloud, method: Method, path: &str, body: Option<Value>) -> Reply {
    let call = cloud.request(method, path);
    Reply::of(match body {
        Some(body) => call.json(&body),
        None => call,
    })
    .await
}

async fn get(cloud: &TestCloud, path: &str) -> Reply {
    call(cloud, Method::GET, path, None).await
}

/// A load balancer for the Service with this namespace and name, as the CCM creates it.
fn balancer(service: &str) -> Value {
    let member = |ip: &str| json!({"address": ip, "protocol_port": 30080, "name": ip, "subnet_id": SUBNET});
    let pool = json!({"name": "p", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN",
        "members": [member("10.0.0.1"), member("10.0.0.2")],
        "healthmonitor": {"name": "m", "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1}});
    json!({"loadbalancer": {
        "name": format!("kube_service_kubernetes_{}", service.replace('/', "_")),
        "description": format!("Kubernetes external service {service} from cluster kubernetes"),
        "provider": "amphora", "vip_subnet_id": SUBNET, "tags": ["t"],
        "listeners": [{"name": "l", "protocol": "TCP", "protocol_port": 80, "allowed_cidrs": ["0.0.0.0/0"],
            "default_pool": pool}],
    }})
}

async fn created(cloud: &TestCloud, service: &str) -> Value {
    let made = call(cloud, Method::POST, LBS, Some(balancer(service))).await.answers(201);
    made["loadbalancer"].clone()
}

fn id_of(part: &Value) -> &str {
    part["id"].as_str().expect("an id")
}

#[tokio::test]
async fn a_token_is_given_for_a_secret_and_tells_replicas_apart() {
    let cloud = start(Unknown::Refused).await;
    let ask = async |secret: &str| {
        let body = json!({"auth": {"identity": {"methods": ["password"], "password": {"user": {
            "name": "admin", "password": secret, "domain": {"name": "Default"}}}},
            "scope": {"project": {"name": "demo", "domain": {"name": "Default"}}}}});
        let call = cloud.http.post(cloud.url("/identity/v3/auth/tokens")).json(&body).timeout(LIMIT);
        call.send().await.expect("an answer")
    };
    let answer = ask(OTHER_TOKEN).await;
    assert_eq!(answer.status(), 201);
    let token = answer.headers()["x-subject-token"].to_str().expect("text").to_owned();
    let body: Value = answer.json().await.expect("JSON");
    let urls: Vec<&str> = body["token"]["catalog"]
        .as_array()
        .expect("a catalog")
        .iter()
        .map(|entry| entry["endpoints"][0]["url"].as_str().expect("a URL"))
        .collect();
    let paths = ["/identity/v3", "/compute/v2.1", "/network", "/load-balancer"];
    assert_eq!(urls, paths.map(|path| cloud.url(path)));
    let servers = cloud.http.get(cloud.url("/compute/v2.1/servers/s-1")).header("X-Auth-Token", token);
    Reply::of(servers).await.answers(200);
    assert_eq!(ask("wrong").await.status(), 401);
    let stranger = Reply::of(cloud.http.get(cloud.url("/compute/v2.1/servers/s-1"))).await;
    assert_eq!(stranger.answers(401)["error"]["code"], 401);
    let versions = Reply::of(cloud.http.get(cloud.url("/load-balancer/"))).await.answers(200);
    assert_eq!(
        versions["versions"].as_array().and_then(|all| all.last()).expect("a version")["status"],
        "CURRENT"
    );
    let who: Vec<Option<String>> = cloud.journal().await.into_iter().map(|entry| entry.credential).collect();
    assert_eq!(
        who,
        [Some("replica-2"), Some("replica-2"), None, None, None].map(|name| name.map(str::to_owned))
    );
}

#[tokio::test]
async fn a_port_shows_private_addresses_and_a_server_all() {
    let cloud = start(Unknown::Refused).await;
    let ports = get(&cloud, "/network/v2.0/ports?device_id=s-1").await.answers(200);
    let fixed = json!([{"subnet_id": SUBNET, "ip_address": "192.0.2.10"}]);
    assert_eq!((&ports["ports"][0]["fixed_ips"], &ports["ports"][0]["status"]), (&fixed, &json!("ACTIVE")));
    let found = get(&cloud, "/compute/v2.1/servers/detail?name=%5Enode-s-1%24").await.answers(200);
    assert_eq!(
        (id_of(&found["servers"][0]), &found["servers"][0]["flavor"]["original_name"]),
        ("s-1", &json!("m1.small"))
    );
    assert_eq!(found["servers"].as_array().map(Vec::len), Some(1));
    get(&cloud, "/compute/v2.1/servers/s-3").await.answers(404);
    get(&cloud, "/compute/v2.1/servers/detail?name=n.*").await.answers(501);
}

#[tokio::test]
async fn calls_about_a_part_are_about_its_balancer() {
    let cloud = start(Unknown::Refused).await;
    let made = created(&cloud, "default/web").await;
    created(&cloud, "default/api").await;
    let id = id_of(&made);
    let base = "/load-balancer/v2.0/lbaas";
    let listeners = get(&cloud, &format!("{base}/listeners?loadbalancer_id={id}")).await.answers(200);
    let pools = get(&cloud, &format!("{base}/pools?loadbalancer_id={id}")).await.answers(200);
    let (listener, pool) = (id_of(&listeners["listeners"][0]), id_of(&pools["pools"][0]));
    assert_eq!(listeners["listeners"][0]["default_pool_id"], pool);
    get(&cloud, &format!("{base}/pools/{pool}/members")).await.answers(200);
    let members = json!({"members": [{"address": "10.0.0.3", "protocol_port": 30080, "name": "c"}]});
    call(&cloud, Method::PUT, &format!("{base}/pools/{pool}/members"), Some(members)).await.answers(202);
    let monitor = pools["pools"][0]["healthmonitor_id"].as_str().expect("a monitor").to_owned();
    call(&cloud, Method::DELETE, &format!("{base}/healthmonitors/{monitor}"), None).await.answers(204);
    call(&cloud, Method::DELETE, &format!("{base}/listeners/{listener}"), None).await.answers(204);
    let port = made["vip_port_id"].as_str().expect("a port");
    get(&cloud, &format!("/network/v2.0/floatingips?port_id={port}")).await.answers(200);
    let description = "Floating IP for Kubernetes external service default/web from cluster kubernetes";
    let wanted =
        json!({"floatingip": {"floating_network_id": EXTERNAL, "port_id": port, "description": description}});
    let floating = call(&cloud, Method::POST, "/network/v2.0/floatingips", Some(wanted)).await.answers(201);
    let journal = cloud.journal().await;
    let ops: Vec<Op> = journal[2..].iter().map(|entry| entry.op).collect();
    let about_parts = [Op::LbGet, Op::LbGet, Op::LbGet, Op::LbUpdate, Op::LbUpdate, Op::LbUpdate];
    assert_eq!(ops, [&about_parts[..], &[Op::AuxRead, Op::AuxCreate]].concat());
    for entry in &journal[2..] {
        assert_eq!(entry.owner.as_deref(), Some("default/web"), "{}", entry.request);
    }
    let inventory = cloud.driver.inventory().await.expect("inventory");
    let lb = inventory.load_balancers.iter().find(|lb| lb.id == id).expect("it is there");
    assert_eq!(
        (lb.frontends.len(), &lb.backends[..], &lb.health_check),
        (0, &["10.0.0.3".to_owned()][..], &None)
    );
    let aux = &inventory.auxiliaries[0];
    assert_eq!((aux.owner.as_str(), aux.load_balancer.as_deref()), ("default/web", Some(id)));
    assert_eq!(floating["floatingip"]["floating_ip_address"], json!(lb.addresses[0].ip));
}

#[tokio::test]
async fn faults_and_barriers_find_a_balancer_by_whom_it_belongs_to() {
    let cloud = start(Unknown::Refused).await;
    let status = |status| Effect::Status { status, retry_after_s: None };
    let fault = cloud.inject(Match { ops: vec![Op::LbCreate], ..about("default/web") }, status(503)).await;
    call(&cloud, Method::POST, LBS, Some(balancer("default/web"))).await.answers(503);
    cloud.driver.clear_fault(fault).await.expect("cleared");
    let made = created(&cloud, "default/web").await;
    cloud.inject(Match { ops: vec![Op::LbGet], ..about("default/web") }, status(500)).await;
    let name = made["name"].as_str().expect("a name");
    get(&cloud, &format!("{LBS}?name={name}")).await.answers(500);
    get(&cloud, &format!("{LBS}/{}", id_of(&created(&cloud, "default/api").await))).await.answers(200);
    let slow = Settings { deletion_ms: Some(3_600_000), ..Settings::default() };
    cloud.set(slow).await;
    let barrier = cloud.driver.raise_barrier(&on(Op::LbDelete)).await.expect("a barrier");
    let path = format!("{LBS}/{}?cascade=true", id_of(&made));
    let waits = async {
        until(async || (cloud.driver.barrier(barrier.id).await.ok()?.waiting == 1).then_some(())).await;
        cloud.driver.clear_faults().await.expect("cleared");
        cloud.driver.release_barrier(barrier.id).await.expect("released");
    };
    let (deleted, ()) = tokio::join!(call(&cloud, Method::DELETE, &path, None), waits);
    deleted.answers(204);
    let left = get(&cloud, &format!("{LBS}/{}", id_of(&made))).await.answers(200);
    assert_eq!(left["loadbalancer"]["provisioning_status"], "PENDING_DELETE");
    call(&cloud, Method::DELETE, &path, None).await.answers(409);
}

#[tokio::test]
async fn routes_lead_to_the_machine_that_has_the_next_hop() {
    let cloud = start(Unknown::Refused).await;
    let routes = |destination: &str| json!({"router": {"routes": [{"destination": destination, "nexthop": "192.0.2.10"}]}});
    let wanted = routes("10.244.1.0/24");
    for _ in 0..2 {
        let path = format!("{ROUTER}/add_extraroutes");
        let router = call(&cloud, Method::PUT, &path, Some(wanted.clone())).await.answers(200);
        assert_eq!(router["router"]["routes"], wanted["router"]["routes"]);
    }
    let bad = call(&cloud, Method::PUT, &format!("{ROUTER}/add_extraroutes"), Some(routes("x"))).await;
    assert_eq!(bad.answers(400)["NeutronError"]["type"], "Bad Request");
    let kept = cloud.driver.inventory().await.expect("inventory").routes;
    assert_eq!((kept.len(), kept[0].target_instance.as_deref()), (1, Some("s-1")));
    for _ in 0..2 {
        let path = format!("{ROUTER}/remove_extraroutes");
        call(&cloud, Method::PUT, &path, Some(wanted.clone())).await.answers(200);
    }
    let ops: Vec<Op> = cloud.journal().await.iter().map(|entry| entry.op).collect();
    assert_eq!(ops[3..], [Op::RouteDelete, Op::RouteDelete]);
    let router = get(&cloud, ROUTER).await.answers(200);
    assert_eq!(router["router"]["routes"], json!([]));
}

#[tokio::test]
async fn a_route_into_a_black_hole_has_an_unused_next_hop() {
    let cloud = start(Unknown::Refused).await;
    let hole = Route {
        id: String::new(),
        destination: "10.244.9.0/24".to_owned(),
        target_instance: None,
        target_addresses: Vec::new(),
        blackhole: true,
    };
    cloud.driver.put_route(&hole).await.expect("a black hole");
    let router = get(&cloud, ROUTER).await.answers(200);
    let shown = router["router"]["routes"].clone();
    assert_eq!(shown, json!([{"destination": "10.244.9.0/24", "nexthop": "10.0.0.254"}]));
    let removed = json!({"router": {"routes": shown}});
    call(&cloud, Method::PUT, &format!("{ROUTER}/remove_extraroutes"), Some(removed)).await.answers(200);
    assert!(cloud.driver.inventory().await.expect("inventory").routes.is_empty());
}

#[tokio::test]
async fn unknown_calls_and_fields_are_refused() {
    let cloud = start(Unknown::Refused).await;
    let mut wanted = balancer("default/web");
    wanted["loadbalancer"]["listeners"][0]["default_pool"]["members"][0]["colour"] = json!("red");
    call(&cloud, Method::POST, LBS, Some(wanted)).await.answers(501);
    get(&cloud, "/network/v2.0/trunks").await.answers(501);
    get(&cloud, "/volume/v3/volumes").await.answers(501);
    let unknown: Vec<_> = cloud.journal().await.into_iter().filter_map(|entry| entry.unknown).collect();
    assert_eq!((unknown.len(), unknown[0].as_str()), (3, "of the body: member.colour"));
}
