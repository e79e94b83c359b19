//! Runs the tests with arbitrary input for longer than `cargo test` does: all in parallel, with inputs that
//! differ from run to run.

use crate::process::{TestProgram, root, say, test_programs};
use anyhow::{Context, Result, bail};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// A test that runs as long as requested.
struct Target {
    /// The folder of its package.
    folder: &'static str,
    /// Its path in the package's one test program, `it`.
    test: &'static str,
    /// The variable with the time, in seconds.
    seconds: &'static str,
    /// The variable with the seed of the inputs.
    seed: &'static str,
}

const TARGETS: &[Target] = &[
    Target {
        folder: "fake-cloud",
        test: "answers::any_response_of_a_driver_is_an_answer_or_an_error",
        seconds: "DRIVER_FUZZ_SECONDS",
        seed: "DRIVER_FUZZ_SEED",
    },
    Target {
        folder: "harness/bootstrap",
        test: "nonsense::mutated_manifests_never_panic",
        seconds: "BOOTSTRAP_FUZZ_SECONDS",
        seed: "BOOTSTRAP_FUZZ_SEED",
    },
    Target {
        folder: "harness/proxy",
        test: "arbitrary::calls_and_answers_of_any_form_end",
        seconds: "PROXY_FUZZ_SECONDS",
        seed: "PROXY_FUZZ_SEED",
    },
    Target {
        folder: "harness/embedded-semantics",
        test: "arbitrary::nothing_panics_whatever_comes",
        seconds: "EMBEDDED_FUZZ_SECONDS",
        seed: "EMBEDDED_FUZZ_SEED",
    },
    Target {
        folder: "harness/embedded-apiserver",
        test: "bad_input::bodies_and_patches_of_any_form_are_answered",
        seconds: "EMBEDDED_APISERVER_FUZZ_SECONDS",
        seed: "EMBEDDED_APISERVER_FUZZ_SEED",
    },
];

/// Runs all of them for this many seconds, with the programs that `cargo test --workspace` has built.
pub(crate) fn run(seconds: u64, seed: Option<u64>) -> Result<()> {
    let programs = test_programs(&["--workspace", "--test", "it"])?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // A generator that shifts bits would stay at zero.
    let seed = seed.unwrap_or(now).max(1);
    say(&format!("{} targets for {seconds} s, seed {seed}", TARGETS.len()));
    let mut running: Vec<(&Target, Child)> = Vec::new();
    for target in TARGETS {
        running.push((target, start(target, &programs, seconds, seed)?));
    }
    let mut failed = Vec::new();
    for (target, child) in running {
        let output = child.wait_with_output().with_context(|| format!("waiting for {}", target.test))?;
        let text = String::from_utf8_lossy(&output.stdout);
        // A filter that matches no test counts as a success for the test program.
        if output.status.success() && text.contains("1 passed") {
            say(&format!("{}: {} found nothing", target.folder, target.test));
        } else {
            say(&format!("{text}{}", String::from_utf8_lossy(&output.stderr)));
            failed.push(target.folder);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("input of seed {seed} breaks {}; again with: cargo xtask fuzz --seed {seed}", failed.join(", "))
}

fn start(target: &Target, programs: &[TestProgram], seconds: u64, seed: u64) -> Result<Child> {
    let folder = root().join(target.folder);
    let Some(program) = programs.iter().find(|program| program.folder == folder) else {
        bail!("{} has no test program 'it'", target.folder);
    };
    let mut command = Command::new(&program.path);
    command
        .args(["--exact", target.test])
        .current_dir(folder)
        .env(target.seconds, seconds.to_string())
        .env(target.seed, seed.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().with_context(|| format!("starting {}", program.path))
}
