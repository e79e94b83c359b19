//! The credentials by which a real cloud lets the CCM in.

use crate::SessionError;
use crate::state::Credentials;
use harness_config::{CredentialFrom, RunPlan};
use harness_core::files;
use harness_core::secrets;

/// The shortest credential: what is shorter could not be kept out of outputs.
const SHORTEST: usize = 8;

/// Reads them where the profile says; from now on they stand in no output.
///
/// # Errors
/// [`SessionError::Usage`]: one is not there, or too short to be kept secret.
pub(super) fn read(plan: &RunPlan) -> Result<Credentials, SessionError> {
    let mut all = Credentials::default();
    for (name, from) in plan.profile.cloud.real().into_iter().flatten() {
        let given = match from {
            CredentialFrom::Variable(variable) => std::env::var(variable)
                .map_err(|error| format!("the environment's variable {variable}: {error}")),
            CredentialFrom::File(file) => {
                files::read(file).map_err(|error| format!("{}: {error}", file.display()))
            }
        };
        let sound = given.and_then(|text| match text.trim() {
            short if short.len() < SHORTEST => {
                Err(format!("it has less than {SHORTEST} characters, so it could not be kept out of outputs"))
            }
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
