//! Which checks run, according to the user's selection, the CCM's declarations, and the abilities of harness
//! and cluster.
//!
//! A pure function: the same inputs give the same choice, in every process of a run.

use super::enums::Deployment;
use super::problem::{Origin, Problem, Problems, near};
use super::profile::Profile;
use harness_core::check::{Capability, Check, Facilities, Facility, Party, Served, Suite, row_of};
use harness_core::glob::fits;
use harness_core::ledger::{Share, SkipReason};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The properties of a check that selection needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its suite's name.
    pub suite: &'static str,
    /// The party that its suite judges.
    pub judges: Party,
    /// Its id.
    pub id: &'static str,
    /// The capabilities that the CCM must declare.
    pub needs: &'static [Capability],
    /// The capabilities that it must not declare.
    pub lacks: &'static [Capability],
    /// The facilities that the environment must have.
    pub facilities: Facilities,
    /// What the API server must serve.
    pub served: Served,
    /// The shortest time of a passing run, in seconds.
    pub takes_s: u32,
    /// Whether it only belongs to a run with a soak.
    pub soaks: bool,
    /// Whether it only belongs to a run with an old release.
    pub upgrades: bool,
}

impl Candidate {
    /// A check of a suite.
    pub fn of<Cx>(suite: &Suite<Cx>, check: &'static Check<Cx>) -> Candidate {
        Candidate {
            suite: suite.name,
            judges: suite.judges,
            id: check.id.as_str(),
            needs: check.needs,
            lacks: check.lacks,
            facilities: check.facilities,
            served: check.served,
            takes_s: check.takes_s,
            soaks: check.soaks,
            upgrades: check.upgrades,
        }
    }
}

/// What the environment offers to checks. Facts that are not known yet (at list time there is no cluster)
/// hide no check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The parties in the profile.
    pub subjects: BTreeSet<Party>,
    /// The capabilities that the CCM declares.
    pub capabilities: BTreeSet<Capability>,
    /// The facilities of the environment; `None` if not known.
    pub facilities: Option<BTreeSet<Facility>>,
    /// Whether the CCM runs outside the cluster that it serves.
    pub hosted: bool,
    /// The name of the cloud's driver; `None` if not known.
    pub cloud: Option<String>,
    /// The minor version of the API server; `None` if not known.
    pub served_minor: Option<u32>,
}

impl Offer {
    /// The facts that are known from the profile alone.
    pub fn declared(profile: &Profile) -> Offer {
        Offer {
            subjects: profile.subjects(),
            capabilities: profile.declares(),
            facilities: None,
            hosted: profile.deployment == Deployment::Hosted,
            cloud: None,
            served_minor: None,
        }
    }
}

/// The decision about a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It runs.
    Selected,
    /// It does not run: the kind of reason, and the reason as text.
    Skip(SkipReason, String),
}

/// The user's selection. Patterns are a check's id, that of a contract row (which includes all of its
/// claims), a suite's name, `suite::ID`, or any of these with `*` for any characters; upper and lower case
/// are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Suites to run; empty for all.
    pub suites: Vec<String>,
    /// Checks to run; empty for all. With `suites`, both must match.
    pub only: Vec<String>,
    /// Checks to leave out.
    pub skip: Vec<String>,
    /// Whether to leave out all checks that take [`LONG_S`] seconds or more when they pass.
    pub quick: bool,
    /// Only this part of the selected checks.
    pub shard: Option<Share>,
    /// The duration of the soak checks; without it they are not part of the run.
    pub soak: Option<Duration>,
    /// Whether the run names an old release; without one, checks of upgrades are not part of it.
    pub upgrades: bool,
    /// Determines what happens in a soak; without it the run decides.
    pub seed: Option<u32>,
    /// The name of the run that the part belongs to.
    pub run: Option<String>,
    /// Where each of the keys was written, as far as known.
    pub origins: BTreeMap<&'static str, Origin>,
}

impl Selection {
    /// The keys that name checks and suites.
    pub(super) const KEYS: [&'static str; 3] = ["select.suites", "select.only", "select.skip"];
}

/// From how many seconds on a check is too long for a quick run: checks with a quiet window, an outage or a
/// failover.
pub const LONG_S: u32 = 5;

/// Decides about every check, in their order. The first reason counts: a check of an undeclared capability
/// does not apply, even if it was also left out; then come checks that the user left out; then those that
/// cannot be observed.
///
/// # Errors
/// Patterns that match no check, with the most similar names.
pub fn select(
    candidates: &[Candidate],
    selection: &Selection,
    offer: &Offer,
) -> Result<Vec<Choice>, Problems> {
    known(selection, candidates)?;
    Ok(candidates.iter().map(|candidate| choose(candidate, selection, offer)).collect())
}

/// Whether every pattern of the selection matches a check.
///
/// # Errors
/// Patterns that match none, with the most similar names.
pub fn known(selection: &Selection, candidates: &[Candidate]) -> Result<(), Problems> {
    let mut problems = Problems::default();
    for (key, patterns) in [
        ("select.suites", &selection.suites),
        ("select.only", &selection.only),
        ("select.skip", &selection.skip),
    ] {
        for pattern in patterns {
            let suites_only = key == "select.suites";
            if !candidates
                .iter()
                .any(|c| if suites_only { glob(pattern, c.suite) } else { matches(pattern, c) })
            {
                let mut problem = unmatched(key, pattern, candidates, suites_only);
                problem.origin = selection.origins.get(key).cloned().unwrap_or(Origin::Settings);
                problems.0.push(problem);
            }
        }
    }
    problems.or(())
}

/// Deviations with an unknown check, as problems of the profile: their ids with the most similar known ones.
///
/// # Errors
/// There are some.
pub fn unknown_deviations(profile: &Profile, candidates: &[Candidate]) -> Result<(), Problems> {
    let mut problems = Problems::default();
    for (at, deviation) in profile.declared.iter().enumerate() {
        if !candidates.iter().any(|c| c.id == deviation.id || row_of(c.id) == deviation.id) {
            let mut problem = unmatched("", &deviation.id, candidates, false);
            problem.origin = Origin::File { path: profile.file.clone(), line: None };
            problem.key = format!("declared[{at}].id");
            problems.0.push(problem);
        }
    }
    problems.or(())
}

/// Whether the user's selection includes this check, whatever the profile declares.
pub fn is_asked_for(candidate: &Candidate, selection: &Selection) -> bool {
    deselected(candidate, selection).is_none()
}

fn choose(candidate: &Candidate, selection: &Selection, offer: &Offer) -> Choice {
    if !offer.subjects.contains(&candidate.judges) {
        return Choice::Skip(SkipReason::NotDeclared, format!("the profile names no {}", candidate.judges));
    }
    let undeclared: Vec<String> = candidate
        .needs
        .iter()
        .filter(|need| !offer.capabilities.contains(need))
        .map(Capability::to_string)
        .collect();
    if !undeclared.is_empty() {
        return Choice::Skip(
            SkipReason::NotDeclared,
            format!("the profile does not declare {}", undeclared.join(", ")),
        );
    }
    let declared: Vec<String> = candidate
        .lacks
        .iter()
        .filter(|lack| offer.capabilities.contains(lack))
        .map(Capability::to_string)
        .collect();
    if !declared.is_empty() {
        return Choice::Skip(
            SkipReason::NotDeclared,
            format!("the profile declares {}", declared.join(", ")),
        );
    }
    if candidate.soaks && selection.soak.is_none() {
        return Choice::Skip(SkipReason::NotDeclared, "the run does not soak (--soak)".to_owned());
    }
    if candidate.upgrades && !selection.upgrades {
        let why = "the run names no release to upgrade from (--upgrade-from)";
        return Choice::Skip(SkipReason::NotDeclared, why.to_owned());
    }
    if let Some(detail) = deselected(candidate, selection) {
        return Choice::Skip(SkipReason::Deselected, detail);
    }
    if let Some(facilities) = &offer.facilities {
        let lacking = candidate.facilities.iter().filter(|facility| !facilities.contains(facility));
        let (of_the_cloud, others): (Vec<Facility>, Vec<Facility>) =
            lacking.partition(|f| Facility::OF_THE_CLOUD.contains(f));
        let list = |lacking: &[Facility]| {
            lacking.iter().map(Facility::to_string).collect::<Vec<String>>().join(", ")
        };
        let cloud = offer.cloud.as_deref().unwrap_or("unknown");
        let lacks = [
            (!others.is_empty()).then(|| {
                let hosted = offer.hosted && others.iter().any(|f| Facility::OF_PODS_INSIDE.contains(f));
                let why = if hosted { ", as the CCM runs outside the cluster" } else { "" };
                format!("this environment lacks {}{why}", list(&others))
            }),
            (!of_the_cloud.is_empty())
                .then(|| format!("the cloud's driver {cloud} lacks {}", list(&of_the_cloud))),
        ];
        let lacks: Vec<String> = lacks.into_iter().flatten().collect();
        if !lacks.is_empty() {
            return Choice::Skip(SkipReason::NotObservable, lacks.join("; "));
        }
    }
    match (candidate.served, offer.served_minor) {
        (Served::Since { minor, what }, Some(served)) if served < minor => Choice::Skip(
            SkipReason::NotObservable,
            format!("{what} is served from Kubernetes 1.{minor} on, this cluster is 1.{served}"),
        ),
        (Served::Since { .. } | Served::Always, _) => Choice::Selected,
    }
}

fn deselected(candidate: &Candidate, selection: &Selection) -> Option<String> {
    if !selection.suites.is_empty() && !selection.suites.iter().any(|pattern| glob(pattern, candidate.suite))
    {
        return Some(format!("suite {} was not asked for", candidate.suite));
    }
    if !selection.only.is_empty() && !selection.only.iter().any(|pattern| matches(pattern, candidate)) {
        return Some(format!("not among those asked for: {}", selection.only.join(", ")));
    }
    if let Some(pattern) = selection.skip.iter().find(|pattern| matches(pattern, candidate)) {
        return Some(format!("left out by '{pattern}'"));
    }
    // A check that is named runs, however long it takes.
    let long =
        selection.quick && selection.only.is_empty() && !candidate.soaks && candidate.takes_s >= LONG_S;
    long.then(|| format!("a quick run leaves out checks of {LONG_S} s and more"))
}

fn unmatched(key: &str, pattern: &str, candidates: &[Candidate], suites_only: bool) -> Problem {
    let mut names: Vec<&str> = candidates.iter().map(|c| c.suite).collect();
    names.dedup();
    if !suites_only {
        names.extend(candidates.iter().map(|c| c.id));
    }
    let near: Vec<String> =
        near(pattern, names).into_iter().take(4).map(|name| format!("'{name}'")).collect();
    let hint = match near.as_slice() {
        [] => String::from("; 'ccm-conformance list' shows them all"),
        [one] => format!("; did you mean {one}?"),
        many => format!("; did you mean one of {}?", many.join(", ")),
    };
    let what = if suites_only { "suite" } else { "check or suite" };
    Problem {
        origin: Origin::Settings,
        key: key.to_owned(),
        what: format!("no {what} matches '{pattern}'{hint}"),
    }
}

fn matches(pattern: &str, candidate: &Candidate) -> bool {
    glob(pattern, candidate.id)
        || glob(pattern, row_of(candidate.id))
        || glob(pattern, candidate.suite)
        || (pattern.contains("::") && glob(pattern, &format!("{}::{}", candidate.suite, candidate.id)))
}

/// Whether `pattern`, in which `*` stands for any characters, matches the whole of `name`; ignores case.
fn glob(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_ascii_lowercase(), name.to_ascii_lowercase());
    fits(&pattern, &name)
}
