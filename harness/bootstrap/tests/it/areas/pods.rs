//! What a manifest says of its Pods: flags and variables, names, the order of documents, Secrets, RuntimeClasses.

use super::{Parts, args, boots, boots_if, never_boots, outcome, spec, spec_text};
use crate::bootstrap;

#[test]
fn flags_and_variables() {
    boots(&args("'--controllers=*,-service'"));
    boots(&args("'--controllers=-service', '--controllers=*'"));
    boots(&Parts { args: "'--controllers=$(LIST)'", env: "{name: LIST, value: '*'}", ..Parts::default() });
    boots_if(
        &args("'--controllers=node,route,service'"),
        "initialises Nodes with --controllers=node,route,service",
    );
    never_boots(&args("'--controllers=service,route'"), "runs no cloud-node controller");
    never_boots(&args("'--controllers=-cloud-node,*'"), "runs no cloud-node controller");
    never_boots(&args("'--controllers=-cloud-node', '--controllers=*'"), "runs no cloud-node controller");
    never_boots(
        &Parts { args: "'--controllers=$(LIST)'", env: "{name: LIST, value: 'service'}", ..Parts::default() },
        "runs no cloud-node controller",
    );
    never_boots(
        &Parts {
            args: "'--leader-elect-resource-name=$(NAME)'",
            env: "{name: NAME, valueFrom: {configMapKeyRef: {name: names, key: lease}}}",
            before: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: names, namespace: kube-system}\ndata: {lease: kube-scheduler}\n---\n",
            ..Parts::default()
        },
        "belongs to kube-scheduler",
    );
    let text = args("'--controllers=service'").text();
    let options =
        ["check", "-", "--topology", "single-node", "--cni", "independent", "--assume", "NodeManager/other"];
    let (code, out, _) = bootstrap(&options, &text);
    assert_eq!(code, 0, "{out}");
}

#[test]
fn names() {
    let cloud =
        |spec| Parts { spec, env: "{name: CLOUD, value: 'http://cloud.example.test/'}", ..Parts::default() };
    boots(&cloud("      dnsPolicy: Default\n"));
    boots(&cloud("      dnsPolicy: None\n      dnsConfig: {nameservers: [192.0.2.53]}\n"));
    boots(&cloud(
        "      dnsPolicy: ClusterFirstWithHostNet\n      hostAliases: [{ip: 172.18.0.1, hostnames: [cloud.example.test]}]\n",
    ));
    never_boots(&cloud("      dnsPolicy: ClusterFirstWithHostNet\n"), "cluster DNS");
    never_boots(
        &cloud("      dnsPolicy: None\n      dnsConfig: {nameservers: [10.96.0.10]}\n"),
        "cluster DNS",
    );
    never_boots(
        &cloud(
            "      dnsPolicy: ClusterFirstWithHostNet\n      hostAliases: [{ip: 172.18.0.1, hostnames: [other.example.test]}]\n",
        ),
        "cluster DNS",
    );
    never_boots(
        &Parts { env: "{name: CLOUD, value: 'http://cloud.kube-system.svc/'}", ..Parts::default() },
        "only cluster DNS knows",
    );
}

#[test]
fn the_order_of_documents() {
    let own = |before| Parts { before, namespace: "own", ..Parts::default() };
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: own}\n---\n";
    boots(&own(namespace));
    let late = format!("{}---\n{namespace}", own("").text());
    assert_eq!(outcome(&late).0, "deadlock");
    assert_eq!(outcome(&format!("{namespace}{late}")).0, "boots");
    boots(&spec("      volumes: [{name: v, emptyDir: {}}]\n"));
    let mount = |expression: &str| {
        format!("        volumeMounts: [{{name: v, mountPath: /v, subPathExpr: {expression}}}]\n")
    };
    let volumes = "      volumes: [{name: v, emptyDir: {}}]\n";
    boots(&Parts { spec: volumes, container: &mount("$(URL)"), ..Parts::default() });
    boots(&Parts { spec: volumes, container: &mount("a"), ..Parts::default() });
    never_boots(
        &Parts { spec: volumes, container: &mount("a/$(NONE)"), ..Parts::default() },
        "the variable 'NONE'",
    );
}

#[test]
fn a_missing_secret_is_answered_at_once() {
    let (volumes, mount) = (
        "      volumes: [{name: v, secret: {secretName: cloud}}]\n",
        "        volumeMounts: [{name: v, mountPath: /v}]\n",
    );
    let text = Parts { spec: volumes, container: mount, ..Parts::default() }.text();
    let (code, out, _) = bootstrap(&["check", "-", "--topology", "single-node", "--cni", "none"], &text);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("if Secret/kube-system/cloud exists: 1 of 1 cells boot"), "{out}");
    // The controller of a custom resource may create it.
    let custom = "apiVersion: talos.dev/v1alpha1\nkind: ServiceAccount\nmetadata: {name: cloud, namespace: kube-system}\n---\n";
    boots_if(
        &Parts { before: custom, spec: volumes, container: mount, ..Parts::default() },
        "ServiceAccount.talos.dev/cloud creates Secret/kube-system/cloud",
    );
}

#[test]
fn runtime_classes_and_profiles() {
    let of = |handler: &str, more: &str| {
        format!(
            "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {{name: box}}\nhandler: {handler}\n{more}---\n"
        )
    };
    let class = |more: &str| of("runc", more);
    fn with(before: &str) -> Parts<'_> {
        Parts { before, spec: "      runtimeClassName: box\n", ..Parts::default() }
    }
    let handler = "has the handler of the RuntimeClass 'box'";
    boots_if(&with(&of("gvisor", "")), handler);
    boots(&with(&class("")));
    boots(&with(&class("scheduling: {nodeSelector: {kubernetes.io/os: linux}}\n")));
    boots(&with(&class("overhead: {podFixed: {memory: 100Mi}}\n")));
    boots_if(&with(&class("overhead: {podFixed: {memory: 1Ti}}\n")), "with the overhead of RuntimeClass/box");
    never_boots(&with(&class("scheduling: {nodeSelector: {box: 'yes'}}\n")), "box=yes");
    never_boots(
        &with(&class("scheduling: {nodeSelector: {node-role.kubernetes.io/control-plane: other}}\n")),
        "RuntimeClass/box selects Nodes",
    );
    let sysctl = |name: &str| spec_text(&format!("{{sysctls: [{{name: {name}, value: '1'}}]}}"));
    boots(&spec(&sysctl("kernel.shm_rmid_forced")));
    never_boots(&spec(&sysctl("net.ipv4.tcp_syncookies")), "net.ipv4.tcp_syncookies");
    boots(&spec(&spec_text("{seccompProfile: {type: RuntimeDefault}}")));
    boots_if(&spec(&spec_text("{appArmorProfile: {type: RuntimeDefault}}")), "AppArmor");
}
