//! How an observation appears in a failure: the few fields that matter, in one line.

use std::sync::Arc;

/// Shown as 'last seen' when a wait ends without its claim being fulfilled.
///
/// ```
/// use harness_core::probe::Observed;
///
/// struct Pods(usize);
///
/// impl Observed for Pods {
///     fn observed(&self) -> String {
///         format!("{} Pods", self.0)
///     }
/// }
/// assert_eq!(Pods(3).observed(), "3 Pods");
/// ```
pub trait Observed {
    /// The few fields that matter, in one line.
    fn observed(&self) -> String;
}

impl Observed for String {
    fn observed(&self) -> String {
        self.clone()
    }
}

impl Observed for &str {
    fn observed(&self) -> String {
        (*self).to_owned()
    }
}

impl Observed for bool {
    fn observed(&self) -> String {
        self.to_string()
    }
}

impl Observed for usize {
    fn observed(&self) -> String {
        self.to_string()
    }
}

impl Observed for u64 {
    fn observed(&self) -> String {
        self.to_string()
    }
}

impl<O: Observed> Observed for Option<O> {
    fn observed(&self) -> String {
        self.as_ref().map_or_else(|| "nothing".to_owned(), Observed::observed)
    }
}

impl<O: Observed> Observed for Arc<O> {
    fn observed(&self) -> String {
        self.as_ref().observed()
    }
}

impl<O: Observed> Observed for Vec<O> {
    fn observed(&self) -> String {
        if self.is_empty() {
            return "none".to_owned();
        }
        let shown: Vec<String> = self.iter().take(8).map(Observed::observed).collect();
        let more = self.len().saturating_sub(8);
        let tail = if more > 0 { format!("; and {more} more") } else { String::new() };
        format!("{} ({}{tail})", self.len(), shown.join("; "))
    }
}

impl<A: Observed, B: Observed> Observed for (A, B) {
    fn observed(&self) -> String {
        format!("{}; {}", self.0.observed(), self.1.observed())
    }
}
