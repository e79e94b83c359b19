//! The command `ccm-conformance bootstrap`: arguments in, text and exit code out.

mod args;
mod fix;
mod outcome;

pub use args::BootstrapCommand;

use crate::check::Checked;
use crate::finding::Level;
use crate::lint::lint;
use crate::output::{Checkup, json, sarif, text};
use args::{CheckArgs, Format};
use bootstrap_manifests::cluster::Cluster;
use outcome::{BOOTS, FAILS, NAME_IT, USAGE};
use std::io::{Read, Write};
use std::path::Path;

/// Runs a command. The path `-` reads `stdin`; results go to `out`, error messages to `err`. Returns the exit code: 0
/// boots, 1 does not boot in every order, 2 unreadable input or bad usage.
pub fn run(command: &BootstrapCommand, stdin: &mut dyn Read, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let result = match command {
        BootstrapCommand::Check(args) => check(args, stdin),
        BootstrapCommand::Fix(args) => fix::fix_manifests(args, stdin),
    };
    match result {
        Ok((code, text)) => {
            // A reader that closes the pipe (`| head`) is not an error.
            let _ = out.write_all(text.as_bytes());
            code
        }
        Err(message) => {
            // In one piece: the writer may show each as a line.
            let _ = err.write_all(format!("error: {message}\n").as_bytes());
            USAGE
        }
    }
}

fn check(args: &CheckArgs, stdin: &mut dyn Read) -> Result<(u8, String), String> {
    let checked = args.set.read(stdin)?;
    let unreadable = checked.unreadable(&args.cluster.topologies(), NAME_IT);
    let claims = args.cluster.claims(&checked);
    let explained = args.explain || args.graph.is_some() || args.output != Format::Text;
    let mut checkup = Checkup {
        cells: Vec::new(),
        findings: lint(&checked, claims),
        assumptions: Vec::new(),
        provided: None,
        unreadable,
    };
    if checkup.unreadable.is_none() {
        let clusters = args.cluster.clusters(&checked)?;
        checkup.assumptions = checked.assumptions(&clusters);
        checkup.assumptions.extend(args.cluster.newer_than_the_model());
        checkup.provided = checked.provided(&clusters);
        checkup.cells = clusters.into_iter().map(|cluster| checked.cell(cluster, explained)).collect();
    }
    let strict = args.strict && checkup.findings.iter().any(|finding| finding.level != Level::Info);
    let refused =
        checkup.findings.iter().any(|finding| finding.id == "BOOT-API" && finding.level == Level::Must);
    let code = match &checkup.unreadable {
        Some(_) => USAGE,
        None if checkup.failing().next().is_some() || strict || refused => FAILS,
        None => BOOTS,
    };
    let mut note = String::new();
    if let Some(path) = &args.graph {
        note = graph(&checkup, path)?;
    }
    if !args.explain && args.output == Format::Text {
        // These explanations were needed only for the graph.
        checkup.cells.iter_mut().for_each(|cell| cell.explanation = None);
    }
    let text = match args.output {
        Format::Text => format!("{}{note}", text(&checkup)),
        Format::Json => json(&checkup, code),
        Format::Sarif => sarif(&checkup),
    };
    Ok((code, text))
}

fn unknown_graph(path: &Path) -> String {
    format!("--graph {}: unknown format: end the file name in .svg, .dot or .mmd (Mermaid)", path.display())
}

/// Writes the graph of the first cell that does not boot, and prints which one it is.
fn graph(checkup: &Checkup, path: &Path) -> Result<String, String> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let cell = checkup.failing().find_map(|cell| Some((cell, cell.explanation.as_ref()?)));
    let is_known = ["svg", "dot", "gv", "mmd", "mermaid"].contains(&ending);
    let (cell, explanation) = match cell {
        None if is_known => return Ok(format!("no graph in {}: every cell boots\n", path.display())),
        None => return Err(unknown_graph(path)),
        Some(found) => found,
    };
    let text = match ending {
        "svg" => explanation.graph.to_svg(),
        "dot" | "gv" => explanation.graph.to_dot(),
        "mmd" | "mermaid" => explanation.graph.to_mermaid(),
        _ => return Err(unknown_graph(path)),
    };
    std::fs::write(path, text)
        .map_err(|e| format!("--graph {}: cannot be written: {}", path.display(), system_errors::why(&e)))?;
    Ok(format!("graph of {} with CNI {}: {}\n", cell.cluster.topology, cell.cluster.cni, path.display()))
}

impl Checked {
    /// The assumptions about the clusters that the manifests neither confirm nor rule out.
    fn assumptions(&self, clusters: &[Cluster]) -> Vec<String> {
        use bootstrap_manifests::cluster::{CloudEndpoint, YesNo};
        let mut all = Vec::new();
        let Some(first) = clusters.first() else { return all };
        let resolves = self.set.workloads.iter().any(|workload| {
            workload.role == bootstrap_manifests::workload::Role::Ccm && workload.needs_cluster_dns()
        });
        if first.cloud_endpoint == CloudEndpoint::Auto && self.set.cloud_by_name.is_none() && resolves {
            all.push(String::from(
                "the CCM reaches its cloud by a DNS name, as the manifests show no URL (if not, pass --cloud-endpoint \
                 address)",
            ));
        }
        if first.node_ip == YesNo::No && !first.addressed() {
            all.push(String::from(
                "kubelets have no --node-ip, so Nodes have no address before the CCM works",
            ));
        }
        all
    }
}
