//! Foreign load balancers, which belong to an operator and which no CCM may touch.

use super::CheckCx;
use super::cloud::absent_is_fine;
use super::undo_steps::Undo;
use harness_clouds::{LoadBalancer, operators_balancer};
use harness_core::check::CheckError;
use harness_session::OWNER_OF_NO_CCM;

impl CheckCx {
    /// Creates a foreign load balancer in the cloud, which is removed when the check ends. Returns it as the cloud shows
    /// it.
    ///
    /// # Errors
    /// When the cloud refuses.
    pub async fn foreign_balancer(&self, suffix: &str) -> Result<LoadBalancer, CheckError> {
        let name = self.name(suffix);
        let (id, owner) = (self.cloud.ids().make(&name), format!("{OWNER_OF_NO_CCM}{name}"));
        let lb = operators_balancer(id, name, owner);
        self.on_end(Undo::LoadBalancer(lb.id.clone()));
        Ok(self.cloud.put_load_balancer(&lb).await?)
    }

    pub(super) async fn undo_load_balancer(&self, id: &str) -> Result<(), String> {
        absent_is_fine(self.cloud.remove_load_balancer(id).await)
    }
}
