//! Since when a check's claim holds, and what time has to do with it.

use super::{Before, Check, Served, Since};

impl<Cx> Check<Cx> {
    /// Needs an API server of this minor version.
    pub const fn served_since(mut self, minor: u32, what: &'static str) -> Check<Cx> {
        self.served = Served::Since { minor, what };
        self
    }

    /// Holds as it stands from this minor version of the framework on, which brought `what` (contract section 22).
    pub const fn since(mut self, minor: u32, what: &'static str, before: Before) -> Check<Cx> {
        self.since = Some(Since { minor, what, before });
        self
    }

    /// Takes at least so many seconds when it passes.
    pub const fn takes(mut self, seconds: u32) -> Check<Cx> {
        self.takes_s = seconds;
        self
    }

    /// Takes at least so many seconds where machines are real, and that is more than [`Check::takes`] says.
    pub const fn takes_on_machines(mut self, seconds: u32) -> Check<Cx> {
        self.takes_on_machines_s = seconds;
        self
    }

    /// Goes on for as long as a run is told to soak; one that is not does without it.
    pub const fn soaks(mut self) -> Check<Cx> {
        self.soaks = true;
        self
    }

    /// Rests on what is written, and not on when anything happens.
    pub const fn timeless(mut self) -> Check<Cx> {
        self.timeless = true;
        self
    }
}
