"""boto3 speaks to moto through the recording proxy, whose routes say what its calls mean."""
import json
import logging
import os
import pathlib
import shlex
import signal
import subprocess
import tempfile
import unittest

import boto3
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)
SECRETS = ("AKIDOFTHETEST", "secret-of-the-test", "Signature")


class Routes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cloud = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        cls.cloud.start()
        host, port = cls.cloud.get_host_and_port()
        cls.folder = tempfile.TemporaryDirectory()
        cls.journal = pathlib.Path(cls.folder.name, "calls.jsonl")
        line = shlex.split(os.environ["CCM_CONFORMANCE"]) + ["proxy", "--listen", "test=127.0.0.1:0"]
        line += ["--upstream", f"http://{host}:{port}", "--routes", os.environ["ROUTES"], "--journal", str(cls.journal)]
        cls.proxy = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        url = json.loads(cls.proxy.stdout.readline())["ports"][0]["url"]
        keys = {"aws_access_key_id": SECRETS[0], "aws_secret_access_key": SECRETS[1]}
        made = (boto3.client(name, endpoint_url=url, region_name="us-east-1", **keys) for name in ("ec2", "elb", "elbv2"))
        cls.ec2, cls.elb, cls.elbv2 = made

    @classmethod
    def tearDownClass(cls):
        cls.proxy.send_signal(signal.SIGTERM)
        assert cls.proxy.wait(10) == 0
        cls.proxy.stdout.close()
        cls.cloud.stop()
        cls.folder.cleanup()

    def setUp(self):
        self.before = len(self.lines())

    def lines(self):
        return [json.loads(line) for line in self.journal.read_text().splitlines()]

    def calls(self):
        """What was asked since the test began: operation, what it is about, whose it is."""
        text = self.journal.read_text()
        self.assertFalse([secret for secret in SECRETS if secret in text])
        calls = self.lines()[self.before :]
        self.assertEqual([call["request"] for call in calls if "unknown" in call], [])
        self.assertEqual({call["credential"] for call in calls}, {"test"})
        return [(call["op"], call["resource"], call["owner"]) for call in calls]

    def subnets(self):
        subnets = self.ec2.describe_subnets()["Subnets"]
        self.before = len(self.lines())
        return subnets[0]["VpcId"], [subnet["SubnetId"] for subnet in subnets[:2]]

    def test_machines_are_looked_up_by_id_by_name_and_in_lists(self):
        machine = self.ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1)["Instances"][0]
        self.before = len(self.lines())
        id, name = machine["InstanceId"], machine["PrivateDnsName"]
        self.ec2.describe_instances(InstanceIds=[id])
        states = {"Name": "instance-state-name", "Values": ["running"]}
        self.ec2.describe_instances(Filters=[states, {"Name": "private-dns-name", "Values": [name]}])
        self.ec2.describe_instances(Filters=[states])
        get, listed = "instance.get", "instance.list"
        self.assertEqual(
            self.calls(),
            [(get, f"InstanceId={id}", None), (get, f"private-dns-name={name}", None), (listed, None, None)],
        )

    def test_a_classic_load_balancer_is_known_by_its_name(self):
        vpc, subnets = self.subnets()
        group = self.ec2.create_security_group(GroupName="k8s-elb-a", Description="a", VpcId=vpc)["GroupId"]
        port = {"Protocol": "TCP", "LoadBalancerPort": 80, "InstanceProtocol": "TCP", "InstancePort": 30080}
        self.elb.create_load_balancer(LoadBalancerName="a", Listeners=[port], Subnets=subnets, SecurityGroups=[group])
        self.elb.describe_load_balancers(LoadBalancerNames=["a"])
        self.elb.delete_load_balancer(LoadBalancerName="a")
        self.ec2.delete_security_group(GroupId=group)
        self.assertEqual(
            self.calls(),
            [
                ("aux.create", group, None),
                ("lb.create", "LoadBalancerName=a", "a"),
                ("lb.get", "LoadBalancerNames=a", "a"),
                ("lb.delete", "LoadBalancerName=a", "a"),
                ("aux.delete", f"GroupId={group}", None),
            ],
        )

    def test_a_network_load_balancer_is_known_by_its_arn(self):
        vpc, subnets = self.subnets()
        made = self.elbv2.create_load_balancer(Name="n", Type="network", Subnets=subnets)
        arn = made["LoadBalancers"][0]["LoadBalancerArn"]
        made = self.elbv2.create_target_group(Name="t", Protocol="TCP", Port=30080, VpcId=vpc)
        group = made["TargetGroups"][0]["TargetGroupArn"]
        self.elbv2.describe_load_balancers(Names=["n"])
        self.elbv2.delete_load_balancer(LoadBalancerArn=arn)
        self.elbv2.delete_target_group(TargetGroupArn=group)
        self.assertEqual(
            self.calls(),
            [
                ("lb.create", arn, "n"),
                ("aux.create", group, None),
                ("lb.get", "Names=n", "n"),
                ("lb.delete", f"LoadBalancerArn={arn}", "n"),
                ("aux.delete", f"TargetGroupArn={group}", None),
            ],
        )


if __name__ == "__main__":
    unittest.main()
