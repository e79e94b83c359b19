//! A Pod that an API server reaches through a proxy: it prints a line each second, serves a webhook and an aggregated API
//! over TLS, and a greeting without TLS.

use super::certificates::SERVER_FILES;
use super::tls::acceptor_for_all;
use bytes::Bytes;
use clap::{Args, Parser, Subcommand};
use fake_cloud_recording::faults::pause;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

/// The arguments: its addresses with and without TLS, and the folder of its certificate.
pub const PEER: &str = "network-proxy-peer";
/// Its greeting.
pub const GREETING: &str = "hello from behind the proxy";
/// The group of its API.
pub const GROUP: &str = "peer.ccm-conformance.example";
/// Exit code for an unknown or missing argument.
const USAGE: u8 = 2;
/// Interval between its lines.
const EVERY: Duration = Duration::from_secs(1);
/// Maximum size of a request, in bytes.
const LARGEST: usize = 4 << 20;

/// A Pod that an API server reaches through a proxy.
#[derive(Debug, Parser)]
#[command(name = PEER, version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Option<Serve>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the line once
    Say,
}

#[derive(Debug, Args)]
struct Serve {
    /// Address of the webhook and the API, with TLS
    #[arg(value_name = "ADDRESS:PORT", required = true)]
    tls: String,
    /// Address of the greeting, without TLS
    #[arg(value_name = "ADDRESS:PORT", required = true)]
    plain: String,
    /// Folder with the certificate and key
    #[arg(value_name = "FOLDER", required = true)]
    folder: PathBuf,
}

/// Runs the command until it is ended. With `say` it prints its line once.
pub fn peer_main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version go to standard output, errors to standard error; a closed one is not an error.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    let said = match (arguments.command, arguments.serve) {
        (None, Some(Serve { tls, plain, folder })) => {
            tokio::runtime::Runtime::new().and_then(|runtime| runtime.block_on(serve(&tls, &plain, &folder)))
        }
        _ => say(),
    };
    match said {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{PEER}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn say() -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "{GREETING}")?;
    out.flush()
}

async fn serve(tls: &str, plain: &str, folder: &Path) -> io::Result<()> {
    let (secure, open) = (TcpListener::bind(tls).await?, TcpListener::bind(plain).await?);
    let acceptor = acceptor_for_all(folder, SERVER_FILES)?;
    let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let secure = async {
        while let Ok((stream, _)) = secure.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    speak(stream).await;
                }
            });
        }
    };
    let open = async {
        while let Ok((stream, _)) = open.accept().await {
            tokio::spawn(speak(stream));
        }
    };
    let talk = async {
        while say().is_ok() {
            pause(EVERY).await;
        }
    };
    tokio::select! {
        () = secure => {}
        () = open => {}
        () = talk => {}
        _ = term.recv() => {}
    }
    Ok(())
}

async fn speak(stream: impl AsyncRead + AsyncWrite + Unpin + Send) {
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answered)).await;
}

async fn answered(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let body = Limited::new(request.into_body(), LARGEST).collect().await.map(|body| body.to_bytes());
    let (status, answer) = answer(&method, &path, &body.unwrap_or_default());
    let mut response = Response::new(Full::from(answer.to_string()));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    Ok(response)
}

/// The answer to a request: the webhook refuses everything with its greeting, the API describes itself, and all other
/// requests get the greeting.
fn answer(method: &Method, path: &str, body: &[u8]) -> (StatusCode, Value) {
    let version = format!("{GROUP}/v1");
    if *method == Method::POST {
        let review: Value = serde_json::from_slice(body).unwrap_or_default();
        let answer = json!({
            "apiVersion": review["apiVersion"], "kind": "AdmissionReview",
            "response": {"uid": review["request"]["uid"], "allowed": false, "status": {"message": GREETING, "code": 418}},
        });
        return (StatusCode::OK, answer);
    }
    if path.trim_end_matches('/') == format!("/apis/{version}") {
        let answer = json!({
            "apiVersion": "v1", "kind": "APIResourceList", "groupVersion": version,
            "resources": [{"name": "greetings", "singularName": "greeting", "namespaced": false, "kind": "Greeting", "verbs": ["get", "list"]}],
        });
        return (StatusCode::OK, answer);
    }
    if path.starts_with("/apis") && !path.contains("greetings") {
        let answer = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404});
        return (StatusCode::NOT_FOUND, answer);
    }
    (StatusCode::OK, json!({"apiVersion": version, "kind": "Greeting", "said": GREETING}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_its_line_or_serves_at_two_addresses() {
        let read = |line: &str| Arguments::try_parse_from(line.split(' '));
        let said = read("peer say").expect("sound");
        assert!(matches!((said.command, said.serve), (Some(Command::Say), None)));
        let served = read("peer 0.0.0.0:1 0.0.0.0:2 /files").expect("sound").serve.expect("addresses");
        assert_eq!((served.tls.as_str(), served.plain.as_str()), ("0.0.0.0:1", "0.0.0.0:2"));
        for wrong in
            ["peer", "peer 0.0.0.0:1", "peer 0.0.0.0:1 0.0.0.0:2", "peer 0.0.0.0:1 0.0.0.0:2 /files say"]
        {
            assert!(read(wrong).is_err_and(|error| error.use_stderr()), "{wrong}");
        }
    }

    #[test]
    fn a_webhook_refuses_with_the_greeting_and_the_api_knows_itself() {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "request": {"uid": "u"}}).to_string();
        let (_, refused) = answer(&Method::POST, "/admit", review.as_bytes());
        assert_eq!(refused["response"]["uid"], "u");
        assert_eq!(refused["response"]["status"]["message"], GREETING);
        let (_, known) = answer(&Method::GET, &format!("/apis/{GROUP}/v1"), b"");
        assert_eq!(known["resources"][0]["name"], "greetings");
        assert_eq!(answer(&Method::GET, "/apis", b"").0, StatusCode::NOT_FOUND);
        let (_, said) = answer(&Method::GET, &format!("/apis/{GROUP}/v1/greetings"), b"");
        assert_eq!(said["said"], GREETING);
    }
}
