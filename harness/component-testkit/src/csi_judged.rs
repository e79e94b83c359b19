//! An object as a wait sees it: read, and judged with a message.

use futures::future::LocalBoxFuture;
use harness_core::probe::{Observation, ReadError, ReadSource, SingleRead};
use serde_json::Value;

/// Reads an object and judges it; `judge` returns what it is if it is not as expected.
pub(super) struct Judged<R, J> {
    read: R,
    judge: J,
    other: Option<String>,
}

impl<R, J> Judged<R, J>
where
    R: AsyncFnMut() -> Result<Value, ReadError>,
    J: Fn(&Value) -> Result<(), String>,
{
    /// Combines a read and its judgement.
    pub(super) fn new(read: R, judge: J) -> Judged<R, J> {
        Judged { read, judge, other: None }
    }
}

impl<R, J> SingleRead for Judged<R, J>
where
    R: AsyncFnMut() -> Result<Value, ReadError>,
    J: Fn(&Value) -> Result<(), String>,
{
    fn look(&mut self, _: ReadSource) -> LocalBoxFuture<'_, Result<Observation<()>, ReadError>> {
        Box::pin(async move {
            let object = (self.read)().await?;
            self.other = (self.judge)(&object).err();
            Ok(Observation::when(self.other.is_none()))
        })
    }

    fn shown(&self) -> Option<String> {
        self.other.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::CheckError;
    use harness_core::probe::{Probe, Promise, Pulse, Span, pause};
    use serde_json::json;
    use std::time::Duration;

    /// The result of waiting that an object stays 1 for this many seconds.
    async fn kept(seconds: u64, read: impl AsyncFnMut() -> Result<Value, ReadError>) -> String {
        let span = Span::Throughout(Duration::from_secs(seconds));
        let promise = Promise { text: "it is 1".to_owned(), subject: None, expected: "1".to_owned(), span };
        let judge = |object: &Value| if *object == 1 { Ok(()) } else { Err(format!("it is {object}")) };
        match Probe::new(Pulse::default()).wait(&promise, &mut Judged::new(read, judge)).await {
            Ok(()) => "kept".to_owned(),
            Err(CheckError::Violation(violation)) => violation.seen.clone(),
            Err(CheckError::Error(_)) => "undetermined".to_owned(),
            Err(other) => format!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_unreadable_claim_is_not_kept() {
        let fails = |fatal| move || Err(ReadError { text: "no answer".to_owned(), fatal });
        for seconds in [0, 2] {
            assert_eq!(kept(seconds, async || Ok(json!(1))).await, "kept");
            assert_eq!(kept(seconds, async || Ok(json!(2))).await, "it is 2");
            let slow = async || {
                pause(Duration::from_secs(3)).await;
                Ok(json!(2))
            };
            assert_eq!(kept(seconds, slow).await, "it is 2", "a read that takes long is waited for");
            for fatal in [false, true] {
                let fails = fails(fatal);
                assert_eq!(
                    kept(seconds, async || fails()).await,
                    "undetermined",
                    "{seconds} s, fatal: {fatal}"
                );
            }
            assert_eq!(kept(seconds, async || std::future::pending().await).await, "undetermined");
        }
        let mut reads = 0;
        let ends = async || {
            reads += 1;
            if reads < 3 { Ok(json!(1)) } else { fails(false)() }
        };
        assert_eq!(kept(2, ends).await, "undetermined", "the last read failed");
    }
}
