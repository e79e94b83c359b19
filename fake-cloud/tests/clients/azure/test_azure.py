"""The fake cloud's dialect `azure`, driven by the vendor's own clients over TLS, through every call of the dialect."""

import atexit
import json
import logging
import os
import tempfile
import unittest

import fake_cloud
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceNotFoundError
from azure.identity import ClientSecretCredential
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.network import NetworkManagementClient

logging.disable(logging.WARNING)

TENANT = "fa4ec10d-0000-4000-8000-00000000000a"
SUBSCRIPTION = "fa4ec10d-0000-4000-8000-00000000000b"
CLIENT = "fa4ec10d-0000-4000-8000-00000000000c"
GROUP = "cluster"
OWNER = "a0123456789abcdef0123456789abcde"
OTHER = "b".join(["a", "123456789abcdef0123456789abcde"])
PREFIX = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers"


def trusted():
    """A file with the CA of the cloud."""
    file = tempfile.NamedTemporaryFile("w", suffix=".pem", delete=False)
    file.write(fake_cloud.driver("GET", "capabilities")["ca"])
    file.close()
    atexit.register(os.unlink, file.name)
    return file.name


CA = trusted()
OPTIONS = {"connection_verify": CA, "proxies": {"https": fake_cloud.URL}, "retry_total": 0, "logging_enable": False}


def credential(secret=fake_cloud.TOKEN, tenant=TENANT, client=CLIENT):
    return ClientSecretCredential(tenant, client, secret, **OPTIONS)


def clients(subscription=SUBSCRIPTION, **which):
    one = credential(**which)
    more = {**OPTIONS, "polling_interval": 0}
    return ComputeManagementClient(one, subscription, **more), NetworkManagementClient(one, subscription, **more)


def machine(number, state="running", **more):
    return {
        "id": f"node-{number}",
        "name": f"node-{number}",
        "instance_type": "Standard_D2s_v5",
        "zone": "eastus-1",
        "region": "eastus",
        "addresses": [
            {"type": "InternalIP", "address": f"10.0.0.{number}"},
            {"type": "ExternalIP", "address": f"198.51.100.{number}"},
        ],
        "state": state,
        **more,
    }


def network_id(kind, name):
    return f"{PREFIX}/Microsoft.Network/{kind}/{name}"


def part_id(kind, name, balancer="k8s"):
    return f"{network_id('loadBalancers', balancer)}/{kind}/{name}"


def balancer(*owners, port=80):
    """A load balancer as the CCM asks for it, with a frontend for each owner."""
    rules = [
        {
            "name": f"{owner}-TCP-{port}",
            "properties": {
                "protocol": "Tcp",
                "frontendPort": port,
                "backendPort": port,
                "enableFloatingIP": True,
                "enableTcpReset": True,
                "idleTimeoutInMinutes": 4,
                "loadDistribution": "Default",
                "frontendIPConfiguration": {"id": part_id("frontendIPConfigurations", owner)},
                "backendAddressPool": {"id": part_id("backendAddressPools", "k8s")},
                "probe": {"id": part_id("probes", f"{owner}-TCP-{port}")},
            },
        }
        for owner in owners
    ]
    probe = {"protocol": "Tcp", "port": 30080, "intervalInSeconds": 5, "numberOfProbes": 2}
    return {
        "location": "eastus",
        "sku": {"name": "Standard"},
        "properties": {
            "frontendIPConfigurations": [
                {"name": owner, "properties": {"publicIPAddress": {"id": network_id("publicIPAddresses", f"k8s-{owner}")}}}
                for owner in owners
            ],
            "backendAddressPools": [{"name": "k8s"}],
            "loadBalancingRules": rules,
            "probes": [{"name": rule["name"], "properties": probe} for rule in rules],
        },
    }


def rule(name="allow", destinations=(), sources=("Internet",), priority=500):
    return {
        "name": name,
        "properties": {
            "protocol": "Tcp",
            "access": "Allow",
            "direction": "Inbound",
            "priority": priority,
            "sourcePortRange": "*",
            "destinationPortRanges": ["80"],
            "sourceAddressPrefixes": list(sources),
            "destinationAddressPrefixes": list(destinations),
        },
    }


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.compute, cls.network = clients()

    def setUp(self):
        fake_cloud.reset()
        self.before = 0
        while entries := fake_cloud.journal(self.before):
            self.before = entries[-1]["seq"]
        self.addCleanup(fake_cloud.driver, "DELETE", "faults")

    def calls(self):
        """The calls of this case."""
        return fake_cloud.journal(self.before)

    def refused(self, code, status, call, *arguments, **more):
        with self.assertRaises(HttpResponseError) as caught:
            result = call(*arguments, **more)
            list(result) if hasattr(result, "by_page") else result
        self.assertEqual((caught.exception.error.code, caught.exception.status_code), (code, status))

    def address(self, owner=OWNER):
        wanted = {"location": "eastus", "sku": {"name": "Standard"}, "tags": {"k8s-azure-service": "default/web"}}
        wanted["properties"] = {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"}
        return self.network.public_ip_addresses.begin_create_or_update(GROUP, f"k8s-{owner}", wanted).result()

    def balance(self, *owners, **more):
        return self.network.load_balancers.begin_create_or_update(GROUP, "k8s", balancer(*owners, **more)).result()

    def join(self, number, *pools):
        one = self.network.network_interfaces.get(GROUP, f"node-{number}-nic").as_dict()
        wanted = [{"id": part_id("backendAddressPools", pool)} for pool in pools]
        one["properties"]["ipConfigurations"][0]["properties"]["loadBalancerBackendAddressPools"] = wanted
        return self.network.network_interfaces.begin_create_or_update(GROUP, f"node-{number}-nic", one).result()


class Login(Case):
    def test_a_secret_is_exchanged_for_a_token(self):
        token = credential().get_token("https://management.azure.com/.default")
        self.assertEqual(token.token, fake_cloud.TOKEN)

    def test_a_wrong_secret_application_or_tenant_is_refused_in_the_words_of_entra(self):
        for which, code in [
            ({"secret": "wrong"}, "AADSTS7000215"),
            ({"client": "fa4ec10d-0000-4000-8000-0000000000ff"}, "AADSTS700016"),
            ({"tenant": "fa4ec10d-0000-4000-8000-0000000000ff"}, "AADSTS90002|invalid_tenant|Unable to get authority"),
        ]:
            with self.assertRaisesRegex((ClientAuthenticationError, ValueError), code):
                credential(**which).get_token("https://management.azure.com/.default")

    def test_a_wrong_subscription_and_group_are_not_found(self):
        elsewhere, _ = clients(subscription="fa4ec10d-0000-4000-8000-0000000000ff")
        self.refused("SubscriptionNotFound", 404, elsewhere.virtual_machines.list, GROUP)
        self.refused("ResourceGroupNotFound", 404, self.compute.virtual_machines.list, "elsewhere")

    def test_a_call_needs_a_token_and_a_version(self):
        path = f"{PREFIX}/Microsoft.Compute/virtualMachines"
        for query, token, status, code in [
            ("?api-version=2024-07-01", "wrong", 401, "InvalidAuthenticationToken"),
            ("?api-version=2024-07-01", None, 401, "InvalidAuthenticationToken"),
            ("", fake_cloud.TOKEN, 400, "MissingApiVersionParameter"),
            ("?api-version=new", fake_cloud.TOKEN, 400, "InvalidApiVersionParameter"),
        ]:
            answer, _, body = fake_cloud.raw("GET", path + query, token=token)
            self.assertEqual((answer, json.loads(body)["error"]["code"]), (status, code))

    def test_the_endpoints_are_described(self):
        status, _, body = fake_cloud.raw("GET", "/metadata/endpoints?api-version=2019-05-01", token=None)
        self.assertEqual((status, json.loads(body)[0]["name"]), (200, "AzureCloud"))
        self.assertEqual(json.loads(body)[0]["resourceManager"], fake_cloud.URL)


class Machines(Case):
    def test_a_machine_has_type_zone_and_state(self):
        fake_cloud.put_instances(machine(1), machine(2, state="stopped", zone="", labels={"a": "b"}))
        one = self.compute.virtual_machines.get(GROUP, "node-1")
        self.assertEqual((one.location, one.zones, one.hardware_profile.vm_size), ("eastus", ["1"], "Standard_D2s_v5"))
        self.assertEqual(one.id, f"{PREFIX}/Microsoft.Compute/virtualMachines/node-1")
        self.assertIsNone(one.instance_view)
        two = self.compute.virtual_machines.get(GROUP, "NODE-2", expand="instanceView")
        self.assertEqual((two.zones, two.tags), (None, {"a": "b"}))
        self.assertEqual(two.instance_view.statuses[1].code, "PowerState/deallocated")
        view = self.compute.virtual_machines.instance_view(GROUP, "node-1")
        self.assertEqual(view.statuses[1].code, "PowerState/running")

    def test_a_missing_machine_is_not_found(self):
        self.refused("ResourceNotFound", 404, self.compute.virtual_machines.get, GROUP, "node-9")

    def test_a_list_has_several_pages(self):
        fake_cloud.put_instances(*[machine(number) for number in range(1, 8)])
        fake_cloud.settings(page_size=3)
        found = [one.name for one in self.compute.virtual_machines.list(GROUP)]
        self.assertEqual(found, [f"node-{number}" for number in range(1, 8)])
        pages = [entry for entry in self.calls() if "virtualMachines?" in entry["request"]]
        self.assertEqual(len(pages), 3)

    def test_nobody_may_change_a_machine(self):
        fake_cloud.put_instances(machine(1))
        self.refused("AuthorizationFailed", 403, self.compute.virtual_machines.begin_delete, GROUP, "node-1")

    def test_there_are_no_sets_of_machines(self):
        self.assertEqual(list(self.compute.availability_sets.list(GROUP)), [])
        self.assertEqual(list(self.compute.virtual_machine_scale_sets.list(GROUP)), [])
        self.refused("ResourceNotFound", 404, self.compute.virtual_machine_scale_sets.get, GROUP, "x")

    def test_an_interface_has_the_addresses_of_its_machine(self):
        fake_cloud.put_instances(machine(1))
        one = self.network.network_interfaces.get(GROUP, "node-1-nic")
        configuration = one.ip_configurations[0]
        self.assertEqual((configuration.private_ip_address, configuration.primary), ("10.0.0.1", True))
        self.assertEqual(one.virtual_machine.id, f"{PREFIX}/Microsoft.Compute/virtualMachines/node-1")
        public = self.network.public_ip_addresses.get(GROUP, configuration.public_ip_address.id.split("/")[-1])
        self.assertEqual(public.ip_address, "198.51.100.1")
        self.assertEqual([one.name for one in self.network.network_interfaces.list(GROUP)], ["node-1-nic"])
        self.refused("AuthorizationFailed", 403, self.network.public_ip_addresses.begin_delete, GROUP, public.name)


class Balancers(Case):
    def test_a_frontend_is_a_load_balancer_of_the_model(self):
        fake_cloud.put_instances(machine(1))
        address = self.address()
        made = self.balance(OWNER)
        self.assertEqual(made.provisioning_state, "Succeeded")
        self.join(1, "k8s")
        shown = self.network.load_balancers.get(GROUP, "k8s")
        configurations = shown.backend_address_pools[0].backend_ip_configurations
        self.assertEqual([one.id for one in configurations], [f"{network_id('networkInterfaces', 'node-1-nic')}/ipConfigurations/ipconfig1"])
        self.assertEqual(shown.probes[0].port, 30080)
        lb = fake_cloud.inventory()["load_balancers"][0]
        self.assertEqual((lb["name"], lb["owner"], lb["backends"]), (OWNER, OWNER, ["node-1"]))
        self.assertEqual(lb["addresses"], [{"ip": address.ip_address}])
        check = {"protocol": "TCP", "path": "", "port": 30080}
        self.assertEqual(lb["frontends"], [{"port": 80, "protocol": "TCP", "node_port": 80, "health_check": check}])

    def test_the_meaning_of_a_replacement_is_the_difference(self):
        self.address(OWNER), self.address(OTHER)
        self.balance(OWNER)
        self.balance(OWNER, OTHER)
        self.balance(OWNER, OTHER)
        self.balance(OWNER, OTHER, port=81)
        self.balance(OTHER, port=81)
        puts = [entry for entry in self.calls() if entry["request"].startswith("PUT") and "/loadBalancers/" in entry["request"]]
        self.assertEqual([entry["op"] for entry in puts], ["lb.create", "lb.create", "lb.update", "lb.update", "lb.delete"])
        self.assertEqual([puts[index]["owner"] for index in (0, 1, 2, 4)], [OWNER, OTHER, None, OWNER])

    def test_a_fault_for_one_service_spares_the_others(self):
        self.address(OWNER), self.address(OTHER)
        fake_cloud.fault({"kind": "status", "status": 429, "retry_after_s": 7}, ops=["lb.create"], resource=OTHER)
        self.balance(OWNER)
        with self.assertRaises(HttpResponseError) as caught:
            self.balance(OWNER, OTHER)
        self.assertEqual(caught.exception.status_code, 429)
        self.assertEqual(caught.exception.response.headers["Retry-After"], "7")
        self.balance(OWNER, OTHER)

    def test_a_stale_etag_is_refused(self):
        self.address(OWNER)
        old = self.balance(OWNER)
        self.balance(OWNER, port=81)
        put = self.network.load_balancers.begin_create_or_update
        self.refused("PreconditionFailed", 412, put, GROUP, "k8s", balancer(OWNER), headers={"If-Match": old.etag})
        new = self.network.load_balancers.get(GROUP, "k8s")
        put(GROUP, "k8s", balancer(OWNER), headers={"If-Match": new.etag}).result()

    def test_references_have_to_exist(self):
        self.refused("InvalidResourceReference", 400, self.balance, OWNER)
        self.address(OWNER)
        wanted = balancer(OWNER)
        wanted["properties"]["probes"] = []
        put = self.network.load_balancers.begin_create_or_update
        self.refused("InvalidResourceReference", 400, put, GROUP, "k8s", wanted)
        wanted = balancer(OWNER)
        wanted["properties"]["loadBalancingRules"].append({**wanted["properties"]["loadBalancingRules"][0], "name": "again"})
        self.refused("RulesUseSameFrontendPortProtocolAndIPConfig", 400, put, GROUP, "k8s", wanted)

    def test_a_public_address_has_one_user(self):
        self.address(OWNER)
        self.balance(OWNER)
        name = f"k8s-{OWNER}"
        self.assertEqual(self.network.public_ip_addresses.get(GROUP, name).ip_configuration.id, part_id("frontendIPConfigurations", OWNER))
        self.refused("PublicIPAddressCannotBeDeleted", 400, self.network.public_ip_addresses.begin_delete, GROUP, name)
        put = self.network.load_balancers.begin_create_or_update
        self.refused("PublicIPAddressInUse", 400, put, GROUP, "second", {**balancer(), "properties": {"frontendIPConfigurations": balancer(OWNER)["properties"]["frontendIPConfigurations"]}})
        self.network.load_balancers.begin_delete(GROUP, "k8s").result()
        self.network.public_ip_addresses.begin_delete(GROUP, name).result()
        self.assertEqual(fake_cloud.inventory()["auxiliaries"], [])
        with self.assertRaises(ResourceNotFoundError):
            self.network.load_balancers.get(GROUP, "k8s")
        self.assertEqual(list(self.network.load_balancers.list(GROUP)), [])

    def test_an_internal_frontend_has_a_private_address(self):
        wanted = balancer(OWNER)
        subnet = f"{network_id('virtualNetworks', 'vnet')}/subnets/subnet"
        wanted["properties"]["frontendIPConfigurations"][0]["properties"] = {"subnet": {"id": subnet}, "privateIPAllocationMethod": "Dynamic"}
        made = self.network.load_balancers.begin_create_or_update(GROUP, "k8s-internal", json.loads(json.dumps(wanted).replace("/k8s/", "/k8s-internal/"))).result()
        self.assertEqual(made.frontend_ip_configurations[0].private_ip_address, "10.240.0.4")

    def test_a_pool_can_hold_addresses(self):
        fake_cloud.put_instances(machine(1), machine(2))
        self.address(OWNER)
        self.balance(OWNER)
        addresses = [{"name": f"node-{n}", "properties": {"ipAddress": f"10.0.0.{n}"}} for n in (1, 2, 9)]
        wanted = {"properties": {"loadBalancerBackendAddresses": addresses, "virtualNetwork": {"id": network_id("virtualNetworks", "vnet")}}}
        pools = self.network.load_balancer_backend_address_pools
        made = pools.begin_create_or_update(GROUP, "k8s", "k8s", wanted).result()
        self.assertEqual(len(made.load_balancer_backend_addresses), 3)
        self.assertEqual(fake_cloud.inventory()["load_balancers"][0]["backends"], ["10.0.0.9", "node-1", "node-2"])
        self.assertEqual([pool.name for pool in pools.list(GROUP, "k8s")], ["k8s"])
        self.refused("InUseBackendAddressPoolCannotBeDeleted", 400, pools.begin_delete, GROUP, "k8s", "k8s")
        self.assertEqual(pools.get(GROUP, "k8s", "k8s").name, "k8s")

    def test_what_runs_is_followed_to_its_end(self):
        fake_cloud.settings(provisioning_ms=300, action_ms=100)
        self.address(OWNER)
        poller = self.network.load_balancers.begin_create_or_update(GROUP, "k8s", balancer(OWNER))
        self.assertFalse(poller.done())
        self.assertEqual(poller.result().provisioning_state, "Succeeded")
        self.network.load_balancers.begin_delete(GROUP, "k8s").result()
        self.assertEqual(fake_cloud.inventory()["load_balancers"], [])

    def test_an_operation_may_fail(self):
        self.address(OWNER)
        fake_cloud.fault({"kind": "fail-action", "code": "AllocationFailed"}, ops=["lb.create"])
        with self.assertRaises(HttpResponseError) as caught:
            self.balance(OWNER)
        self.assertIn("AllocationFailed", str(caught.exception))
        self.assertEqual(fake_cloud.inventory()["load_balancers"], [])

    def test_unknown_parts_are_refused(self):
        self.address(OWNER)
        wanted = balancer(OWNER)
        wanted["properties"]["inboundNatRules"] = [{"name": "ssh", "properties": {}}]
        self.refused("NotImplemented", 501, self.network.load_balancers.begin_create_or_update, GROUP, "k8s", wanted)
        with self.assertRaises(HttpResponseError) as caught:
            self.network.nat_gateways.get(GROUP, "x")
        self.assertEqual(caught.exception.status_code, 501)


class Network(Case):
    def put_rules(self, *rules):
        wanted = {"location": "eastus", "properties": {"securityRules": list(rules)}}
        return self.network.network_security_groups.begin_create_or_update(GROUP, "nsg", wanted).result()

    def test_rules_are_the_source_ranges_of_their_destinations(self):
        one, other = self.address(OWNER).ip_address, self.address(OTHER).ip_address
        self.balance(OWNER, OTHER)
        self.put_rules(rule("some", [one], ["192.0.2.0/24", "198.51.100.7"]), rule("all", [other], priority=501))
        ranges = {lb["owner"]: lb["source_ranges"] for lb in fake_cloud.inventory()["load_balancers"]}
        self.assertEqual(ranges, {OWNER: ["192.0.2.0/24", "198.51.100.7/32"], OTHER: []})
        owners = {aux["name"]: aux["owner"] for aux in fake_cloud.inventory()["auxiliaries"] if aux["kind"] == "security-rule"}
        self.assertEqual(owners, {f"some/{one}": OWNER, f"all/{other}": OTHER})
        shown = self.network.network_security_groups.get(GROUP, "nsg")
        self.assertEqual([(rule.name, rule.destination_address_prefixes) for rule in shown.security_rules], [("some", [one]), ("all", [other])])
        self.put_rules()
        self.assertEqual(list(self.network.network_security_groups.list(GROUP))[0].security_rules, [])
        ops = [entry["op"] for entry in self.calls() if entry["request"].startswith("PUT") and "/nsg?" in entry["request"]]
        self.assertEqual(ops[-2:], ["aux.create", "aux.delete"])

    def test_rules_need_names_and_destinations(self):
        put = self.network.network_security_groups.begin_create_or_update
        for broken, code in [([rule("")], "InvalidResourceName"), ([rule("a")], "SecurityRuleInvalidAddressPrefix")]:
            self.refused(code, 400, put, GROUP, "nsg", {"location": "eastus", "properties": {"securityRules": broken}})
        self.refused("ResourceNotFound", 404, self.network.network_security_groups.get, GROUP, "other")

    def test_routes_lead_to_machines(self):
        fake_cloud.put_instances(machine(1))
        route = {"name": "node-1____1024410024", "properties": {"addressPrefix": "10.244.1.0/24", "nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.0.0.1"}}
        put = self.network.route_tables.begin_create_or_update
        made = put(GROUP, "routes", {"location": "eastus", "properties": {"routes": [route]}}).result()
        self.assertEqual([one.next_hop_ip_address for one in made.routes], ["10.0.0.1"])
        self.assertEqual(fake_cloud.inventory()["routes"][0]["target_instance"], "node-1")
        put(GROUP, "routes", {"location": "eastus", "properties": {"routes": []}}).result()
        self.assertEqual(self.network.route_tables.get(GROUP, "routes").routes, [])
        ops = [(entry["op"], entry["resource"]) for entry in self.calls() if entry["request"].startswith("PUT") and "/routes?" in entry["request"]]
        self.assertEqual(ops[-2:], [("route.create", "destination=10.244.1.0/24"), ("route.delete", "destination=10.244.1.0/24")])
        self.refused("InvalidAddressPrefixFormat", 400, put, GROUP, "routes", {"location": "eastus", "properties": {"routes": [{"name": "x", "properties": {"addressPrefix": "10.0.0.1/8"}}]}})

    def test_a_route_of_the_driver_has_the_name_of_its_machine(self):
        fake_cloud.put_instances(machine(1))
        fake_cloud.driver("POST", "routes", {"id": "", "destination": "10.244.1.0/24", "target_instance": "node-1"})
        self.assertEqual([one.name for one in self.network.route_tables.get(GROUP, "routes").routes], ["node-1____102441024"])

    def test_the_network_has_a_subnet(self):
        self.assertEqual(self.network.subnets.get(GROUP, "vnet", "subnet").name, "subnet")
        self.assertEqual([one.name for one in self.network.subnets.list(GROUP, "vnet")], ["subnet"])
        self.assertEqual(self.network.virtual_networks.get(GROUP, "vnet").subnets[0].name, "subnet")
        self.assertEqual(list(self.network.private_link_services.list(GROUP)), [])
        self.refused("ResourceNotFound", 404, self.network.subnets.get, GROUP, "vnet", "other")


if __name__ == "__main__":
    unittest.main()
