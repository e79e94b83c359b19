//! Fixed names of the cloud, links of resources, and the numbers and fingerprints that Google's resources have.

/// The id of the project.
pub(super) const PROJECT: &str = "conformance-project";
/// The number of the project, which can be used instead of its id.
pub(super) const PROJECT_NUMBER: &str = "420000000042";
/// The region of machines that have none, and of the subnetwork.
pub(super) const REGION: &str = "us-central1";
/// The zones of the region, by the last part of their names.
pub(super) const ZONES: &[&str] = &["a", "b", "c"];
/// The network of all machines.
pub(super) const NETWORK: &str = "default";
/// Its subnetwork, one in each region.
pub(super) const SUBNETWORK: &str = "default";
/// The range of the subnetwork.
pub(super) const SUBNETWORK_RANGE: &str = "10.128.0.0/20";
/// The host of tokens.
const LOGIN_HOST: &str = "oauth2.googleapis.com";
/// The hosts that the vendor's clients call.
pub(super) const HOSTS: &[&str] = &["compute.googleapis.com", "www.googleapis.com", LOGIN_HOST];
/// What links begin with, whatever host and version a client has called.
const LINK: &str = "https://www.googleapis.com/compute/v1";
/// The time that resources show as that of their creation: they do not remember it.
pub(super) const CREATED: &str = "2026-01-01T00:00:00.000-08:00";

/// Where a resource is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// In the project.
    Global,
    /// In a region.
    Region(String),
    /// In a zone.
    Zone(String),
}

impl Scope {
    /// The part of a path that names it.
    pub(super) fn path(&self) -> String {
        match self {
            Scope::Global => "global".to_owned(),
            Scope::Region(name) => format!("regions/{name}"),
            Scope::Zone(name) => format!("zones/{name}"),
        }
    }
}

/// A resource in messages: `projects/P/zones/Z/instances/NAME`.
pub(super) fn short(scope: &Scope, collection: &str, name: &str) -> String {
    format!("projects/{PROJECT}/{}/{collection}/{name}", scope.path())
}

/// The link of a resource.
pub(super) fn link(scope: &Scope, collection: &str, name: &str) -> String {
    format!("{LINK}/{}", short(scope, collection, name))
}

/// The link of a collection.
pub(super) fn collection_link(scope: &Scope, collection: &str) -> String {
    format!("{LINK}/projects/{PROJECT}/{}/{collection}", scope.path())
}

/// The link of something that is directly in the project.
pub(super) fn project_link(rest: &str) -> String {
    format!("{LINK}/projects/{PROJECT}{rest}")
}

/// The link of the network.
pub(super) fn network_link() -> String {
    link(&Scope::Global, "networks", NETWORK)
}

/// The link of the subnetwork in a region.
pub(super) fn subnetwork_link(region: &str) -> String {
    link(&Scope::Region(region.to_owned()), "subnetworks", SUBNETWORK)
}

/// The last part of a link.
pub(super) fn name_in(link: &str) -> &str {
    link.rsplit('/').next().unwrap_or_default()
}

/// The region of a zone.
pub(super) fn region_of(zone: &str) -> &str {
    zone.rsplit_once('-').map_or(REGION, |(region, _)| region)
}

/// The part of a resource's name that the framework derives from the Service's uid (`a` and 32 hexadecimal digits, cut to
/// 32 characters); it is the owner of what has the name.
pub(super) fn owner_in(name: &str) -> &str {
    name.split('-').find(|part| is_derived(part)).unwrap_or_default()
}

fn is_derived(part: &str) -> bool {
    part.len() == 32 && part.starts_with('a') && part.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The number of a resource without one in the model: the same for the same text in every version, so that recorded
/// exchanges stay valid (FNV-1a, 64 bits, without the highest bit).
pub(super) fn number(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step) >> 1
}

/// The fingerprint of a resource's content.
pub(super) fn fingerprint(content: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    // Sixty of the bits, and the padding of eight bytes in base64.
    let bits = number(content);
    let digit = |place: u32| char::from(DIGITS[((bits >> (6 * place)) & 63) as usize]);
    (0..10).map(digit).chain(['A', '=']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_contain_their_owner() {
        let owner = "a0123456789abcdef0123456789abcde";
        for name in [owner.to_owned(), format!("k8s-fw-{owner}"), format!("k8s-{owner}-http-hc")] {
            assert_eq!(owner_in(&name), owner);
        }
        for name in ["k8s-0123456789abcdef-node", "a-b", "", "b0123456789abcdef0123456789abcde"] {
            assert_eq!(owner_in(name), "");
        }
    }

    #[test]
    fn links_name_their_resource() {
        let zone = Scope::Zone("us-central1-a".to_owned());
        let instance = link(&zone, "instances", "n1");
        assert_eq!(
            instance,
            "https://www.googleapis.com/compute/v1/projects/conformance-project/zones/us-central1-a/instances/n1"
        );
        assert_eq!((name_in(&instance), region_of("europe-west4-b")), ("n1", "europe-west4"));
    }

    #[test]
    fn fingerprints_follow_the_content() {
        assert_eq!(fingerprint("a"), fingerprint("a"));
        assert_ne!(fingerprint("a"), fingerprint("b"));
        assert_eq!(fingerprint("a").len(), 12);
    }
}
