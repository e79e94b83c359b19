//! Regions and droplet sizes: those of the real cloud, and those of the test's instances.

use serde::Serialize;

/// The regions of the real cloud: slug and name.
const REGIONS: &[(&str, &str)] = &[
    ("ams3", "Amsterdam 3"),
    ("atl1", "Atlanta 1"),
    ("blr1", "Bangalore 1"),
    ("fra1", "Frankfurt 1"),
    ("lon1", "London 1"),
    ("nyc1", "New York 1"),
    ("nyc2", "New York 2"),
    ("nyc3", "New York 3"),
    ("sfo2", "San Francisco 2"),
    ("sfo3", "San Francisco 3"),
    ("sgp1", "Singapore 1"),
    ("syd1", "Sydney 1"),
    ("tor1", "Toronto 1"),
];

const SIZES: &[&str] =
    &["s-1vcpu-1gb", "s-1vcpu-2gb", "s-2vcpu-2gb", "s-2vcpu-4gb", "s-4vcpu-8gb", "s-8vcpu-16gb"];
const FEATURES: &[&str] = &["backups", "ipv6", "metadata", "install_agent", "storage", "image_transfer"];

/// A region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Region<'a> {
    name: &'a str,
    slug: &'a str,
    features: &'static [&'static str],
    available: bool,
    sizes: &'static [&'static str],
}

impl<'a> Region<'a> {
    /// The region with this slug. A region that the real cloud does not have is named by its slug.
    pub(super) fn of(slug: &'a str) -> Region<'a> {
        let name = REGIONS.iter().find(|(known, _)| *known == slug).map_or(slug, |(_, name)| *name);
        Region { name, slug, features: FEATURES, available: true, sizes: SIZES }
    }
}

/// All regions: those of the real cloud, and those of the instances.
pub(super) fn regions<'a>(of_instances: impl Iterator<Item = &'a str>) -> Vec<Region<'a>> {
    let mut slugs: Vec<&str> = REGIONS.iter().map(|(slug, _)| *slug).collect();
    slugs.extend(of_instances.filter(|slug| !slug.is_empty()));
    slugs.sort_unstable();
    slugs.dedup();
    slugs.into_iter().map(Region::of).collect()
}

/// A droplet size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Size<'a> {
    slug: &'a str,
    /// Megabytes.
    pub(super) memory: u32,
    pub(super) vcpus: u32,
    /// Gigabytes.
    pub(super) disk: u32,
    transfer: f32,
    price_monthly: f32,
    price_hourly: f32,
    regions: [&'static str; 0],
    available: bool,
    description: &'static str,
}

impl<'a> Size<'a> {
    /// The size with this slug, which contains the numbers (`s-2vcpu-4gb`); any other slug is the smallest size.
    pub(super) fn of(slug: &'a str) -> Size<'a> {
        let part = |unit: &str| slug.split('-').find_map(|part| part.strip_suffix(unit)?.parse::<u16>().ok());
        let (vcpus, gigabytes) = (part("vcpu").unwrap_or(1), part("gb").unwrap_or(1));
        let (vcpus, gigabytes) = (u32::from(vcpus), u32::from(gigabytes));
        Size {
            slug,
            memory: gigabytes * 1024,
            vcpus,
            disk: gigabytes.saturating_mul(25),
            transfer: 1.0,
            price_monthly: 6.0,
            price_hourly: 0.00893,
            regions: [],
            available: true,
            description: "Basic",
        }
    }
}

/// The VPC of everything that was created without another one.
pub(super) const DEFAULT_VPC: &str = "5e77ed00-0000-8000-8000-000000000001";
/// The project of everything.
pub(super) const DEFAULT_PROJECT: &str = "5e77ed00-0000-8000-8000-000000000002";

/// The account of every credential.
pub(super) const ACCOUNT: &str = "5e77ed00-0000-8000-8000-000000000003";
/// The account's team.
pub(super) const TEAM: &str = "5e77ed00-0000-8000-8000-000000000004";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_say_how_large_they_are() {
        let of = |slug| (Size::of(slug).vcpus, Size::of(slug).memory, Size::of(slug).disk);
        assert_eq!(of("s-2vcpu-4gb"), (2, 4096, 100));
        assert_eq!(of("m1.small"), (1, 1024, 25));
        assert_eq!(of("g-99999999vcpu-gb-"), (1, 1024, 25));
        assert_eq!(of("s-65535vcpu-65535gb"), (65_535, 67_107_840, 1_638_375));
    }

    #[test]
    fn regions_of_instances_are_there_too() {
        let listed = regions(["region-1", "fra1", "", "region-1"].into_iter());
        let slugs: Vec<&str> = listed.iter().map(|region| region.slug).collect();
        assert_eq!(slugs.iter().filter(|slug| **slug == "region-1").count(), 1);
        assert_eq!(slugs.len(), REGIONS.len() + 1);
        assert_eq!((Region::of("fra1").name, Region::of("region-1").name), ("Frankfurt 1", "region-1"));
    }
}
