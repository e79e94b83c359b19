//! The keys of the sections that describe components, and which of them a profile must have.

use super::enums::ProfileKind;
use serde_json::{Value, json};

/// The key of an image credential provider.
pub(crate) const IMAGE_CREDENTIALS: &str = "imageCredentials";
/// The key of a network proxy.
pub(crate) const NETWORK_PROXY: &str = "networkProxy";
/// The key of CSI drivers.
pub(crate) const CSI_MIGRATION: &str = "csiMigration";

/// The key of each kind of profile that describes no CCM.
const KEYS: [(ProfileKind, &str); 3] = [
    (ProfileKind::ImageCredentials, IMAGE_CREDENTIALS),
    (ProfileKind::NetworkProxy, NETWORK_PROXY),
    (ProfileKind::CsiMigration, CSI_MIGRATION),
];

/// The required section for each kind of profile, as a schema for profiles that describe no CCM.
pub(crate) fn required_without_ccm() -> Value {
    let required = |key: &str| json!({"required": [key]});
    let [(_, first), others @ ..] = KEYS;
    others.iter().rev().fold(required(first), |otherwise, (kind, key)| {
        let of_kind = json!({"properties": {"kind": {"const": kind.as_str()}}});
        json!({"if": of_kind, "then": required(key), "else": otherwise})
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_demands_the_section_of_each_kind() {
        let network_proxy = json!({"properties": {"kind": {"const": "network-proxy"}}});
        let made = required_without_ccm();
        assert_eq!(made["if"], network_proxy);
        assert_eq!(made["then"], json!({"required": ["networkProxy"]}));
        assert_eq!(made["else"]["then"], json!({"required": ["csiMigration"]}));
        assert_eq!(made["else"]["else"], json!({"required": ["imageCredentials"]}));
    }
}
