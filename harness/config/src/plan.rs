//! The meaning of a run file: every default filled in, every name resolved, every contradiction found.

use super::cluster::{SettledCluster, Topology, WantedCluster};
use super::duration::HumanDuration;
use super::enums::{BackendKind, Keep, Timing};
use super::flags::{FAST_FLAGS, FAST_ROUTE_PERIOD, FAST_ROUTES, FAST_STATUS_PERIOD, LeaseTiming};
use super::limits::Limits;
use super::old_release::{OldRelease, UpgradeKeys};
use super::problem::{Origin, Problem, Problems};
use super::profile::{self, Profile};
use super::profile_reading;
use super::run_file::{
    DEFAULT_KEEP, DEFAULT_OUTPUT, DEFAULT_PROFILE, LimitKeys, RunFile, SCHEMA, SelectKeys, usual_jobs,
};
use super::schema_check::{Places, walk};
use super::sections::Section;
use super::select::Selection;
use super::settings::Making;
use super::yaml::{Node, Tree};
use harness_core::files;
use harness_core::ledger::{SetBy, Setting};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::Duration;

/// The shortest soak: in less time, no leader can end and be replaced.
const SHORTEST_SOAK: Duration = Duration::from_secs(20);

/// A run that is ready to start. Before the backend of its cluster is decided, it is a `RunPlan<WantedCluster>`.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPlan<C = SettledCluster> {
    /// The CCM under test.
    pub profile: Profile,
    /// The cluster.
    pub cluster: C,
    /// The CCM as a program on this machine, instead of the profile's image; only an embedded cluster runs it.
    pub binary: Option<PathBuf>,
    /// The release that is installed before the CCM under test; `None` if the run judges no upgrade.
    pub old_release: Option<OldRelease>,
    /// Which checks run.
    pub selection: Selection,
    /// The folder for report and evidence.
    pub output: PathBuf,
    /// When the environment is kept.
    pub keep: Keep,
    /// How many checks run at the same time, 1 to 256.
    pub jobs: u32,
    /// How many clusters run at the same time, at most 16; `None`: as many as the backend and the machine allow.
    pub clusters: Option<u32>,
    /// How long checks wait.
    pub limits: Limits,
    /// Whether a partial result is a failed run.
    pub require_complete: bool,
    /// Whether the run certifies: then everything that would make its result partial is refused before
    /// anything is started.
    pub certify: bool,
    /// Which timing flags the CCM gets.
    pub timing: Timing,
    /// All settings that affect how much the result proves, and who set them.
    pub settings: Vec<Setting>,
}

impl<C> RunPlan<C> {
    /// The same run on another cluster.
    pub fn on<D>(self, cluster: D) -> RunPlan<D> {
        let RunPlan {
            profile,
            binary,
            old_release,
            selection,
            output,
            keep,
            jobs,
            clusters,
            limits,
            require_complete,
            certify,
            timing,
            settings,
            ..
        } = self;
        RunPlan {
            profile,
            cluster,
            binary,
            old_release,
            selection,
            output,
            keep,
            jobs,
            clusters,
            limits,
            require_complete,
            certify,
            timing,
            settings,
        }
    }

    /// The arguments that are added to those in the CCM's manifests, each with who set it: the speed-up
    /// flags, then the profile's own.
    pub fn ccm_arguments(&self) -> Vec<(String, SetBy)> {
        self.arguments_of(&self.profile)
    }

    /// The same for the CCM of another profile, such as that of an old release. Speed-up flags that it does not accept are
    /// left out.
    pub fn arguments_of(&self, profile: &Profile) -> Vec<(String, SetBy)> {
        let fast = match self.timing {
            Timing::Fast => FAST_FLAGS,
            Timing::Default => &[],
        };
        let routes = self.timing == Timing::Fast && profile.takes_route_period();
        let fast =
            fast.iter().filter(|(flag, _)| profile.accepts(flag)).chain(routes.then_some(&FAST_ROUTES));
        let timing = self.settings.iter().find(|one| one.setting == "timing");
        let by_timing = timing.map_or(SetBy::Default, |one| one.from);
        let flags = fast.map(|(name, value)| (format!("--{name}={value}"), by_timing));
        let extra = profile.extra_arguments.iter().map(|text| (text.clone(), SetBy::Profile));
        flags.chain(extra).collect()
    }
}

/// Whether a partial result is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// It is: exit code 0.
    Optional,
    /// It is not: exit code 1.
    Required,
}

/// Where a run's settings are written, apart from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nowhere: the reference CCM on a cluster of the harness's own.
    Defaults,
    /// In a run file.
    File(PathBuf),
}

/// Settings outside of any file. Each key overrides the run file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// Settings from environment variables.
    pub environment: RunFile,
    /// Settings from the command line, which have precedence.
    pub typed: RunFile,
    /// Keys that override those of the profile's file.
    pub over_profile: Map<String, Value>,
    /// The same for the profile of the old release.
    pub over_old_profile: Map<String, Value>,
}

impl From<RunFile> for Given {
    fn from(typed: RunFile) -> Given {
        Given { typed, ..Given::default() }
    }
}

/// The plan of a run: the command line overrides the environment, which overrides the run file, which
/// overrides the profile's defaults.
///
/// # Errors
/// All faults in the command line, the run file and the profile, together.
pub fn plan(source: &Source, given: impl Into<Given>) -> Result<RunPlan<WantedCluster>, Problems> {
    let mut problems = Problems::default();
    let Given { environment, typed, over_profile, over_old_profile } = given.into();
    let surrounding = Value::Object(environment.said());
    let over = Value::Object(typed.said());
    walk(&Node { line: 0, tree: Tree::from(over.clone()) }, &SCHEMA, None, &mut problems);
    let (written, file, places) = match source {
        Source::Defaults => (RunFile::default(), None, Places::default()),
        Source::File(file) => match files::read(file) {
            Ok(text) => {
                let (written, places) = RunFile::read(&text, file, &mut problems);
                (written, Some(file.clone()), places)
            }
            Err(error) => {
                problems.file(file, format!("cannot be read: {error}"));
                (RunFile::default(), Some(file.clone()), Places::default())
            }
        },
    };
    Planning { file, places, surrounding, over, over_profile, over_old_profile, problems }
        .plan(written.merge(environment).merge(typed))
}

/// The limits for a CCM with this profile, according to the run file and this timing.
fn limits(written: LimitKeys, profile: &Profile, timing: Timing) -> Limits {
    let (lease, period) = match timing {
        Timing::Fast => (LeaseTiming::FAST, FAST_STATUS_PERIOD),
        Timing::Default => (profile.lease_timing, Limits::USUAL_STATUS_PERIOD),
    };
    let budgets = written.budgets.into_iter().map(|(budget, HumanDuration(value))| (budget, value));
    let overrides = profile.budgets.clone().into_iter().chain(budgets);
    let limits = Limits::new(lease).scaled(written.scale.unwrap_or(1.0)).with(overrides.collect());
    let limits = match timing {
        Timing::Fast if profile.takes_route_period() => limits.with_route_period(FAST_ROUTE_PERIOD),
        Timing::Fast | Timing::Default => limits,
    };
    limits.with_instance_cache(profile.instance_cache).with_status_period(period)
}

pub(super) struct Planning {
    file: Option<PathBuf>,
    places: Places,
    /// The settings from the environment.
    surrounding: Value,
    /// The settings from the command line.
    over: Value,
    over_profile: Map<String, Value>,
    pub(super) over_old_profile: Map<String, Value>,
    pub(super) problems: Problems,
}

impl Planning {
    /// Who set a key.
    fn set_by(&self, key: &str) -> SetBy {
        let pointer = format!("/{}", key.replace('.', "/"));
        if self.over.pointer(&pointer).is_some() {
            SetBy::Option
        } else if self.surrounding.pointer(&pointer).is_some() {
            SetBy::Environment
        } else if self.places.has(key) {
            SetBy::RunFile
        } else {
            SetBy::Default
        }
    }

    /// Where a key was written.
    fn origin(&self, key: &str) -> Origin {
        let set_by = self.set_by(key);
        match &self.file {
            _ if set_by == SetBy::Environment => Origin::Environment,
            Some(path) if set_by != SetBy::Option => {
                Origin::File { path: path.clone(), line: self.places.line(key) }
            }
            Some(_) | None => Origin::CommandLine,
        }
    }

    pub(super) fn problem(&mut self, key: &str, what: impl Into<String>) {
        let origin = self.origin(key);
        self.problems.0.push(Problem { origin, key: key.to_owned(), what: what.into() });
    }

    /// A choice of the cluster, in the words of where this run's was made.
    pub(super) fn backend_words(&self, kind: &str) -> String {
        match self.origin("cluster.backend") {
            Origin::File { .. } | Origin::Settings => format!("'backend: {kind}'"),
            Origin::CommandLine | Origin::Environment => format!("'--cluster {kind}'"),
        }
    }

    /// For how long to soak; what is too short to show anything is refused.
    fn soak(&mut self, asked: Option<HumanDuration>) -> Option<Duration> {
        let HumanDuration(time) = asked?;
        // A soak of no length is reported by its format.
        if !time.is_zero() && time < SHORTEST_SOAK {
            self.problem("soak", format!("a soak takes at least {}", HumanDuration(SHORTEST_SOAK)));
        }
        Some(time)
    }

    fn plan(mut self, run: RunFile) -> Result<RunPlan<WantedCluster>, Problems> {
        let asked = run.clone();
        let cluster = self.cluster(run.cluster, run.soak.is_some());
        let mut profile = self.profile(run.profile.as_deref().unwrap_or(DEFAULT_PROFILE));
        if let (Some(profile), Some(image)) = (&mut profile, run.image) {
            self.replace_image("image", profile, image);
        }
        let mut binary = run.binary.map(PathBuf::from);
        if let Some(binary) = &binary {
            self.check_binary("binary", binary, &cluster, profile.as_ref());
        }
        // For a profile without a CCM, the program is that of the described component.
        if let Some(plugin) = profile.as_mut().and_then(Profile::plugin_alone) {
            binary = plugin.by_program(binary);
        }
        // On one machine, a Deployment with its usual strategy cannot replace a Pod that has a port of that machine.
        let spread =
            run.upgrade_from != UpgradeKeys::default() && self.set_by("cluster.topology") == SetBy::Default;
        let cluster = if spread { cluster.on_three_nodes() } else { cluster };
        let cluster =
            profile.as_ref().map_or(Some(cluster.clone()), |profile| self.cluster_for(profile, &cluster));
        let cluster = cluster.unwrap_or_else(WantedCluster::absent);
        let old_release = profile
            .as_ref()
            .and_then(|profile| self.old_release(run.upgrade_from, &cluster, (profile, binary.as_deref())));
        let refused = profile.as_ref().map(Profile::refused_fast_flags).unwrap_or_default();
        let timing = self.timing(run.timing, &refused);
        let selection = Selection {
            upgrades: old_release.is_some(),
            ..self.selection(run.select, run.soak, asked.cluster.seed)
        };
        let output = PathBuf::from(run.output.dir.unwrap_or_else(|| String::from(DEFAULT_OUTPUT)));
        if output.exists() && !output.is_dir() {
            self.problem("output.dir", format!("{} is not a folder", output.display()));
        }
        let Some(profile) = profile else { return Err(self.problems.sorted()) };
        let limits = limits(run.limits, &profile, timing);
        let set_by = |key: &str| self.set_by(key);
        let making = Making { run: &asked, profile: &profile, limits: &limits, timing, set_by: &set_by };
        let settings = making.settings();
        let certify = run.certify.unwrap_or(false);
        // A part is never complete; `merge` can require completeness of the whole.
        let require_complete = run.require_complete.unwrap_or(certify) && selection.shard.is_none();
        let workers = profile.workers;
        self.problems.or(RunPlan {
            profile,
            cluster,
            binary,
            old_release,
            selection,
            output,
            keep: run.keep.unwrap_or(DEFAULT_KEEP),
            jobs: run.jobs.unwrap_or_else(|| usual_jobs(workers)),
            clusters: run.clusters,
            limits,
            require_complete,
            certify,
            timing,
            settings,
        })
    }

    /// The timing of the run; `refused` are the flags of the fast timing that the CCM does not accept.
    fn timing(&mut self, asked: Option<Timing>, refused: &[&str]) -> Timing {
        match (asked, refused) {
            (Some(Timing::Fast), []) | (None, []) => Timing::Fast,
            (Some(Timing::Fast), flags) => {
                let flags: Vec<String> = flags.iter().map(|flag| format!("--{flag}")).collect();
                let flags = flags.join(", ");
                self.problem(
                    "timing",
                    format!("'fast' needs flags that the profile does not list as accepted: {flags}"),
                );
                Timing::Fast
            }
            (Some(Timing::Default), _) | (None, _) => Timing::Default,
        }
    }

    fn selection(&mut self, select: SelectKeys, soak: Option<HumanDuration>, seed: Option<u32>) -> Selection {
        Selection {
            suites: select.suites.unwrap_or_default(),
            only: select.only.unwrap_or_default(),
            skip: select.skip.unwrap_or_default(),
            quick: select.quick.unwrap_or(false),
            // Any other text was already rejected as a share.
            shard: select.shard.and_then(|text| text.parse().ok()),
            soak: self.soak(soak),
            upgrades: false,
            seed,
            run: select.run,
            origins: Selection::KEYS.into_iter().map(|key| (key, self.origin(key))).collect(),
        }
    }

    /// The cluster for a profile; `None` for none. A profile without a CCM needs none, and one with a CCM
    /// needs one.
    fn cluster_for(&mut self, profile: &Profile, wanted: &WantedCluster) -> Option<WantedCluster> {
        const BACKEND: &str = "cluster.backend";
        let absent = wanted.backend() == Some(BackendKind::Absent);
        if profile.has_ccm() {
            if absent {
                self.problem(
                    BACKEND,
                    format!("profile '{}' describes a CCM, which needs a cluster", profile.name),
                );
            }
            return Some(wanted.clone());
        }
        let asked = matches!(self.set_by(BACKEND), SetBy::Option | SetBy::RunFile);
        // Agents and drivers run on other machines than the API server.
        let others = Section::all_in(profile).any(|section| section.on_workers);
        let others = others && self.set_by("cluster.topology") == SetBy::Default;
        let wants_cluster = Section::all_in(profile).any(|section| section.wants_cluster);
        let with_kubelets = || Some(wanted.clone().of_kind(others.then_some(Topology::ThreeNode)));
        match wanted.backend() {
            // To see how a real kubelet uses a plugin.
            Some(BackendKind::Kind) if asked => return with_kubelets(),
            _ if !asked && wants_cluster => return with_kubelets(),
            Some(_) if asked && !absent => {
                let what = format!(
                    "profile '{}' describes no CCM, and only on kind a kubelet can run what it describes; choose kind, \
                     or no cluster at all",
                    profile.name
                );
                self.problem(BACKEND, what);
            }
            _ => {}
        }
        None
    }

    fn profile(&mut self, name_or_path: &str) -> Option<Profile> {
        match profile::find(name_or_path) {
            Ok(file) => profile_reading::read(&file, &self.over_profile, &mut self.problems),
            Err(what) => {
                self.problem("profile", what);
                None
            }
        }
    }
}
