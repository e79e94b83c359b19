//! The table of backends: one line for each. A new backend needs only this line and a folder in `cluster`.
//!
//! It is a macro because two crates use the lines: `config` for the word in a run file, and `cluster` to find
//! the backend for that word. `$then!` receives the lines.

/// Passes the lines of the table to the given macro.
#[macro_export]
macro_rules! backends {
    ($then:ident) => {
        $then! {
            /// The harness creates a kind cluster and removes it.
            Kind = "kind" in kind,
            /// The harness runs a control plane in its own process, and the CCM as a program on this machine.
            Embedded = "embedded" in embedded,
            /// A cluster that you already have.
            Existing = "existing" in existing,
            /// No cluster, for a profile of an image credential provider without a CCM, for which it is the default.
            Absent = "none" in absent,
        }
    };
}
