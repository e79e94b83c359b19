//! The cloud's rules, without HTTP and without waiting.

use super::{AuxSpec, Cloud, Deleted, Dependents, Families, LbSpec, Refusal, RouteTarget};
use fake_cloud_driver::{
    Address, Frontend, HealthCheck, Instance, InstanceState, Inventory, LbAddressing, LbState, LoadBalancer,
    Op, Settings,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

const T0: Duration = Duration::ZERO;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn instance(id: &str) -> Instance {
    Instance {
        id: id.to_owned(),
        name: format!("node-{id}"),
        provider_id: Some(format!("native://{id}")),
        instance_type: "m1.small".to_owned(),
        zone: "zone-a".to_owned(),
        region: "region-1".to_owned(),
        addresses: vec![
            Address { kind: "InternalIP".to_owned(), address: "192.0.2.10".to_owned() },
            Address { kind: "ExternalIP".to_owned(), address: "198.51.100.10".to_owned() },
        ],
        labels: BTreeMap::new(),
        state: InstanceState::Running,
    }
}

fn spec(name: &str) -> LbSpec {
    LbSpec {
        name: name.to_owned(),
        owner: format!("owner-of-{name}"),
        frontends: vec![Frontend::new(80, "TCP", 30080)],
        ..LbSpec::default()
    }
}

fn firewall(name: &str, load_balancer: Option<&str>) -> AuxSpec {
    AuxSpec {
        name: name.to_owned(),
        owner: String::new(),
        load_balancer: load_balancer.map(str::to_owned),
        spec: json!({"ports": []}),
    }
}

/// A cloud with two instances.
fn cloud() -> Cloud {
    let mut cloud = Cloud::default();
    cloud.put_instances(vec![instance("i-1"), instance("i-2")]).expect("valid");
    cloud
}

fn slow(provisioning_ms: u64, deletion_ms: u64) -> Settings {
    Settings { provisioning_ms: Some(provisioning_ms), deletion_ms: Some(deletion_ms), ..Settings::default() }
}

fn state_of(cloud: &mut Cloud, id: &str, now: Duration) -> Option<(LbState, usize)> {
    cloud.load_balancer(id, now).ok().map(|lb| (lb.state, lb.addresses.len()))
}

#[test]
fn a_load_balancer_is_active_at_once_unless_provisioning_takes_time() {
    let mut cloud = cloud();
    let lb = cloud.create_load_balancer(spec("a"), Families::V4, T0).expect("created");
    assert_eq!((lb.id.as_str(), lb.state, lb.session_affinity.as_str()), ("lb-1", LbState::Active, "None"));
    assert_eq!(lb.addresses[0].ip, Some("203.0.113.1".parse().expect("an address")));

    cloud.set(&slow(10_000, 0), T0).expect("set");
    let lb = cloud.create_load_balancer(spec("b"), Families::V4, at(100)).expect("created");
    assert_eq!((lb.id.as_str(), lb.state, lb.addresses.len()), ("lb-2", LbState::Provisioning, 0));
    assert_eq!(state_of(&mut cloud, "lb-2", at(109)), Some((LbState::Provisioning, 0)));
    assert_eq!(state_of(&mut cloud, "lb-2", at(110)), Some((LbState::Active, 1)));
}

#[test]
fn an_address_is_reserved_while_provisioning_and_free_after_deletion() {
    let mut cloud = cloud();
    cloud.set(&slow(10_000, 10_000), T0).expect("set");
    cloud.create_load_balancer(spec("a"), Families::V4, T0).expect("created");
    cloud.create_load_balancer(spec("b"), Families::V4, T0).expect("created");
    let inventory = cloud.inventory(at(10));
    let ips: Vec<_> = inventory.load_balancers.iter().map(|lb| lb.addresses[0].ip).collect();
    assert_ne!(ips[0], ips[1]);
}

#[test]
fn deletion_takes_its_time() {
    let mut cloud = cloud();
    cloud.set(&slow(60_000, 10_000), T0).expect("set");
    cloud.create_load_balancer(spec("a"), Families::V4, T0).expect("created");
    let deleted = cloud.delete_load_balancer("lb-1", Dependents::Forbid, at(1)).expect("deleted");
    assert!(matches!(deleted, Deleted::Deleting(lb) if lb.state == LbState::Deleting));
    let again = cloud.delete_load_balancer("lb-1", Dependents::Forbid, at(5)).expect("deleted");
    assert!(matches!(again, Deleted::Deleting(_)), "a second time changes nothing");
    assert_eq!(state_of(&mut cloud, "lb-1", at(10)), Some((LbState::Deleting, 0)));
    let update = cloud.update_load_balancer("lb-1", at(10), |spec| spec);
    assert_eq!(update, Err(Refusal::Conflict("load balancer lb-1 is being deleted".to_owned())));
    let taken = cloud.create_load_balancer(spec("a"), Families::V4, at(10)).map(drop);
    assert_eq!(taken, Err(Refusal::Conflict("load balancer lb-1 has the name a".to_owned())));
    assert_eq!(state_of(&mut cloud, "lb-1", at(11)), None);
    assert_eq!(cloud.create_load_balancer(spec("a"), Families::V4, at(11)).expect("free again").id, "lb-2");
}

#[test]
fn a_load_balancer_in_use_is_not_deleted() {
    let mut cloud = cloud();
    cloud.create_load_balancer(spec("a"), Families::V4, T0).expect("created");
    cloud.create_auxiliary("firewall", "fw", firewall("f", Some("lb-1")), T0).expect("created");
    let refused = cloud.delete_load_balancer("lb-1", Dependents::Forbid, T0).map(drop);
    let words = "load balancer lb-1 is in use: firewall fw-1 refers to it";
    assert_eq!(refused, Err(Refusal::Conflict(words.to_owned())));
    cloud.remove_load_balancer("lb-1", Dependents::Keep, T0).expect("removed");
    assert_eq!(cloud.inventory(T0).auxiliaries.len(), 1, "it stays and refers to nothing");
}

#[test]
fn removal_can_take_dependents_along() {
    let mut cloud = cloud();
    cloud.create_load_balancer(spec("a"), Families::V4, T0).expect("created");
    cloud.create_auxiliary("firewall", "fw", firewall("f", Some("lb-1")), T0).expect("created");
    cloud.create_auxiliary("firewall", "fw", firewall("g", None), T0).expect("created");
    cloud.remove_load_balancer("lb-1", Dependents::Remove, T0).expect("removed");
    let left: Vec<String> = cloud.inventory(T0).auxiliaries.into_iter().map(|aux| aux.name).collect();
    assert_eq!(left, ["g"]);
    let missing = cloud.remove_load_balancer("lb-1", Dependents::Remove, T0);
    assert_eq!(missing, Err(Refusal::NotFound("load balancer lb-1".to_owned())));
}

#[test]
fn load_balancers_make_sense_or_are_refused() {
    let mut cloud = cloud();
    let frontend = |port, protocol: &str, node_port| Frontend::new(port, protocol, node_port);
    let check = |protocol: &str, path: &str, port| {
        Some(HealthCheck { protocol: protocol.to_owned(), path: path.to_owned(), port })
    };
    let two = vec![frontend(80, "TCP", 1), frontend(80, "TCP", 2)];
    let cases = [
        (LbSpec { name: String::new(), ..spec("a") }, "name must not be empty"),
        (LbSpec { name: "ä".repeat(256), ..spec("a") }, "name is longer than 255 characters"),
        (LbSpec { name: "a\u{0}".to_owned(), ..spec("a") }, "name holds a control character"),
        (LbSpec { owner: "x".repeat(256), ..spec("a") }, "owner is longer than 255 characters"),
        (LbSpec { frontends: vec![frontend(0, "TCP", 1)], ..spec("a") }, "port must not be 0"),
        (LbSpec { frontends: vec![frontend(1, "TCP", 0)], ..spec("a") }, "node_port must not be 0"),
        (
            LbSpec { frontends: vec![frontend(1, "tcp", 1)], ..spec("a") },
            "protocol tcp is not TCP, UDP or SCTP",
        ),
        (LbSpec { frontends: two, ..spec("a") }, "two frontends for 80/TCP"),
        (
            LbSpec { health_check: check("HTTP", "", 1), ..spec("a") },
            "the path of an HTTP health check must begin with /",
        ),
        (LbSpec { health_check: check("TCP", "/", 1), ..spec("a") }, "a TCP health check has no path"),
        (LbSpec { health_check: check("TCP", "", 0), ..spec("a") }, "health check port must not be 0"),
        (
            LbSpec { health_check: check("UDP", "", 1), ..spec("a") },
            "health check protocol UDP is not HTTP or TCP",
        ),
        (
            LbSpec { source_ranges: vec!["0.0.0.0".to_owned()], ..spec("a") },
            "source range 0.0.0.0 is not a CIDR",
        ),
        (
            LbSpec { session_affinity: "x".to_owned(), ..spec("a") },
            "session affinity x is neither None nor ClientIP",
        ),
        (LbSpec { backends: vec!["i-9".to_owned()], ..spec("a") }, "backend i-9 is not an instance"),
    ];
    for (bad, words) in cases {
        assert_eq!(
            cloud.create_load_balancer(bad, Families::V4, T0).map(drop),
            Err(Refusal::Invalid(words.to_owned()))
        );
    }
    assert!(cloud.inventory(T0).load_balancers.is_empty());
    let same_port = LbSpec {
        frontends: vec![frontend(53, "TCP", 1), frontend(53, "UDP", 1)],
        ..spec("ä".repeat(255).as_str())
    };
    cloud
        .create_load_balancer(LbSpec { owner: String::new(), ..same_port }, Families::V4, T0)
        .expect("makes sense");
}

#[test]
fn updates_replace_and_keep_what_is_the_clouds() {
    let mut cloud = cloud();
    cloud.create_load_balancer(spec("a"), Families::V4, T0).expect("created");
    cloud.create_load_balancer(spec("b"), Families::V4, T0).expect("created");
    let backends = vec!["i-2".to_owned(), "i-1".to_owned(), "i-2".to_owned()];
    let updated = cloud
        .update_load_balancer("lb-1", T0, |old| LbSpec { backends, frontends: Vec::new(), ..old })
        .expect("updated")
        .clone();
    assert_eq!(updated.backends, ["i-1", "i-2"]);
    assert_eq!((updated.frontends.len(), updated.addresses.len()), (0, 1));
    let renamed =
        cloud.update_load_balancer("lb-1", T0, |old| LbSpec { name: "b".to_owned(), ..old }).map(drop);
    assert_eq!(renamed, Err(Refusal::Conflict("load balancer lb-2 has the name b".to_owned())));
    let missing = cloud.update_load_balancer("lb-9", T0, |old| old).map(drop);
    assert_eq!(missing, Err(Refusal::NotFound("load balancer lb-9".to_owned())));
}

#[test]
fn the_settings_say_which_addresses_a_balancer_gets() {
    let mut cloud = cloud();
    let dual = Settings { addresses: Some(LbAddressing::DualStack), ..Settings::default() };
    cloud.set(&dual, T0).expect("set");
    let lb = cloud.create_load_balancer(spec("a"), Families::V4, T0).expect("created");
    let v6: Vec<bool> = lb.addresses.iter().filter_map(|a| a.ip).map(|ip| ip.is_ipv6()).collect();
    assert_eq!(v6, [false, true]);
    let named = Settings { addresses: Some(LbAddressing::Named), provisioning_ms: Some(5_000), ..dual };
    cloud.set(&named, T0).expect("set");
    assert_eq!(cloud.create_load_balancer(spec("b"), Families::V4, T0).expect("created").addresses, []);
    let lb = cloud.load_balancer("lb-2", at(5)).expect("there");
    let hostname = lb.addresses[0].hostname.as_deref();
    assert!(lb.addresses[0].ip.is_some() && hostname == Some("lb-2.balancers.example"), "{:?}", lb.addresses);
    cloud.set(&Settings { provisioning_ms: Some(0), ..Settings::default() }, T0).expect("set");
    assert_eq!(cloud.settings().addresses, Some(LbAddressing::Named), "what is not given stays");
}

#[test]
fn a_balancer_may_target_addresses_without_an_instance() {
    let mut cloud = cloud();
    let of = |backend: &str| LbSpec { backends: vec![backend.to_owned()], ..spec(backend) };
    for backend in ["i-1", "10.1.2.3", "2001:db8::1"] {
        let lb = cloud.create_load_balancer(of(backend), Families::V4, T0).expect("created");
        assert_eq!(lb.backends, [backend]);
    }
    assert!(cloud.create_load_balancer(of("10.1.2"), Families::V4, T0).is_err());
}

#[test]
fn a_backend_stays_when_its_instance_goes() {
    let mut cloud = cloud();
    cloud
        .create_load_balancer(LbSpec { backends: vec!["i-1".to_owned()], ..spec("a") }, Families::V4, T0)
        .expect("created");
    cloud.delete_instance("i-1").expect("deleted");
    assert_eq!(cloud.load_balancer("lb-1", T0).expect("there").backends, ["i-1"]);
    let kept = cloud.update_load_balancer("lb-1", T0, |old| old).map(drop);
    assert_eq!(kept, Err(Refusal::Invalid("backend i-1 is not an instance".to_owned())));
}

#[test]
fn firewalls_refer_to_load_balancers_that_stay() {
    let mut cloud = cloud();
    let missing = cloud.create_auxiliary("firewall", "fw", firewall("f", Some("lb-1")), T0).map(drop);
    assert_eq!(missing, Err(Refusal::Invalid("load balancer lb-1 does not exist".to_owned())));
    cloud.set(&slow(0, 10_000), T0).expect("set");
    cloud.create_load_balancer(spec("a"), Families::V4, T0).expect("created");
    cloud.create_auxiliary("firewall", "fw", firewall("f", None), T0).expect("created");
    cloud.delete_load_balancer("lb-1", Dependents::Forbid, T0).expect("deleted");
    let leaving = cloud.update_auxiliary("firewall", "fw-1", firewall("f", Some("lb-1")), T0).map(drop);
    assert_eq!(leaving, Err(Refusal::Conflict("load balancer lb-1 is being deleted".to_owned())));
    let taken = cloud.create_auxiliary("firewall", "fw", firewall("f", None), T0).map(drop);
    assert_eq!(taken, Err(Refusal::Conflict("firewall fw-1 has the name f".to_owned())));
    let other_kind = cloud.delete_auxiliary("listener", "fw-1");
    assert_eq!(other_kind, Err(Refusal::NotFound("listener fw-1".to_owned())));
    cloud.delete_auxiliary("firewall", "fw-1").expect("deleted");
}

#[test]
fn routes_lead_to_instances() {
    let mut cloud = cloud();
    let route = cloud.create_route("10.244.1.0/24", RouteTarget::Instance("i-1")).expect("created");
    assert_eq!((route.id.as_str(), route.blackhole), ("r-1", false));
    assert_eq!(route.target_addresses, ["192.0.2.10"]);
    cloud.create_route("2001:db8:0::/64", RouteTarget::Instance("i-1")).expect("created");
    let refusals = [
        ("10.244.1.0/24", "i-2", Refusal::Conflict("route r-1 leads to 10.244.1.0/24".to_owned())),
        ("2001:0db8::/64", "i-2", Refusal::Conflict("route r-2 leads to 2001:0db8::/64".to_owned())),
        (
            "10.244.1.1/24",
            "i-1",
            Refusal::Invalid("destination 10.244.1.1/24 has bits set beyond its prefix".to_owned()),
        ),
        ("everywhere", "i-1", Refusal::Invalid("destination everywhere is not a CIDR".to_owned())),
        ("10.244.2.0/24", "i-9", Refusal::Invalid("target i-9 is not an instance".to_owned())),
    ];
    for (destination, target, refusal) in refusals {
        assert_eq!(cloud.create_route(destination, RouteTarget::Instance(target)), Err(refusal));
    }
    cloud.delete_instance("i-1").expect("deleted");
    assert!(cloud.list_routes(T0).iter().all(|route| route.blackhole));
    cloud.delete_route("r-1").expect("deleted");
    assert_eq!(cloud.delete_route("r-1"), Err(Refusal::NotFound("route r-1".to_owned())));
}

#[test]
fn routes_lead_to_addresses() {
    let mut cloud = cloud();
    let gateway = |text: &str| RouteTarget::Address(text.parse().expect("an address"));
    let route = cloud.create_route("10.244.1.0/24", gateway("192.0.2.10")).expect("created");
    assert_eq!((route.target_instance.as_deref(), route.blackhole), (Some("i-1"), false));
    assert_eq!(route.target_addresses, ["192.0.2.10"]);
    let nowhere = cloud.create_route("10.244.2.0/24", gateway("198.51.100.10")).expect("created");
    assert_eq!((nowhere.target_instance.as_deref(), nowhere.blackhole), (None, true));
    assert_eq!(nowhere.target_addresses, ["198.51.100.10"]);
}

#[test]
fn load_balancers_can_have_addresses_of_both_families_and_details() {
    let mut cloud = cloud();
    cloud.set(&slow(10_000, 0), T0).expect("set");
    let details = json!({"type": "lb11"});
    let new = LbSpec { details: details.clone(), ..spec("a") };
    cloud.create_load_balancer(new, Families::Both, T0).expect("created");
    let updated = cloud.update_load_balancer("lb-1", at(10), |old| old).expect("updated");
    assert_eq!(updated.details, details);
    let ips: Vec<String> = updated.addresses.iter().filter_map(|a| Some(a.ip?.to_string())).collect();
    assert_eq!(ips, ["203.0.113.1", "2001:db8::cb00:7101"]);
}

#[test]
fn ids_are_never_given_out_twice() {
    let mut cloud = cloud();
    cloud.create_load_balancer(spec("a"), Families::V4, T0).expect("created");
    let mut foreign = cloud.load_balancer("lb-1", T0).expect("there").clone();
    "lb-41".clone_into(&mut foreign.id);
    cloud.put_load_balancer(foreign).expect("put");
    cloud.reset();
    assert_eq!(cloud.inventory(T0), Inventory::default());
    assert_eq!(cloud.create_load_balancer(spec("a"), Families::V4, T0).expect("created").id, "lb-42");
}

#[test]
fn restoring_brings_back_exactly_what_was() {
    let mut cloud = cloud();
    cloud.create_load_balancer(spec("a"), Families::V4, T0).expect("created");
    cloud.create_auxiliary("firewall", "fw", firewall("f", Some("lb-1")), T0).expect("created");
    cloud.create_route("10.244.1.0/24", RouteTarget::Instance("i-1")).expect("created");
    let baseline = cloud.inventory(T0);
    cloud.remove_load_balancer("lb-1", Dependents::Remove, T0).expect("removed");
    cloud.delete_route("r-1").expect("deleted");
    cloud.delete_instance("i-2").expect("deleted");
    cloud.create_load_balancer(spec("b"), Families::V4, T0).expect("created");
    assert!(!baseline.diff(&cloud.inventory(T0)).is_empty());
    cloud.restore(baseline.clone(), T0).expect("restored");
    assert_eq!(baseline.diff(&cloud.inventory(T0)).to_string(), "no difference");
    assert_eq!(cloud.create_load_balancer(spec("c"), Families::V4, T0).expect("created").id, "lb-3");
}

#[test]
fn restoring_does_not_stop_what_is_under_way() {
    let mut cloud = cloud();
    cloud.set(&slow(10_000, 0), T0).expect("set");
    cloud.create_load_balancer(spec("a"), Families::V4, T0).expect("created");
    let baseline = cloud.inventory(at(1));
    cloud.restore(baseline, at(2)).expect("restored");
    assert_eq!(state_of(&mut cloud, "lb-1", at(10)), Some((LbState::Active, 1)));
}

#[test]
fn a_state_set_by_hand_stays() {
    let mut cloud = cloud();
    cloud.set(&slow(10_000, 0), T0).expect("set");
    let lb = cloud.create_load_balancer(spec("a"), Families::V4, T0).expect("created").clone();
    cloud.put_load_balancer(LoadBalancer { backends: vec!["i-9".to_owned()], ..lb }).expect("put");
    assert_eq!(state_of(&mut cloud, "lb-1", at(1000)), Some((LbState::Provisioning, 0)));
}

#[test]
fn an_inventory_that_cannot_be_is_refused_as_a_whole() {
    let mut cloud = cloud();
    let before = cloud.inventory(T0);
    let twice = Inventory { instances: vec![instance("i-5"), instance("i-5")], ..Inventory::default() };
    assert_eq!(cloud.restore(twice, T0), Err(Refusal::Invalid("instance i-5 is there twice".to_owned())));
    let nameless = cloud.put_instances(vec![instance("i-6"), instance("")]);
    assert_eq!(nameless, Err(Refusal::Invalid("instance without an id".to_owned())));
    assert_eq!(cloud.put_instance(instance("..")).map_err(|r| matches!(r, Refusal::Invalid(_))), Err(true));
    assert_eq!(before.diff(&cloud.inventory(T0)).to_string(), "no difference");
}

#[test]
fn only_lists_are_stale() {
    let mut cloud = cloud();
    cloud.set(&Settings { stale_ms: Some(5000), ..Settings::default() }, T0).expect("set");
    cloud.create_load_balancer(spec("a"), Families::V4, at(1)).expect("created");
    cloud.delete_instance("i-2").expect("deleted");
    cloud.create_route("10.244.1.0/24", RouteTarget::Instance("i-1")).expect("created");
    assert_eq!((cloud.list_load_balancers(at(4)).len(), cloud.list_instances(at(4)).len()), (0, 2));
    assert_eq!(cloud.list_routes(at(4)).len(), 0);
    assert!(cloud.load_balancer("lb-1", at(4)).is_ok() && cloud.instance("i-2").is_err());
    assert_eq!(cloud.inventory(at(4)).load_balancers.len(), 1);
    assert_eq!((cloud.list_load_balancers(at(5)).len(), cloud.list_instances(at(5)).len()), (1, 1));
}

#[test]
fn settings_change_one_by_one() {
    let mut cloud = cloud();
    cloud.set(&Settings { page_size: Some(3), ..Settings::default() }, T0).expect("set");
    cloud.set(&slow(u64::MAX, 7), T0).expect("set");
    let all = Settings {
        page_size: Some(3),
        provisioning_ms: Some(u64::MAX),
        deletion_ms: Some(7),
        stale_ms: Some(0),
        action_ms: Some(0),
        latency_ms: Some(0),
        addresses: Some(LbAddressing::Usual),
    };
    assert_eq!(cloud.settings(), all);
    cloud
        .create_load_balancer(spec("a"), Families::V4, at(u64::MAX))
        .expect("created, though never provisioned");
    let none = Settings { page_size: Some(0), ..Settings::default() };
    assert_eq!(cloud.set(&none, T0), Err(Refusal::Invalid("page_size must be at least 1".to_owned())));
}

#[test]
fn an_object_is_known_by_all_its_names() {
    let mut cloud = cloud();
    cloud.create_load_balancer(spec("a"), Families::V4, T0).expect("created");
    cloud.create_auxiliary("firewall", "fw", firewall("f", Some("lb-1")), T0).expect("created");
    cloud.create_route("10.244.1.0/24", RouteTarget::Instance("i-1")).expect("created");
    let named = |name: &str| vec![name.to_owned()];
    let is_about = |op, name: &str, wanted: &str| cloud.names_of(op, &named(name)).contains(wanted);
    for wanted in ["i-1", "node-i-1", "native://i-1"] {
        assert!(is_about(Op::InstanceGet, "native://i-1", wanted), "{wanted}");
        assert!(is_about(Op::RouteCreate, "i-1", wanted), "{wanted}");
        assert!(!is_about(Op::InstanceGet, "i-2", wanted), "{wanted}");
    }
    for wanted in ["lb-1", "a", "owner-of-a"] {
        assert!(is_about(Op::LbDelete, "lb-1", wanted), "{wanted}");
        assert!(is_about(Op::LbList, "owner-of-a", wanted), "{wanted}");
    }
    assert!(is_about(Op::AuxDelete, "fw-1", "lb-1"));
    assert!(is_about(Op::RouteDelete, "r-1", "10.244.1.0/24"));
    assert!(is_about(Op::LbCreate, "new", "new"), "what the model does not know yet");
    assert!(!is_about(Op::Other, "i-1", "node-i-1"));
    assert!(cloud.names_of(Op::InstanceList, &[]).is_empty());
    assert_eq!(cloud.owner_of(Op::LbGet, &named("lb-1")).as_deref(), Some("owner-of-a"));
    assert_eq!(cloud.owner_of(Op::AuxCreate, &named("lb-1")).as_deref(), Some("owner-of-a"));
    assert_eq!(cloud.owner_of(Op::InstanceGet, &named("i-1")), None);
}
