"""The fake cloud's dialect `gcp`, driven by the vendor's own client over TLS, through every call of the dialect."""

import atexit
import json
import os
import tempfile
import time
import unittest
import urllib.parse

import fake_cloud
import google_auth_httplib2
import httplib2
from google.auth.exceptions import RefreshError
from google.oauth2.credentials import Credentials
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError

PROJECT = "conformance-project"
REGION = "us-central1"
ZONE = "us-central1-a"
OWNER = "a0123456789abcdef0123456789abcde"
LINK = f"https://www.googleapis.com/compute/v1/projects/{PROJECT}"


def trusted():
    """A file with the CA of the cloud."""
    file = tempfile.NamedTemporaryFile("w", suffix=".pem", delete=False)
    file.write(fake_cloud.driver("GET", "capabilities")["ca"])
    file.close()
    atexit.register(os.unlink, file.name)
    return file.name


CA = trusted()


def connection():
    """HTTP by way of the cloud as an HTTPS proxy, as the CCM has it."""
    at = urllib.parse.urlsplit(fake_cloud.URL)
    proxy = httplib2.ProxyInfo(httplib2.socks.PROXY_TYPE_HTTP, at.hostname, at.port)
    return httplib2.Http(ca_certs=CA, proxy_info=proxy, timeout=30)


def client(token=fake_cloud.TOKEN, version="v1"):
    credentials = Credentials(
        None, refresh_token=token, token_uri="https://oauth2.googleapis.com/token", client_id="c", client_secret="s"
    )
    http = google_auth_httplib2.AuthorizedHttp(credentials, http=connection())
    return build("compute", version, http=http, static_discovery=True, cache_discovery=False)


def machine(number, zone=ZONE, state="running", **more):
    return {
        "id": f"node-{number}",
        "name": f"node-{number}",
        "instance_type": "n1-standard-2",
        "zone": zone,
        "region": zone[:-2],
        "addresses": [
            {"type": "InternalIP", "address": f"10.128.0.{number}"},
            {"type": "ExternalIP", "address": f"198.51.100.{number}"},
        ],
        "state": state,
        **more,
    }


def path(number, zone=ZONE):
    return f"/zones/{zone}/instances/node-{number}"


def firewall(name=f"k8s-fw-{OWNER}", ports=("80",), sources=("0.0.0.0/0",), destination=None, **more):
    body = {
        "name": name,
        "description": "{}",
        "network": f"{LINK}/global/networks/default",
        "sourceRanges": list(sources),
        "targetTags": ["cluster-node"],
        "allowed": [{"IPProtocol": "tcp", "ports": list(ports)}],
        "priority": 1000,
        **more,
    }
    if destination:
        body["destinationRanges"] = [destination]
    return body


class Case(unittest.TestCase):
    def setUp(self):
        fake_cloud.reset()
        fake_cloud.put_instances(machine(1), machine(2))
        self.compute = self.client()
        self.regional = {"project": PROJECT, "region": REGION}
        self.project = {"project": PROJECT}

    def client(self, **which):
        one = client(**which)
        self.addCleanup(one.close)
        return one

    def done(self, request):
        """Carries a change out, and waits for its operation as the CCM does."""
        operation = request.execute()
        for _ in range(100):
            if operation["status"] == "DONE":
                return operation
            name = operation["name"]
            if "region" in operation:
                waiting = self.compute.regionOperations().wait(operation=name, **self.regional)
            else:
                waiting = self.compute.globalOperations().wait(operation=name, **self.project)
            operation = waiting.execute()
            time.sleep(0.02)
        self.fail(f"never over: {operation}")

    def refused(self, status, reason, request):
        with self.assertRaises(HttpError) as raised:
            request.execute()
        error = json.loads(raised.exception.content)["error"]
        found = (raised.exception.status_code, error["code"], error["errors"][0]["reason"])
        self.assertEqual(found, (status, status, reason), error["message"])
        return error["message"]

    def address(self, name=OWNER, **more):
        self.done(self.compute.addresses().insert(body={"name": name, **more}, **self.regional))
        return self.compute.addresses().get(address=name, **self.regional).execute()

    def balancer(self, name=OWNER, ports=("80",), port_range="80-80", sources=("0.0.0.0/0",), **more):
        """A load balancer, made as the CCM makes one; its address."""
        ip = self.address(name)["address"]
        self.done(self.compute.firewalls().insert(body=firewall(f"k8s-fw-{name}", ports, sources, ip), **self.project))
        self.check(name)
        self.pool(name)
        rule = {
            "name": name,
            "IPAddress": ip,
            "IPProtocol": "TCP",
            "portRange": port_range,
            "target": f"{LINK}/regions/{REGION}/targetPools/{name}",
            "networkTier": "PREMIUM",
            **more,
        }
        self.done(self.compute.forwardingRules().insert(body=rule, **self.regional))
        self.done(self.compute.addresses().delete(address=name, **self.regional))
        return ip

    def check(self, name=OWNER, port=10256):
        body = {"name": name, "port": port, "requestPath": "/healthz", "checkIntervalSec": 8, "timeoutSec": 1,
                "healthyThreshold": 1, "unhealthyThreshold": 3}
        self.done(self.compute.httpHealthChecks().insert(body=body, **self.project))

    def pool(self, name=OWNER, instances=(1,), **more):
        body = {"name": name, "instances": [path(number) for number in instances],
                "healthChecks": [f"{LINK}/global/httpHealthChecks/{name}"], **more}
        self.done(self.compute.targetPools().insert(body=body, **self.regional))

    def held(self):
        """The only load balancer of the model."""
        [one] = fake_cloud.inventory()["load_balancers"]
        return one


class Identity(Case):
    def test_a_refresh_token_is_exchanged_and_identifies_the_caller(self):
        after = fake_cloud.journal()[-1]["seq"]
        self.compute.projects().get(**self.project).execute()
        token, call = fake_cloud.journal(after)
        self.assertEqual((token["request"], call["credential"]), ("POST /token", token["credential"]))
        self.assertTrue(call["credential"])

    def test_a_wrong_refresh_token_is_refused(self):
        with self.assertRaises(RefreshError) as raised:
            self.client(token="wrong").projects().get(**self.project).execute()
        self.assertIn("invalid_grant", str(raised.exception))

    def test_a_wrong_access_token_is_refused(self):
        status, headers, body = fake_cloud.raw("GET", f"/compute/v1/projects/{PROJECT}", token="wrong")
        error = json.loads(body)["error"]
        self.assertEqual((status, error["status"], error["errors"][0]["reason"]), (401, "UNAUTHENTICATED", "authError"))
        self.assertIn("invalid_token", headers["www-authenticate"])

    def test_another_grant_is_not_supported(self):
        form = urllib.parse.urlencode({"grant_type": "password", "refresh_token": fake_cloud.TOKEN}).encode()
        status, _, body = fake_cloud.raw("POST", "/token", form, token=None)
        self.assertEqual((status, json.loads(body)["error"]), (400, "unsupported_grant_type"))

    def test_a_wrong_project_region_and_zone(self):
        message = self.refused(404, "notFound", self.compute.projects().get(project="other"))
        self.assertEqual(message, "The resource 'projects/other' was not found")
        message = self.refused(400, "invalid", self.compute.instances().list(project=PROJECT, zone="nowhere"))
        self.assertEqual(message, "Invalid value for field 'zone': 'nowhere'. Unknown zone.")
        message = self.refused(400, "invalid", self.compute.addresses().list(project=PROJECT, region="nowhere"))
        self.assertEqual(message, "Invalid value for field 'region': 'nowhere'. Unknown region.")

    def test_the_number_of_the_project_names_it(self):
        found = self.compute.projects().get(project="420000000042").execute()
        self.assertEqual(found["name"], PROJECT)


class Places(Case):
    def test_zones_of_a_region(self):
        fake_cloud.put_instances(machine(3, "europe-west4-b"))
        of = self.compute.zones().list(filter=f"region eq .*/regions/{REGION}", **self.project).execute()
        self.assertEqual([zone["name"] for zone in of["items"]], [f"{REGION}-{zone}" for zone in "abc"])
        every = self.compute.zones().list(**self.project).execute()
        self.assertEqual((every["items"][0]["name"], len(every["items"])), ("europe-west4-b", 4))
        one = self.compute.zones().get(zone=ZONE, **self.project).execute()
        self.assertEqual((one["region"], one["status"]), (f"{LINK}/regions/{REGION}", "UP"))
        self.refused(404, "notFound", self.compute.zones().get(zone="us-east1-b", **self.project))

    def test_regions(self):
        found = self.compute.regions().list(**self.project).execute()
        self.assertEqual([region["name"] for region in found["items"]], [REGION])
        one = self.compute.regions().get(**self.regional).execute()
        self.assertEqual(len(one["zones"]), 3)
        self.refused(404, "notFound", self.compute.regions().get(project=PROJECT, region="us-east1"))

    def test_network_and_subnetworks(self):
        network = self.compute.networks().get(network="default", **self.project).execute()
        self.assertEqual((network["autoCreateSubnetworks"], network["selfLink"]), (True, f"{LINK}/global/networks/default"))
        self.assertEqual(len(self.compute.networks().list(**self.project).execute()["items"]), 1)
        pattern = "network eq .*/default$"
        found = self.compute.subnetworks().list(filter=pattern, **self.regional).execute()
        self.assertEqual([subnetwork["ipCidrRange"] for subnetwork in found["items"]], ["10.128.0.0/20"])
        one = self.compute.subnetworks().get(subnetwork="default", **self.regional).execute()
        self.assertEqual(one["network"], network["selfLink"])
        self.refused(404, "notFound", self.compute.networks().get(network="other", **self.project))
        self.refused(404, "notFound", self.compute.subnetworks().get(subnetwork="other", **self.regional))

    def test_a_machine_type(self):
        found = self.compute.machineTypes().get(project=PROJECT, zone=ZONE, machineType="n1-standard-2").execute()
        self.assertEqual((found["name"], found["zone"]), ("n1-standard-2", ZONE))


class Instances(Case):
    def test_an_instance(self):
        found = self.compute.instances().get(project=PROJECT, zone=ZONE, instance="node-1").execute()
        [interface] = found["networkInterfaces"]
        self.assertEqual(found["selfLink"], f"{LINK}{path(1)}")
        self.assertEqual(found["machineType"], f"{LINK}/zones/{ZONE}/machineTypes/n1-standard-2")
        self.assertEqual((interface["networkIP"], interface["accessConfigs"][0]["natIP"]), ("10.128.0.1", "198.51.100.1"))
        self.assertTrue(found["id"].isdigit() and found["status"] == "RUNNING")

    def test_a_stopped_instance_and_one_without_addresses(self):
        fake_cloud.put_instances(machine(3, state="stopped", addresses=[]))
        found = self.compute.instances().get(project=PROJECT, zone=ZONE, instance="node-3").execute()
        self.assertEqual(found["status"], "TERMINATED")
        self.assertNotIn("networkIP", found["networkInterfaces"][0])

    def test_an_instance_is_in_its_zone_only(self):
        get = self.compute.instances().get(project=PROJECT, zone="us-central1-b", instance="node-1")
        message = self.refused(404, "notFound", get)
        self.assertEqual(
            message, f"The resource 'projects/{PROJECT}/zones/us-central1-b/instances/node-1' was not found"
        )

    def test_lists_have_filters_and_pages(self):
        fake_cloud.put_instances(*[machine(number) for number in range(3, 8)], machine(9, "us-central1-b"))
        names, request = [], self.compute.instances().list(project=PROJECT, zone=ZONE, maxResults=3)
        while request is not None:
            page = request.execute()
            names += [instance["name"] for instance in page["items"]]
            request = self.compute.instances().list_next(request, page)
        self.assertEqual(names, [f"node-{number}" for number in range(1, 8)])
        filtered = self.compute.instances().list(project=PROJECT, zone=ZONE, filter="name eq node-[0-9]")
        self.assertEqual(self.status(filtered), 501)
        filtered = self.compute.instances().list(project=PROJECT, zone=ZONE, filter='name = "node-2"').execute()
        self.assertEqual([instance["name"] for instance in filtered["items"]], ["node-2"])
        empty = self.compute.instances().list(project=PROJECT, zone="us-central1-c").execute()
        self.assertNotIn("items", empty)
        self.refused(400, "invalid", self.compute.instances().list(project=PROJECT, zone=ZONE, pageToken="x"))

    def status(self, request):
        with self.assertRaises(HttpError) as raised:
            request.execute()
        return raised.exception.status_code

    def test_the_cloud_limits_pages(self):
        fake_cloud.settings(page_size=1)
        self.addCleanup(fake_cloud.settings, page_size=500)
        page = self.compute.instances().list(project=PROJECT, zone=ZONE).execute()
        self.assertEqual((len(page["items"]), page["nextPageToken"]), (1, "page-2"))

    def test_the_account_may_not_change_instances(self):
        stop = self.compute.instances().stop(project=PROJECT, zone=ZONE, instance="node-1")
        self.assertIn("compute.instances.update", self.refused(403, "forbidden", stop))
        self.refused(403, "forbidden", self.compute.instances().delete(project=PROJECT, zone=ZONE, instance="node-1"))

    def test_other_versions_of_the_api(self):
        for version in ["beta", "alpha"]:
            found = self.client(version=version).instances().get(project=PROJECT, zone=ZONE, instance="node-1").execute()
            self.assertEqual(found["name"], "node-1")


class Addresses(Case):
    def test_an_address_is_reserved_and_released(self):
        found = self.address()
        self.assertEqual((found["status"], found["networkTier"], found["addressType"]), ("RESERVED", "PREMIUM", "EXTERNAL"))
        listed = self.compute.addresses().list(filter=f"address eq {found['address']}", **self.regional).execute()
        self.assertEqual([one["name"] for one in listed["items"]], [OWNER])
        self.refused(409, "alreadyExists", self.compute.addresses().insert(body={"name": OWNER}, **self.regional))
        self.done(self.compute.addresses().delete(address=OWNER, **self.regional))
        self.refused(404, "notFound", self.compute.addresses().get(address=OWNER, **self.regional))
        self.refused(404, "notFound", self.compute.addresses().delete(address=OWNER, **self.regional))

    def test_the_address_of_a_rule_can_be_reserved_later(self):
        ip = self.balancer()
        found = self.address("later", address=ip)
        self.assertEqual((found["address"], found["status"]), (ip, "IN_USE"))
        self.assertEqual(found["users"], [f"{LINK}/regions/{REGION}/forwardingRules/{OWNER}"])
        again = self.compute.addresses().insert(body={"name": "again", "address": ip}, **self.regional)
        self.assertIn("already reserved", self.refused(400, "invalid", again))

    def test_addresses_and_names_have_to_be_valid(self):
        for body in [{"name": "x", "address": "192.0.2.1"}, {"name": "x", "address": "x"}, {"name": "X"},
                     {"name": "x", "addressType": "INTERNAL"}]:
            self.refused(400, "invalid", self.compute.addresses().insert(body=body, **self.regional))
        self.refused(400, "required", self.compute.addresses().insert(body={}, **self.regional))


class Firewalls(Case):
    def test_the_life_of_a_firewall(self):
        self.done(self.compute.firewalls().insert(body=firewall(), **self.project))
        name = f"k8s-fw-{OWNER}"
        found = self.compute.firewalls().get(firewall=name, **self.project).execute()
        self.assertEqual((found["direction"], found["priority"], found["disabled"]), ("INGRESS", 1000, False))
        self.done(self.compute.firewalls().patch(firewall=name, body={"sourceRanges": ["10.0.0.0/8"]}, **self.project))
        found = self.compute.firewalls().get(firewall=name, **self.project).execute()
        self.assertEqual((found["sourceRanges"], found["allowed"][0]["ports"]), (["10.0.0.0/8"], ["80"]))
        self.done(self.compute.firewalls().update(firewall=name, body=firewall(ports=["81"]), **self.project))
        [found] = self.compute.firewalls().list(**self.project).execute()["items"]
        self.assertEqual((found["sourceRanges"], found["allowed"][0]["ports"]), (["0.0.0.0/0"], ["81"]))
        self.refused(409, "alreadyExists", self.compute.firewalls().insert(body=firewall(), **self.project))
        operation = self.done(self.compute.firewalls().delete(firewall=name, **self.project))
        self.assertEqual((operation["operationType"], operation["targetLink"]), ("delete", f"{LINK}/global/firewalls/{name}"))
        self.refused(404, "notFound", self.compute.firewalls().get(firewall=name, **self.project))

    def test_ranges_and_ports_have_to_be_valid(self):
        for wrong in [firewall(sources=["x"]), firewall(ports=["x"]), firewall(destination="x")]:
            self.refused(400, "invalid", self.compute.firewalls().insert(body=wrong, **self.project))
        nothing = {"name": "x", "sourceRanges": ["10.0.0.0/8"]}
        self.refused(400, "required", self.compute.firewalls().insert(body=nothing, **self.project))

    def test_firewalls_open_the_ports_of_a_rule(self):
        ip = self.balancer(ports=["80", "443"], port_range="80-443", sources=["192.0.2.0/24"])
        held = self.held()
        self.assertEqual([one["port"] for one in held["frontends"]], [80, 443])
        self.assertEqual(held["source_ranges"], ["192.0.2.0/24"])
        body = firewall(ports=["80"], destination=ip)
        self.done(self.compute.firewalls().patch(firewall=f"k8s-fw-{OWNER}", body=body, **self.project))
        held = self.held()
        self.assertEqual(([one["port"] for one in held["frontends"]], held["source_ranges"]), ([80], []))
        self.done(self.compute.firewalls().delete(firewall=f"k8s-fw-{OWNER}", **self.project))
        self.assertEqual(self.held()["frontends"], [])


class HealthChecks(Case):
    def test_the_life_of_a_health_check(self):
        self.check()
        found = self.compute.httpHealthChecks().get(httpHealthCheck=OWNER, **self.project).execute()
        self.assertEqual((found["port"], found["requestPath"], found["unhealthyThreshold"]), (10256, "/healthz", 3))
        one = {"httpHealthCheck": OWNER, **self.project}
        self.done(self.compute.httpHealthChecks().patch(body={"port": 81}, **one))
        self.assertEqual(self.compute.httpHealthChecks().get(**one).execute()["requestPath"], "/healthz")
        self.done(self.compute.httpHealthChecks().update(body={"name": OWNER, "port": 82}, **one))
        [found] = self.compute.httpHealthChecks().list(**self.project).execute()["items"]
        self.assertEqual((found["port"], found["requestPath"]), (82, "/"))
        self.done(self.compute.httpHealthChecks().delete(**one))
        self.refused(404, "notFound", self.compute.httpHealthChecks().get(**one))

    def test_one_that_is_used_cannot_be_deleted(self):
        self.balancer()
        delete = self.compute.httpHealthChecks().delete(httpHealthCheck=OWNER, **self.project)
        message = self.refused(400, "resourceInUseByAnotherResource", delete)
        self.assertIn(f"being used by 'projects/{PROJECT}/regions/{REGION}/targetPools/{OWNER}'", message)
        self.assertEqual(self.held()["health_check"], {"protocol": "HTTP", "path": "/healthz", "port": 10256})
        update = self.compute.httpHealthChecks().patch(httpHealthCheck=OWNER, body={"port": 30000}, **self.project)
        self.done(update)
        self.assertEqual(self.held()["health_check"]["port"], 30000)

    def test_ports_have_to_be_valid(self):
        insert = self.compute.httpHealthChecks().insert(body={"name": "x", "port": 70000}, **self.project)
        self.refused(400, "invalid", insert)


class TargetPools(Case):
    def instances(self, name=OWNER):
        found = self.compute.targetPools().get(targetPool=name, **self.regional).execute()
        return found.get("instances", [])

    def change(self, how, number):
        call = getattr(self.compute.targetPools(), how)
        self.done(call(targetPool=OWNER, body={"instances": [{"instance": path(number)}]}, **self.regional))

    def test_instances_join_and_leave_a_pool(self):
        self.check()
        self.pool()
        self.change("addInstance", 2)
        self.assertEqual(self.instances(), [f"{LINK}{path(1)}", f"{LINK}{path(2)}"])
        self.change("removeInstance", 1)
        self.assertEqual(self.instances(), [f"{LINK}{path(2)}"])
        [found] = self.compute.targetPools().list(**self.regional).execute()["items"]
        self.assertEqual((found["name"], found["sessionAffinity"]), (OWNER, "NONE"))
        self.done(self.compute.targetPools().delete(targetPool=OWNER, **self.regional))
        self.refused(404, "notFound", self.compute.targetPools().get(targetPool=OWNER, **self.regional))

    def test_a_pool_of_a_rule_has_the_backends_of_the_load_balancer(self):
        self.balancer()
        self.change("addInstance", 2)
        self.assertEqual(self.held()["backends"], ["node-1", "node-2"])
        fake_cloud.driver("DELETE", "instances/node-1")
        self.assertEqual(self.instances(), [f"{LINK}{path(2)}"])
        # The CCM removes what has left already.
        self.change("removeInstance", 1)
        held = self.held()
        fake_cloud.driver("PUT", f"load-balancers/{held['id']}", {**held, "backends": []})
        self.assertEqual(self.instances(), [])

    def test_a_pool_that_is_used_cannot_be_deleted(self):
        self.balancer()
        delete = self.compute.targetPools().delete(targetPool=OWNER, **self.regional)
        self.assertIn("being used by", self.refused(400, "resourceInUseByAnotherResource", delete))

    def test_missing_parts_and_wrong_values(self):
        def insert(**fields):
            return self.compute.targetPools().insert(body={"name": "x", **fields}, **self.regional)

        self.refused(404, "notFound", insert(instances=[path(9)]))
        self.refused(400, "invalid", insert(instances=["node-1"]))
        self.refused(404, "notFound", insert(healthChecks=["global/httpHealthChecks/none"]))
        self.refused(400, "invalid", insert(sessionAffinity="ALWAYS"))


class ForwardingRules(Case):
    def test_the_life_of_a_load_balancer(self):
        ip = self.balancer()
        held = self.held()
        self.assertEqual((held["name"], held["owner"], held["addresses"][0]["ip"]), (OWNER, OWNER, ip))
        self.assertEqual((held["frontends"][0]["port"], held["backends"]), (80, ["node-1"]))
        found = self.compute.forwardingRules().get(forwardingRule=OWNER, **self.regional).execute()
        expected = (ip, "80-80", "TCP", "EXTERNAL")
        self.assertEqual((found["IPAddress"], found["portRange"], found["IPProtocol"], found["loadBalancingScheme"]), expected)
        self.assertEqual(len(self.compute.forwardingRules().list(**self.regional).execute()["items"]), 1)
        self.done(self.compute.forwardingRules().delete(forwardingRule=OWNER, **self.regional))
        self.refused(404, "notFound", self.compute.forwardingRules().get(forwardingRule=OWNER, **self.regional))
        pool = self.compute.targetPools().get(targetPool=OWNER, **self.regional).execute()
        self.assertEqual(pool["instances"], [f"{LINK}{path(1)}"])

    def test_affinity_is_that_of_the_pool(self):
        self.check()
        self.pool(sessionAffinity="CLIENT_IP")
        target = f"{LINK}/regions/{REGION}/targetPools/{OWNER}"
        self.done(self.compute.forwardingRules().insert(body={"name": OWNER, "target": target}, **self.regional))
        held = self.held()
        self.assertEqual(held["session_affinity"], "ClientIP")
        fake_cloud.driver("PUT", f"load-balancers/{held['id']}", {**held, "session_affinity": "None"})
        pool = self.compute.targetPools().get(targetPool=OWNER, **self.regional).execute()
        self.assertEqual(pool["sessionAffinity"], "NONE")

    def test_what_the_driver_changes_is_shown(self):
        self.balancer()
        held = self.held()
        changed = {**held, "frontends": [{"port": 81, "protocol": "UDP", "node_port": 81}], "source_ranges": ["10.0.0.0/8"]}
        fake_cloud.driver("PUT", f"load-balancers/{held['id']}", changed)
        found = self.compute.forwardingRules().get(forwardingRule=OWNER, **self.regional).execute()
        self.assertEqual((found["portRange"], found["IPProtocol"]), ("81-81", "UDP"))
        found = self.compute.firewalls().get(firewall=f"k8s-fw-{OWNER}", **self.project).execute()
        self.assertEqual(found["sourceRanges"], ["10.0.0.0/8"])

    def test_an_operation_lasts_as_long_as_provisioning(self):
        self.check()
        self.pool()
        fake_cloud.settings(provisioning_ms=300)
        self.addCleanup(fake_cloud.settings, provisioning_ms=0)
        target = f"{LINK}/regions/{REGION}/targetPools/{OWNER}"
        insert = self.compute.forwardingRules().insert(body={"name": OWNER, "target": target}, **self.regional)
        operation = insert.execute()
        self.assertEqual(operation["status"], "RUNNING")
        get = self.compute.regionOperations().get(operation=operation["name"], **self.regional)
        while (seen := get.execute())["status"] != "DONE":
            time.sleep(0.02)
        self.assertEqual((seen["progress"], seen["region"]), (100, f"{LINK}/regions/{REGION}"))
        self.refused(404, "notFound", self.compute.globalOperations().get(operation=operation["name"], **self.project))
        self.refused(404, "notFound", self.compute.zoneOperations().wait(project=PROJECT, zone=ZONE, operation="none"))

    def test_an_operation_can_fail(self):
        self.check()
        fake_cloud.fault({"kind": "fail-action", "code": "QUOTA_EXCEEDED"}, ops=["aux.create"])
        body = {"name": OWNER, "instances": []}
        operation = self.done(self.compute.targetPools().insert(body=body, **self.regional))
        self.assertEqual(operation["error"]["errors"][0]["code"], "QUOTA_EXCEEDED")
        self.assertEqual(operation["httpErrorStatusCode"], 400)
        self.refused(404, "notFound", self.compute.targetPools().get(targetPool=OWNER, **self.regional))

    def test_addresses_and_other_fields_have_to_be_valid(self):
        ip = self.balancer()
        target = f"{LINK}/regions/{REGION}/targetPools/{OWNER}"

        def insert(**fields):
            body = {"name": "other", "target": target, **fields}
            return self.compute.forwardingRules().insert(body=body, **self.regional)

        self.assertIn("in-use", self.refused(400, "invalid", insert(IPAddress=ip)))
        for wrong in [{"IPAddress": "192.0.2.1"}, {"IPAddress": "x"}, {"IPProtocol": "ESP"}, {"portRange": "x"},
                      {"loadBalancingScheme": "INTERNAL"}, {"target": "global/targetHttpProxies/x"}]:
            self.refused(400, "invalid", insert(**wrong))
        self.refused(400, "required", insert(target=None))
        self.refused(404, "notFound", insert(target=f"{LINK}/regions/{REGION}/targetPools/none"))
        self.refused(409, "alreadyExists", insert(name=OWNER))
        self.refused(404, "notFound", self.compute.forwardingRules().delete(forwardingRule="none", **self.regional))

    def test_unknown_fields_are_refused(self):
        target = f"{LINK}/regions/{REGION}/targetPools/{OWNER}"
        body = {"name": "x", "target": target, "allowGlobalAccess": True}
        self.refused(501, "notImplemented", self.compute.forwardingRules().insert(body=body, **self.regional))


class Faults(Case):
    def test_faults_have_the_form_of_the_vendor(self):
        for status, reason in [(403, "forbidden"), (429, "rateLimitExceeded"), (500, "internalError"), (503, "backendError")]:
            fake_cloud.fault({"kind": "status", "status": status}, ops=["instance.get"])
            get = self.compute.instances().get(project=PROJECT, zone=ZONE, instance="node-1")
            self.refused(status, reason, get)


class Routes(Case):
    def insert(self, name="kubernetes-1", range="10.244.1.0/24", hop=f"zones/{ZONE}/instances/node-1"):
        body = {"name": name, "destRange": range, "nextHopInstance": hop, "priority": 1000,
                "network": f"{LINK}/global/networks/default", "description": "k8s-node-route"}
        return self.compute.routes().insert(body=body, **self.project)

    def test_the_life_of_a_route(self):
        self.done(self.insert())
        own = f"(name eq kubernetes-.*) (network eq {LINK}/global/networks/default) (description eq k8s-node-route)"
        [found] = self.compute.routes().list(filter=own, **self.project).execute()["items"]
        self.assertEqual((found["destRange"], found["nextHopInstance"]), ("10.244.1.0/24", f"{LINK}{path(1)}"))
        self.assertEqual(self.compute.routes().get(route="kubernetes-1", **self.project).execute(), found)
        self.refused(409, "alreadyExists", self.insert())
        self.done(self.compute.routes().delete(route="kubernetes-1", **self.project))
        self.refused(404, "notFound", self.compute.routes().get(route="kubernetes-1", **self.project))
        self.refused(404, "notFound", self.compute.routes().delete(route="kubernetes-1", **self.project))

    def test_ranges_and_instances_have_to_exist(self):
        self.refused(400, "invalid", self.insert(range="10.244.1.1/24"))
        self.refused(400, "invalid", self.insert(range="x"))
        self.refused(400, "invalid", self.insert(hop=f"zones/{ZONE}/instances/none"))

    def test_routes_of_the_driver_look_like_those_of_the_ccm(self):
        route = {"destination": "10.244.2.0/24", "target_instance": "node-2"}
        made = fake_cloud.driver("POST", "routes", {"id": "", "target_addresses": [], "blackhole": False, **route})
        [found] = self.compute.routes().list(filter="name eq kubernetes-.*", **self.project).execute()["items"]
        self.assertEqual((found["name"], found["nextHopInstance"]), (f"kubernetes-{made['id']}", f"{LINK}{path(2)}"))
        self.done(self.compute.routes().delete(route=found["name"], **self.project))
        self.assertEqual(fake_cloud.inventory()["routes"], [])


if __name__ == "__main__":
    unittest.main()
