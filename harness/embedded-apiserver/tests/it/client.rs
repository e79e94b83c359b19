//! A server with its administrator, over the network.

use std::time::Duration;

use embedded_apiserver::{Config, Running, Server, User};
use reqwest::{Certificate, Client, Identity, Method};
use serde_json::Value;

/// A server and two clients.
pub(crate) struct Cluster {
    pub(crate) server: Running,
    /// The client of the administrator.
    pub(crate) admin: Client,
    /// A client without a credential.
    pub(crate) anonymous: Client,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) warnings: Vec<String>,
    pub(crate) text: String,
}

impl Answer {
    /// The body as JSON, or as text if it is not JSON.
    pub(crate) fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| Value::String(self.text.clone()))
    }
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        Self::with(Config::default()).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        // More than one library installs a provider; the first one stays, and either is fine.
        drop(tokio_rustls::rustls::crypto::ring::default_provider().install_default());
        let server = Server::start(config).await.expect("the server starts");
        let admin = client(&server, Some(&User::admin()));
        let anonymous = client(&server, None);
        Self { server, admin, anonymous }
    }

    /// A client with a certificate for the user.
    pub(crate) fn client(&self, user: &User) -> Client {
        client(&self.server, Some(user))
    }

    /// One request of the administrator with a JSON body.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let content = body.as_ref().map(|_| "application/json");
        send(&self.admin, &self.server.url(), method, path, content, body.map(|b| b.to_string().into_bytes()))
            .await
    }

    /// One request of the administrator with any body.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: impl Into<Vec<u8>>,
    ) -> Answer {
        send(&self.admin, &self.server.url(), method, path, Some(content_type), Some(body.into())).await
    }
}

fn client(server: &Running, user: Option<&User>) -> Client {
    let authority = Certificate::from_pem(server.certificate_authority().as_bytes()).expect("a certificate");
    let mut builder = Client::builder().tls_certs_only([authority]).timeout(Duration::from_secs(60));
    if let Some(user) = user {
        let credential = server.credential(user).expect("a credential");
        let pem = format!("{}{}", credential.certificate, credential.key);
        builder = builder.identity(Identity::from_pem(pem.as_bytes()).expect("an identity"));
    }
    builder.build().expect("a client")
}

/// One request.
pub(crate) async fn send(
    client: &Client,
    url: &str,
    method: &str,
    path: &str,
    content_type: Option<&str>,
    body: Option<Vec<u8>>,
) -> Answer {
    let method = Method::from_bytes(method.as_bytes()).expect("a method");
    let mut request = client.request(method, format!("{url}{path}")).header("Accept", "application/json");
    if let Some(content_type) = content_type {
        request = request.header("Content-Type", content_type);
    }
    if let Some(body) = body {
        request = request.body(body);
    }
    answer(request.send().await.expect("an answer")).await
}

/// Reads an answer whole.
pub(crate) async fn answer(response: reqwest::Response) -> Answer {
    let header = |name: &str| -> Vec<String> {
        let values = response.headers().get_all(name).iter();
        values.map(|value| value.to_str().expect("text").to_owned()).collect()
    };
    Answer {
        status: response.status().as_u16(),
        content_type: header("content-type").join(","),
        warnings: header("warning"),
        text: response.text().await.expect("a body"),
    }
}
