"""The fake cloud's dialect `digitalocean`, driven by the vendor's own client through every call of the dialect."""

import re
import unittest

import fake_cloud
from pydo import Client
from pydo.exceptions import HttpResponseError

UUID = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")


def droplet(number, state="running"):
    return {
        "id": str(number),
        "name": f"node-{number}",
        "instance_type": "s-2vcpu-4gb",
        "region": "fra1",
        "addresses": [
            {"type": "InternalIP", "address": f"10.0.0.{number % 250}"},
            {"type": "ExternalIP", "address": f"198.51.100.{number % 250}"},
            {"type": "ExternalIP", "address": f"2001:db8:{number:x}::1"},
        ],
        "state": state,
    }


def balancer(name, **more):
    """What the CCM asks for."""
    wanted = {
        "name": name,
        "region": "fra1",
        "type": "REGIONAL_NETWORK",
        "network": "EXTERNAL",
        "network_stack": "IPV4",
        "algorithm": "round_robin",
        "forwarding_rules": [
            {"entry_protocol": "tcp", "entry_port": 80, "target_protocol": "tcp", "target_port": 80}
        ],
        "health_check": {"protocol": "http", "port": 10256, "path": "/healthz", "check_interval_seconds": 3},
        "sticky_sessions": {"type": "none"},
        "droplet_ids": [101, 102],
        "firewall": {},
    }
    return {**wanted, **more}


class Case(unittest.TestCase):
    def setUp(self):
        fake_cloud.reset()
        fake_cloud.put_instances(*(droplet(number) for number in range(101, 104)))
        fake_cloud.settings(page_size=1000)
        self.client = Client(fake_cloud.TOKEN, endpoint=fake_cloud.URL, retry_total=0)
        self.response = None

    def call(self, operation, *arguments, **keywords):
        """One call over plain HTTP, as the fake cloud speaks it; the answer's headers stay in `self.response`."""

        def keep(pipeline_response):
            self.response = pipeline_response.http_response

        return operation(*arguments, enforce_https=False, raw_response_hook=keep, **keywords)

    def fails(self, status, error_id, operation, *arguments, **keywords):
        """The message of an error. The client raises some and returns others as what they are."""
        try:
            body = self.call(operation, *arguments, **keywords)
        except HttpResponseError as raised:
            self.assertEqual(raised.status_code, status, raised)
            body = self.response.json()
        self.assertEqual(self.response.status_code, status, body)
        self.assertEqual(body["id"], error_id, body)
        self.assertEqual(body["request_id"], self.response.headers["x-request-id"])
        return body["message"]

    def pages(self, operation, key, **keywords):
        """All items of a list, by following its links as the client's users do."""
        items, page = [], 1
        while True:
            answer = self.call(operation, page=page, **keywords)
            items += answer[key]
            links = answer["links"].get("pages", {})
            if page > 1:
                self.assertIn(f"page={page - 1}", links["prev"])
                self.assertIn("page=1", links["first"])
            if "next" not in links:
                self.assertEqual(answer["meta"]["total"], len(items))
                return items
            page += 1
            self.assertIn(f"page={page}", links["next"])
            self.assertTrue(links["next"].startswith(f"{fake_cloud.URL}/v2/"), links)


class StartUp(Case):
    def test_account(self):
        account = self.call(self.client.account.get)["account"]
        self.assertEqual((account["status"], account["email_verified"]), ("active", True))

    def test_regions(self):
        regions = self.pages(self.client.regions.list, "regions", per_page=5)
        self.assertIn("fra1", [region["slug"] for region in regions])
        self.assertTrue(all(region["available"] for region in regions))

    def test_headers(self):
        remaining = []
        for _ in range(2):
            self.call(self.client.account.get)
            headers = self.response.headers
            self.assertEqual(headers["ratelimit-limit"], "5000")
            self.assertTrue(int(headers["ratelimit-reset"]) > 1_700_000_000)
            self.assertTrue(UUID.match(headers["x-request-id"]))
            self.assertEqual(headers["content-type"], "application/json; charset=utf-8")
            remaining.append(int(headers["ratelimit-remaining"]))
        self.assertEqual(remaining[0] - remaining[1], 1)

    def test_token(self):
        for token in ["wrong", "x" * 1000]:
            stranger = Client(token, endpoint=fake_cloud.URL, retry_total=0)
            message = self.fails(401, "unauthorized", stranger.account.get)
            self.assertEqual(message, "Unable to authenticate you")


class Droplets(Case):
    def test_get(self):
        shown = self.call(self.client.droplets.get, 101)["droplet"]
        self.assertEqual((shown["id"], shown["name"], shown["status"]), (101, "node-101", "active"))
        self.assertEqual((shown["vcpus"], shown["memory"], shown["size_slug"]), (2, 4096, "s-2vcpu-4gb"))
        self.assertEqual(shown["region"]["slug"], "fra1")
        self.assertTrue(TIME.match(shown["created_at"]))
        v4 = {network["type"]: network["ip_address"] for network in shown["networks"]["v4"]}
        self.assertEqual(v4, {"private": "10.0.0.101", "public": "198.51.100.101"})
        self.assertEqual([network["type"] for network in shown["networks"]["v6"]], ["public"])
        for field in ["kernel", "next_backup_window"]:
            self.assertIsNone(shown[field])
        for field in ["locked", "disk", "features", "backup_ids", "snapshot_ids", "image", "size", "tags", "vpc_uuid"]:
            self.assertIn(field, shown)

    def test_off(self):
        fake_cloud.put_instances(droplet(101, "stopped"))
        self.assertEqual(self.call(self.client.droplets.get, 101)["droplet"]["status"], "off")

    def test_list(self):
        fake_cloud.put_instances(*(droplet(number) for number in range(1001, 1121)))
        shown = self.pages(self.client.droplets.list, "droplets", per_page=50)
        self.assertEqual(len({item["id"] for item in shown}), 123)
        self.assertEqual(len(self.pages(self.client.droplets.list, "droplets")), 123)

    def test_name(self):
        shown = self.call(self.client.droplets.list, name="node-102", per_page=50)
        self.assertEqual([item["id"] for item in shown["droplets"]], [102])
        self.assertEqual(shown["links"], {})

    def test_nobody(self):
        self.fails(404, "not_found", self.client.droplets.get, 999)
        self.fails(403, "forbidden", self.client.droplets.destroy, 101)
        self.fails(403, "forbidden", self.client.droplets.create, body={"name": "x", "size": "s", "image": "i"})

    def test_bad_pages(self):
        for query in ["page=0", "page=x", "per_page=-1", "per_page=1.5"]:
            status, _, body = fake_cloud.raw("GET", f"/v2/droplets?{query}")
            self.assertEqual(status, 422, body)
        empty = self.call(self.client.droplets.list, page=10**18)
        self.assertEqual((empty["droplets"], empty["meta"]["total"]), ([], 3))


class LoadBalancers(Case):
    def test_life(self):
        made = self.call(self.client.load_balancers.create, body=balancer("web"))["load_balancer"]
        self.assertEqual(self.response.status_code, 202)
        self.assertTrue(UUID.match(made["id"]) and TIME.match(made["created_at"]))
        self.assertEqual((made["status"], made["ip"], made["size_unit"]), ("active", "203.0.113.1", 1))
        self.assertEqual((made["type"], made["region"]["slug"]), ("REGIONAL_NETWORK", "fra1"))
        self.assertEqual(made["droplet_ids"], [101, 102])
        self.assertEqual(made["health_check"]["port"], 10256)
        self.assertEqual(self.call(self.client.load_balancers.get, made["id"])["load_balancer"], made)
        self.assertEqual(self.call(self.client.load_balancers.list)["load_balancers"], [made])
        changed = balancer("web", droplet_ids=[103], firewall={"allow": ["cidr:192.0.2.0/24"], "deny": []})
        after = self.call(self.client.load_balancers.update, made["id"], body=changed)["load_balancer"]
        self.assertEqual((after["droplet_ids"], after["firewall"]["allow"]), ([103], ["cidr:192.0.2.0/24"]))
        kept = fake_cloud.inventory()["load_balancers"][0]
        self.assertEqual((kept["name"], kept["backends"], kept["source_ranges"]), ("web", ["103"], ["192.0.2.0/24"]))
        self.call(self.client.load_balancers.delete, made["id"])
        self.assertEqual(self.response.status_code, 204)
        self.fails(404, "not_found", self.client.load_balancers.get, made["id"])
        self.fails(404, "not_found", self.client.load_balancers.delete, made["id"])
        self.fails(404, "not_found", self.client.load_balancers.update, made["id"], body=balancer("web"))
        self.assertEqual(fake_cloud.inventory()["load_balancers"], [])

    def test_come_back_later(self):
        fake_cloud.settings(provisioning_ms=3_600_000)
        made = self.call(self.client.load_balancers.create, body=balancer("web"))["load_balancer"]
        self.assertEqual((made["status"], made["ip"]), ("new", ""))

    def test_pages(self):
        for number in range(5):
            self.call(self.client.load_balancers.create, body=balancer(f"web-{number}"))
        shown = self.pages(self.client.load_balancers.list, "load_balancers", per_page=2)
        self.assertEqual(len({item["ip"] for item in shown}), 5)

    def test_refusals(self):
        create = self.client.load_balancers.create
        self.call(create, body=balancer("taken"))
        rule = balancer("x")["forwarding_rules"][0]
        for wanted, words in [
            (balancer("taken"), "name is not unique"),
            (balancer("x" * 256), "name is longer than 255 characters"),
            (balancer("x", droplet_ids=[999]), "droplet 999 was not found"),
            (balancer("x", forwarding_rules=[]), "at least one rule"),
            (balancer("x", forwarding_rules=[rule, rule]), "same entry port and protocol"),
            (balancer("x", size="lb-small", size_unit=2), "only one of size and size_unit"),
            (balancer("x", region=""), "region is required"),
            (balancer("x", droplet_ids="101"), "request payload validation failed"),
        ]:
            message = self.fails(422, "unprocessable_entity", create, body=wanted)
            self.assertIn(words, message)
        made = self.call(create, body=balancer("other"))["load_balancer"]
        for change in [{"region": "nyc1"}, {"type": "REGIONAL"}, {"network": "INTERNAL"}, {"name": "taken"}]:
            wanted = {**balancer("other"), **change}
            self.fails(422, "unprocessable_entity", self.client.load_balancers.update, made["id"], body=wanted)
        self.assertEqual(len(fake_cloud.inventory()["load_balancers"]), 2)

    def test_not_simulated(self):
        wanted = {**balancer("x"), "tag": "web"}
        del wanted["droplet_ids"]
        self.fails(501, "not_implemented", self.client.load_balancers.create, body=wanted)
        self.assertEqual(fake_cloud.journal()[-1]["unknown"], "this cloud has no targets by tag")


class Tags(Case):
    def test_life(self):
        made = self.call(self.client.load_balancers.create, body=balancer("web"))["load_balancer"]
        resources = {"resources": [{"resource_id": made["id"], "resource_type": "load_balancer"}]}
        self.fails(404, "not_found", self.client.tags.assign_resources, "k8s:c-1", body=resources)
        tag = self.call(self.client.tags.create, body={"name": "k8s:c-1"})["tag"]
        self.assertEqual((self.response.status_code, tag["name"], tag["resources"]["count"]), (201, "k8s:c-1", 0))
        self.call(self.client.tags.assign_resources, "k8s:c-1", body=resources)
        self.assertEqual(self.response.status_code, 204)
        self.assertEqual(self.call(self.client.tags.get, "k8s:c-1")["tag"]["resources"]["count"], 1)
        shown = self.call(self.client.load_balancers.get, made["id"])["load_balancer"]
        self.assertEqual(shown["tags"], ["k8s:c-1"])
        self.call(self.client.tags.unassign_resources, "k8s:c-1", body=resources)
        shown = self.call(self.client.load_balancers.get, made["id"])["load_balancer"]
        self.assertEqual(shown["tags"], [])

    def test_refusals(self):
        self.fails(422, "unprocessable_entity", self.client.tags.create, body={"name": "no spaces"})
        self.fails(404, "not_found", self.client.tags.get, "nobody")


class Certificates(Case):
    def test_life(self):
        certificates = self.client.certificates
        wanted = {"name": "web", "type": "lets_encrypt", "dns_names": ["www.example.com"]}
        made = self.call(certificates.create, body=wanted)["certificate"]
        self.assertEqual((self.response.status_code, made["type"]), (201, "lets_encrypt"))
        self.assertTrue(UUID.match(made["id"]) and TIME.match(made["not_after"]))
        self.assertEqual(self.call(certificates.get, made["id"])["certificate"], made)
        found = self.call(certificates.list, name="web", page=1, per_page=1)
        self.assertEqual(found["certificates"], [made])
        self.assertEqual(self.pages(certificates.list, "certificates"), [made])
        rule = {
            "entry_protocol": "https",
            "entry_port": 443,
            "target_protocol": "http",
            "target_port": 30443,
            "certificate_id": made["id"],
        }
        user = self.call(
            self.client.load_balancers.create, body=balancer("web", type="REGIONAL", forwarding_rules=[rule])
        )["load_balancer"]
        message = self.fails(403, "forbidden", certificates.delete, made["id"])
        self.assertIn("not in use", message)
        self.call(self.client.load_balancers.delete, user["id"])
        self.call(certificates.delete, made["id"])
        self.fails(404, "not_found", certificates.get, made["id"])
        self.fails(422, "unprocessable_entity", certificates.create, body={"name": "web", "type": "custom"})


class Firewalls(Case):
    def firewall(self, name):
        return {
            "name": name,
            "inbound_rules": [{"protocol": "tcp", "ports": "31000", "sources": {"addresses": ["0.0.0.0/0", "::/0"]}}],
            "outbound_rules": [{"protocol": "tcp", "ports": "all", "destinations": {"addresses": ["0.0.0.0/0"]}}],
            "droplet_ids": [101],
            "tags": ["k8s:c-1"],
        }

    def test_life(self):
        firewalls = self.client.firewalls
        made = self.call(firewalls.create, body=self.firewall("public"))["firewall"]
        self.assertEqual((self.response.status_code, made["status"]), (202, "succeeded"))
        self.assertEqual({key: made[key] for key in self.firewall("")}, self.firewall("public"))
        self.assertEqual(self.call(firewalls.get, made["id"])["firewall"], made)
        self.assertEqual(self.pages(firewalls.list, "firewalls", per_page=1), [made])
        changed = {**self.firewall("public"), "tags": []}
        self.assertEqual(self.call(firewalls.update, made["id"], body=changed)["firewall"]["tags"], [])
        self.assertEqual([aux["kind"] for aux in fake_cloud.inventory()["auxiliaries"]], ["firewall"])
        message = self.fails(409, "conflict", firewalls.create, body=self.firewall("public"))
        self.assertEqual(message, "duplicate name")
        self.call(firewalls.delete, made["id"])
        self.fails(404, "not_found", firewalls.get, made["id"])
        self.fails(404, "not_found", firewalls.update, made["id"], body=changed)

    def test_refusals(self):
        wanted = {**self.firewall("x"), "droplet_ids": [999]}
        self.fails(422, "unprocessable_entity", self.client.firewalls.create, body=wanted)


class Trouble(Case):
    def test_faults(self):
        for status, error_id in [(429, "too_many_requests"), (500, "server_error"), (403, "forbidden")]:
            fake_cloud.fault({"kind": "status", "status": status, "retry_after_s": 1}, ops=["lb.list"])
            self.fails(status, error_id, self.client.load_balancers.list)
            self.assertEqual(self.response.headers["retry-after"], "1")
        self.call(self.client.load_balancers.list)

    def test_patience(self):
        """The client tries again by itself where it may."""
        patient = Client(fake_cloud.TOKEN, endpoint=fake_cloud.URL, retry_backoff_factor=0)
        fake_cloud.fault({"kind": "status", "status": 503}, calls=2, ops=["instance.get"])
        self.assertEqual(self.call(patient.droplets.get, 101)["droplet"]["id"], 101)

    def test_nonsense(self):
        for body in [b"", b"{", b"\xff", b"nonsense"]:
            status, _, text = fake_cloud.raw("POST", "/v2/load_balancers", body)
            self.assertEqual(status, 400, text)

    def test_unknown(self):
        self.fails(501, "not_implemented", self.client.vpcs.list)
        entry = fake_cloud.journal()[-1]
        self.assertEqual((entry["op"], entry["unknown"]), ("other", "this dialect has no such call"))


if __name__ == "__main__":
    unittest.main()
