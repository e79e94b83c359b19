//! A fake Docker engine for tests: it gives scripted answers and records the requests.

use super::Engine;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// A fake engine that listens as long as its runtime lives.
pub(crate) struct FakeEngine {
    /// A client for it.
    pub(crate) engine: Engine,
    asked: Arc<Mutex<Vec<String>>>,
}

impl FakeEngine {
    /// A fake engine with these answers, a status and a body, by method and path without the API version.
    pub(crate) async fn answering(
        answer: impl Fn(&str) -> (u16, Value) + Send + Sync + 'static,
    ) -> FakeEngine {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (asked, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let noted = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (noted, answer) = (noted.clone(), answer.clone());
                let serve = service_fn(move |request: Request<Incoming>| {
                    let (status, body) = answered(&request, &noted, answer.as_ref());
                    async move {
                        let body = Full::new(Bytes::from(body.to_string()));
                        let response =
                            Response::builder().status(status).header("content-type", "application/json");
                        Ok::<_, Infallible>(response.body(body).expect("a sound answer"))
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), serve));
            }
        });
        let engine = Engine::connect_to(&format!("tcp://{address}")).await.expect("it listens");
        asked.lock().expect("no holder of this lock panics").clear();
        FakeEngine { engine, asked }
    }

    /// The requests so far: method and path.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no holder of this lock panics").clone()
    }
}

fn answered(
    request: &Request<Incoming>,
    asked: &Mutex<Vec<String>>,
    answer: &dyn Fn(&str) -> (u16, Value),
) -> (u16, Value) {
    let path = request.uri().path();
    // The path begins with the API version, once that is negotiated.
    let path =
        path.strip_prefix("/v1.").and_then(|rest| rest.find('/').map(|at| &rest[at..])).unwrap_or(path);
    let line = format!("{} {path}", request.method());
    if line == "GET /version" {
        return (200, json!({"Version": "28.0.0", "ApiVersion": "1.45"}));
    }
    asked.lock().expect("no holder of this lock panics").push(line.clone());
    answer(&line)
}
