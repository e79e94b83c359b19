//! The table of backends: one line for each, next to its folder in `cluster` the only thing a new one needs.
//!
//! It is a macro because two modules make something of a line: `config` the word that a run file writes, and `cluster`
//! the way from that word to the folder. `$then!` receives the lines.

/// Hands the lines of the table to the macro that is named.
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
