//! The meaning of a CCM's profile.
//!
//! This module reads the profile and lists its manifests; it does not read those, and starts nothing.

use super::annotation_effects::AnnotationEffect;
use super::capabilities::Capabilities;
use super::cloud_source::CloudSource;
use super::csi_migration::CsiMigration;
use super::enums::{AddressType, Budget, CcmCommand, Deployment, Ownership, ProfileKind, RouteTrigger};
use super::flags::{FAST_FLAGS, FAST_ROUTES, FRAMEWORK_FLAGS, LeaseTiming};
use super::image_credentials::ImageCredentials;
use super::network_proxy::NetworkProxy;
use super::paths::looks_like_path;
use super::problem::did_you_mean;
use super::profile_file::{Deviation, Lease, Location, Workload};
use fake_cloud_dialects as dialects;
use fake_cloud_driver::InstanceIds;
use harness_core::check::Capability;
use harness_core::files;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The built-in profile of the CCM that must pass everything; the default.
pub const REFERENCE_PROFILE: &str = "reference";

/// The built-in profile that deploys no CCM and declares everything; every check must fail on it.
pub const NULL_PROFILE: &str = "null";

/// A CCM under test.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// One sentence about it; may be empty.
    pub description: String,
    /// The profile's file, as it was given.
    pub file: PathBuf,
    /// What it declares about the shared framework.
    pub framework: Framework,
    /// The source of its image; `None` if the manifests name it, or nothing is deployed.
    pub image: Option<Image>,
    /// Its manifest files in the order in which they are applied; folders are replaced by their files. Empty
    /// if nothing is deployed.
    pub manifests: Vec<PathBuf>,
    /// Its workload, if the profile names it; otherwise it is the only Deployment or DaemonSet in the manifests.
    pub workload: Option<Workload>,
    /// Its cloud.
    pub cloud: CloudSource,
    /// Its capabilities.
    pub capabilities: Capabilities,
    /// Its leader election lease.
    pub lease: Lease,
    /// The timing of its leader election if no flag sets it.
    pub lease_timing: LeaseTiming,
    /// The port of `/healthz` and `/metrics`; 0 if it serves none.
    pub secure_port: u16,
    /// How many Services, and how many Nodes, it processes at the same time.
    pub workers: u32,
    /// The flags that it accepts, names without dashes.
    pub accepted_flags: BTreeSet<String>,
    /// Arguments that are always added.
    pub extra_arguments: Vec<String>,
    /// The form of its provider ids.
    pub provider_id: ProviderIdFormat,
    /// The location of its machines, unless a check sets another one.
    pub location: Location,
    /// The type that it reports for every machine, if it is not that of the cloud.
    pub instance_type: Option<String>,
    /// How long it may cache data about a machine.
    pub instance_cache: Duration,
    /// The types of addresses in the order in which it reports them; empty if that is the cloud's order.
    pub address_order: Vec<AddressType>,
    /// Types of addresses that it reports a second time, with the other type.
    pub also_reported_as: BTreeMap<AddressType, AddressType>,
    /// The part of its load balancers that identifies their Service.
    pub load_balancer_owner: Ownership,
    /// Annotations for every Service of a check.
    pub service_annotations: BTreeMap<String, String>,
    /// Finalizers of its own that it adds to a Service.
    pub service_finalizers: Vec<String>,
    /// Annotations of its vendor that change a load balancer.
    pub annotation_effects: BTreeMap<String, AnnotationEffect>,
    /// Annotations that mark a Service whose load balancer another controller creates.
    pub implemented_elsewhere: BTreeMap<String, String>,
    /// The number of replicas.
    pub replicas: u32,
    /// Values for further `${NAME}` in its manifests; never for names that the harness sets itself.
    pub placeholders: BTreeMap<String, String>,
    /// Environment variables for its container; values may contain `${NAME}`.
    pub environment: BTreeMap<String, String>,
    /// Its own wait budgets, for things that take it longer than others; the profile gives the reason.
    pub budgets: BTreeMap<Budget, Duration>,
    /// Deviations that its vendor documents; shown next to the outcome, which they do not change.
    pub declared: Vec<Deviation>,
    /// Where it runs.
    pub deployment: Deployment,
    /// The kind of component that it describes.
    pub kind: ProfileKind,
    /// Its image credential provider.
    pub image_credentials: Option<ImageCredentials>,
    /// Its network proxy, if that is tested.
    pub network_proxy: Option<NetworkProxy>,
    /// The drivers that in-tree volumes moved to, if a cluster is tested with them.
    pub csi_migration: Option<CsiMigration>,
}

/// The declarations about the shared framework `k8s.io/cloud-provider`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    /// Not built on it: rows of the contract with exact strings or timings are SHOULD.
    Other,
    /// Built on it: judged by the behaviour of this version.
    Version {
        /// The minor version, 36 for 1.36.
        minor: u32,
    },
}

impl Framework {
    /// Whether a feature of this minor version is expected: from CCMs of that version or a later one, and
    /// from those that are not built on the framework.
    pub fn has(&self, since: u32) -> bool {
        match self {
            Framework::Other => true,
            Framework::Version { minor } => *minor >= since,
        }
    }

    /// The version as text, if one is declared.
    pub fn version(&self) -> Option<String> {
        match self {
            Framework::Other => None,
            Framework::Version { minor } => Some(format!("1.{minor}")),
        }
    }
}

/// The source of a CCM's image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Image {
    /// Docker has it or can pull it.
    Reference(String),
    /// This program itself, with one of its commands.
    Command(CcmCommand),
    /// Built from a package of the workspace that contains the profile.
    Build(Build),
}

/// An image to build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// The package.
    pub package: String,
    /// Its binary.
    pub binary: String,
    /// Its features, sorted.
    pub features: BTreeSet<String>,
}

/// The format of provider ids: a text around the instance id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderIdFormat {
    before: String,
    after: String,
}

impl ProviderIdFormat {
    /// Parses a text that contains `{id}` once; `None` otherwise.
    pub fn new(format: &str) -> Option<ProviderIdFormat> {
        let (before, after) = format.split_once("{id}")?;
        Some(ProviderIdFormat { before: before.to_owned(), after: after.to_owned() })
    }

    /// The provider id of an instance.
    pub fn render(&self, instance: &str) -> String {
        format!("{}{instance}{}", self.before, self.after)
    }

    /// The instance id in a provider id, if it has this format and the id is not empty.
    pub fn instance<'a>(&self, provider_id: &'a str) -> Option<&'a str> {
        let instance = provider_id.strip_prefix(&self.before)?.strip_suffix(&self.after)?;
        (!instance.is_empty()).then_some(instance)
    }
}

impl fmt::Display for ProviderIdFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{{id}}{}", self.before, self.after)
    }
}

impl Profile {
    /// Names of the built-in profiles, sorted; without that of the mutants, which `controls` uses.
    pub fn built_in() -> Vec<String> {
        let mut names = files::built_in_folders_with(PROFILE_FILE);
        names.retain(|name| name != "mutants");
        names
    }

    /// The folder of its file; the working directory for a file that was given without a folder.
    pub fn folder(&self) -> &Path {
        match self.file.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        }
    }

    /// Which ids its cloud's machines may have, as far as that is known before the cloud runs: a driver
    /// reports it then.
    pub fn instance_ids(&self) -> InstanceIds {
        let dialect = self.cloud.dialect().and_then(dialects::find);
        dialect.map_or(InstanceIds::Text, |dialect| dialect.instance_ids)
    }

    /// The provider id of the machine with this name.
    pub fn provider_id_of(&self, machine: &str) -> String {
        self.provider_id.render(&self.instance_ids().make(machine))
    }

    /// Whether it describes a CCM.
    pub fn has_ccm(&self) -> bool {
        self.kind == ProfileKind::Profile
    }

    /// Its image credential provider, if it describes no CCM.
    pub(super) fn plugin_alone(&mut self) -> Option<&mut ImageCredentials> {
        if self.has_ccm() { None } else { self.image_credentials.as_mut() }
    }

    /// All declared capabilities that checks may need.
    pub fn declares(&self) -> BTreeSet<Capability> {
        let takes_tokens = self.image_credentials.as_ref().is_some_and(|plugin| plugin.takes_tokens);
        let tokens = takes_tokens.then_some(Capability::ServiceAccountTokens);
        if !self.has_ccm() {
            return tokens.into_iter().collect();
        }
        let mut all = self.capabilities.met();
        all.extend(tokens);
        all.extend((self.secure_port != 0).then_some(Capability::SecurePort));
        let elsewhere = self.capabilities.load_balancer && !self.implemented_elsewhere.is_empty();
        all.extend(elsewhere.then_some(Capability::ImplementedElsewhere));
        let annotated = self.capabilities.load_balancer && !self.annotation_effects.is_empty();
        all.extend(annotated.then_some(Capability::VendorAnnotations));
        let all_flags = FRAMEWORK_FLAGS.iter().all(|flag| self.accepts(flag));
        all.extend(all_flags.then_some(Capability::FrameworkFlags));
        all
    }

    /// Whether nothing is deployed: with the null profile, or a CCM that is already running.
    pub fn deploys_nothing(&self) -> bool {
        self.manifests.is_empty()
    }

    /// Whether its CCM runs on a management cluster.
    pub fn is_hosted(&self) -> bool {
        self.deployment == Deployment::Hosted && !self.deploys_nothing()
    }

    /// Whether the CCM accepts a flag, with or without dashes.
    pub fn accepts(&self, flag: &str) -> bool {
        self.accepted_flags.contains(flag.trim_start_matches('-'))
    }

    /// The speed-up flags that the CCM does not accept.
    pub(crate) fn refused_fast_flags(&self) -> Vec<&'static str> {
        FAST_FLAGS.iter().map(|(name, _)| *name).filter(|name| !self.accepts(name)).collect()
    }

    /// Whether the harness can set the period of its reconciliation of routes.
    pub(crate) fn takes_route_period(&self) -> bool {
        let Capabilities { routes, route_trigger, .. } = &self.capabilities;
        *routes && *route_trigger == RouteTrigger::Period && self.accepts(FAST_ROUTES.0)
    }

    /// Flag names of a profile: dashes are removed, and `framework` is replaced by the framework's flags.
    pub(crate) fn flag_names(listed: &[String]) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for flag in listed {
            match flag.trim_start_matches('-') {
                ALL_OF_FRAMEWORK => names.extend(FRAMEWORK_FLAGS.iter().map(|name| (*name).to_owned())),
                name => {
                    names.insert(name.to_owned());
                }
            }
        }
        names
    }
}

/// Whether an error says that there is no such file; other errors, such as a folder of another user, hide whether there is.
fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// What stands for all flags of the framework among those that a CCM accepts.
pub(crate) const ALL_OF_FRAMEWORK: &str = "framework";

/// A profile's file in its folder.
const PROFILE_FILE: &str = "profile.yaml";

/// The file of the profile with this name or at this path.
///
/// # Errors
/// There is none; the error lists the places that were searched.
pub(crate) fn find(name_or_path: &str) -> Result<PathBuf, String> {
    let path = Path::new(name_or_path);
    let names = Profile::built_in();
    let known = || {
        format!(
            "built in: {}; 'ccm-conformance init' writes a profile from the manifests of a CCM",
            names.join(", ")
        )
    };
    if looks_like_path(name_or_path) {
        let file = if path.is_dir() { path.join(PROFILE_FILE) } else { path.to_owned() };
        return match (std::fs::metadata(&file), path.is_dir()) {
            (Ok(about), _) if about.is_file() => Ok(file),
            (Err(error), _) if !is_absent(&error) => {
                Err(format!("{} cannot be read: {}", file.display(), files::why(&error)))
            }
            (_, true) => Err(format!("folder {name_or_path} has no {PROFILE_FILE}; {}", known())),
            (_, false) => Err(format!("there is no profile at {name_or_path}; {}", known())),
        };
    }
    let file = files::built_in(&format!("{name_or_path}/{PROFILE_FILE}"));
    if files::is_file(&file) {
        return Ok(file);
    }
    if path.join(PROFILE_FILE).is_file() {
        return Err(format!(
            "no built-in profile is called '{name_or_path}'; write './{name_or_path}' for the folder"
        ));
    }
    if path.exists() {
        let lacks = if path.is_dir() {
            format!("the folder ./{name_or_path} has no {PROFILE_FILE}")
        } else {
            format!("./{name_or_path} is a file: write it with the './'")
        };
        return Err(format!("'{name_or_path}' is not a built-in profile, and {lacks}; {}", known()));
    }
    let near = did_you_mean(name_or_path, &names);
    let link = if near.is_empty() { ";" } else { "" };
    Err(format!(
        "no built-in profile is called '{name_or_path}', and a path has a '/'{near}{link} {}",
        known()
    ))
}
