//! The API requests of a CCM, and places where its credentials must not be visible.

use super::account::Account;
use super::{Answer, CheckCx, Subject};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use harness_clusters::{Asked, AuditQuery};
use harness_core::check::{Capability, CheckError, chain};
use harness_core::probe::ReadSource;
use harness_session::Session;
use harness_session::ccm::{containers_of, log_beginning, log_end};
use k8s_openapi::api::core::v1::{Event, Node, Pod, Service};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;

/// How many lines of a log are searched.
const LINES: i64 = 20_000;

impl CheckCx {
    /// The namespace of the CCM's Lease, or `kube-system` where the profile names none.
    pub fn lease_namespace(&self) -> String {
        let key = self.session.ccm().lease_key();
        key.map_or_else(|| "kube-system".to_owned(), |key| key.namespace.clone())
    }

    /// The API requests of an account in all lanes so far; of requests that need the same permission only the first.
    /// `refused` selects those that authorization refused.
    ///
    /// # Errors
    /// [`CheckError::NotObservable`] if no cluster has a log of them.
    pub async fn asked_by(&self, account: &Account, refused: bool) -> Result<Vec<Asked>, CheckError> {
        let query = AuditQuery { user: account.user(), since_ms: 0, refused, distinct: true };
        let mut asked = Vec::new();
        for lane in self.all_lanes() {
            asked.extend(lane.cluster().asked(&query).await?);
        }
        asked.retain(|asked| asked.user == account.user());
        Ok(asked)
    }

    /// The requests to this lane's API server since then by service accounts whose name has this prefix.
    ///
    /// # Errors
    /// [`CheckError::NotObservable`] if the cluster has no log of them.
    pub async fn asked_since(&self, account: &Account, since_ms: i64) -> Result<Vec<Asked>, CheckError> {
        let query = AuditQuery { user: account.user(), since_ms, refused: false, distinct: false };
        Ok(self.session.cluster().asked(&query).await?)
    }

    fn all_lanes(&self) -> Vec<&Session> {
        match self.lanes.is_empty() {
            true => vec![&self.session],
            false => self.lanes.iter().map(|lane| &**lane).collect(),
        }
    }

    /// Where the CCM's credentials for the cloud are visible: logs of the CCM's Pods, Events, annotations of Nodes and
    /// Services, `/configz`. As messages, without the secrets.
    ///
    /// # Errors
    /// When an API server does not answer.
    pub async fn disclosures(&self) -> Result<Vec<String>, CheckError> {
        let mut disclosures = Vec::new();
        for lane in self.all_lanes() {
            disclosed_in(lane, &mut disclosures).await?;
        }
        if self.declares(Capability::SecurePort) {
            let (reader, tokens) = (self.reader().await?, Tokens::of(&self.session));
            for replica in self.replicas() {
                // A port that cannot be reached shows nothing.
                let Ok(port) = replica.secure_port() else { continue };
                let page = port.get_as("/configz", &reader).read(ReadSource::Origin).await?;
                let Answer::Given { body, .. } = page else { continue };
                if tokens.shown_in(&body).is_some() {
                    disclosures.push(format!("/configz of replica {}", replica.name()));
                }
            }
        }
        Ok(disclosures)
    }
}

/// The CCM's credentials for the cloud, as plain text and as encoded in a Secret.
struct Tokens(Vec<String>);

impl Tokens {
    fn of(lane: &Session) -> Tokens {
        let tokens = lane.ccm().replicas().iter().map(|replica| replica.token.clone());
        Tokens(tokens.flat_map(|token| [STANDARD.encode(&token), token]).collect())
    }

    /// The first line that contains one of them.
    fn shown_in<'a>(&self, text: &'a str) -> Option<&'a str> {
        text.lines().find(|line| self.0.iter().any(|token| !token.is_empty() && line.contains(token)))
    }
}

async fn disclosed_in(lane: &Session, disclosures: &mut Vec<String>) -> Result<(), CheckError> {
    let (tokens, all) = (Tokens::of(lane), ListParams::default());
    let (client, pods_client) = (lane.client(), lane.ccm_site().client());
    let mut search = |what: String, text: &str| {
        if let Some(line) = tokens.shown_in(text) {
            disclosures.push(format!("{what}: {}", harness_core::secrets::redact(line.to_owned())));
        }
    };
    for replica in lane.ccm().replicas() {
        for pod in lane.ccm().pods_of_replica(&replica.name) {
            let api: Api<Pod> = Api::namespaced(pods_client.clone(), &pod.namespace().unwrap_or_default());
            let runs =
                containers_of(&pod).into_iter().flat_map(|container| [(container, true), (container, false)]);
            for (container, previous) in runs {
                let name = pod.name_any();
                let of_it = (name.as_str(), Some(container));
                let (first, last) = futures::join!(
                    log_beginning(&api, of_it, previous),
                    log_end(&api, of_it, LINES, previous, false)
                );
                match first.and_then(|first| Ok([first, last?.text])) {
                    // The first match; for a short log both reads are the same.
                    Ok(texts) => {
                        let text = texts.iter().find(|text| tokens.shown_in(text).is_some());
                        text.iter().for_each(|text| search(format!("the log of {name}"), text));
                    }
                    // Most containers have no previous run.
                    Err(_) if previous => {}
                    Err(error) => {
                        return Err(CheckError::Error(format!("the log of {name}: {}", chain(&error))));
                    }
                }
            }
        }
    }
    for event in Api::<Event>::all(client.clone()).list(&all).await? {
        let text = event.message.clone().unwrap_or_default();
        search(format!("Event {}", event.name_any()), &text);
    }
    for node in Api::<Node>::all(client.clone()).list(&all).await? {
        search(format!("annotations of Node {}", node.name_any()), &json!(node.annotations()).to_string());
    }
    for service in Api::<Service>::all(client.clone()).list(&all).await? {
        search(
            format!("annotations of Service {}", service.name_any()),
            &json!(service.annotations()).to_string(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_found_as_it_is_and_encoded() {
        let tokens = Tokens(["0123456789abcdef", "MDEyMzQ1Njc4OWFiY2RlZg=="].map(str::to_owned).to_vec());
        assert_eq!(tokens.shown_in("a\nBearer 0123456789abcdef\n"), Some("Bearer 0123456789abcdef"));
        assert!(tokens.shown_in("data: MDEyMzQ1Njc4OWFiY2RlZg==").is_some());
        assert_eq!(tokens.shown_in("0123456789"), None);
    }
}
