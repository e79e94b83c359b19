"""The driver of AWS (fixtures/drivers/aws): what the harness puts is what boto3 sees, and what boto3 makes is in the inventory."""
import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import boto3
from botocore.exceptions import ClientError

DRIVER = pathlib.Path(os.environ["ROUTES"]).resolve().parents[1] / "drivers" / "aws" / "driver.py"
TOKEN = "token-of-the-test"
VPC, TAG = "vpc-0c10dc0f0ace00001", "kubernetes.io/cluster/conformance"
TCP = {"Protocol": "TCP", "LoadBalancerPort": 80, "InstanceProtocol": "TCP", "InstancePort": 30080}


class Driver(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        token = pathlib.Path(cls.folder.name, "token")
        token.write_text(TOKEN)
        line = [sys.executable, str(DRIVER), "--listen", "127.0.0.1:0", "--token-file", str(token)]
        cls.program = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        cls.url = "http://" + json.loads(cls.program.stdout.readline())["driver"]
        url = cls.ask("GET", "capabilities")["endpoint"]
        keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
        made = (boto3.client(name, endpoint_url=url, region_name="us-east-1", **keys) for name in ("ec2", "elb", "elbv2"))
        cls.ec2, cls.elb, cls.elbv2 = made
        cls.subnet = cls.ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [VPC]}])["Subnets"][0]["SubnetId"]

    @classmethod
    def tearDownClass(cls):
        cls.program.terminate()
        cls.program.wait(10)
        cls.program.stdout.close()
        cls.folder.cleanup()

    @classmethod
    def ask(cls, method, path, body=None, token=TOKEN):
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(f"{cls.url}/driver/v1/{path}", data, headers, method=method)) as answer:
            return json.loads(answer.read() or "null")

    def put(self, name, addresses=(), **more):
        machine = {"id": f"i-{name}", "name": name, "instance_type": "m1.large", "zone": "us-east-1a", "region": "us-east-1"}
        addresses = [{"type": kind, "address": address} for kind, address in addresses]
        self.ask("POST", "instances", [dict(machine, addresses=addresses, **more)])
        self.addCleanup(self.remove, name)
        return f"i-{name}"

    def remove(self, name):
        try:
            self.ask("DELETE", f"instances/i-{name}")
        except HTTPError as error:
            self.assertEqual(error.code, 404)
            error.close()

    def inventory(self, kind):
        return self.ask("GET", "inventory")[kind]

    def seen(self, **what):
        found = self.ec2.describe_instances(**what)["Reservations"]
        return [machine for reservation in found for machine in reservation["Instances"]]

    def named(self, name):
        alive = {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}
        return self.seen(Filters=[{"Name": "private-dns-name", "Values": [name]}, alive])

    def group(self, name):
        made = self.ec2.create_security_group(GroupName=name, Description=name, VpcId=VPC)["GroupId"]
        self.addCleanup(self.ec2.delete_security_group, GroupId=made)
        return made

    def about(self, name, path, method="GET", **headers):
        own = {"Authorization": "Basic " + base64.b64encode(f"{name}:".encode()).decode()}
        url = self.ask("GET", "capabilities")["metadata"]
        try:
            with urlopen(Request(f"{url}/latest/{path}", None, own | headers, method=method)) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            error.close()
            return error.code, ""

    def test_a_machine_is_told_about_itself_who_has_a_token(self):
        id = self.put("n8", [("InternalIP", "10.64.0.8")])
        lives = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
        self.assertEqual(self.about("n8", "api/token", "PUT")[0], 400)
        self.assertEqual(self.about("n8", "meta-data/instance-id")[0], 401)
        self.assertEqual(self.about("n8", "meta-data/instance-id", **{"X-aws-ec2-metadata-token": "other"})[0], 401)
        status, token = self.about("n8", "api/token", "PUT", **lives)
        self.assertEqual(status, 200)
        answer = lambda path, name="n8": self.about(name, path, **{"X-aws-ec2-metadata-token": token})
        self.assertEqual(answer("meta-data/instance-id"), (200, id))
        self.assertEqual(answer("meta-data/placement/availability-zone"), (200, "us-east-1a"))
        self.assertEqual(answer("meta-data/local-hostname"), (200, "n8"))
        (mac, _) = answer("meta-data/network/interfaces/macs/")[1].split("/")
        self.assertEqual(answer(f"meta-data/network/interfaces/macs/{mac}/vpc-id"), (200, VPC))
        document = json.loads(answer("dynamic/instance-identity/document")[1])
        self.assertEqual((document["instanceId"], document["privateIp"]), (id, "10.64.0.8"))
        self.assertEqual(answer("meta-data/nothing")[0], 404)
        self.assertEqual(answer("meta-data/instance-id", "nobody")[0], 404)

    def test_a_machine_is_found_by_its_name_with_its_addresses_type_zone_and_tag(self):
        id = self.put("n1", [("InternalIP", "10.64.0.1"), ("InternalIP", "10.64.0.2"), ("ExternalIP", "100.96.0.1")])
        (machine,) = self.named("n1")
        (card,) = machine["NetworkInterfaces"]
        self.assertEqual(machine["InstanceId"], id)
        self.assertEqual([one["PrivateIpAddress"] for one in card["PrivateIpAddresses"]], ["10.64.0.1", "10.64.0.2"])
        self.assertEqual((card["Status"], machine["PublicIpAddress"]), ("in-use", "100.96.0.1"))
        self.assertEqual((machine["PrivateDnsName"], machine.get("PublicDnsName", "")), ("n1", ""))
        self.assertEqual((machine["InstanceType"], machine["Placement"]["AvailabilityZone"]), ("m1.large", "us-east-1a"))
        self.assertIn({"Key": TAG, "Value": "owned"}, machine["Tags"])
        zones = self.ec2.describe_availability_zones()["AvailabilityZones"]
        self.assertIn("us-east-1a", [zone["ZoneName"] for zone in zones])

    def test_a_machine_is_changed_stopped_started_and_terminated_and_may_come_again(self):
        id = self.put("n2", [("InternalIP", "10.64.0.3")])
        self.put("n2", [("InternalIP", "10.64.0.4")], state="stopped", instance_type="m1.small")
        (machine,) = self.seen(InstanceIds=[id])
        self.assertEqual((machine["State"]["Name"], machine["PrivateIpAddress"]), ("stopped", "10.64.0.4"))
        self.assertEqual(machine["InstanceType"], "m1.small")
        self.put("n2", [("InternalIP", "10.64.0.4")])
        self.assertEqual([one["State"]["Name"] for one in self.named("n2")], ["running"])
        self.remove("n2")
        self.assertEqual([one["State"]["Name"] for one in self.seen(InstanceIds=[id])], ["terminated"])
        self.assertEqual((self.named("n2"), self.inventory("instances")), ([], []))
        self.put("n2", [("InternalIP", "10.64.0.5")])
        self.assertEqual([one["PrivateIpAddress"] for one in self.seen(InstanceIds=[id])], ["10.64.0.5"])
        with self.assertRaises(ClientError) as refused:
            self.seen(InstanceIds=["i-nobody"])
        self.assertEqual(refused.exception.response["Error"]["Code"], "InvalidInstanceID.NotFound")

    def test_what_makes_no_sense_is_refused(self):
        for status, body, token in [(422, {"id": "i"}, TOKEN), (422, [{"id": "i"}], TOKEN), (401, [], "another")]:
            with self.assertRaises(HTTPError) as refused:
                self.ask("POST", "instances", body, token)
            self.assertEqual(refused.exception.code, status)
            refused.exception.close()
        with self.assertRaises(HTTPError) as refused:
            self.put("n3", [("InternalIP", "2001:db8::1")])
        self.assertIn("an address that no machine has here", refused.exception.read().decode())

    def test_a_classic_balancer_and_its_security_group_are_in_the_inventory(self):
        group, name = self.group("k8s-elb-c"), "c"
        rule = {"IpProtocol": "tcp", "FromPort": 80, "ToPort": 80, "IpRanges": [{"CidrIp": "192.0.2.0/24"}]}
        self.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
        machine = self.put("n4")
        two = [TCP, dict(TCP, LoadBalancerPort=81, InstancePort=30081), dict(TCP, LoadBalancerPort=82, InstancePort=30082)]
        self.elb.create_load_balancer(LoadBalancerName=name, Listeners=two, Subnets=[self.subnet], SecurityGroups=[group])
        self.elb.register_instances_with_load_balancer(LoadBalancerName=name, Instances=[{"InstanceId": machine}])
        check = {"Target": "HTTP:32000/healthz", "Interval": 10, "Timeout": 5, "UnhealthyThreshold": 2, "HealthyThreshold": 2}
        self.elb.configure_health_check(LoadBalancerName=name, HealthCheck=check)
        self.elb.delete_load_balancer_listeners(LoadBalancerName=name, LoadBalancerPorts=[81, 82])
        (balancer,) = self.inventory("load_balancers")
        self.assertEqual((balancer["id"], balancer["owner"], balancer["backends"]), (name, name, [machine]))
        self.assertEqual(balancer["frontends"], [{"port": 80, "protocol": "TCP", "node_port": 30080}])
        self.assertEqual(balancer["health_check"], {"protocol": "HTTP", "port": 32000, "path": "/healthz"})
        described = self.elb.describe_load_balancers(LoadBalancerNames=[name])["LoadBalancerDescriptions"]
        self.assertEqual(balancer["addresses"], [{"hostname": described[0]["DNSName"]}])
        (firewall,) = self.inventory("auxiliaries")
        self.assertEqual((firewall["id"], firewall["load_balancer"], firewall["owner"]), (group, name, name))
        self.assertEqual(firewall["spec"], {"source_ranges": ["192.0.2.0/24"], "ports": [80]})
        self.elb.delete_load_balancer(LoadBalancerName=name)
        self.assertEqual(self.inventory("load_balancers"), [])
        self.assertIsNone(self.inventory("auxiliaries")[0]["load_balancer"])

    def test_a_network_balancer_and_its_target_group_are_in_the_inventory(self):
        machine = self.put("n5")
        made = self.elbv2.create_load_balancer(Name="n", Type="network", Subnets=[self.subnet])["LoadBalancers"][0]
        group = self.elbv2.create_target_group(Name="t", Protocol="UDP", Port=30053, VpcId=VPC)["TargetGroups"][0]
        arn, of = made["LoadBalancerArn"], group["TargetGroupArn"]
        self.elbv2.register_targets(TargetGroupArn=of, Targets=[{"Id": machine}])
        to = [{"Type": "forward", "TargetGroupArn": of}]
        self.elbv2.create_listener(LoadBalancerArn=arn, Protocol="UDP", Port=53, DefaultActions=to)
        (balancer,) = self.inventory("load_balancers")
        self.assertEqual((balancer["id"], balancer["owner"], balancer["backends"]), (arn, "n", [machine]))
        self.assertEqual(balancer["frontends"], [{"port": 53, "protocol": "UDP", "node_port": 30053}])
        groups = [one for one in self.inventory("auxiliaries") if one["kind"] == "target-group"]
        self.assertEqual([(one["id"], one["load_balancer"]) for one in groups], [(of, arn)])
        self.elbv2.delete_load_balancer(LoadBalancerArn=arn)
        self.elbv2.delete_target_group(TargetGroupArn=of)
        self.assertEqual(self.inventory("load_balancers"), [])

    def test_a_route_leads_to_its_machine_and_nowhere_once_that_is_terminated(self):
        machine, destination = self.put("n6"), "10.244.1.0/24"
        tables = self.ec2.describe_route_tables(Filters=[{"Name": f"tag:{TAG}", "Values": ["owned"]}])["RouteTables"]
        (table,) = [table["RouteTableId"] for table in tables]
        self.assertEqual(self.inventory("routes"), [])
        self.ec2.create_route(RouteTableId=table, DestinationCidrBlock=destination, InstanceId=machine)
        (route,) = self.inventory("routes")
        self.assertEqual((route["destination"], route["target_instance"], route["blackhole"]), (destination, machine, False))
        self.remove("n6")
        (route,) = self.inventory("routes")
        self.assertEqual((route["target_instance"], route["blackhole"]), (None, True))
        routes = self.ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"][0]["Routes"]
        self.assertEqual([one["State"] for one in routes if one["DestinationCidrBlock"] == destination], ["blackhole"])
        self.ec2.delete_route(RouteTableId=table, DestinationCidrBlock=destination)
        self.assertEqual(self.inventory("routes"), [])


if __name__ == "__main__":
    unittest.main()
