//! Dialects: the APIs of vendors' clients, each a thin layer of paths, fields and error forms over the common
//! model.
//!
//! To add a dialect, write a folder with the [`fake_cloud_kit`] and a line in [`ALL`]; see docs/extending-interfaces.md.

mod azure;
mod digitalocean;
mod gcp;
mod hcloud;
mod info;
mod linode;
mod native;
mod openstack;

use fake_cloud_driver::{InstanceIds, Shown};
pub use info::DialectInfo;

/// All dialects.
pub const ALL: &[DialectInfo] = &[
    DialectInfo {
        name: "native",
        title: "the fake cloud's own REST API, spoken by the reference CCM",
        instance_ids: InstanceIds::Text,
        shown: Shown::ALL,
        metadata: false,
        hosts: &[],
        new: || Box::new(native::Native),
    },
    DialectInfo {
        name: "azure",
        title: "Azure Resource Manager and Entra ID, spoken by cloud-provider-azure",
        instance_ids: InstanceIds::Name,
        shown: Shown {
            internal_v4: Some(1),
            internal_v6: Some(0),
            external_v4: Some(1),
            external_v6: Some(0),
            names: Some(0),
            deletions: false,
            retry_after: true,
            provider_ids: false,
            provisioning: false,
            nested_routes: true,
            shared_routes: false,
            dotted_names: true,
            actions: true,
        },
        metadata: false,
        hosts: azure::HOSTS,
        new: || Box::new(azure::Azure),
    },
    DialectInfo {
        name: "digitalocean",
        title: "DigitalOcean's API v2, spoken by digitalocean-cloud-controller-manager",
        instance_ids: InstanceIds::Number,
        shown: Shown {
            internal_v4: Some(1),
            internal_v6: Some(0),
            external_v4: Some(1),
            external_v6: Some(1),
            names: Some(0),
            deletions: false,
            retry_after: true,
            provider_ids: false,
            provisioning: true,
            nested_routes: true,
            shared_routes: false,
            dotted_names: true,
            actions: false,
        },
        metadata: true,
        hosts: &[],
        new: || Box::new(digitalocean::DigitalOcean::new()),
    },
    DialectInfo {
        name: "gcp",
        title: "Google's Compute Engine API, spoken by cloud-provider-gcp",
        instance_ids: InstanceIds::Name,
        shown: Shown {
            internal_v4: Some(1),
            internal_v6: Some(0),
            external_v4: Some(1),
            external_v6: Some(0),
            names: Some(0),
            deletions: false,
            retry_after: true,
            provider_ids: false,
            provisioning: false,
            nested_routes: true,
            shared_routes: true,
            dotted_names: false,
            actions: true,
        },
        metadata: true,
        hosts: gcp::HOSTS,
        new: || Box::new(gcp::Gcp),
    },
    DialectInfo {
        name: "hcloud",
        title: "the Hetzner Cloud API v1",
        instance_ids: InstanceIds::Number,
        shown: Shown {
            internal_v4: Some(1),
            internal_v6: Some(0),
            external_v4: Some(1),
            external_v6: Some(1),
            names: Some(0),
            deletions: false,
            retry_after: false,
            provider_ids: false,
            provisioning: true,
            nested_routes: false,
            shared_routes: false,
            dotted_names: true,
            actions: true,
        },
        metadata: true,
        hosts: &[],
        new: || Box::new(hcloud::Hcloud::new()),
    },
    DialectInfo {
        name: "linode",
        title: "the Linode API v4, spoken by linode-cloud-controller-manager",
        instance_ids: InstanceIds::Number,
        shown: Shown {
            internal_v4: Some(1),
            internal_v6: Some(0),
            external_v4: None,
            external_v6: Some(1),
            names: Some(0),
            deletions: false,
            retry_after: true,
            provider_ids: false,
            provisioning: false,
            nested_routes: true,
            shared_routes: false,
            dotted_names: true,
            actions: false,
        },
        metadata: false,
        hosts: &[],
        new: || Box::new(linode::Linode::new()),
    },
    DialectInfo {
        name: "openstack",
        title: "OpenStack's APIs, spoken by openstack-cloud-controller-manager",
        instance_ids: InstanceIds::Text,
        shown: Shown {
            internal_v4: None,
            internal_v6: None,
            external_v4: None,
            external_v6: Some(0),
            names: Some(0),
            deletions: true,
            retry_after: true,
            provider_ids: false,
            provisioning: true,
            nested_routes: true,
            shared_routes: false,
            dotted_names: true,
            actions: false,
        },
        metadata: false,
        hosts: &[],
        new: || Box::new(openstack::OpenStack),
    },
];

/// The names of all dialects, in the same order.
pub const NAMES: &[&str] = &{
    let mut names = [""; ALL.len()];
    let mut index = 0;
    while index < ALL.len() {
        names[index] = ALL[index].name;
        index += 1;
    }
    names
};

/// The dialect with this name.
pub fn find(name: &str) -> Option<&'static DialectInfo> {
    ALL.iter().find(|dialect| dialect.name == name)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_dialect_is_found_by_its_name() {
        assert_eq!(super::NAMES.len(), super::ALL.len());
        for name in super::NAMES {
            assert_eq!(super::find(name).map(|dialect| dialect.name), Some(*name));
        }
        assert!(super::find("").is_none());
    }
}
