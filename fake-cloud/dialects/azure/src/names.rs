//! Tenant, subscription, resource group and network of the fake Azure, and the ids of its resources.
//!
//! A resource is known by its name in its resource group; its id is the path to it. Ids are compared without
//! regard to case, as Resource Manager does.

/// The tenant.
pub(super) const TENANT: &str = "fa4ec10d-0000-4000-8000-00000000000a";
/// The application (service principal) of the CCM.
pub(super) const CLIENT: &str = "fa4ec10d-0000-4000-8000-00000000000c";
/// The subscription.
pub(super) const SUBSCRIPTION: &str = "fa4ec10d-0000-4000-8000-00000000000b";
/// The resource group of the cluster.
pub(super) const GROUP: &str = "cluster";
/// The region of the resource group and of everything without a region of its own.
pub(super) const LOCATION: &str = "eastus";
/// The virtual network.
pub(super) const NETWORK: &str = "vnet";
/// The subnet of all machines.
pub(super) const SUBNET: &str = "subnet";
/// The network security group of the subnet.
pub(super) const SECURITY_GROUP: &str = "nsg";
/// The route table of the subnet.
pub(super) const ROUTE_TABLE: &str = "routes";

/// The host of Resource Manager.
pub(super) const ARM_HOST: &str = "management.azure.com";
/// The host of Entra ID.
pub(super) const LOGIN_HOST: &str = "login.microsoftonline.com";
/// The hosts that the vendor's clients call. A region's host serves the same as the global one.
pub(super) const HOSTS: &[&str] = &[ARM_HOST, ".management.azure.com", LOGIN_HOST];
/// The kind of network interfaces.
pub(super) const INTERFACES: &str = "networkInterfaces";
/// The kind of public addresses.
pub(super) const PUBLIC_ADDRESSES: &str = "publicIPAddresses";
/// The kind of backend pools.
pub(super) const POOLS: &str = "backendAddressPools";
/// What follows the machine's name in that of its network interface.
pub(super) const INTERFACE_SUFFIX: &str = "-nic";
/// What follows the machine's name in that of its public address.
pub(super) const ADDRESS_SUFFIX: &str = "-pip";
/// The name of the first configuration of an interface.
pub(super) const FIRST_CONFIGURATION: &str = "ipconfig1";

/// Whether this is a host of the vendor.
pub(super) fn is_host(name: &str) -> bool {
    HOSTS.iter().any(|host| name.ends_with(host))
}

/// The name of a machine's network interface.
pub(super) fn interface_of(machine: &str) -> String {
    format!("{machine}{INTERFACE_SUFFIX}")
}

/// The name of a machine's public address.
pub(super) fn public_address_of(machine: &str) -> String {
    format!("{machine}{ADDRESS_SUFFIX}")
}

/// The id of the first configuration of a machine's interface.
pub(super) fn configuration_id(machine: &str) -> String {
    format!("{}/ipConfigurations/{FIRST_CONFIGURATION}", network_id(INTERFACES, &interface_of(machine)))
}

/// The id of a resource of `Microsoft.Network` in the resource group, e.g. of kind `loadBalancers`.
pub(super) fn network_id(kind: &str, name: &str) -> String {
    id("Microsoft.Network", kind, name)
}

/// The id of a resource of `Microsoft.Compute` in the resource group.
pub(super) fn compute_id(kind: &str, name: &str) -> String {
    id("Microsoft.Compute", kind, name)
}

fn id(provider: &str, kind: &str, name: &str) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/{provider}/{kind}/{name}")
}

/// The id of a part of a load balancer, e.g. of kind `frontendIPConfigurations`.
pub(super) fn part_id(balancer: &str, kind: &str, name: &str) -> String {
    format!("{}/{kind}/{name}", network_id("loadBalancers", balancer))
}

/// The last part of an id: the name of its resource.
pub(super) fn name_in(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or_default()
}

/// The name before `/kind/` in an id: the resource that the part belongs to.
pub(super) fn parent_in<'a>(id: &'a str, kind: &str) -> Option<&'a str> {
    let parts: Vec<&str> = id.split('/').collect();
    let at = parts.iter().position(|part| part.eq_ignore_ascii_case(kind))?;
    parts.get(at + 1).copied()
}

/// Whether two names or ids are the same.
pub(super) fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// The part of a frontend's or a public address's name that the framework derives from the Service's uid
/// (`a` and 32 hexadecimal digits, cut to 32 characters); it is the owner of what has the name.
pub(super) fn owner_in(name: &str) -> &str {
    name.split('-').find(|part| is_derived(part)).unwrap_or_default()
}

fn is_derived(part: &str) -> bool {
    part.len() == 32 && part.starts_with('a') && part.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_contain_their_owner() {
        let owner = "a0123456789abcdef0123456789abcde";
        for name in [owner.to_owned(), format!("kubernetes-{owner}"), format!("{owner}-IPv6")] {
            assert_eq!(owner_in(&name), owner);
        }
        for name in ["kubernetes", "a-b", "", "b0123456789abcdef0123456789abcde"] {
            assert_eq!(owner_in(name), "");
        }
    }

    #[test]
    fn ids_lead_to_names() {
        let id = part_id("kubernetes", "backendAddressPools", "pool");
        assert_eq!((name_in(&id), parent_in(&id, "loadbalancers")), ("pool", Some("kubernetes")));
        assert_eq!(parent_in(&id, "virtualMachines"), None);
    }
}
