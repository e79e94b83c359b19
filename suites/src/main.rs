//! `ccm-conformance`: judges a cloud controller manager on a cluster made for the purpose.
//!
//! One program: the fake cloud and the reference CCM are commands of it, so that images, Pods and processes of a run are
//! made from the program that runs. Only here do they meet.

mod programs;

use std::process::ExitCode;

fn main() -> ExitCode {
    harness_cli::main(suites::ALL, programs::PROGRAMS)
}
