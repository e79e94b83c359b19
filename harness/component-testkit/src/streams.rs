//! Exec, attach and port-forward as a client of the API server: WebSockets with a channel in each message
//! (`v4.channel.k8s.io`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use harness_core::check::chain;
use harness_testkit::CheckCx;
use http::{Request, StatusCode, header};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// Maximum length of a message, bytes.
const LONGEST: u64 = 4 << 20;
/// Operation codes (RFC 6455).
const BINARY: u8 = 2;
const CLOSE: u8 = 8;

/// An upgraded connection.
pub(super) struct Channels(TokioIo<Upgraded>);

/// Opens a connection.
///
/// # Errors
/// The API server's answer otherwise, with its status.
pub(super) async fn upgraded(cx: &CheckCx, path: &str) -> Result<Channels, (Option<u16>, String)> {
    let failed = |why: String| (None, why);
    let key = STANDARD.encode(format!("{:.<16}", &cx.prefix()[..cx.prefix().len().min(16)]));
    let request = Request::get(path)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, key)
        .header(header::SEC_WEBSOCKET_PROTOCOL, "v4.channel.k8s.io")
        .body(Body::empty());
    let request = request.map_err(|error| failed(error.to_string()))?;
    let response = cx.client().send(request).await.map_err(|error| failed(chain(&error)))?;
    let status = response.status();
    if status != StatusCode::SWITCHING_PROTOCOLS {
        let body = response.into_body().collect_bytes().await.unwrap_or_default();
        return Err((Some(status.as_u16()), String::from_utf8_lossy(&body).into_owned()));
    }
    let upgraded = hyper::upgrade::on(response).await.map_err(|error| failed(error.to_string()))?;
    Ok(Channels(TokioIo::new(upgraded)))
}

impl Channels {
    /// Sends to a channel.
    pub(super) async fn send(&mut self, channel: u8, content: &[u8]) -> io::Result<()> {
        let length = u8::try_from(content.len() + 1).ok().filter(|length| *length < 126);
        let length = length.ok_or_else(|| io::Error::other("longer than one message"))?;
        // A mask of zeros leaves the data unchanged.
        let mut frame = vec![0x80 | BINARY, 0x80 | length, 0, 0, 0, 0, channel];
        frame.extend_from_slice(content);
        self.0.write_all(&frame).await?;
        self.0.flush().await
    }

    /// Reads from all channels until the data contains that text.
    ///
    /// # Errors
    /// The data that was received instead.
    pub(super) async fn says(&mut self, text: &str, limit: Duration) -> Result<(), String> {
        let mut seen = String::new();
        let reading = async {
            while !seen.contains(text) {
                let (code, content) = self.message().await.map_err(|error| error.to_string())?;
                if code == CLOSE {
                    return Err("the end".to_owned());
                }
                seen.push_str(&String::from_utf8_lossy(content.get(1..).unwrap_or_default()));
            }
            Ok(())
        };
        match timeout(limit, reading).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => Err(format!("'{seen}', then {why}")),
            Err(_) => Err(format!("'{seen}', then nothing in {} s", limit.as_secs())),
        }
    }

    async fn message(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let code = self.0.read_u8().await? & 0x0f;
        let length = match self.0.read_u8().await? & 0x7f {
            126 => u64::from(self.0.read_u16().await?),
            127 => self.0.read_u64().await?,
            short => u64::from(short),
        };
        if length > LONGEST {
            return Err(io::Error::other(format!("a message of {length} bytes")));
        }
        let mut content = vec![0; usize::try_from(length).unwrap_or_default()];
        self.0.read_exact(&mut content).await?;
        Ok((code, content))
    }
}
