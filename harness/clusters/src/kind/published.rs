//! Which node images kind has published for a minor version, queried from the registry through the engine, so that its
//! mirrors and proxies are used. Pulls nothing.

use crate::images::{Engine, EngineError};
use futures::{StreamExt, stream};
use harness_core::check::chain;
use std::pin::pin;
use std::time::Duration;

/// Repository of kind's own node images.
pub(super) const KIND_REPOSITORY: &str = "kindest/node";
/// Maximum number of patch releases of a minor version.
const LAST_PATCH: u32 = 24;
/// Number of concurrent queries.
const AT_ONCE: usize = 6;
/// Time limit for one answer.
const LIMIT: Duration = Duration::from_secs(10);

/// The registry's answer for a minor version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Published {
    /// The newest image, by its name.
    As(String),
    /// There is none.
    Not,
    /// The registry does not answer; the reason as text.
    Unknown(String),
}

/// The newest node image of Kubernetes 1.`minor` that can be pulled.
pub(super) async fn published(engine: &Engine, minor: u32) -> Published {
    let names = (0..=LAST_PATCH).rev().map(|patch| format!("{KIND_REPOSITORY}:v1.{minor}.{patch}"));
    let asked = names.map(|name| async move {
        let asked = engine.docker().inspect_registry_image(&name, None);
        let answer = engine.call("ask the registry for", &name, LIMIT, asked).await;
        (name, answer)
    });
    let mut answers = pin!(stream::iter(asked).buffered(AT_ONCE));
    while let Some((name, answer)) = answers.next().await {
        match answer {
            Ok(_) => return Published::As(name),
            Err(error) if is_absent(&error) => {}
            Err(error) => {
                return Published::Unknown(error.message().map_or_else(|| chain(&error), str::to_owned));
            }
        }
    }
    Published::Not
}

/// Whether the registry says that it has no such image, as opposed to giving no answer.
fn is_absent(error: &EngineError) -> bool {
    let says = |words: &str| error.message().is_some_and(|message| message.contains(words));
    error.is_not_found() || says("manifest unknown") || says("no such manifest")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClusterError;
    use crate::images::FakeEngine;
    use crate::kind::node_image::{JUDGED, choose};
    use harness_config::Kubernetes;
    use serde_json::{Value, json};

    fn described() -> (u16, Value) {
        let descriptor = json!({"mediaType": "m", "digest": "sha256:00", "size": 1});
        (200, json!({"Descriptor": descriptor, "Platforms": []}))
    }

    fn said(status: u16, message: &str) -> (u16, Value) {
        (status, json!({"message": message}))
    }

    /// The engine of a machine without images, with a registry that has these patch releases of the newest version.
    async fn with_published(patches: &'static [u32]) -> FakeEngine {
        FakeEngine::answering(move |asked| {
            let of = |patch: &u32| format!("kindest/node:v1.{JUDGED}.{patch}");
            match asked {
                "GET /images/json" => (200, json!([])),
                _ if patches.iter().any(|patch| asked == format!("GET /distribution/{}/json", of(patch))) => {
                    described()
                }
                _ if asked.starts_with("GET /distribution/") => said(404, "manifest unknown"),
                _ => said(500, "this engine pulls nothing"),
            }
        })
        .await
    }

    #[tokio::test]
    async fn the_newest_patch_release_is_found_without_pulling_any() {
        let fake = with_published(&[0, 3]).await;
        let expected = Published::As(format!("kindest/node:v1.{JUDGED}.3"));
        assert_eq!(published(&fake.engine, JUDGED).await, expected);
        assert_eq!(published(&fake.engine, 99).await, Published::Not);
        assert!(
            fake.asked().iter().all(|asked| asked.starts_with("GET /distribution/")),
            "{:?}",
            fake.asked()
        );
        let offline =
            FakeEngine::answering(|_| said(500, "dial tcp: lookup registry-1.docker.io: no such host")).await;
        let unknown = published(&offline.engine, JUDGED).await;
        assert!(matches!(&unknown, Published::Unknown(why) if why.contains("no such host")), "{unknown:?}");
    }

    #[tokio::test]
    async fn a_minor_version_alone_says_which_image_to_pull() {
        for wanted in [Kubernetes::Version { minor: JUDGED, patch: None }, Kubernetes::Newest] {
            let fake = with_published(&[1, 2]).await;
            choose(&fake.engine, &wanted).await.expect_err("it pulls nothing");
            let asked = fake.asked();
            assert!(asked.iter().any(|asked| asked == "POST /images/create"), "{wanted}: {asked:?}");
        }
        let fake = with_published(&[]).await;
        let none = choose(&fake.engine, &Kubernetes::Version { minor: 77, patch: None })
            .await
            .expect_err("there is none");
        assert!(none.is_usage() && none.to_string().contains("kindest/node has none"), "{none}");
    }

    #[tokio::test]
    async fn a_machine_without_registry_and_image_gets_a_remedy() {
        let offline = FakeEngine::answering(|asked| match asked {
            "GET /images/json" => (200, json!([])),
            _ => said(500, "dial tcp: lookup registry-1.docker.io: no such host"),
        })
        .await;
        let wanted = Kubernetes::Version { minor: 36, patch: None };
        let error = choose(&offline.engine, &wanted).await.expect_err("there is none");
        assert!(matches!(error, ClusterError::Unavailable { .. }) && !error.is_usage(), "{error}");
        let text = error.to_string();
        for part in ["no such host", "ci/node-image/build", "--cluster embedded", "docker load", "1.36.1"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // If no version was requested, kind may still find one; its message then contains a remedy too.
        assert_eq!(choose(&offline.engine, &Kubernetes::Newest).await.expect("kind's own").reference, None);
        let none = ClusterError::NoNodeImage { why: "no such host".to_owned() }.to_string();
        assert!(none.contains("ci/node-image/build") && none.contains("--cluster embedded"), "{none}");
    }
}
