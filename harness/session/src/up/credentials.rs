//! The CCM's credentials for a real cloud.

use crate::SessionError;
use crate::state::Credentials;
use harness_config::{CredentialFrom, RunPlan};
use harness_core::files;
use harness_core::secrets;

/// The minimum length of a credential: a shorter one could not be redacted from the output.
const SHORTEST: usize = 8;

/// Reads them from where the profile says; from now on they are redacted from all output.
///
/// # Errors
/// [`SessionError::Usage`]: one is missing, or too short to be redacted.
pub(super) fn read(plan: &RunPlan) -> Result<Credentials, SessionError> {
    let mut all = Credentials::default();
    for (name, from) in plan.profile.cloud.real().into_iter().flatten() {
        let given = match from {
            CredentialFrom::Variable(variable) => {
                std::env::var(variable).map_err(|error| format!("environment variable {variable}: {error}"))
            }
            CredentialFrom::File(file) => {
                files::read(file).map_err(|error| format!("{}: {error}", file.display()))
            }
        };
        let sound = given.and_then(|text| match text.trim() {
            short if short.len() < SHORTEST => Err(format!(
                "it is shorter than {SHORTEST} characters, so it cannot be redacted from the output"
            )),
            text => Ok(text.to_owned()),
        });
        let credential = sound.map_err(|why| {
            let file = plan.profile.file.display();
            SessionError::Usage(format!("{file}: cloud.real.credentials.{name}: {why}"))
        })?;
        secrets::know(&credential);
        all.0.insert(name.clone(), credential);
    }
    Ok(all)
}
