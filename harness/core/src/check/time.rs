//! The version of Kubernetes from which a check applies, and its timing.

use super::{Check, Served};

impl<Cx> Check<Cx> {
    /// Needs an API server of this minor version.
    pub const fn served_since(mut self, minor: u32, what: &'static str) -> Check<Cx> {
        self.served = Served::Since { minor, what };
        self
    }

    /// Takes at least this many seconds when it passes.
    pub const fn takes(mut self, seconds: u32) -> Check<Cx> {
        self.takes_s = seconds;
        self
    }

    /// Takes at least this many seconds with real machines, if that is more than [`Check::takes`].
    pub const fn takes_on_machines(mut self, seconds: u32) -> Check<Cx> {
        self.takes_on_machines_s = seconds;
        self
    }

    /// Lasts as long as the run's soak time; without one it is not run.
    pub const fn soaks(mut self) -> Check<Cx> {
        self.soaks = true;
        self
    }

    /// Judges how the CCM replaces an older release; without one it is not run.
    pub const fn upgrades(mut self) -> Check<Cx> {
        self.upgrades = true;
        self
    }

    /// Depends only on what is written, not on timing.
    pub const fn timeless(mut self) -> Check<Cx> {
        self.timeless = true;
        self
    }
}
