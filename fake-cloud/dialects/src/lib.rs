//! Dialects: the APIs of vendors' clients, each a thin layer of paths, fields and error forms over the common
//! model.
//!
//! To add a dialect, write a crate with the [`fake_cloud_kit`] and a line in [`ALL`]; see docs/extending-interfaces.md.

use fake_cloud_kit::DialectInfo;

/// All dialects.
pub const ALL: &[DialectInfo] = &[
    fake_cloud_native::DIALECT,
    fake_cloud_azure::DIALECT,
    fake_cloud_digitalocean::DIALECT,
    fake_cloud_gcp::DIALECT,
    fake_cloud_hcloud::DIALECT,
    fake_cloud_linode::DIALECT,
    fake_cloud_openstack::DIALECT,
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
