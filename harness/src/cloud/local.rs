//! The fake cloud in this process, beside an embedded cluster: both its ports are on loopback.

use super::{CloudError, CloudRecord};
use fake_cloud::{Config, Running, Server};
use std::net::Ipv4Addr;

/// A fake cloud in this process. Ends when dropped, or with [`LocalCloud::stop`].
#[derive(Debug)]
pub struct LocalCloud {
    running: Running,
}

impl LocalCloud {
    /// Starts one that speaks `dialect`, on free ports of loopback, its admin token drawn at random.
    ///
    /// # Errors
    /// There is no such dialect, or no port.
    pub async fn start(dialect: &str) -> Result<LocalCloud, CloudError> {
        let running = Server::start(Config::local(dialect))
            .await
            .map_err(|error| CloudError::Local { cause: crate::check::chain(&error) })?;
        Ok(LocalCloud { running })
    }

    /// All a process of the run needs to use it.
    pub fn record(&self) -> CloudRecord {
        CloudRecord {
            ip: Ipv4Addr::LOCALHOST,
            endpoint: format!("http://{}", self.running.cloud_addr()),
            admin_url: format!("http://{}", self.running.admin_addr()),
            admin_token: self.running.admin_token().to_owned(),
        }
    }

    /// Stops it at once; everything it knew is lost.
    pub async fn stop(self) {
        self.running.shutdown().await;
    }
}
