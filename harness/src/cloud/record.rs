//! The fake cloud of a run, as data: enough for another process to use it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;

/// A running fake cloud. Holds a secret: whoever writes it to a file does so for its owner alone (0600).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudRecord {
    /// Its address as machines of the cluster see it; what a machine is cut off from.
    pub ip: Ipv4Addr,
    /// URL of the cloud's API by IP, as machines and Pods of the cluster reach it.
    pub endpoint: String,
    /// URL of the admin API, as this machine reaches it.
    pub admin_url: String,
    /// Bearer token of the admin API.
    pub admin_token: String,
}

impl CloudRecord {
    /// A client of its admin API.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn client(&self) -> Result<fake_cloud::admin::Client, fake_cloud::admin::ClientError> {
        fake_cloud::admin::Client::new(&self.admin_url, &self.admin_token)
    }
}

impl fmt::Debug for CloudRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudRecord")
            .field("ip", &self.ip)
            .field("endpoint", &self.endpoint)
            .field("admin_url", &self.admin_url)
            .field("admin_token", &"<redacted>")
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_in_the_data_and_not_in_the_text() {
        let record = CloudRecord {
            ip: [172, 18, 0, 9].into(),
            endpoint: "http://172.18.0.9:8080".into(),
            admin_url: "http://127.0.0.1:40000".into(),
            admin_token: "very-secret".into(),
        };
        assert!(!format!("{record:?}").contains("very-secret"));
        let text = serde_json::to_string(&record).expect("plain data");
        assert_eq!(serde_json::from_str::<CloudRecord>(&text).expect("the same data"), record);
    }
}
