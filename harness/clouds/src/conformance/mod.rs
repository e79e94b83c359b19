//! The conformance test of the driver protocol: whether a driver does what it declares.
//!
//! It removes everything that it has created and does not touch anything else, so it can be used with a cloud
//! that is in use.

mod facilities;
mod machines;
mod trial;

pub use trial::Tried;

use super::drivers::{problem, reached};
use super::{CloudError, Problem, RunningCloud};
use fake_cloud_driver::{Capabilities, Client, ClientError, DriverFacility, PROTOCOL};
use harness_core::check::chain;
use std::time::Duration;
use trial::{Broken, OURS, Trial, is_sound, refused, words};

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The result of testing a driver.
#[derive(Clone, Debug)]
pub struct Found {
    /// The description that the driver gives of itself.
    pub capabilities: Capabilities,
    /// Every tested requirement, in order.
    pub tried: Vec<Tried>,
}

/// Tests a driver at `url`.
///
/// # Errors
/// It cannot be tested: it does not answer, rejects the token, or its answer is not a `Capabilities` object.
pub async fn check_driver(url: &str, token: &str) -> Result<Found, CloudError> {
    const CALL: &str = "asking what it can do";
    let failed = |problem: Problem| {
        move |error: ClientError| CloudError::new(&format!("at {url}"), CALL, problem).caused_by(error)
    };
    let client = Client::new(url, token).map_err(failed(Problem::Unusable))?;
    let capabilities = client.capabilities().await.map_err(|error| {
        let problem = problem(&error);
        failed(problem)(error)
    })?;
    let mut trial = Trial { client: &client, capabilities: &capabilities, tried: Vec::new() };
    let version = capabilities.protocol;
    let right = if version == PROTOCOL { Ok(()) } else { Err(format!("it says version {version}")) };
    trial.note(format!("capabilities: it speaks version {PROTOCOL} of the protocol"), right);
    let named = if capabilities.name.trim().is_empty() { Err("it has none".to_owned()) } else { Ok(()) };
    trial.note("capabilities: it has a name", named);
    let token = refuses_other_tokens(url, capabilities.machines).await;
    trial.note("token: without the right one every call is refused with 401", token);
    if let Some(metadata) = &capabilities.metadata {
        trial.note("metadata: the service answers where the driver says", answers(metadata).await);
    }
    let before = trial.inventory().await;
    let sound = before.as_ref().map_err(String::clone).and_then(is_sound);
    trial.note(
        "inventory: ids are unique and not empty, and what serves a load balancer names one that is there",
        sound,
    );
    if capabilities.machines {
        machines::try_all(&mut trial).await;
    }
    for facility in &capabilities.facilities {
        facilities::try_one(&mut trial, *facility).await;
    }
    let left = match (&before, trial.inventory().await) {
        (Ok(before), Ok(after)) if before.diff(&after).is_empty() => Ok(()),
        (Ok(before), Ok(after)) => Err(before.diff(&after).to_string()),
        (Err(why), _) => Err(why.clone()),
        (_, Err(why)) => Err(why),
    };
    trial.note("inventory: what was made is gone once it is removed", left);
    let tried = trial.tried;
    Ok(Found { capabilities, tried })
}

/// Tests a driver that was started, or that is already running.
///
/// # Errors
/// As [`check_driver`].
pub async fn check_running(running: &RunningCloud) -> Result<Found, CloudError> {
    let (url, token) = reached(running.record())?;
    check_driver(&url, &token).await
}

async fn refuses_other_tokens(url: &str, machines: bool) -> Result<(), Broken> {
    let stranger = Client::new(url, "not-the-token").map_err(words)?;
    let mut answers = vec![
        ("GET /capabilities", stranger.capabilities().await.map(drop)),
        ("GET /inventory", stranger.inventory().await.map(drop)),
    ];
    if machines {
        answers.push(("POST /instances", stranger.put_instances(&[]).await));
        answers.push(("DELETE /instances/{id}", stranger.delete_instance(OURS).await));
    }
    answers
        .into_iter()
        .try_for_each(|(call, answer)| refused(answer, 401).map_err(|why| format!("{call}: {why}")))
}

/// Whether something answers there, also with an error for a caller that is not a machine of the cloud.
async fn answers(metadata: &str) -> Result<(), Broken> {
    let client = reqwest::Client::builder().no_proxy().timeout(LIMIT).build();
    let asked = client.map_err(|error| chain(&error))?.get(metadata).basic_auth(OURS, None::<&str>).send();
    asked.await.map(drop).map_err(|error| chain(&error))
}

/// The facility of the harness for a driver's facility; `None` if checks do not use it.
pub fn facility_of(facility: DriverFacility) -> Option<harness_core::check::Facility> {
    use harness_core::check::Facility;
    match facility {
        DriverFacility::Objects => Some(Facility::Objects),
        DriverFacility::Routes => Some(Facility::Routes),
        DriverFacility::Journal => Some(Facility::Journal),
        DriverFacility::Faults => Some(Facility::Faults),
        DriverFacility::Barriers => Some(Facility::Barriers),
        DriverFacility::Settings => Some(Facility::Settings),
        DriverFacility::Credentials => Some(Facility::Credentials),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fake_cloud::{Config, Server};

    #[tokio::test]
    async fn the_fake_cloud_keeps_every_promise_in_every_dialect() {
        for dialect in fake_cloud_dialects::NAMES {
            let cloud = Server::start(Config::local(dialect)).await.expect("it starts");
            let url = format!("http://{}", cloud.driver_addr());
            let found = check_driver(&url, cloud.driver_token()).await.expect("it answers");
            let broken: Vec<String> =
                found.tried.iter().filter(|one| one.broken.is_some()).map(ToString::to_string).collect();
            assert_eq!(broken, [""; 0], "{dialect}");
            assert!(found.tried.len() > 20, "{}", found.tried.len());
            cloud.shutdown().await;
        }
    }

    #[tokio::test]
    async fn an_unreachable_driver_is_reported_with_the_reason() {
        let cloud = Server::start(Config::local("native")).await.expect("it starts");
        let driver = format!("http://{}", cloud.driver_addr());
        let wrong = check_driver(&driver, "another").await.expect_err("a wrong token");
        assert!(chain(&wrong).contains("answered 401: the driver token is missing or wrong"));
        // The cloud's own API is not a driver.
        let other =
            check_driver(&format!("http://{}", cloud.cloud_addr()), "x").await.expect_err("no driver");
        assert_eq!(other.problem, Problem::Refused, "{other}");
        cloud.shutdown().await;
        let gone = check_driver(&driver, "x").await.expect_err("nothing listens there");
        assert_eq!(gone.problem, Problem::NoAnswer);
    }
}
