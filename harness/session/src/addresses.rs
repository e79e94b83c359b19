//! Addresses of machines as the CCM reports them.

use super::Session;
use harness_config::AddressType;

impl Session {
    /// Addresses, type and value, as the CCM reports them: in its order, those provided to the kubelet first, and with
    /// the host name as an `InternalDNS` if it reports such addresses.
    pub fn in_reported_order(&self, addresses: &mut Vec<(String, String)>, provided: &[&str]) {
        as_reported(&self.plan.profile.address_order, addresses, provided);
    }
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
