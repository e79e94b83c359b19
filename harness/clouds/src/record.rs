//! The cloud of a run, as data: enough for another process to use it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;

/// A running cloud. Holds secrets: whoever writes it to a file does so for its owner alone (0600).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudRecord {
    /// Name of its driver.
    pub driver: String,
    /// Its address as machines of the cluster see it; what a machine is cut off from.
    pub ip: Ipv4Addr,
    /// URL of the cloud's API by IP, as machines and Pods of the cluster reach it.
    pub endpoint: String,
    /// The name by which machines of the cluster may know that address; `None` where they know the address alone.
    #[serde(default)]
    pub name: Option<String>,
    /// The same URL for each replica of the CCM, where each has an endpoint of its own.
    #[serde(default)]
    pub endpoints: BTreeMap<String, String>,
    /// Whether the endpoints are for the variable `HTTP_PROXY`, and the CCM is to call another name.
    #[serde(default)]
    pub http_proxy: bool,
    /// URL of its metadata service by IP, as machines and Pods of the cluster reach it, where it has one.
    #[serde(default)]
    pub metadata: Option<String>,
    /// The CA of the endpoint, in PEM, where it is the run's.
    #[serde(default)]
    pub ca: Option<String>,
    /// What its driver needs to reach it, in a form of its own.
    pub access: serde_json::Value,
    /// What of that must appear in no output.
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
