"""The fake cloud's dialect `linode`, driven by the vendor's own client through every call of the dialect."""

import json
import re
import unittest

import fake_cloud
from linode_api4 import ApiError, Instance, LinodeClient, NodeBalancer, NodeBalancerConfig

TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$")


def linode(number, state="running"):
    return {
        "id": str(number),
        "name": f"node-{number}",
        "instance_type": "g6-standard-2",
        "region": "us-ord",
        "addresses": [
            {"type": "InternalIP", "address": f"192.168.0.{number % 250}"},
            {"type": "ExternalIP", "address": f"198.51.100.{number % 250}"},
            {"type": "ExternalIP", "address": f"2001:db8:{number:x}::1"},
        ],
        "state": state,
    }


def node(number, port=30080, **more):
    return {"address": f"192.168.0.{number}:{port}", "label": f"node-{number}", "weight": 100, "mode": "accept", **more}


def config(port=80, **more):
    """What the CCM asks for."""
    wanted = {
        "port": port,
        "protocol": "tcp",
        "algorithm": "roundrobin",
        "check": "connection",
        "check_interval": 5,
        "check_timeout": 3,
        "check_attempts": 2,
        "check_passive": True,
    }
    return {**wanted, **more}


class Case(unittest.TestCase):
    def setUp(self):
        fake_cloud.reset()
        fake_cloud.put_instances(*(linode(number) for number in range(101, 104)))
        fake_cloud.settings(page_size=1000)
        self.client = LinodeClient(fake_cloud.TOKEN, base_url=f"{fake_cloud.URL}/v4", retry=False)

    def fails(self, status, operation, *arguments, **keywords):
        """The first reason of an error and its field."""
        with self.assertRaises(ApiError) as raised:
            operation(*arguments, **keywords)
        self.assertEqual(raised.exception.status, status, raised.exception)
        first = raised.exception.json["errors"][0]
        self.assertEqual(raised.exception.errors, [first["reason"]])
        return first["reason"], first.get("field")

    def balancer(self, label="ccm-0a", **more):
        wanted = {"label": label, "client_conn_throttle": 3, "tags": ["kubernetes", "default/web"]}
        return self.client.nodebalancer_create("us-ord", **{**wanted, **more})


class StartUp(Case):
    def test_profile(self):
        self.assertEqual(self.client.profile().username, "user")

    def test_token(self):
        stranger = LinodeClient("wrong", base_url=f"{fake_cloud.URL}/v4", retry=False)
        self.assertEqual(self.fails(401, stranger.profile), ("Invalid Token", None))

    def test_media_type(self):
        for path, status in [("/v4/nodebalancers", 200), ("/v4/nodebalancers/9", 404)]:
            seen, headers, _ = fake_cloud.raw("GET", path)
            self.assertEqual((seen, headers["content-type"]), (status, "application/json"))


class Instances(Case):
    def test_get(self):
        shown = self.client.load(Instance, 101)
        self.assertEqual((shown.label, shown.status), ("node-101", "running"))
        self.assertEqual((shown.type.id, shown.region.id), ("g6-standard-2", "us-ord"))
        self.assertEqual((shown.ipv4, shown.ipv6), (["192.168.0.101", "198.51.100.101"], "2001:db8:65::1/128"))
        self.assertEqual(len(shown.host_uuid), 40)
        self.assertTrue(TIME.match(shown._raw_json["created"]))
        for field in ["specs", "alerts", "backups", "tags", "hypervisor", "watchdog_enabled", "lke_cluster_id"]:
            self.assertIn(field, shown._raw_json)

    def test_off(self):
        fake_cloud.put_instances(linode(101, "stopped"))
        self.assertEqual(self.client.load(Instance, 101).status, "offline")

    def test_list(self):
        fake_cloud.settings(page_size=50)
        fake_cloud.put_instances(*(linode(number) for number in range(1001, 1121)))
        found = self.client.linode.instances()
        self.assertEqual((len(found), len({item.id for item in found})), (123, 123))

    def test_filter(self):
        found = self.client.linode.instances(Instance.label == "node-102")
        self.assertEqual([item.id for item in found], [102])
        self.assertEqual(fake_cloud.journal()[-1]["op"], "instance.get")
        self.assertEqual(len(self.client.linode.instances(Instance.region == "us-ord")), 3)
        self.assertEqual(len(self.client.linode.instances(Instance.label.contains("10"))), 3)

    def test_nobody_changes_them(self):
        shown = self.client.load(Instance, 101)
        self.fails(404, self.client.load, Instance, 999)
        self.fails(403, shown.delete)
        self.fails(403, shown.reboot)
        self.fails(403, self.client.linode.instance_create, "g6-nanode-1", "us-ord")


class NodeBalancers(Case):
    def test_life(self):
        made = self.balancer(configs=[config(nodes=[node(101), node(102)])])
        self.assertEqual((made.label, made.region.id, made.client_conn_throttle), ("ccm-0a", "us-ord", 3))
        self.assertTrue(made.hostname and made.ipv4)
        self.assertEqual(made.tags, ["kubernetes", "default/web"])
        shown = self.client.load(NodeBalancer, made.id)
        self.assertEqual((shown.ipv4.address, shown.hostname), (made.ipv4.address, made.hostname))
        kept = fake_cloud.inventory()["load_balancers"][0]
        machines = ["192.168.0.101", "192.168.0.102"]
        self.assertEqual((kept["owner"], kept["backends"]), ("default/web", machines))
        check = {"protocol": "TCP", "port": 30080, "path": ""}
        front = {"port": 80, "protocol": "TCP", "node_port": 30080, "backends": machines, "health_check": check}
        self.assertEqual(kept["frontends"], [front])
        made.client_conn_throttle = 0
        made.tags = ["kubernetes", "default/other"]
        self.assertTrue(made.save(force=False))
        self.assertEqual(fake_cloud.inventory()["load_balancers"][0]["owner"], "default/other")
        self.assertEqual(len(made.firewalls()), 0)
        self.assertTrue(made.delete())
        self.fails(404, self.client.load, NodeBalancer, made.id)
        self.assertEqual(fake_cloud.inventory()["load_balancers"], [])

    def test_times_mean_nothing(self):
        fake_cloud.settings(provisioning_ms=3_600_000, deletion_ms=3_600_000)
        made = self.balancer()
        self.assertTrue(made.ipv4)
        made.delete()
        self.assertEqual(fake_cloud.inventory()["load_balancers"], [])

    def test_filter(self):
        made = [self.balancer(f"ccm-{number}") for number in range(3)]
        for field, value in [("ipv4", made[1].ipv4.address), ("label", "ccm-1")]:
            found = self.client.nodebalancers(getattr(NodeBalancer, field) == value)
            self.assertEqual([item.id for item in found], [made[1].id])
            self.assertEqual(fake_cloud.journal()[-1]["op"], "lb.get")
        self.assertEqual(len(self.client.nodebalancers()), 3)
        self.assertEqual(fake_cloud.journal()[-1]["op"], "lb.list")
        both = (NodeBalancer.label == "ccm-1") | (NodeBalancer.label == "ccm-2")
        self.fails(501, self.client.nodebalancers, both)

    def test_configs(self):
        made = self.balancer()
        self.assertEqual(len(made.configs), 0)
        http = made.config_create(**config())
        self.assertEqual((http.port, http.protocol, http.check, http.nodebalancer_id), (80, "tcp", "connection", made.id))
        tls = made.config_create(**config(443))
        made.invalidate()
        self.assertEqual([item.id for item in made.configs], [http.id, tls.id])
        rebuilt = made.config_rebuild(http.id, [node(101), node(102)], **config())
        self.assertEqual(rebuilt["nodes_status"] if isinstance(rebuilt, dict) else rebuilt.nodes_status.up, 2)
        first = self.client.load(NodeBalancerConfig, http.id, made.id)
        nodes = {item.label: item.id for item in first.nodes}
        made.config_rebuild(http.id, [node(102, id=nodes["node-102"]), node(103)], **config())
        first = self.client.load(NodeBalancerConfig, http.id, made.id)
        after = {item.label: item.id for item in first.nodes}
        self.assertEqual(after["node-102"], nodes["node-102"])
        self.assertEqual(sorted(after), ["node-102", "node-103"])
        self.assertTrue(first.delete())
        kept = fake_cloud.inventory()["load_balancers"][0]
        self.assertEqual((kept["frontends"], kept["backends"]), ([], []))

    def test_refusals(self):
        taken = self.balancer("taken", configs=[config()])
        for wanted, field in [
            ({"label": "taken"}, "label"),
            ({"label": "x"}, "label"),
            ({"tags": ["ab"]}, "tags"),
            ({"client_conn_throttle": 21}, "client_conn_throttle"),
            ({"configs": [config(), config()]}, "port"),
            ({"configs": [config(protocol="sctp")]}, "protocol"),
            ({"configs": [config(check="http")]}, "check_path"),
            ({"configs": [config(nodes=[node(101), node(101)])]}, "address"),
        ]:
            reason, named = self.fails(400, self.balancer, **{"label": "other", **wanted})
            self.assertEqual(named, field, reason)
        self.assertEqual(self.fails(400, taken.config_create, **config()), ("Must be unique", "port"))
        self.assertEqual(len(fake_cloud.inventory()["load_balancers"]), 1)
        status, _, body = fake_cloud.raw("POST", "/v4/nodebalancers", b"no JSON")
        self.assertEqual((status, list(json.loads(body))), (400, ["errors"]))

    def test_faults(self):
        for status in [429, 500, 503]:
            fake_cloud.fault({"kind": "status", "status": status}, ops=["lb.create"], resource="default/web")
            self.fails(status, self.balancer)


if __name__ == "__main__":
    unittest.main()
