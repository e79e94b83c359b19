//! Reads a CCM's log, whose size is unknown.

use futures::AsyncReadExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};

/// Maximum number of bytes that are read from one log.
pub const LOG_BYTES: i64 = 1 << 20;

/// The end of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEnd {
    /// Its text; invalid UTF-8 in it is replaced.
    pub text: String,
    /// The number of requested lines.
    pub lines: i64,
    /// Whether a line is longer than the maximum: then only its beginning is here.
    pub cut: bool,
}

/// The last lines of the log of a Pod's container, with `previous` of the run before its last restart: as many of `lines`
/// as fit into [`LOG_BYTES`]. The API server refuses a request for a Pod of several containers without a container name.
///
/// # Errors
/// What the API server refused, or a broken connection.
pub async fn log_end(
    api: &Api<Pod>,
    (pod, container): (&str, Option<&str>),
    lines: i64,
    previous: bool,
    timestamps: bool,
) -> kube::Result<LogEnd> {
    end_of(lines, |lines| async move {
        let (tail_lines, limit_bytes) = (Some(lines), Some(LOG_BYTES));
        let container = container.filter(|name| !name.is_empty()).map(str::to_owned);
        let params =
            LogParams { container, tail_lines, limit_bytes, previous, timestamps, ..LogParams::default() };
        let stream = api.log_stream(pod, &params).await?;
        let mut bytes = Vec::new();
        // Also limits the answer of a server that ignores the limit.
        let read = std::pin::pin!(stream).take(LOG_BYTES.unsigned_abs()).read_to_end(&mut bytes).await;
        read.map_err(kube::Error::ReadEvents)?;
        Ok(bytes)
    })
    .await
}

/// The first [`LOG_BYTES`] of that log: what a CCM writes when it starts.
///
/// # Errors
/// Those of [`log_end`].
pub async fn log_beginning(
    api: &Api<Pod>,
    (pod, container): (&str, Option<&str>),
    previous: bool,
) -> kube::Result<String> {
    let container = container.filter(|name| !name.is_empty()).map(str::to_owned);
    let params = LogParams { container, limit_bytes: Some(LOG_BYTES), previous, ..LogParams::default() };
    let stream = api.log_stream(pod, &params).await?;
    let mut bytes = Vec::new();
    let read = std::pin::pin!(stream).take(LOG_BYTES.unsigned_abs()).read_to_end(&mut bytes).await;
    read.map_err(kube::Error::ReadEvents)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The containers of a Pod, each of which has its own log; init containers come last.
pub fn containers_of(pod: &Pod) -> Vec<&str> {
    let spec = pod.spec.as_ref();
    let main = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let init = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    main.iter().chain(init).map(|container| container.name.as_str()).collect()
}

/// Requests fewer lines as long as the answer is cut: it is cut at its end, but the end is needed.
async fn end_of<R>(mut lines: i64, read: impl Fn(i64) -> R) -> kube::Result<LogEnd>
where
    R: Future<Output = kube::Result<Vec<u8>>>,
{
    loop {
        let bytes = read(lines).await?;
        let cut = bytes.len() >= usize::try_from(LOG_BYTES).unwrap_or(usize::MAX);
        if !cut || lines <= 1 {
            return Ok(LogEnd { text: String::from_utf8_lossy(&bytes).into_owned(), lines, cut });
        }
        lines /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::ready;

    /// The answer of a server with these lines.
    fn answer(log: &[String], lines: i64) -> Vec<u8> {
        let from = log.len().saturating_sub(usize::try_from(lines).expect("positive"));
        let mut text = log[from..].join("\n").into_bytes();
        text.truncate(usize::try_from(LOG_BYTES).expect("positive"));
        text
    }

    #[tokio::test]
    async fn a_log_is_read_to_its_end_and_within_bounds() {
        let short: Vec<String> = (0..9).map(|n| format!("line {n}")).collect();
        let end = end_of(4, |lines| ready(Ok(answer(&short, lines)))).await.expect("read");
        assert_eq!(end, LogEnd { text: "line 5\nline 6\nline 7\nline 8".into(), lines: 4, cut: false });
        // Lines of 100 kB: ten of them fit.
        let long: Vec<String> = (0..99).map(|n| format!("{}{n}", "x".repeat(99_990))).collect();
        let end = end_of(40, |lines| ready(Ok(answer(&long, lines)))).await.expect("read");
        assert_eq!((end.lines, end.cut), (10, false));
        assert!(end.text.ends_with("98"));
        let endless = ["ü".repeat(3 << 20)];
        let end = end_of(2000, |lines| ready(Ok(answer(&endless, lines)))).await.expect("read");
        assert_eq!((end.lines, end.cut, end.text.len()), (1, true, 1 << 20));
    }
}
