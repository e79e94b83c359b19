//! Whether calls have met the faults of a check.

use super::CheckCx;
use super::unmet_faults::One;
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

    /// How many calls these faults have affected in all.
    pub(super) async fn hits_of(&self, ids: &[u64]) -> Result<u64, CloudError> {
        let mut hits = 0;
        for id in ids {
            hits += self.cloud.fault(*id).await?.hits;
        }
        Ok(hits)
    }
}
