//! The last lines of output of drivers that this process has started, for errors of calls to them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex};

/// How many of the last lines are kept.
pub(crate) const LINES_SHOWN: usize = 20;
/// How many characters of a line are kept.
const LINE_LIMIT: usize = 2000;

/// The last lines of a program, newest last. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    pub(crate) fn push(&self, line: &str) {
        let mut lines = self.0.lock().expect("no holder of this lock panics");
        lines.push_back(line.chars().take(LINE_LIMIT).collect());
        if lines.len() > LINES_SHOWN {
            lines.pop_front();
        }
    }

    pub(crate) fn text(&self) -> String {
        self.lines().unwrap_or_else(|| "(it wrote nothing)".to_owned())
    }

    /// The lines, `None` if there are none.
    fn lines(&self) -> Option<String> {
        let lines = self.0.lock().expect("no holder of this lock panics");
        (!lines.is_empty()).then(|| Vec::from_iter(lines.iter().cloned()).join("\n"))
    }
}

/// The drivers of this process, by URL.
static TAILS: LazyLock<Mutex<BTreeMap<String, Tail>>> = LazyLock::new(Mutex::default);

/// Keeps the output of the driver at this URL. URLs have different ports, so none is used twice while it is needed.
pub(crate) fn remember(url: &str, tail: &Tail) {
    TAILS.lock().expect("no holder of this lock panics").insert(url.to_owned(), tail.clone());
}

/// Records that a driver is also reached at this URL, through a proxy.
pub(crate) fn also_at(url: &str, other: &str) {
    let mut tails = TAILS.lock().expect("no holder of this lock panics");
    if let Some(tail) = tails.get(url).cloned() {
        tails.insert(other.to_owned(), tail);
    }
}

/// Removes the driver at this URL.
pub(crate) fn forget(url: &str) {
    TAILS.lock().expect("no holder of this lock panics").remove(url);
}

/// The last lines of the driver at this URL; `None` if it wrote nothing, or if this process did not start it.
pub(crate) fn last_lines(url: &str) -> Option<String> {
    TAILS.lock().expect("no holder of this lock panics").get(url)?.lines()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_a_driver_are_known_by_its_url_and_that_of_its_proxy() {
        let tail = Tail::default();
        assert_eq!(tail.text(), "(it wrote nothing)");
        let (url, proxy) = ("http://192.0.2.1:1", "http://192.0.2.1:2");
        remember(url, &tail);
        also_at(url, proxy);
        assert_eq!(last_lines(url), None);
        (0..LINES_SHOWN + 2).for_each(|line| tail.push(&line.to_string()));
        let lines = last_lines(proxy).expect("lines");
        assert!(lines.starts_with("2\n") && lines.ends_with("\n21"), "{lines}");
        forget(url);
        assert_eq!(last_lines(url), None);
    }
}
