//! `ccm-conformance`: tests a cloud controller manager on a cluster that is created for that purpose.
//!
//! The fake cloud and the reference CCM are subcommands of this one program, so that images, Pods and
//! processes of a run are all made from it. They are combined only here.

mod programs;

use std::process::ExitCode;

fn main() -> ExitCode {
    harness_cli::main(suites::ALL, programs::PROGRAMS)
}
