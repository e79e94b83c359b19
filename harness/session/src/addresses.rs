//! Addresses of machines as the CCM reports them.

use super::Session;
use harness_config::AddressType;
use std::collections::BTreeMap;

impl Session {
    /// Addresses, type and value, as the CCM reports them: in its order, those provided to the kubelet first, and with
    /// the host name as an `InternalDNS` if it reports such addresses.
    pub fn in_reported_order(&self, addresses: &mut Vec<(String, String)>, provided: &[&str]) {
        let profile = &self.plan.profile;
        also_as(&profile.also_reported_as, addresses);
        as_reported(&profile.address_order, addresses, provided);
    }
}

/// Adds those that the CCM reports a second time under another type, each after the first.
fn also_as(also: &BTreeMap<AddressType, AddressType>, addresses: &mut Vec<(String, String)>) {
    let mut all: Vec<(String, String)> = Vec::new();
    for (kind, address) in addresses.drain(..) {
        let second = also.iter().find(|(first, _)| first.as_str() == kind).map(|(_, second)| second.as_str());
        for one in [Some(kind.as_str()), second].into_iter().flatten() {
            let reported = (one.to_owned(), address.clone());
            if second.is_none() || !all.contains(&reported) {
                all.push(reported);
            }
        }
    }
    *addresses = all;
}

/// Converts addresses, type and value, into the form in which a CCM with that order reports them.
fn as_reported(order: &[AddressType], addresses: &mut Vec<(String, String)>, provided: &[&str]) {
    if order.is_empty() {
        return;
    }
    if order.contains(&AddressType::InternalDns) {
        let names = addresses.iter().filter(|(kind, _)| kind == AddressType::Hostname.as_str());
        let names: Vec<_> =
            names.map(|(_, name)| (AddressType::InternalDns.as_str().to_owned(), name.clone())).collect();
        addresses.extend(names);
    }
    addresses.sort_by_key(|(kind, address)| {
        let place = order.iter().position(|known| known.as_str() == kind).unwrap_or(order.len());
        (!provided.contains(&address.as_str()), place)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_reported_under_two_types_where_the_profile_says_so() {
        let own = |kind: &str, address: &str| (kind.to_owned(), address.to_owned());
        let also = BTreeMap::from([(AddressType::ExternalIp, AddressType::InternalIp)]);
        let reported = |list: &[(&str, &str)], also: &BTreeMap<AddressType, AddressType>| {
            let mut list: Vec<_> = list.iter().map(|(kind, address)| own(kind, address)).collect();
            also_as(also, &mut list);
            list.into_iter().map(|(kind, address)| format!("{kind} {address}")).collect::<Vec<_>>()
        };
        let public = [("ExternalIP", "e"), ("Hostname", "n")];
        assert_eq!(reported(&public, &also), ["ExternalIP e", "InternalIP e", "Hostname n"]);
        assert_eq!(reported(&public, &BTreeMap::new()), ["ExternalIP e", "Hostname n"]);
        let both = [("InternalIP", "e"), ("ExternalIP", "e")];
        assert_eq!(reported(&both, &also), ["InternalIP e", "ExternalIP e"]);
    }

    #[test]
    fn addresses_are_in_the_reported_order_and_names_are_internal_dns_where_it_says_so() {
        use AddressType::{ExternalIp, Hostname, InternalDns, InternalIp};
        let own = |kind: &str, address: &str| (kind.to_owned(), address.to_owned());
        let cloud = [own("ExternalIP", "e"), own("InternalIP", "i"), own("Hostname", "n")];
        let reported = |order: &[AddressType], provided: &[&str]| {
            let mut list = cloud.to_vec();
            as_reported(order, &mut list, provided);
            list.into_iter().map(|(kind, address)| format!("{kind} {address}")).collect::<Vec<_>>()
        };
        assert_eq!(reported(&[], &["i"]), ["ExternalIP e", "InternalIP i", "Hostname n"]);
        assert_eq!(reported(&[Hostname, InternalIp], &[]), ["Hostname n", "InternalIP i", "ExternalIP e"]);
        let own_names = [InternalIp, ExternalIp, InternalDns, Hostname];
        let with_names = ["InternalIP i", "ExternalIP e", "InternalDNS n", "Hostname n"];
        assert_eq!(reported(&own_names, &[]), with_names);
        assert_eq!(
            reported(&own_names, &["e"]),
            ["ExternalIP e", "InternalIP i", "InternalDNS n", "Hostname n"]
        );
    }
}
