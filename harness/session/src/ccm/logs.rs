//! Reading a CCM's log, of which nobody knows how much there is.

use futures::AsyncReadExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};

/// What is read of one log at most, in bytes.
pub const LOG_BYTES: i64 = 1 << 20;

/// The end of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEnd {
    /// Its text; what is no UTF-8 in it is replaced.
    pub text: String,
    /// How many lines were asked for.
    pub lines: i64,
    /// Whether a line of it is longer than what is read of a log: only its beginning is here.
    pub cut: bool,
}

/// The last lines of the log of a Pod's container, `previous` for the run before its last restart: as many of `lines` as
/// [`LOG_BYTES`] hold. The API server refuses a Pod of several containers of which none is named.
///
/// # Errors
/// What the API server refused, or a connection that broke.
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
        // A server that knows no limit has one here.
        let read = std::pin::pin!(stream).take(LOG_BYTES.unsigned_abs()).read_to_end(&mut bytes).await;
        read.map_err(kube::Error::ReadEvents)?;
        Ok(bytes)
    })
    .await
}

/// The first [`LOG_BYTES`] of that log: what a CCM says when it starts.
///
/// # Errors
/// As [`log_end`].
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

/// The containers of a Pod, each of which has a log of its own; those that run first are last.
pub fn containers_of(pod: &Pod) -> Vec<&str> {
    let spec = pod.spec.as_ref();
    let main = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let init = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    main.iter().chain(init).map(|container| container.name.as_str()).collect()
}

/// Asks for fewer lines as long as the answer is cut: it is cut at its end, and the end is what is wanted.
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

    /// What a server answers that has these lines.
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
