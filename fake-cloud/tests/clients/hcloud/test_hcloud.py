"""The fake cloud's dialect `hcloud`, driven by the vendor's own client through every call of the dialect."""

import json
import unittest
from datetime import datetime, timedelta, timezone

import fake_cloud
from hcloud import APIException, Client
from hcloud.actions.domain import ActionFailedException, ActionTimeoutException
from hcloud.certificates.domain import Certificate
from hcloud.load_balancer_types.domain import LoadBalancerType
from hcloud.load_balancers.domain import (
    LoadBalancer,
    LoadBalancerAlgorithm,
    LoadBalancerHealthCheck,
    LoadBalancerHealthCheckHttp,
    LoadBalancerService,
    LoadBalancerServiceHttp,
    LoadBalancerTarget,
    LoadBalancerTargetIP,
)
from hcloud.locations.domain import Location
from hcloud.networks.domain import Network, NetworkRoute
from hcloud.servers.domain import Server

OWNER = "hcloud-ccm/service-uid"
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"


def server(number, state="running"):
    return {
        "id": str(100 + number),
        "name": f"node-{number}",
        "instance_type": "cpx11",
        "zone": "fsn1-dc14",
        "region": "fsn1",
        "addresses": [
            {"type": "InternalIP", "address": f"10.0.0.{number}"},
            {"type": "ExternalIP", "address": f"198.51.100.{number}"},
            {"type": "ExternalIP", "address": f"2001:db8:{number:x}::1"},
        ],
        "labels": {"number": str(number)},
        "state": state,
    }


class Case(unittest.TestCase):
    def setUp(self):
        fake_cloud.reset()
        fake_cloud.put_instances(*(server(number) for number in range(1, 4)))
        self.client = Client(token=fake_cloud.TOKEN, api_endpoint=f"{fake_cloud.URL}/v1", poll_interval=0.01)

    def fails(self, code, call, *arguments, **keywords):
        with self.assertRaises(APIException) as raised:
            call(*arguments, **keywords)
        self.assertEqual(raised.exception.code, code, raised.exception)
        return raised.exception

    def balancer(self, name="web", **more):
        created = self.client.load_balancers.create(
            name=name,
            load_balancer_type=LoadBalancerType(name="lb11"),
            location=Location(name="fsn1"),
            labels={OWNER: f"uid-of-{name}"},
            **more,
        )
        self.assertEqual(created.action.status, "success")
        return created.load_balancer

    def done(self, action, command):
        self.assertEqual((action.command, action.status, action.progress), (command, "success", 100))
        action.wait_until_finished()


class Offers(Case):
    def test_locations(self):
        self.assertEqual(
            [location.name for location in self.client.locations.get_all()],
            ["fsn1", "nbg1", "hel1", "ash", "hil", "sin"],
        )
        one = self.client.locations.get_by_name("hel1")
        self.assertEqual((one.network_zone, self.client.locations.get_by_id(one.id).name), ("eu-central", "hel1"))
        self.fails("not_found", self.client.locations.get_by_id, 99)

    def test_load_balancer_types(self):
        types = self.client.load_balancer_types.get_all()
        self.assertEqual([(t.name, t.max_targets, t.max_services) for t in types],
                         [("lb11", 25, 5), ("lb21", 75, 15), ("lb31", 150, 30)])
        self.assertEqual(self.client.load_balancer_types.get_by_name("lb21").id, 2)
        self.assertEqual(self.client.load_balancer_types.get_by_id(3).name, "lb31")
        self.fails("not_found", self.client.load_balancer_types.get_by_id, 9)


class Servers(Case):
    def test_a_server_has_all_that_is_read(self):
        one = self.client.servers.get_by_id(101)
        self.assertEqual((one.name, one.status, one.server_type.name), ("node-1", "running", "cpx11"))
        self.assertEqual((one.location.name, one.location.network_zone), ("fsn1", "eu-central"))
        # Newer clients do not read it any more; older ones read nothing else.
        _, _, answer = fake_cloud.raw("GET", "/v1/servers/101")
        self.assertEqual(json.loads(answer)["server"]["datacenter"]["name"], "fsn1-dc14")
        self.assertEqual((one.public_net.ipv4.ip, one.public_net.ipv6.ip), ("198.51.100.1", "2001:db8:1::/64"))
        self.assertEqual([net.ip for net in one.private_net], ["10.0.0.1"])
        self.assertEqual(one.labels, {"number": "1"})
        self.assertLess(datetime.now(timezone.utc) - one.created, timedelta(hours=1))

    def test_states_look_ups_and_pages(self):
        fake_cloud.put_instances(server(2, state="stopped"))
        self.assertEqual(self.client.servers.get_by_name("node-2").status, "off")
        self.assertIsNone(self.client.servers.get_by_name("nobody"))
        self.assertEqual([s.id for s in self.client.servers.get_all(status=["off"])], [102])
        self.assertEqual([s.id for s in self.client.servers.get_all(label_selector="number in (1,3)")], [101, 103])
        fake_cloud.put_instances(*(server(number) for number in range(4, 61)))
        self.assertEqual([s.id for s in self.client.servers.get_all()], list(range(101, 161)))
        page = self.client.servers.get_list(page=2, per_page=25)
        pagination = page.meta.pagination
        self.assertEqual(len(page.servers), 25)
        self.assertEqual(
            (pagination.page, pagination.per_page, pagination.previous_page, pagination.next_page,
             pagination.last_page, pagination.total_entries),
            (2, 25, 1, 3, 3, 60),
        )
        fake_cloud.settings(page_size=7)
        self.assertEqual(len(self.client.servers.get_all()), 60)
        self.fails("invalid_input", self.client.servers.get_list, per_page=51)
        self.fails("invalid_input", self.client.servers.get_list, label_selector="a=b=")
        self.fails("not_found", self.client.servers.get_by_id, 999)

    def test_servers_cannot_be_changed(self):
        one = self.client.servers.get_by_id(101)
        self.fails("forbidden", one.delete)
        self.fails("forbidden", one.power_off)
        self.assertEqual(len(fake_cloud.inventory()["instances"]), 3)


class LoadBalancers(Case):
    def test_the_life_of_one(self):
        lb = self.balancer()
        self.assertEqual((lb.algorithm.type, lb.load_balancer_type.name, lb.location.name),
                         ("round_robin", "lb11", "fsn1"))
        self.assertTrue(lb.public_net.enabled and lb.public_net.ipv4.ip and ":" in lb.public_net.ipv6.ip)
        self.assertEqual(lb.labels, {OWNER: "uid-of-web"})
        self.assertEqual((lb.services, lb.targets, lb.private_net), ([], [], []))
        self.assertEqual(self.client.load_balancers.get_by_id(lb.id).name, "web")
        self.assertEqual(self.client.load_balancers.get_by_name("web").id, lb.id)
        by_label = self.client.load_balancers.get_all(label_selector=f"{OWNER}=uid-of-web")
        self.assertEqual([found.id for found in by_label], [lb.id])
        renamed = lb.update(name="renamed", labels={OWNER: "another", "tier": "front"})
        self.assertEqual((renamed.name, renamed.labels), ("renamed", {OWNER: "another", "tier": "front"}))
        held = fake_cloud.inventory()["load_balancers"][0]
        self.assertEqual((held["id"], held["name"], held["owner"]), (str(lb.id), "renamed", "another"))
        self.done(lb.delete().action, "delete_load_balancer")
        self.fails("not_found", lb.reload)
        self.fails("not_found", lb.delete)
        self.assertEqual(fake_cloud.inventory()["load_balancers"], [])

    def test_one_made_with_everything(self):
        lb = self.balancer(
            algorithm=LoadBalancerAlgorithm(type="least_connections"),
            services=[LoadBalancerService(protocol="tcp", listen_port=80, destination_port=30080)],
            targets=[LoadBalancerTarget(type="server", server=Server(id=101), use_private_ip=True)],
            public_interface=False,
            network=Network(id=1),
        )
        self.assertFalse(lb.public_net.enabled)
        self.assertEqual((lb.algorithm.type, lb.private_net[0].ip), ("least_connections", "10.255.0.2"))
        self.assertEqual((lb.services[0].listen_port, lb.targets[0].server.id), (80, 101))

    def test_what_cannot_be_created(self):
        create, kind, place = self.client.load_balancers.create, LoadBalancerType(name="lb11"), Location(name="fsn1")
        self.balancer()
        self.fails("uniqueness_error", create, name="web", load_balancer_type=kind, location=place)
        self.fails("invalid_input", create, name="a", load_balancer_type=kind)
        self.fails("invalid_input", create, name="a", load_balancer_type=kind, location=place, network_zone="eu-central")
        self.fails("invalid_input", create, name="a", load_balancer_type=kind, location=Location(name="moon"))
        self.fails("not_found", create, name="a", load_balancer_type=LoadBalancerType(name="lb99"), location=place)
        long = self.fails("invalid_input", create, name="x" * 256, load_balancer_type=kind, location=place)
        self.assertEqual(long.details["fields"], [{"name": "name", "messages": ["is too long"]}])
        self.fails("invalid_input", create, name="", load_balancer_type=kind, location=place)
        self.fails("invalid_input", create, name="a", load_balancer_type=kind, location=place, labels={"a b": "c"})
        self.assertEqual(len(fake_cloud.inventory()["load_balancers"]), 1)
        zoned = create(name="zoned", load_balancer_type=kind, network_zone="us-west").load_balancer
        self.assertEqual(zoned.location.name, "hil")
        self.fails("uniqueness_error", zoned.update, name="web")

    def test_services(self):
        lb = self.balancer()
        tcp = LoadBalancerService(
            protocol="tcp", listen_port=80, destination_port=31234,
            health_check=LoadBalancerHealthCheck(protocol="tcp", port=31234),
        )
        self.done(lb.add_service(tcp), "add_service")
        lb.reload()
        seen = lb.services[0]
        self.assertEqual((seen.protocol, seen.listen_port, seen.destination_port, seen.proxyprotocol),
                         ("tcp", 80, 31234, False))
        probe = seen.health_check
        self.assertEqual((probe.protocol, probe.port, probe.interval, probe.timeout, probe.retries),
                         ("tcp", 31234, 15, 10, 3))
        self.fails("source_port_already_used", lb.add_service, tcp)
        http = LoadBalancerService(
            protocol="http", listen_port=80, destination_port=32000,
            http=LoadBalancerServiceHttp(sticky_sessions=True, cookie_name="c", cookie_lifetime=10, timeout_idle=90),
            health_check=LoadBalancerHealthCheck(
                protocol="http", port=32001, interval=5, timeout=5, retries=1,
                http=LoadBalancerHealthCheckHttp(path="/healthz", status_codes=["200"], domain="a.example", tls=False),
            ),
        )
        self.done(lb.update_service(http), "update_service")
        lb.reload()
        seen = lb.services[0]
        self.assertEqual((seen.protocol, seen.destination_port, seen.http.cookie_name, seen.http.timeout_idle),
                         ("http", 32000, "c", 90))
        self.assertEqual((seen.health_check.http.path, seen.health_check.http.status_codes), ("/healthz", ["200"]))
        held = fake_cloud.inventory()["load_balancers"][0]
        self.assertEqual(held["frontends"], [{"port": 80, "protocol": "TCP", "node_port": 32000}])
        self.assertEqual(held["health_check"], {"protocol": "HTTP", "path": "/healthz", "port": 32001})
        unknown = LoadBalancerService(protocol="tcp", listen_port=81, destination_port=1)
        self.fails("not_found", lb.update_service, unknown)
        self.fails("not_found", lb.delete_service, unknown)
        self.fails("invalid_input", lb.add_service,
                   LoadBalancerService(protocol="udp", listen_port=53, destination_port=1))
        self.fails("invalid_input", lb.add_service,
                   LoadBalancerService(protocol="tcp", listen_port=0, destination_port=1))
        self.fails("invalid_input", lb.add_service,
                   LoadBalancerService(protocol="tcp", listen_port=70000, destination_port=1))
        self.done(lb.delete_service(http), "delete_service")
        for port in range(1, 6):
            lb.add_service(LoadBalancerService(protocol="tcp", listen_port=port, destination_port=port))
        self.fails("resource_limit_exceeded", lb.add_service,
                   LoadBalancerService(protocol="tcp", listen_port=6, destination_port=6))

    def test_targets(self):
        lb = self.balancer()
        first = LoadBalancerTarget(type="server", server=Server(id=101), use_private_ip=False)
        self.done(lb.add_target(first), "add_target")
        self.fails("target_already_defined", lb.add_target, first)
        self.fails("not_found", lb.add_target, LoadBalancerTarget(type="server", server=Server(id=999)))
        private = LoadBalancerTarget(type="server", server=Server(id=102), use_private_ip=True)
        self.fails("load_balancer_not_attached_to_network", lb.add_target, private)
        lb.attach_to_network(network=Network(id=1))
        self.done(lb.add_target(private), "add_target")
        outside = LoadBalancerTarget(type="ip", ip=LoadBalancerTargetIP(ip="203.0.113.200"))
        self.done(lb.add_target(outside), "add_target")
        self.fails("target_already_defined", lb.add_target, outside)
        lb.add_service(LoadBalancerService(protocol="tcp", listen_port=80, destination_port=1))
        lb.reload()
        self.assertEqual([(t.type, t.server.id if t.server else t.ip.ip, t.use_private_ip) for t in lb.targets],
                         [("server", 101, False), ("server", 102, True), ("ip", "203.0.113.200", None)])
        health = lb.targets[0].health_status[0]
        self.assertEqual((health.listen_port, health.status), (80, "healthy"))
        self.assertEqual(fake_cloud.inventory()["load_balancers"][0]["backends"], ["101", "102"])
        fake_cloud.driver("DELETE", "instances/101")
        lb.reload()
        self.assertEqual([t.server.id for t in lb.targets if t.server], [102], "a deleted server is not a target")
        self.done(lb.remove_target(outside), "remove_target")
        self.done(lb.remove_target(private), "remove_target")
        self.fails("not_found", lb.remove_target, private)

    def test_a_type_has_room_for_so_many_targets(self):
        fake_cloud.put_instances(*(server(number) for number in range(1, 28)))
        lb = self.balancer()
        for number in range(1, 26):
            lb.add_target(LoadBalancerTarget(type="server", server=Server(id=100 + number)))
        more = LoadBalancerTarget(type="server", server=Server(id=126))
        self.fails("resource_limit_exceeded", lb.add_target, more)
        self.done(lb.change_type(LoadBalancerType(name="lb21")), "change_type")
        self.done(lb.add_target(more), "add_target")
        self.fails("invalid_load_balancer_type", lb.change_type, LoadBalancerType(id=1))
        self.fails("not_found", lb.change_type, LoadBalancerType(name="lb99"))
        lb.reload()
        self.assertEqual((lb.load_balancer_type.name, len(lb.targets)), ("lb21", 26))

    def test_networks(self):
        lb, network = self.balancer(), Network(id=1)
        self.fails("load_balancer_not_attached_to_network", lb.detach_from_network, network)
        self.fails("not_found", lb.attach_to_network, Network(id=2))
        self.fails("invalid_input", lb.attach_to_network, network, ip="x")
        self.done(lb.attach_to_network(network, ip="10.0.0.200"), "attach_to_network")
        self.fails("load_balancer_already_attached", lb.attach_to_network, network)
        lb.reload()
        self.assertEqual(lb.private_net[0].ip, "10.0.0.200")
        other = self.balancer("other")
        self.fails("ip_not_available", other.attach_to_network, network, ip="10.0.0.200")
        _, _, answer = fake_cloud.raw("GET", "/v1/networks/1")
        self.assertEqual(json.loads(answer)["network"]["load_balancers"], [lb.id])
        self.fails("targets_without_use_private_ip", self.disable_with_public_target, lb)
        self.done(lb.detach_from_network(network), "detach_from_network")

    def disable_with_public_target(self, lb):
        lb.add_target(LoadBalancerTarget(type="server", server=Server(id=101)))
        lb.disable_public_interface()

    def test_smaller_changes(self):
        lb = self.balancer()
        self.done(lb.change_algorithm(LoadBalancerAlgorithm(type="least_connections")), "change_algorithm")
        self.fails("invalid_input", lb.change_algorithm, LoadBalancerAlgorithm(type="random"))
        self.done(lb.disable_public_interface(), "disable_public_interface")
        self.assertFalse(self.client.load_balancers.get_by_id(lb.id).public_net.enabled)
        self.done(lb.enable_public_interface(), "enable_public_interface")
        self.done(lb.change_dns_ptr(ip=lb.public_net.ipv4.ip, dns_ptr="lb.example"), "change_dns_ptr")
        lb.reload()
        self.assertEqual((lb.algorithm.type, lb.public_net.ipv4.dns_ptr), ("least_connections", "lb.example"))
        lb.change_dns_ptr(ip=lb.public_net.ipv4.ip, dns_ptr=None)
        self.fails("not_found", lb.change_dns_ptr, ip="192.0.2.1", dns_ptr="x")
        self.done(lb.change_protection(delete=True), "change_protection")
        self.fails("protected", lb.delete)
        lb.change_protection(delete=False)
        self.done(lb.delete().action, "delete_load_balancer")

    def test_pages_and_order(self):
        ids = [self.balancer(f"lb-{number:02}").id for number in range(30)]
        self.assertEqual([lb.id for lb in self.client.load_balancers.get_all()], ids)
        page = self.client.load_balancers.get_list(page=2, per_page=20)
        self.assertEqual(([lb.id for lb in page.load_balancers], page.meta.pagination.next_page), (ids[20:], None))


class Actions(Case):
    def test_actions_run_and_finish(self):
        fake_cloud.settings(action_ms=300)
        lb = self.balancer_with_running_action()
        action = lb.change_algorithm(LoadBalancerAlgorithm(type="least_connections"))
        self.assertEqual((action.status, action.finished), ("running", None))
        self.assertEqual([(r["type"], r["id"]) for r in action.resources], [("load_balancer", lb.id)])
        self.fails("locked", lb.change_protection, delete=True)
        with self.assertRaises(ActionTimeoutException):
            action.wait_until_finished(max_retries=1)
        action.wait_until_finished()
        self.assertEqual((action.status, action.progress), ("success", 100))
        self.assertIsNotNone(action.finished)
        self.assertEqual(lb.get_actions(status=["success"])[-1].id, action.id)
        self.assertEqual([a.id for a in lb.get_actions(sort=["id:desc"])][0], action.id)
        self.assertEqual(self.client.load_balancers.actions.get_by_id(action.id).id, action.id)
        self.assertEqual(len(self.client.load_balancers.actions.get_all()), 2)
        status, _, body = fake_cloud.raw("GET", f"/v1/actions?id={action.id}&id=1&sort=status&sort=id&page=1")
        self.assertEqual((status, [a["id"] for a in json.loads(body)["actions"]]), (200, [action.id]))
        self.fails("not_found", self.client.actions.get_by_id, 1)

    def balancer_with_running_action(self):
        created = self.client.load_balancers.create(
            name="web", load_balancer_type=LoadBalancerType(name="lb11"), location=Location(name="fsn1"))
        self.assertEqual(created.action.status, "running")
        created.action.wait_until_finished()
        return created.load_balancer

    def test_a_load_balancer_takes_its_time(self):
        fake_cloud.settings(provisioning_ms=300)
        lb = self.balancer_with_running_action()
        lb.reload()
        self.assertTrue(lb.public_net.ipv4.ip)

    def test_an_action_that_fails_changes_nothing(self):
        lb = self.balancer()
        fake_cloud.fault({"kind": "fail-action", "code": "server_error"}, ops=["lb.update"], resource=str(lb.id))
        action = lb.change_algorithm(LoadBalancerAlgorithm(type="least_connections"))
        with self.assertRaises(ActionFailedException) as raised:
            action.wait_until_finished()
        self.assertEqual(raised.exception.action.error["code"], "server_error")
        self.assertEqual(self.client.load_balancers.get_by_id(lb.id).algorithm.type, "round_robin")
        self.done(lb.change_algorithm(LoadBalancerAlgorithm(type="least_connections")), "change_algorithm")


class Networks(Case):
    def test_the_network_and_its_routes(self):
        network = self.client.networks.get_by_name("fake-network")
        self.assertEqual((network.id, [s.id for s in network.servers]), (1, [101, 102, 103]))
        self.assertEqual((network.ip_range, network.subnets[0].network_zone), ("0.0.0.0/0", "eu-central"))
        self.assertIsNone(self.client.networks.get_by_name("another"))
        self.assertEqual([found.id for found in self.client.networks.get_all()], [1])
        route = NetworkRoute(destination="10.244.1.0/24", gateway="10.0.0.1")
        self.done(network.add_route(route), "add_route")
        held = fake_cloud.inventory()["routes"]
        self.assertEqual([(r["destination"], r["target_instance"], r["blackhole"]) for r in held],
                         [("10.244.1.0/24", "101", False)])
        network.reload()
        self.assertEqual([(r.destination, r.gateway) for r in network.routes], [("10.244.1.0/24", "10.0.0.1")])
        self.fails("invalid_input", network.add_route, NetworkRoute(destination="10.244.0.0/16", gateway="10.0.0.2"))
        self.fails("invalid_input", network.add_route, NetworkRoute(destination="2001:db8::/64", gateway="10.0.0.2"))
        self.fails("invalid_input", network.add_route, NetworkRoute(destination="10.244.2.0/24", gateway="x"))
        self.fails("not_found", network.delete_route, NetworkRoute(destination="10.244.1.0/24", gateway="10.0.0.2"))
        self.done(network.delete_route(route), "delete_route")
        self.assertEqual(fake_cloud.inventory()["routes"], [])
        self.fails("not_found", self.client.networks.get_by_id, 2)

    def test_a_taken_destination_is_a_conflict(self):
        body = b'{"destination": "10.244.1.0/24", "gateway": "10.0.0.1"}'
        self.assertEqual(fake_cloud.raw("POST", "/v1/networks/1/actions/add_route", body)[0], 201)
        status, _, answer = fake_cloud.raw("POST", "/v1/networks/1/actions/add_route", body)
        self.assertEqual((status, json.loads(answer)["error"]["code"]), (409, "conflict"))


class Certificates(Case):
    def test_managed_and_uploaded(self):
        managed = self.client.certificates.create_managed(name="m", domain_names=["a.example"], labels={OWNER: "u"})
        self.assertEqual((managed.action.command, managed.action.status), ("create_certificate", "success"))
        one = managed.certificate
        self.assertEqual((one.type, one.domain_names, one.labels), ("managed", ["a.example"], {OWNER: "u"}))
        self.assertEqual((one.status.issuance, one.status.renewal), ("completed", "scheduled"))
        self.assertEqual((one.not_valid_after - one.not_valid_before).days, 90)
        uploaded = self.client.certificates.create(name="u", certificate=PEM, private_key=KEY)
        self.assertEqual((uploaded.type, uploaded.certificate, uploaded.status), ("uploaded", PEM, None))
        find = self.client.certificates
        self.assertEqual([c.name for c in find.get_all()], ["m", "u"])
        self.assertEqual([c.name for c in find.get_all(label_selector=f"{OWNER}=u")], ["m"])
        self.assertEqual((find.get_by_name("u").id, find.get_by_id(one.id).name), (uploaded.id, "m"))
        self.fails("uniqueness_error", find.create_managed, name="m", domain_names=["b.example"])
        self.fails("invalid_input", find.create_managed, name="n", domain_names=[])
        self.fails("invalid_input", find.create, name="n", certificate="x", private_key="y")
        self.assertEqual(one.update(name="renamed", labels={}).name, "renamed")
        held = fake_cloud.inventory()["auxiliaries"]
        self.assertEqual([(aux["kind"], aux["name"]) for aux in held], [("certificate", "renamed"), ("certificate", "u")])
        self.assertNotIn("PRIVATE KEY", json.dumps(held))
        self.assertTrue(one.delete())
        self.fails("not_found", one.delete)

    def test_one_in_use_stays(self):
        certificate = self.client.certificates.create(name="u", certificate=PEM, private_key=KEY)
        lb = self.balancer()
        https = LoadBalancerService(
            protocol="https", listen_port=443, destination_port=30443,
            http=LoadBalancerServiceHttp(certificates=[Certificate(id=certificate.id)], redirect_http=True),
        )
        lb.add_service(https)
        self.fails("resource_in_use", certificate.delete)
        certificate.reload()
        _, _, answer = fake_cloud.raw("GET", f"/v1/certificates/{certificate.id}")
        self.assertEqual(json.loads(answer)["certificate"]["used_by"], [{"id": lb.id, "type": "load_balancer"}])
        without = LoadBalancerService(protocol="https", listen_port=444, destination_port=1,
                                      http=LoadBalancerServiceHttp(certificates=[]))
        self.fails("invalid_input", lb.add_service, without)
        stranger = LoadBalancerService(protocol="https", listen_port=444, destination_port=1,
                                       http=LoadBalancerServiceHttp(certificates=[Certificate(id=999)]))
        self.fails("not_found", lb.add_service, stranger)
        lb.delete()
        self.assertTrue(certificate.delete())


class BadInput(Case):
    def test_tokens(self):
        stranger = Client(token="wrong", api_endpoint=f"{fake_cloud.URL}/v1")
        self.fails("unauthorized", stranger.servers.get_all)
        self.assertEqual(fake_cloud.raw("GET", "/v1/servers", token=None)[0], 401)

    def test_bodies(self):
        for body, status, code in [
            (b"{", 400, "json_error"),
            (b"", 400, "json_error"),
            (b"\xff", 400, "json_error"),
            (b"[]", 422, "invalid_input"),
            (b'{"name": 7}', 422, "invalid_input"),
        ]:
            for path in ["/v1/load_balancers", "/v1/certificates", "/v1/networks/1/actions/add_route"]:
                seen, headers, answer = fake_cloud.raw("POST", path, body)
                self.assertEqual((seen, json.loads(answer)["error"]["code"]), (status, code), (path, body))
                self.assertEqual(headers["content-type"], "application/json")

    def test_what_is_not_known_is_loud(self):
        before = len(fake_cloud.journal())
        for method, path, body in [
            ("GET", "/v1/volumes", None),
            ("GET", "/v2/servers", None),
            ("GET", "/v1/servers?colour=red", None),
            ("POST", "/v1/load_balancers", b'{"name": "a", "gadget": {"x": 1}}'),
        ]:
            status, _, answer = fake_cloud.raw(method, path, body)
            self.assertEqual((status, json.loads(answer)["error"]["code"]), (501, "unsupported_error"), path)
        unknown = [entry["unknown"] for entry in fake_cloud.journal(before)]
        self.assertEqual(unknown, [
            "this dialect has no such call", "this dialect has no such call",
            "the parameter colour of the query", "of the body: gadget",
        ])

    def test_rate_limits_and_faults(self):
        status, headers, _ = fake_cloud.raw("GET", "/v1/locations")
        self.assertEqual((status, headers["ratelimit-limit"]), (200, "3600"))
        self.assertLess(int(headers["ratelimit-remaining"]), 3600)
        self.assertGreater(int(headers["ratelimit-reset"]), datetime.now(timezone.utc).timestamp() - 5)
        fake_cloud.fault({"kind": "status", "status": 429, "retry_after_s": 1}, ops=["instance.list"])
        status, headers, answer = fake_cloud.raw("GET", "/v1/servers")
        self.assertEqual((status, headers["ratelimit-remaining"], headers["retry-after"]), (429, "0", "1"))
        self.assertEqual(json.loads(answer)["error"]["code"], "rate_limit_exceeded")


if __name__ == "__main__":
    unittest.main()
