//! A registry whose images are created on request: `ccm-conformance image-registry`.
//!
//! It implements the part of OCI distribution that a pull needs. An image requires credentials that a plugin has
//! returned, as reported by its recorder, except for images below [`PUBLIC`]. `GET /sightings` lists who requested what,
//! and each execution of the plugin. Source: <https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md>.

use super::executions::{ManifestRequest, PluginExecution, Sighting, digest};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Parser;
use flate2::Compression;
use flate2::write::GzEncoder;
use harness_core::files;
use harness_core::output;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::net::TcpListener;

/// Images of all registries with this prefix need no credentials.
pub const PUBLIC: &str = "ccm-conformance-public/";
/// The command.
pub const REGISTRY: &str = "image-registry";

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The arguments of the command.
#[derive(Debug, Parser)]
#[command(name = REGISTRY, version, about = "Serve a registry whose images are created on request")]
struct Arguments {
    /// Its address.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
}

/// The command, until it is ended.
pub fn registry_main(arguments: Vec<OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let served = tokio::runtime::Runtime::new().and_then(|runtime| {
        runtime.block_on(async { serve(TcpListener::bind(arguments.listen).await?).await })
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::err(&format!("{REGISTRY}: {}: {}", arguments.listen, files::why(&error)));
            ExitCode::from(3)
        }
    }
}

async fn serve(listener: TcpListener) -> std::io::Result<()> {
    axum::serve(listener, router()).await
}

/// Its state.
#[derive(Debug, Default)]
struct Known {
    sightings: Vec<Sighting>,
    /// Digests of the accepted credentials.
    credentials: BTreeSet<String>,
    /// The created blobs: media type and content, by digest.
    content: HashMap<String, (&'static str, Vec<u8>)>,
}

type Shared = Arc<Mutex<Known>>;

fn known(shared: &Shared) -> MutexGuard<'_, Known> {
    shared.lock().expect("no holder of this lock panics")
}

fn router() -> Router {
    Router::new()
        .route("/v2/", get(|| async { Json(json!({})) }))
        .route("/v2/{*path}", get(pulled))
        .route(
            "/sightings",
            get(|State(shared): State<Shared>| async move { Json(known(&shared).sightings.clone()) }),
        )
        .route("/executions", post(executed))
        .with_state(Shared::default())
}

async fn executed(State(shared): State<Shared>, Json(seen): Json<PluginExecution>) -> StatusCode {
    let mut known = known(&shared);
    known.credentials.extend(seen.credentials.iter().cloned());
    known.sightings.push(Sighting::Execution(seen));
    StatusCode::NO_CONTENT
}

async fn pulled(
    State(shared): State<Shared>,
    Path(path): Path<String>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let parts: Vec<&str> = path.rsplitn(3, '/').collect();
    let [reference, kind @ ("manifests" | "blobs"), repository] = parts.as_slice() else {
        return refusal(StatusCode::NOT_FOUND, "NAME_UNKNOWN");
    };
    let given = credentials(&headers);
    let mut known = known(&shared);
    let allowed = match &given {
        Some((user, password)) => known.credentials.contains(&digest(user, password)),
        None => repository.starts_with(PUBLIC),
    };
    let answer = match (allowed, *kind) {
        (false, _) => {
            let mut answer = refusal(StatusCode::UNAUTHORIZED, "UNAUTHORIZED");
            let realm = header::HeaderValue::from_static("Basic realm=\"registry\"");
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, realm);
            answer
        }
        (true, "manifests") if !reference.starts_with("sha256:") => {
            let made = make(&mut known, repository, reference);
            content(&known, &made)
        }
        (true, _) => content(&known, reference),
    };
    if *kind == "manifests" {
        known.sightings.push(Sighting::ManifestRequest(ManifestRequest {
            // A mirror gets the name of the original registry.
            registry: query.get("ns").cloned().unwrap_or_default(),
            repository: (*repository).to_owned(),
            user: given.map(|(user, _)| user),
            status: answer.status().as_u16(),
        }));
    }
    answer
}

/// User and password of a request.
fn credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Basic ")?;
    let text = String::from_utf8(STANDARD.decode(given).ok()?).ok()?;
    text.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()))
}

fn refusal(status: StatusCode, code: &str) -> Response {
    (status, Json(json!({"errors": [{"code": code, "message": code}]}))).into_response()
}

fn content(known: &Known, digest: &str) -> Response {
    match known.content.get(digest) {
        Some((kind, bytes)) => {
            let headers = [
                (header::CONTENT_TYPE, *kind),
                (header::HeaderName::from_static("docker-content-digest"), digest),
            ];
            (headers, bytes.clone()).into_response()
        }
        None => refusal(StatusCode::NOT_FOUND, "BLOB_UNKNOWN"),
    }
}

/// Creates an image with one file that no other image has; returns the digest of its manifest.
fn make(known: &mut Known, repository: &str, tag: &str) -> String {
    let name = format!("{repository}:{tag}\n");
    let mut header = tar::Header::new_ustar();
    header.set_mode(0o444);
    header.set_size(name.len() as u64);
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_data(&mut header, "image", name.as_bytes()).expect("writing to memory cannot fail");
    let files = archive.into_inner().expect("writing to memory cannot fail");
    let mut layer = GzEncoder::new(Vec::new(), Compression::fast());
    layer.write_all(&files).expect("writing to memory cannot fail");
    let layer = layer.finish().expect("writing to memory cannot fail");
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let config = json!({
        "os": "linux", "architecture": architecture, "config": {"Entrypoint": ["/image"]},
        "rootfs": {"type": "layers", "diff_ids": [digest_of(&files)]},
    });
    let mut keep = |kind: &'static str, bytes: Vec<u8>| {
        let (digest, size) = (digest_of(&bytes), bytes.len());
        known.content.insert(digest.clone(), (kind, bytes));
        json!({"mediaType": kind, "digest": digest, "size": size})
    };
    let config = keep(CONFIG, config.to_string().into_bytes());
    let layer = keep(LAYER, layer);
    let manifest: Value =
        json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
    keep(MANIFEST, manifest.to_string().into_bytes())["digest"].as_str().unwrap_or_default().to_owned()
}

fn digest_of(bytes: &[u8]) -> String {
    let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_image_is_pulled_with_what_a_plugin_handed_out_and_a_public_one_by_all() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let task = tokio::spawn(serve(listener));
        let client = reqwest::Client::new();
        let ask = async |path: &str, password: Option<&str>| {
            let request = client.get(format!("{url}{path}"));
            let request = match password {
                Some(password) => request.basic_auth("puller", Some(password)),
                None => request,
            };
            request.send().await.expect("an answer")
        };
        let (private, public) =
            ("/v2/team/app/manifests/1?ns=registry.example", format!("/v2/{PUBLIC}app/manifests/1"));
        let refused = ask(private, None).await;
        assert_eq!(
            (refused.status().as_u16(), refused.headers()["www-authenticate"].as_bytes()),
            (401, b"Basic realm=\"registry\"".as_slice())
        );
        assert_eq!(ask(private, Some("one")).await.status(), 401);
        assert_eq!(ask(&public, None).await.status(), 200);
        assert_eq!(
            ask(&public, Some("one")).await.status(),
            401,
            "who shows credentials must have right ones"
        );
        let seen =
            PluginExecution { credentials: vec![digest("puller", "one")], ..PluginExecution::default() };
        client.post(format!("{url}/executions")).json(&seen).send().await.expect("an answer");
        let answer = ask(private, Some("one")).await;
        assert_eq!(
            (answer.status().as_u16(), answer.headers()["content-type"].as_bytes()),
            (200, MANIFEST.as_bytes())
        );
        let manifest: Value = answer.json().await.expect("a manifest");
        for part in [&manifest["config"], &manifest["layers"][0]] {
            let digest = part["digest"].as_str().expect("a digest");
            let blob = ask(&format!("/v2/team/app/blobs/{digest}"), Some("one"))
                .await
                .bytes()
                .await
                .expect("a blob");
            assert_eq!((digest_of(&blob), json!(blob.len())), (digest.to_owned(), part["size"].clone()));
        }
        let sightings: Vec<Sighting> = ask("/sightings", None).await.json().await.expect("sightings");
        let last = ManifestRequest {
            registry: "registry.example".into(),
            repository: "team/app".into(),
            user: Some("puller".into()),
            status: 200,
        };
        assert_eq!((sightings.len(), sightings.last()), (6, Some(&Sighting::ManifestRequest(last))));
        task.abort();
    }
}
