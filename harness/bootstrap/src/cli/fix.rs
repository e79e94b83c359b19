//! `bootstrap fix`: prints the fixed manifests, or changes the files.

use super::args::FixArgs;
use super::outcome::{BOOTS, FAILS, NAME_IT};
use crate::check::Checked;
use crate::fix::{Fixed, diff, fix};
use crate::lint::lint;
use bootstrap_manifests::cluster::Cluster;
use bootstrap_manifests::manifest::{STDIN, Source};
use std::io::Read;

/// How many clusters that do not boot yet are listed by name: often all have the same cause.
const MOST_STUCK: usize = 3;

/// How often the manifests are checked again after changes.
const PASSES: usize = 4;

/// Gives changed lines the line ends of the others.
fn keep_line_ends(old: &Source, new: &mut Source) {
    if old.text.contains("\r\n") && old.text != new.text {
        new.text = new.text.replace("\r\n", "\n").replace('\n', "\r\n").into();
    }
}

fn named(cluster: &Cluster) -> String {
    format!("{} with CNI {}", cluster.topology, cluster.cni)
}

pub(super) fn fix_manifests(args: &FixArgs, stdin: &mut dyn Read) -> Result<(u8, String), String> {
    let checked = args.set.read(stdin)?;
    if let Some(reason) = checked.unreadable(&args.cluster.topologies(), NAME_IT) {
        let problems = checked.objects.problems.iter();
        let listed: String = problems.map(|p| format!("{}: {}\n  {}\n", p.place, p.what, p.hint)).collect();
        return Err(format!("{listed}{reason}"));
    }
    let clusters: Vec<Cluster> = args.cluster.clusters(&checked)?;
    let findings = lint(&checked, args.cluster.claims(&checked));
    let mut fixed = fix(&checked, &clusters, &findings, args.recommended, args.set.ccm());
    // A change can reveal what another row asks for.
    for _ in 1..PASSES {
        let sources = fixed.sources.clone();
        let again = Checked::read(sources, Vec::new(), checked.assumed.clone(), args.set.ccm());
        let findings = lint(&again, args.cluster.claims(&again));
        let next = fix(&again, &clusters, &findings, args.recommended, args.set.ccm());
        let is_over = diff(&fixed.sources, &next.sources).is_empty();
        let done = [fixed.done, next.done].concat();
        fixed = Fixed { done, ..next };
        if is_over {
            break;
        }
    }
    let before = &checked.objects.sources;
    for (old, new) in before.iter().zip(&mut fixed.sources) {
        keep_line_ends(old, new);
    }
    if args.write {
        write(before, &fixed.sources)?;
    }
    let diff_only = args.diff_only || args.write;
    let mut text = if diff_only { String::new() } else { manifests(&fixed.sources) };
    let changed = diff(before, &fixed.sources);
    match (changed.is_empty(), diff_only) {
        (true, _) if fixed.by_hand.is_empty() => text.push_str("# nothing to change\n"),
        (true, _) => text.push_str("# nothing that 'bootstrap fix' can change\n"),
        (false, true) => text.push_str(&changed),
        // As comments, so that the whole output is a manifest.
        (false, false) => changed.lines().for_each(|line| text.push_str(&format!("# {line}\n"))),
    }
    text.push_str(&outcome(&fixed, clusters.len()));
    let is_done = fixed.stuck.is_empty() && fixed.by_hand.is_empty();
    Ok((if is_done { BOOTS } else { FAILS }, text))
}

/// All manifests, as one stream of documents.
fn manifests(sources: &[Source]) -> String {
    let mut text = String::new();
    for (number, source) in sources.iter().enumerate() {
        if number > 0 && !source.text.starts_with("---") {
            text.push_str("---\n");
        }
        if sources.len() > 1 {
            text.push_str(&format!("# {}\n", source.name));
        }
        text.push_str(&source.text);
        if !source.text.ends_with('\n') {
            text.push('\n');
        }
    }
    text.push('\n');
    text
}

/// What was done, what is left to do by hand, and what does not boot yet, as comments.
fn outcome(fixed: &Fixed, clusters: usize) -> String {
    let mut stuck: Vec<String> = fixed.stuck.iter().take(MOST_STUCK).map(named).collect();
    let more = fixed.stuck.len() - stuck.len();
    stuck.extend((more > 0).then(|| format!("and {more} more of {clusters} cells")));
    let lists = [("done", &fixed.done), ("by hand", &fixed.by_hand), ("does not boot yet", &stuck)];
    let line = |title: &str, item: &String| format!("# {title}: {item}\n");
    let listed: String =
        lists.iter().flat_map(|(title, items)| items.iter().map(move |item| line(title, item))).collect();
    let why = "# 'ccm-conformance bootstrap check --explain' on the changed manifests says why\n";
    listed + if !fixed.stuck.is_empty() && fixed.by_hand.is_empty() { why } else { "" }
}

/// Writes the sources that changed to their files.
fn write(before: &[Source], after: &[Source]) -> Result<(), String> {
    let changed = || before.iter().zip(after).filter(|(old, new)| old.text != new.text).map(|(_, new)| new);
    if changed().any(|source| *source.name == *STDIN) {
        return Err(
            "--write changes files, but these manifests come from standard input; leave it out".to_owned()
        );
    }
    changed().try_for_each(|source| {
        std::fs::write(&*source.name, source.text.as_bytes()).map_err(|error| {
            format!("--write: {} cannot be written: {}", source.name, system_errors::why(&error))
        })
    })
}
