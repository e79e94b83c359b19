//! Golden configurations: old, middle and new Kubernetes on each built-in topology.

use super::*;
use crate::record::Role;
use crate::topology::load;
use harness_config::{ServingCertificates, Topology};

static KIND: Version = Version::release(0, 33, 0);

fn facts<'a>(kubernetes: &'a Version, kube_proxy: KubeProxy) -> Facts<'a> {
    Facts {
        cluster: "ccm-conformance-abcdefgh",
        purpose: Purpose::Served,
        kubernetes: Some(kubernetes),
        api_server_port: 6444,
        kind: &KIND,
        cgroups: Cgroups::V2,
        kube_proxy,
        provider_id: &ProviderIds::Empty,
        node_ip: NodeIp::Kept,
        serving: ServingCertificates::SelfSigned,
        network_proxy: None,
    }
}

fn layout(topology: Topology) -> Layout {
    load(&topology).expect("a built-in topology is sound")
}

#[test]
fn built_in_topologies_on_old_middle_and_new_kubernetes() {
    let versions = [(20, KubeProxy::Absent), (31, KubeProxy::Present), (36, KubeProxy::Present)];
    for topology in [Topology::Single, Topology::ThreeNode, Topology::NoCni, Topology::DualStack] {
        for (minor, kube_proxy) in versions {
            let version = Version::release(1, minor, 2);
            let text = render(&layout(topology.clone()), &facts(&version, kube_proxy));
            insta::assert_snapshot!(format!("{}-1.{minor}", topology.name()), text);
        }
    }
}

#[test]
fn a_chosen_provider_id_and_a_dropped_node_ip() {
    let chosen = ProviderIds::Chosen {
        format: harness_config::ProviderIdFormat::new("native://{id}").expect("it holds an id"),
        ids: fake_cloud_driver::InstanceIds::Text,
    };
    for minor in [31, 36] {
        let version = Version::release(1, minor, 0);
        let facts =
            Facts { provider_id: &chosen, node_ip: NodeIp::Dropped, ..facts(&version, KubeProxy::Present) };
        insta::assert_snapshot!(format!("chosen-1.{minor}"), render(&layout(Topology::ThreeNode), &facts));
    }
}

#[test]
fn the_machine_of_a_management_cluster_does_not_wait_for_a_ccm() {
    for minor in [20, 36] {
        let version = Version::release(1, minor, 0);
        let facts = Facts { purpose: Purpose::Management, ..facts(&version, KubeProxy::Present) };
        let text = render(&layout(Topology::Single), &facts);
        assert!(text.contains("disableDefaultCNI: true") && !text.contains("cloud-provider"), "{text}");
        assert!(!text.contains("provider-id"), "{text}");
    }
}

#[test]
fn kubelets_that_ask_for_certificates_say_often_how_they_are() {
    let version = Version::release(1, 36, 0);
    let text = |serving| {
        let facts = Facts { serving, ..facts(&version, KubeProxy::Present) };
        render(&layout(Topology::Single), &facts)
    };
    let asking = text(ServingCertificates::Requested);
    assert!(asking.contains("serverTLSBootstrap: true") && asking.contains("nodeStatusReportFrequency: 2s"));
    assert!(!text(ServingCertificates::SelfSigned).contains("KubeletConfiguration"));
}

#[test]
fn a_network_proxy_is_configured_in_the_api_server_and_mounted_into_every_machine() {
    let folders = ProxyFolders::of(std::path::Path::new("/run/lane"));
    for (minor, argument) in
        [(20, "egress-selector-config-file: /etc"), (36, "name: egress-selector-config-file")]
    {
        let version = Version::release(1, minor, 0);
        let facts = Facts { network_proxy: Some(&folders), ..facts(&version, KubeProxy::Present) };
        let text = render(&layout(Topology::ThreeNode), &facts);
        assert!(text.contains(argument), "{text}");
        assert_eq!(text.matches("containerPath: /etc/kubernetes/network-proxy").count(), 3, "{text}");
        assert_eq!(text.matches("hostPath: /run/lane/network-proxy-agent").count(), 2, "{text}");
    }
}

#[test]
fn old_control_groups_are_allowed_as_soon_as_the_setting_is_known() {
    let allows = |minor| {
        let version = Version::release(1, minor, 0);
        let facts = Facts { cgroups: Cgroups::V1, ..facts(&version, KubeProxy::Present) };
        render(&layout(Topology::Single), &facts).contains("failCgroupV1: false")
    };
    assert_eq!((allows(30), allows(31), allows(36)), (false, true, true));
}

#[test]
fn when_kind_chooses_the_image_both_forms_are_offered_by_version() {
    let version = Version::release(1, 36, 0);
    let facts = Facts { kubernetes: None, ..facts(&version, KubeProxy::Present) };
    insta::assert_snapshot!("unknown", render(&layout(Topology::Single), &facts));
}

#[test]
fn an_older_kind_writes_maps_for_every_kubernetes() {
    let version = Version::release(1, 36, 0);
    let old = Version::release(0, 31, 0);
    let facts = Facts { kind: &old, ..facts(&version, KubeProxy::Present) };
    assert!(render(&layout(Topology::Single), &facts).contains("cloud-provider: external"));
}

#[test]
fn names_count_by_role() {
    use Role::{ControlPlane, Worker};
    let names = machine_names("c", &[ControlPlane, Worker, Worker, ControlPlane]);
    assert_eq!(names, ["c-control-plane", "c-worker", "c-worker2", "c-control-plane2"]);
}

#[test]
fn patches_of_a_topology_file_come_first_and_stay() {
    let mut layout = layout(Topology::Single);
    layout.config.insert("kubeadmConfigPatches".into(), json!(["kind: ClusterConfiguration\n"]));
    let version = Version::release(1, 36, 0);
    let text = render(&layout, &facts(&version, KubeProxy::Present));
    let (own, ours) = (text.find("kind: ClusterConfiguration"), text.find("kind: InitConfiguration"));
    assert!(own.is_some() && own < ours, "{text}");
}
