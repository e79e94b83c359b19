"""The fake cloud's dialect `openstack`, driven by OpenStack's own client through every call of the dialect."""

import unittest

import fake_cloud
import openstack
from keystoneauth1.exceptions import Unauthorized
from openstack import exceptions

SUBNET = "fa4ec10d-0000-8000-8000-a00000000002"
EXTERNAL_NETWORK = "fa4ec10d-0000-8000-8000-a00000000003"
ROUTER = "fa4ec10d-0000-8000-8000-a00000000005"
OWNER = "default/web"


def server(number, state="running"):
    return {
        "id": f"server-{number}",
        "name": f"node-{number}",
        "instance_type": "m1.small",
        "zone": "nova",
        "region": "RegionOne",
        "addresses": [
            {"type": "InternalIP", "address": f"10.0.0.{number % 250}"},
            {"type": "ExternalIP", "address": f"198.51.100.{number % 250}"},
        ],
        "state": state,
    }


def connect(password=fake_cloud.TOKEN):
    return openstack.connection.Connection(
        auth={
            "auth_url": f"{fake_cloud.URL}/identity/v3",
            "username": "admin",
            "password": password,
            "project_name": "demo",
            "user_domain_name": "Default",
            "project_domain_name": "Default",
        },
        region_name="RegionOne",
        identity_api_version="3",
    )


def member(number, port=30080, **more):
    return {"address": f"10.0.0.{number}", "protocol_port": port, "name": f"node-{number}", "subnet_id": SUBNET, **more}


def listener(port=80, node_port=30080, **more):
    """What the CCM asks for."""
    pool = {
        "name": f"pool_{port}",
        "protocol": "TCP",
        "lb_algorithm": "ROUND_ROBIN",
        "members": [member(101, node_port), member(102, node_port)],
    }
    return {"name": f"listener_{port}", "protocol": "TCP", "protocol_port": port, "default_pool": pool, **more}


class Case(unittest.TestCase):
    def setUp(self):
        fake_cloud.reset()
        fake_cloud.put_instances(*(server(number) for number in range(101, 104)))
        fake_cloud.settings(page_size=1000)
        self.cloud = connect()
        self.balancers = self.cloud.load_balancer

    def balancer(self, name="kube_service_kubernetes_default_web", **more):
        wanted = {
            "description": f"Kubernetes external service {OWNER} from cluster kubernetes",
            "provider": "amphora",
            "vip_subnet_id": SUBNET,
            "tags": [name],
            "listeners": [listener()],
        }
        return self.balancers.create_load_balancer(name=name, **{**wanted, **more})

    def kept(self):
        [lb] = fake_cloud.inventory()["load_balancers"]
        return lb

    def last(self):
        entry = fake_cloud.journal()[-1]
        return entry["op"], entry["owner"]


class Tokens(Case):
    def test_catalog(self):
        for service in ["identity", "compute", "network", "load-balancer"]:
            self.assertTrue(self.cloud.session.get_endpoint(service_type=service, interface="public"), service)
        self.assertEqual(self.cloud.current_project.name, "demo")

    def test_strangers(self):
        with self.assertRaises(Unauthorized):
            list(connect("wrong").compute.servers())
        self.assertEqual(fake_cloud.raw("GET", "/compute/v2.1/servers/detail", token=None)[0], 401)


class Servers(Case):
    def test_get(self):
        shown = self.cloud.compute.get_server("server-101")
        self.assertEqual((shown.name, shown.status, shown.availability_zone), ("node-101", "ACTIVE", "nova"))
        self.assertEqual(shown.flavor["original_name"], "m1.small")
        found = {item["OS-EXT-IPS:type"]: item["addr"] for item in shown.addresses["private"]}
        self.assertEqual(found, {"fixed": "10.0.0.101", "floating": "198.51.100.101"})
        with self.assertRaises(exceptions.NotFoundException):
            self.cloud.compute.get_server("nobody")

    def test_off(self):
        fake_cloud.put_instances(server(101, "stopped"))
        self.assertEqual(self.cloud.compute.get_server("server-101").status, "SHUTOFF")

    def test_list(self):
        fake_cloud.put_instances(*(server(number) for number in range(1001, 1121)))
        fake_cloud.settings(page_size=50)
        found = [item.id for item in self.cloud.compute.servers()]
        self.assertEqual((len(found), len(set(found))), (123, 123))

    def test_name(self):
        found = list(self.cloud.compute.servers(name="^node-102$"))
        self.assertEqual([item.id for item in found], ["server-102"])
        self.assertEqual(self.last()[0], "instance.get")
        self.assertEqual(self.cloud.compute.find_server("node-10", ignore_missing=True), None)
        self.assertEqual(self.last()[0], "instance.list")

    def test_nobody_changes_them(self):
        with self.assertRaises(exceptions.ForbiddenException):
            self.cloud.compute.delete_server("server-101")


class Networks(Case):
    def test_ports(self):
        [port] = self.cloud.network.ports(device_id="server-101")
        self.assertEqual(port.fixed_ips, [{"subnet_id": SUBNET, "ip_address": "10.0.0.101"}])
        self.assertEqual((port.status, self.last()[0]), ("ACTIVE", "instance.get"))

    def test_what_there_is(self):
        networks = {item.name: item for item in self.cloud.network.networks()}
        self.assertEqual(networks["public"].id, EXTERNAL_NETWORK)
        self.assertTrue(networks["public"].is_router_external)
        [subnet] = self.cloud.network.subnets(network_id=networks["private"].id)
        self.assertEqual((subnet.id, self.cloud.network.get_subnet(SUBNET).cidr), (SUBNET, "10.0.0.0/8"))
        aliases = [item.alias for item in self.cloud.network.extensions()]
        self.assertIn("extraroute-atomic", aliases)
        self.assertEqual(list(self.cloud.network.security_groups(name="lb-sg")), [])

    def test_routes(self):
        route = {"destination": "10.244.1.0/24", "nexthop": "10.0.0.101"}
        router = self.cloud.network.add_extra_routes_to_router(ROUTER, {"router": {"routes": [route]}})
        self.assertEqual((router.routes, self.last()[0]), ([route], "route.create"))
        [kept] = fake_cloud.inventory()["routes"]
        self.assertEqual(kept["target_instance"], "server-101")
        self.assertEqual(self.cloud.network.get_router(ROUTER).routes, [route])
        router = self.cloud.network.remove_extra_routes_from_router(ROUTER, {"router": {"routes": [route]}})
        self.assertEqual((router.routes, self.last()[0]), ([], "route.delete"))


class LoadBalancers(Case):
    def test_life(self):
        made = self.balancer()
        self.assertEqual((made.provisioning_status, made.vip_subnet_id), ("ACTIVE", SUBNET))
        kept = self.kept()
        self.assertEqual((kept["owner"], kept["backends"]), (OWNER, ["10.0.0.101", "10.0.0.102"]))
        front = {"port": 80, "protocol": "TCP", "node_port": 30080, "backends": ["10.0.0.101", "10.0.0.102"]}
        self.assertEqual(kept["frontends"], [front])
        [found] = self.balancers.load_balancers(name=made.name)
        self.assertEqual((found.id, self.last()), (made.id, ("lb.get", OWNER)))
        self.assertEqual(self.balancers.get_load_balancer(made.id).vip_port_id, made.vip_port_id)
        changed = self.balancers.update_load_balancer(made.id, tags=["a", "b"])
        self.assertEqual(changed.tags, ["a", "b"])
        with self.assertRaises(exceptions.ConflictException):
            self.balancers.delete_load_balancer(made.id)
        self.balancers.delete_load_balancer(made.id, cascade=True)
        self.assertEqual(self.last()[0], "lb.delete")
        with self.assertRaises(exceptions.NotFoundException):
            self.balancers.get_load_balancer(made.id)

    def test_takes_its_time(self):
        fake_cloud.settings(provisioning_ms=3_600_000, deletion_ms=3_600_000)
        slow = self.balancer()
        self.assertEqual(slow.provisioning_status, "PENDING_CREATE")
        with self.assertRaises(exceptions.ConflictException):
            self.balancers.create_listener(loadbalancer_id=slow.id, protocol="TCP", protocol_port=443)
        fake_cloud.settings(provisioning_ms=0)
        quick = self.balancer("other")
        self.balancers.delete_load_balancer(quick.id, cascade=True)
        self.assertEqual(self.balancers.get_load_balancer(quick.id).provisioning_status, "PENDING_DELETE")

    def test_names_need_not_differ(self):
        one, other = self.balancer("same"), self.balancer("same")
        self.assertEqual({item.id for item in self.balancers.load_balancers(name="same")}, {one.id, other.id})

    def test_pages(self):
        for number in range(5):
            self.balancer(f"lb-{number}")
        fake_cloud.settings(page_size=2)
        self.assertEqual(len({item.id for item in self.balancers.load_balancers()}), 5)

    def test_parts(self):
        made = self.balancer(listeners=[])
        front = self.balancers.create_listener(
            loadbalancer_id=made.id, name="l", protocol="UDP", protocol_port=53, allowed_cidrs=["192.0.2.0/24"]
        )
        self.assertEqual(self.last(), ("lb.update", OWNER))
        self.assertEqual((front.connection_limit, front.timeout_client_data), (-1, 50000))
        back = self.balancers.create_pool(listener_id=front.id, name="p", protocol="UDP", lb_algorithm="ROUND_ROBIN")
        [found] = self.balancers.pools(loadbalancer_id=made.id)
        self.assertEqual((found.id, found.listeners), (back.id, [{"id": front.id}]))
        session = self.cloud.session
        endpoint = {"service_type": "load-balancer", "interface": "public"}
        path = f"/v2.0/lbaas/pools/{back.id}/members"
        answer = session.put(path, json={"members": [member(101), member(102)]}, endpoint_filter=endpoint)
        self.assertEqual(answer.status_code, 202)
        before = {item.name: item.id for item in self.balancers.members(back.id)}
        session.put(path, json={"members": [member(102), member(103)]}, endpoint_filter=endpoint)
        after = {item.name: item.id for item in self.balancers.members(back.id)}
        self.assertEqual((sorted(after), after["node-102"]), (["node-102", "node-103"], before["node-102"]))
        kept = self.kept()
        shown = {"port": 53, "protocol": "UDP", "node_port": 30080, "backends": ["10.0.0.102", "10.0.0.103"]}
        self.assertEqual(kept["frontends"], [shown])
        self.assertEqual(kept["source_ranges"], ["192.0.2.0/24"])

        monitor = self.balancers.create_health_monitor(
            pool_id=back.id, name="m", type="HTTP", delay=5, timeout=3, max_retries=1, url_path="/healthz"
        )
        self.assertEqual(self.kept()["health_check"], {"protocol": "HTTP", "path": "/healthz", "port": 30080})
        self.balancers.update_health_monitor(monitor.id, delay=7)
        self.assertEqual(self.balancers.get_health_monitor(monitor.id).delay, 7)
        changed = self.balancers.update_listener(front.id, allowed_cidrs=["0.0.0.0/0"], connection_limit=9)
        self.assertEqual((changed.connection_limit, self.kept()["source_ranges"]), (9, []))
        self.assertEqual(self.balancers.update_pool(back.id, lb_algorithm="SOURCE_IP").lb_algorithm, "SOURCE_IP")
        self.balancers.delete_health_monitor(monitor.id)
        self.balancers.delete_pool(back.id)
        self.balancers.delete_listener(front.id)
        for get, gone in [
            (self.balancers.get_health_monitor, monitor),
            (self.balancers.get_pool, back),
            (self.balancers.get_listener, front),
        ]:
            with self.assertRaises(exceptions.NotFoundException):
                get(gone.id)
        self.assertEqual(self.kept()["frontends"], [])
        self.balancers.delete_load_balancer(made.id)

    def test_refusals(self):
        made = self.balancer()
        for wanted, refusal in [
            ({"vip_subnet_id": "nobody"}, exceptions.BadRequestException),
            ({"vip_subnet_id": None}, exceptions.BadRequestException),
            ({"listeners": [listener(), listener()]}, exceptions.ConflictException),
            ({"listeners": [listener(protocol="QUIC")]}, exceptions.BadRequestException),
            ({"listeners": [listener(0)]}, exceptions.BadRequestException),
            ({"listeners": [listener(allowed_cidrs=["x"])]}, exceptions.BadRequestException),
        ]:
            with self.assertRaises(refusal, msg=wanted):
                self.balancer("other", **wanted)
        with self.assertRaises(exceptions.ConflictException):
            self.balancers.create_listener(loadbalancer_id=made.id, protocol="TCP", protocol_port=80)
        with self.assertRaises(exceptions.NotFoundException):
            self.balancers.create_pool(listener_id=made.id, protocol="TCP", lb_algorithm="ROUND_ROBIN")


class FloatingIPs(Case):
    def address(self, made, **more):
        wanted = {
            "floating_network_id": EXTERNAL_NETWORK,
            "port_id": made.vip_port_id,
            "description": f"Floating IP for Kubernetes external service {OWNER} from cluster kubernetes",
        }
        return self.cloud.network.create_ip(**{**wanted, **more})

    def test_life(self):
        made = self.balancer()
        self.assertEqual(list(self.cloud.network.ips(port_id=made.vip_port_id)), [])
        floating = self.address(made)
        self.assertEqual(self.last(), ("aux.create", OWNER))
        self.assertEqual(floating.floating_ip_address, self.kept()["addresses"][0]["ip"])
        self.assertEqual((floating.fixed_ip_address, floating.status), (made.vip_address, "ACTIVE"))
        [found] = self.cloud.network.ips(port_id=made.vip_port_id)
        self.assertEqual((found.id, self.last()), (floating.id, ("aux.read", OWNER)))
        with self.assertRaises(exceptions.ConflictException):
            self.address(made)
        detached = self.cloud.network.update_ip(floating.id, port_id=None)
        self.assertEqual((detached.port_id, detached.status), (None, "DOWN"))
        self.cloud.network.update_ip(floating.id, port_id=made.vip_port_id)
        self.balancers.delete_load_balancer(made.id, cascade=True)
        left = self.cloud.network.get_ip(floating.id)
        self.assertEqual((left.port_id, left.status), (None, "DOWN"), "it outlives what it led to")
        self.cloud.network.delete_ip(floating.id)
        self.assertEqual(fake_cloud.inventory()["auxiliaries"], [])

    def test_refusals(self):
        made = self.balancer()
        for wanted, refusal in [
            ({"floating_network_id": "nobody"}, exceptions.NotFoundException),
            ({"port_id": "nobody"}, exceptions.NotFoundException),
            ({"floating_ip_address": "203.0.113.200"}, exceptions.ForbiddenException),
        ]:
            with self.assertRaises(refusal, msg=wanted):
                self.address(made, **wanted)


class Faults(Case):
    def test_statuses(self):
        for status in [429, 500, 503]:
            fake_cloud.fault({"kind": "status", "status": status}, ops=["lb.create"], resource=OWNER)
            with self.assertRaises(exceptions.HttpException) as raised:
                self.balancer()
            self.assertEqual(raised.exception.status_code, status)


if __name__ == "__main__":
    unittest.main()
