//! Fixes manifests: applies the smallest set of changes that makes every cell boot, and what the contract's MUST rows
//! require, as edits of the text that leave comments and layout unchanged.

mod edit;
mod rbac;
mod text;

pub(crate) use rbac::rbac;

use crate::changes::{smallest, without_assumption, words};
use crate::check::Checked;
use crate::finding::{Edit, Finding, Level};
use crate::model::{Change, Set, judge};
use bootstrap_manifests::cluster::Cluster;
use bootstrap_manifests::manifest::{Objects, Source};
use similar::TextDiff;

/// A set of manifests after the fix.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    /// The texts, changed or unchanged.
    pub(crate) sources: Vec<Source>,
    /// What was changed.
    pub(crate) done: Vec<String>,
    /// What must be changed by hand.
    pub(crate) by_hand: Vec<String>,
    /// Cells that still do not boot.
    pub(crate) stuck: Vec<Cluster>,
}

/// Fixes what can be fixed. `recommended` adds what the contract's SHOULD rows ask for.
pub(crate) fn fix(
    checked: &Checked,
    clusters: &[Cluster],
    findings: &[Finding],
    recommended: bool,
    ccm: Option<&str>,
) -> Fixed {
    let failing: Vec<&Cluster> =
        clusters.iter().filter(|cluster| !judge(&checked.boot, cluster).outcome.is_boot()).collect();
    let changes =
        if failing.is_empty() { Vec::new() } else { smallest(&checked.boot, &failing).unwrap_or_default() };
    let mut fixed = Fixed {
        sources: checked.objects.sources.clone(),
        done: Vec::new(),
        by_hand: Vec::new(),
        stuck: Vec::new(),
    };
    // An edit, what asks for it, and what it does if that is not the same.
    let mut edits: Vec<(Option<Edit>, String, Option<String>)> = changes
        .iter()
        .map(|change| (edit_for(&checked.boot, change), words(&checked.boot, change), None))
        .collect();
    for finding in findings {
        let wanted = finding.level == Level::Must || (recommended && finding.level == Level::Should);
        let is_known = edits.iter().any(|(edit, words, _)| {
            let is_same = edit.is_some() && *edit == finding.edit;
            // The reference to an object that one of the changes creates.
            let creates = || created(words).is_some_and(|object| finding.what.contains(object));
            is_same || (finding.id == "BOOT-REF" && creates())
        });
        if wanted && !is_known {
            let done = finding.edit.as_ref().map(|edit| format!("{}: {}", finding.id, edit.in_words()));
            edits.push((finding.edit.clone(), format!("{}: {}", finding.id, finding.what), done));
        }
    }
    let mut objects = checked.objects.clone();
    for (edit, what, done) in edits {
        let applied = edit.and_then(|edit| edit.apply(&objects));
        match applied {
            Some(edits) if edits.is_empty() => {}
            Some(edits) => {
                for (source, text) in edits {
                    fixed.sources[source] = Source { text: text.into(), ..fixed.sources[source].clone() };
                }
                objects = Objects::read(fixed.sources.clone());
                // What is done has no alternative.
                fixed.done.push(done.unwrap_or_else(|| without_assumption(&what).to_owned()));
            }
            None => {
                if !fixed.by_hand.contains(&what) {
                    fixed.by_hand.push(what);
                }
            }
        }
    }
    let set = Set::new(&objects, &checked.assumed, ccm).reduced();
    let boots = |cluster: &&Cluster| judge(&set, cluster).outcome.is_boot();
    fixed.stuck = clusters.iter().filter(|cluster| !boots(cluster)).cloned().collect();
    fixed
}

/// The object that a change creates, from its words (`W: create KIND/NAME, or ..`).
fn created(words: &str) -> Option<&str> {
    words.split_once(": create ")?.1.split([',', ' ']).next()
}

/// The unified diff of all changes.
pub(crate) fn diff(before: &[Source], after: &[Source]) -> String {
    let mut text = String::new();
    for (old, new) in before.iter().zip(after).filter(|(old, new)| old.text != new.text) {
        let diff = TextDiff::from_lines(&*old.text, &*new.text);
        let name = old.name.trim_start_matches('/');
        text.push_str(
            &diff
                .unified_diff()
                .context_radius(3)
                .header(&format!("a/{name}"), &format!("b/{name}"))
                .to_string(),
        );
    }
    text
}

/// The edit of a change; `None` if only the user can know what to write.
fn edit_for(set: &Set, change: &Change) -> Option<Edit> {
    let spec = |w: &u32| {
        let workload = &set.workloads[*w as usize];
        let path = bootstrap_manifests::workload::spec_path(workload.kind)
            .iter()
            .map(|key| (*key).to_owned())
            .collect();
        Some((workload.object?, path, workload))
    };
    let assign = |w: &u32, key: &str, value: &str| {
        let (object, path, _) = spec(w)?;
        Some(Edit::Set { object, path, key: key.to_owned(), value: value.to_owned() })
    };
    match change {
        Change::Tolerate(w, taint) => {
            let (object, path, _) = spec(w)?;
            Some(Edit::Tolerate { object, path, key: taint.key.clone(), effect: taint.effect })
        }
        Change::HostNetwork(w) => assign(w, "hostNetwork", "true"),
        Change::NodeDns(w) => assign(w, "dnsPolicy", "Default"),
        Change::DropHostIp(w) => {
            let (object, path, _) = spec(w)?;
            Some(Edit::DropHostIp { object, path })
        }
        Change::DropNodeRequirement(w, key) => {
            let (object, path, _) = spec(w)?;
            Some(Edit::DropNodeRequirement { object, path, label: key.clone() })
        }
        Change::Image(w, container) => {
            let (object, path, _) = spec(w)?;
            Some(Edit::Image { object, path, container: *container as usize })
        }
        Change::Grant(w) => {
            let (object, path, workload) = spec(w)?;
            Some(Edit::Grant { object, path, text: rbac(workload, &set.gaps[*w as usize]) })
        }
        Change::Replicas(w) => {
            let (object, ..) = spec(w)?;
            let path = vec![String::from("spec")];
            Some(Edit::Set { object, path, key: String::from("replicas"), value: String::from("1") })
        }
        Change::Amend(w, advice) => {
            let (object, _, workload) = spec(w)?;
            let hindrance = workload.hindrances.iter().find(|own| own.advice == *advice)?;
            let (path, key, value) = hindrance.edit.clone()?;
            Some(Edit::Set { object, path, key: key.to_owned(), value: value.to_owned() })
        }
        Change::FailOpen(hook) => {
            let webhook = &set.webhooks[*hook as usize];
            Some(Edit::FailOpen { object: webhook.object, webhook: webhook.index })
        }
        Change::Provide(w, kind, namespace, name) if kind == "ServiceAccount" => {
            let (object, ..) = spec(w)?;
            let text = format!(
                "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {name}\n  namespace: {namespace}\n"
            );
            Some(Edit::Add { object, text })
        }
        Change::Provide(w, kind, _, name) if kind == "Namespace" => {
            let (object, ..) = spec(w)?;
            Some(Edit::Add {
                object,
                text: format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n"),
            })
        }
        Change::Provide(..)
        | Change::ApiServer(_)
        | Change::CloudProvider(_)
        | Change::Repair(..)
        | Change::Port(_)
        | Change::DropStorage(_)
        | Change::DropPodAffinity(_) => None,
    }
}
