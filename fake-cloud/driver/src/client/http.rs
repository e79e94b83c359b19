//! One call of the driver API: path, token, time limit, and how the answer is read.

use super::super::replies::Problem;
use super::{Client, ClientError};
use reqwest::header::AUTHORIZATION;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// The longest time that a driver may take for an answer, in addition to a long poll.
pub(super) const LIMIT: Duration = Duration::from_secs(10);
/// The largest answer of a driver in bytes: an inventory of a very large cloud.
const BODY_LIMIT_BYTES: usize = 64 << 20;

impl Client {
    pub(super) fn address(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    pub(super) fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["driver", "v1"]).extend(path);
        }
        self.http.request(method, url).header(AUTHORIZATION, self.authorization.clone())
    }

    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
    ) -> Result<T, ClientError> {
        self.parse(self.send(self.request(method, path), LIMIT).await?)
    }

    pub(super) async fn exchange<B, T>(
        &self,
        method: Method,
        path: &[&str],
        body: &B,
    ) -> Result<T, ClientError>
    where
        B: Serialize + ?Sized,
        T: DeserializeOwned,
    {
        self.parse(self.send(self.request(method, path).json(body), LIMIT).await?)
    }

    pub(super) async fn write<B>(
        &self,
        method: Method,
        path: &[&str],
        body: Option<&B>,
    ) -> Result<(), ClientError>
    where
        B: Serialize + ?Sized,
    {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.json(body);
        }
        self.send(request, LIMIT).await.map(drop)
    }

    pub(super) async fn send(&self, request: RequestBuilder, limit: Duration) -> Result<Reply, ClientError> {
        let unreachable = |operation: &str, source: reqwest::Error| ClientError::Unreachable {
            operation: operation.to_owned(),
            address: self.address().to_owned(),
            source: source.without_url(),
        };
        let request =
            request.timeout(limit).build().map_err(|error| unreachable("building a request", error))?;
        let operation = format!("{} {}", request.method(), request.url().path());
        let mut response =
            self.http.execute(request).await.map_err(|error| unreachable(&operation, error))?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await.map_err(|error| unreachable(&operation, error))? {
            if body.len() + part.len() > BODY_LIMIT_BYTES {
                let (address, limit_bytes) = (self.address().to_owned(), BODY_LIMIT_BYTES);
                return Err(ClientError::TooLarge { operation, address, limit_bytes });
            }
            body.extend_from_slice(&part);
        }
        if status.is_success() {
            return Ok(Reply { operation, body });
        }
        Err(self.refused(operation, status, &body))
    }

    fn refused(&self, operation: String, status: StatusCode, body: &[u8]) -> ClientError {
        let message = match serde_json::from_slice::<Problem>(body) {
            Ok(problem) => beginning(problem.error.as_bytes()),
            Err(_) => beginning(body),
        };
        ClientError::Refused {
            operation,
            address: self.address().to_owned(),
            status: status.as_u16(),
            message,
        }
    }

    pub(super) fn parse<T: DeserializeOwned>(&self, reply: Reply) -> Result<T, ClientError> {
        serde_json::from_slice(&reply.body).map_err(|source| ClientError::Malformed {
            operation: reply.operation,
            address: self.address().to_owned(),
            body: beginning(&reply.body),
            source,
        })
    }
}

/// A successful answer.
pub(super) struct Reply {
    operation: String,
    body: Vec<u8>,
}

/// The beginning of a body, for an error.
fn beginning(body: &[u8]) -> String {
    const SHOWN_CHARS: usize = 200;
    let text = String::from_utf8_lossy(body);
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None if text.is_empty() => "(no body)".to_owned(),
        None => text.into_owned(),
    }
}
