//! How the CCM reaches the metadata service of a cloud that has one.

use crate::SessionError;
use crate::ccm::Metadata;
use harness_clouds::CloudRecord;
use harness_clusters::{Cluster, ClusterRecord};
use std::net::SocketAddrV4;

/// On machines of `cluster`, where the CCM's Pods run, the service's own address is routed to it if they support that;
/// otherwise variables of the CCM are set.
///
/// # Errors
/// A machine refuses it.
pub(super) async fn reached(
    cluster: &ClusterRecord,
    cloud: &CloudRecord,
) -> Result<Option<Metadata>, SessionError> {
    let Some(url) = &cloud.metadata else { return Ok(None) };
    let at = address(url).ok_or_else(|| {
        SessionError::Precondition(format!(
            "the cloud's driver reports its metadata service at '{url}'; expected http://IPV4-ADDRESS:PORT"
        ))
    })?;
    if Cluster::attach(cluster.clone())?.serve_metadata(at).await? {
        return Ok(Some(Metadata::AtItsAddress));
    }
    let direct = [Some(cloud.ip.to_string()), cloud.name.clone()].into_iter().flatten().collect();
    Ok(Some(Metadata::ByVariables { at, direct }))
}

fn address(url: &str) -> Option<SocketAddrV4> {
    url.strip_prefix("http://")?.trim_end_matches('/').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_where_machines_can_be_led() {
        assert_eq!(address("http://172.18.0.9:8082/"), Some(SocketAddrV4::new([172, 18, 0, 9].into(), 8082)));
        for elsewhere in ["https://172.18.0.9:8082", "http://metadata:80", "http://172.18.0.9:8082/v1", ""] {
            assert_eq!(address(elsewhere), None, "{elsewhere}");
        }
    }
}
