//! The cloud of a run, as data: enough for another process to use it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;

/// A running cloud. Contains secrets: a file with it must be readable only for its owner (0600).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudRecord {
    /// Name of its driver.
    pub driver: String,
    /// Its address for machines of the cluster, from which a machine can be cut off.
    pub ip: Ipv4Addr,
    /// URL of the cloud's API with an IP address, for machines and Pods of the cluster.
    pub endpoint: String,
    /// The name that machines of the cluster have for this address; `None` if they have none.
    #[serde(default)]
    pub name: Option<String>,
    /// The same URL for each replica of the CCM, if each has a separate endpoint.
    #[serde(default)]
    pub endpoints: BTreeMap<String, String>,
    /// Whether the endpoints are values for the variable `HTTP_PROXY`, while the CCM calls another name.
    #[serde(default)]
    pub http_proxy: bool,
    /// URL of its metadata service with an IP address, for machines and Pods of the cluster, if it has one.
    #[serde(default)]
    pub metadata: Option<String>,
    /// The CA of the endpoint, in PEM, if it belongs to the run.
    #[serde(default)]
    pub ca: Option<String>,
    /// The data that its driver needs to reach it, in the driver's own form.
    pub access: serde_json::Value,
    /// The parts of that data that no output may contain.
    pub secrets: Vec<String>,
}

impl fmt::Debug for CloudRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudRecord")
            .field("driver", &self.driver)
            .field("ip", &self.ip)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_in_the_data_and_not_in_the_text() {
        let record = CloudRecord {
            driver: "fake-cloud-container".into(),
            ip: [172, 18, 0, 9].into(),
            endpoint: "http://172.18.0.9:8080".into(),
            name: None,
            endpoints: BTreeMap::new(),
            http_proxy: false,
            metadata: None,
            ca: None,
            access: serde_json::json!({"token": "very-secret"}),
            secrets: vec!["very-secret".into()],
        };
        assert!(!format!("{record:?}").contains("very-secret"));
        let text = serde_json::to_string(&record).expect("plain data");
        assert_eq!(serde_json::from_str::<CloudRecord>(&text).expect("the same data"), record);
    }
}
