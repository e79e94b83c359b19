//! What has been created so far, and how it is removed: the last first, all of it, whatever fails.

use futures::future::LocalBoxFuture;
use std::fmt;
use std::time::Duration;

/// Maximum time for one step; Docker's own limits are shorter.
const LIMIT: Duration = Duration::from_secs(300);

/// A function that undoes one thing and returns what could not be undone.
type Undo = Box<dyn FnOnce() -> LocalBoxFuture<'static, Result<(), String>> + Send + Sync>;

/// The things to undo. A step is added before its thing is started, so that a failure or a cancellation half-way is
/// undone too.
#[derive(Default)]
pub(super) struct Teardown {
    steps: Vec<(&'static str, Undo)>,
}

impl fmt::Debug for Teardown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.steps.iter().map(|(what, _)| what)).finish()
    }
}

impl Teardown {
    /// Registers `undo`, which removes `what` in whatever state it is.
    pub(super) fn push(
        &mut self,
        what: &'static str,
        undo: impl FnOnce() -> LocalBoxFuture<'static, Result<(), String>> + Send + Sync + 'static,
    ) {
        self.steps.push((what, Box::new(undo)));
    }

    /// Undoes everything.
    ///
    /// # Errors
    /// What could not be undone, one line each, in the order of the tries.
    pub(super) async fn run(self) -> Result<(), String> {
        let mut failures = Vec::new();
        for (what, undo) in self.steps.into_iter().rev() {
            match tokio::time::timeout(LIMIT, undo()).await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => failures.push(format!("{what}: {why}")),
                Err(_) => failures.push(format!("{what}: not removed within {} s", LIMIT.as_secs())),
            }
        }
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::sync::{Arc, Mutex};

    /// A teardown with steps of these names; each records its name, and `fails` fails.
    fn of(names: &[&'static str], fails: &'static str) -> (Teardown, Arc<Mutex<Vec<&'static str>>>) {
        let (mut teardown, done) = (Teardown::default(), Arc::new(Mutex::new(Vec::new())));
        for &name in names {
            let done = done.clone();
            teardown.push(name, move || {
                async move {
                    done.lock().expect("no holder of this lock panics").push(name);
                    if name == fails { Err("it stays".to_owned()) } else { Ok(()) }
                }
                .boxed_local()
            });
        }
        (teardown, done)
    }

    #[tokio::test]
    async fn the_last_goes_first() {
        let (teardown, done) = of(&["folder", "cluster", "cloud"], "");
        assert_eq!(teardown.run().await, Ok(()));
        assert_eq!(*done.lock().expect("sound"), ["cloud", "cluster", "folder"]);
    }

    #[tokio::test]
    async fn a_failure_is_reported_and_the_rest_is_still_removed() {
        let (teardown, done) = of(&["folder", "cluster", "cloud"], "cluster");
        assert_eq!(teardown.run().await, Err("cluster: it stays".to_owned()));
        assert_eq!(*done.lock().expect("sound"), ["cloud", "cluster", "folder"]);
    }

    #[tokio::test(start_paused = true)]
    async fn resources_that_never_go_are_named_and_block_nothing() {
        let (mut teardown, done) = of(&["folder"], "");
        teardown.push("cluster", || std::future::pending().boxed_local());
        assert_eq!(teardown.run().await, Err("cluster: not removed within 300 s".to_owned()));
        assert_eq!(*done.lock().expect("sound"), ["folder"]);
    }
}
