//! Whether calls have met the faults of a check.

use super::CheckCx;
use super::unmet_faults::One;
use futures::future::try_join_all;
use harness_clouds::CloudError;
use harness_core::check::CheckError;

impl CheckCx {
    /// For a check that has passed: an error if no call met one of its faults, which then has shown nothing.
    ///
    /// # Errors
    /// [`CheckError::NotObservable`] then; another one when the cloud does not answer.
    pub async fn met_its_faults(&self) -> Result<(), CheckError> {
        let left = self.unmet.all().clone();
        for One { name, ids, is_over } in left {
            if is_over || self.hits_of(&ids).await? == 0 {
                return Err(CheckError::NotObservable(format!(
                    "no call met the fault {name}, so nothing shows what the CCM does then"
                )));
            }
        }
        Ok(())
    }

    /// How many calls these faults have affected in all. They may be many, so they are read at the same time.
    pub(super) async fn hits_of(&self, ids: &[u64]) -> Result<u64, CloudError> {
        let faults = try_join_all(ids.iter().map(|id| self.cloud.fault(*id))).await?;
        Ok(faults.iter().map(|fault| fault.hits).sum())
    }
}
