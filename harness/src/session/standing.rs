//! Whether the environment still stands: a cluster or cloud that is gone ends every wait at once.

use super::journal::Journal;
use crate::check::chain;
use crate::probe::pause;
use kube::Client;
use std::future::{Future, ready};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// How often it is looked at.
const EVERY: Duration = Duration::from_secs(3);
/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(10);
/// Who has not answered for so long is gone, rather than slow: longer than any restart that a check makes.
const GONE_AFTER: Duration = Duration::from_secs(30);

/// Looks at API server and cloud as long as it lives.
#[derive(Debug)]
pub(super) struct Standing {
    gone: CancellationToken,
    why: Arc<OnceLock<String>>,
    task: JoinHandle<()>,
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Standing {
    /// Begins to look. Both answer at this moment. `journal` is absent where the cloud keeps none: it is not looked at then.
    pub(super) fn watch(client: Client, journal: Option<Journal>) -> Standing {
        let (gone, why) = (CancellationToken::new(), Arc::new(OnceLock::new()));
        let (told, reason) = (gone.clone(), why.clone());
        let task = tokio::spawn(async move {
            let heard = || ready(journal.as_ref().map_or(Ok(()), heard));
            let lost = tokio::select! {
                lost = lost("the API server", || server_answers(&client)) => lost,
                lost = lost("the cloud", heard) => lost,
            };
            let _ = reason.set(lost);
            told.cancel();
        });
        Standing { gone, why, task }
    }

    /// Why the environment is gone, if it is.
    pub(super) fn gone(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }

    /// Ends when the environment is gone; yields why.
    pub(super) async fn until_gone(&self) -> String {
        self.gone.cancelled().await;
        self.gone().unwrap_or_default().to_owned()
    }
}

async fn server_answers(client: &Client) -> Result<(), String> {
    match timeout(ANSWER, client.apiserver_version()).await {
        Ok(Ok(_)) => Ok(()),
        // Whoever refuses is there.
        Ok(Err(kube::Error::Api(_))) => Ok(()),
        Ok(Err(error)) => Err(chain(&error)),
        Err(_) => Err(format!("no answer in {ANSWER:?}")),
    }
}

fn heard(journal: &Journal) -> Result<(), String> {
    journal.mark().map(drop).map_err(|error| error.text)
}

/// Ends when nobody has answered for too long, and says so.
async fn lost<F: Future<Output = Result<(), String>>>(who: &str, answers: impl Fn() -> F) -> String {
    let mut heard = Instant::now();
    loop {
        match answers().await {
            Ok(()) => heard = Instant::now(),
            Err(why) if heard.elapsed() >= GONE_AFTER => {
                return format!("{who} has not answered for {} s: {why}", heard.elapsed().as_secs());
            }
            Err(_) => {}
        }
        pause(EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test(start_paused = true)]
    async fn who_is_silent_for_long_is_gone_and_who_comes_back_is_not() {
        let asked = AtomicU32::new(0);
        let began = Instant::now();
        // Silent for 27 s, then there once, then silent for good.
        let answers = || match asked.fetch_add(1, Ordering::Relaxed) {
            9 => ready(Ok(())),
            _ => ready(Err("connection refused".to_owned())),
        };
        let why = lost("the API server", answers).await;
        assert_eq!(why, "the API server has not answered for 30 s: connection refused");
        assert_eq!(began.elapsed(), Duration::from_secs(57));
    }
}
