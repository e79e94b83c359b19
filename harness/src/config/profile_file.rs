//! The profile file: how a vendor describes a CCM, every key optional here. [`super::Profile`] says what it means.

use super::duration::HumanDuration;
use super::schema::{Key, Kind, key};
use super::words::{Budget, Deployment, Instances, Ownership, Protocol};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A profile file (`kind: Profile`). `fixtures/ccms/README.md` describes every key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProfileFile {
    /// `ccm-conformance/v1`.
    pub api_version: Option<String>,
    /// `Profile`.
    pub kind: Option<String>,
    /// The CCM's name.
    pub name: Option<String>,
    /// One sentence about it.
    pub description: Option<String>,
    /// Whether it is built on the shared framework, and on which version.
    #[serde(default)]
    pub framework: FrameworkKeys,
    /// Its image.
    pub image: Option<ImageKeys>,
    /// Its manifests: files and folders, relative to the profile.
    pub manifests: Option<Vec<String>>,
    /// Its workload among the manifests.
    #[serde(default)]
    pub workload: WorkloadKeys,
    /// What it speaks to the cloud.
    pub dialect: Option<String>,
    /// What it can do.
    pub capabilities: Option<CapabilityKeys>,
    /// Its lease.
    #[serde(default)]
    pub lease: LeaseKeys,
    /// The pace of its leader election without flags.
    #[serde(default)]
    pub lease_timing: LeaseTimingKeys,
    /// The port of `/healthz` and `/metrics`.
    pub secure_port: Option<u16>,
    /// Its flags.
    #[serde(default)]
    pub flags: FlagKeys,
    /// Its provider ids.
    #[serde(default)]
    pub provider_id: ProviderIdKeys,
    /// Where its machines are.
    #[serde(default)]
    pub location: LocationKeys,
    /// The order in which it reports addresses.
    pub address_order: Option<Vec<String>>,
    /// What of its load balancers says which Service they are for.
    pub load_balancer_owner: Option<Ownership>,
    /// How many replicas run.
    pub replicas: Option<u32>,
    /// Further `${NAME}` in its manifests.
    #[serde(default)]
    pub placeholders: BTreeMap<String, String>,
    /// Variables for its container.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Wait budgets of its own, by name.
    #[serde(default)]
    pub budgets: BTreeMap<Budget, HumanDuration>,
    /// Deviations its vendor documents.
    #[serde(default)]
    pub declared: Vec<DeclaredKeys>,
    /// Where it runs.
    pub deployment: Option<Deployment>,
}

macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name { $($(#[$field_doc])* pub $field: Option<$kind>,)+ }
    };
}

table! {
    /// `framework` of a profile.
    FrameworkKeys {
        /// Whether the exact strings and timings of the framework bind it.
        profile: bool,
        /// `1.<minor>`.
        version: String,
    }
}

table! {
    /// `image` of a profile: one of the two.
    ImageKeys {
        /// A reference that Docker can pull or has.
        reference: String,
        /// Built from a package of the workspace.
        build: BuildKeys,
    }
}

table! {
    /// `image.build` of a profile.
    BuildKeys {
        /// The package.
        package: String,
        /// Its binary.
        binary: String,
        /// Its features.
        features: Vec<String>,
    }
}

table! {
    /// `workload` of a profile.
    WorkloadKeys {
        /// Namespace of the Deployment or DaemonSet.
        namespace: String,
        /// Its name.
        name: String,
        /// The CCM's container in it.
        container: String,
    }
}

table! {
    /// `capabilities` of a profile.
    CapabilityKeys {
        /// The interface instances are looked up with.
        instances: Instances,
        /// Zones and regions.
        zones: bool,
        /// Load balancers.
        load_balancer: bool,
        /// Routes.
        routes: bool,
        /// `Clusters`.
        clusters: bool,
        /// Labels of the cloud's own.
        additional_labels: bool,
        /// `ipMode` in load balancer status.
        ip_mode: bool,
        /// Both IP families.
        dual_stack: bool,
        /// Protocols of load balancers.
        protocols: Vec<Protocol>,
        /// Session affinity.
        affinity: bool,
        /// `loadBalancerSourceRanges`.
        source_ranges: bool,
        /// Several Services on one load balancer.
        #[serde(rename = "sharedLB")]
        shared_lb: bool,
        /// Leader election.
        leader_election: bool,
    }
}

table! {
    /// `lease` of a profile.
    LeaseKeys {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    }
}

table! {
    /// `leaseTiming` of a profile.
    LeaseTimingKeys {
        /// Lease duration.
        duration: HumanDuration,
        /// Renew deadline.
        renew_deadline: HumanDuration,
        /// Retry period.
        retry_period: HumanDuration,
    }
}

table! {
    /// `flags` of a profile.
    FlagKeys {
        /// Flags it accepts; `framework` stands for all of the framework's.
        accepted: Vec<String>,
        /// Arguments it always gets.
        extra: Vec<String>,
    }
}

table! {
    /// `providerId` of a profile.
    ProviderIdKeys {
        /// The form, with `{id}` for the instance id.
        format: String,
    }
}

table! {
    /// `location` of a profile.
    LocationKeys {
        /// The region.
        region: String,
        /// The zone.
        zone: String,
    }
}

table! {
    /// An entry of `declared` of a profile.
    DeclaredKeys {
        /// The check's id.
        id: String,
        /// Why the CCM deviates.
        reason: String,
    }
}

impl ProfileFile {
    /// What `kind` says in a profile file.
    pub const KIND: &str = "Profile";
}

/// The dialects the fake cloud speaks.
pub(crate) const DIALECTS: &[&str] = fake_cloud::dialects::NAMES;

/// Types of Node addresses.
const ADDRESS_TYPES: &[&str] = &["Hostname", "InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS"];

/// Placeholders in manifests that the harness fills in itself; a profile cannot set them.
pub const OWN_PLACEHOLDERS: &[&str] = &["CLOUD_ENDPOINT", "CLOUD_TOKEN", "IMAGE"];

/// The keys of a profile file.
pub(crate) const KEYS: &[Key] = &[
    key("apiVersion", &Kind::Text),
    key("kind", &Kind::Text),
    key("name", &Kind::Form(name)),
    key("description", &Kind::Text),
    key(
        "framework",
        &Kind::Table(&[key("profile", &Kind::Switch), key("version", &Kind::Form(framework_version))]),
    ),
    key(
        "image",
        &Kind::Table(&[
            key("reference", &Kind::Form(image_reference)),
            key(
                "build",
                &Kind::Table(&[
                    key("package", &Kind::Form(name)),
                    key("binary", &Kind::Form(name)),
                    key("features", &Kind::List(&Kind::Form(name))),
                ]),
            ),
        ]),
    ),
    key("manifests", &Kind::List(&Kind::Text)),
    key(
        "workload",
        &Kind::Table(&[
            key("namespace", &Kind::Form(name)),
            key("name", &Kind::Form(name)),
            key("container", &Kind::Form(name)),
        ]),
    ),
    key("dialect", &Kind::Word(DIALECTS)),
    key(
        "capabilities",
        &Kind::Table(&[
            key("instances", &Kind::Word(Instances::WORDS)),
            key("zones", &Kind::Switch),
            key("loadBalancer", &Kind::Switch),
            key("routes", &Kind::Switch),
            key("clusters", &Kind::Switch),
            key("additionalLabels", &Kind::Switch),
            key("ipMode", &Kind::Switch),
            key("dualStack", &Kind::Switch),
            key("protocols", &Kind::List(&Kind::Word(Protocol::WORDS))),
            key("affinity", &Kind::Switch),
            key("sourceRanges", &Kind::Switch),
            key("sharedLB", &Kind::Switch),
            key("leaderElection", &Kind::Switch),
        ]),
    ),
    key("lease", &Kind::Table(&[key("namespace", &Kind::Form(name)), key("name", &Kind::Form(name))])),
    key(
        "leaseTiming",
        &Kind::Table(&[
            key("duration", &Kind::Form(super::run_file::duration)),
            key("renewDeadline", &Kind::Form(super::run_file::duration)),
            key("retryPeriod", &Kind::Form(super::run_file::duration)),
        ]),
    ),
    key("securePort", &Kind::Whole(0, 65_535)),
    key(
        "flags",
        &Kind::Table(&[
            key("accepted", &Kind::List(&Kind::Form(flag_name))),
            key("extra", &Kind::List(&Kind::Form(argument))),
        ]),
    ),
    key("providerId", &Kind::Table(&[key("format", &Kind::Form(provider_id))])),
    key("location", &Kind::Table(&[key("region", &Kind::Form(name)), key("zone", &Kind::Form(zone))])),
    key("addressOrder", &Kind::List(&Kind::Word(ADDRESS_TYPES))),
    key("loadBalancerOwner", &Kind::Word(Ownership::WORDS)),
    key("replicas", &Kind::Whole(1, 9)),
    key("placeholders", &Kind::Free(placeholder, &Kind::Text)),
    key("environment", &Kind::Free(variable, &Kind::Text)),
    key("budgets", &Kind::Free(super::run_file::budget_name, &Kind::Form(super::run_file::duration))),
    key(
        "declared",
        &Kind::List(&Kind::Table(&[key("id", &Kind::Form(check_id)), key("reason", &Kind::Text)])),
    ),
    key("deployment", &Kind::Word(Deployment::WORDS)),
];

fn accept(sound: bool, why: &str) -> Result<(), String> {
    if sound { Ok(()) } else { Err(why.to_owned()) }
}

fn name(text: &str) -> Result<(), String> {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let sound = text.chars().all(inner)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric());
    accept(
        sound,
        "a name has letters, digits, '-', '_' and '.' only and begins and ends with a letter or digit",
    )
}

/// A zone's name, or nothing where the CCM reports no zone.
fn zone(text: &str) -> Result<(), String> {
    if text.is_empty() { Ok(()) } else { name(text) }
}

fn framework_version(text: &str) -> Result<(), String> {
    super::profile::framework_minor(text).map(|_| ())
}

/// Checks the form of an image's reference.
pub(super) fn image_reference(text: &str) -> Result<(), String> {
    let sound =
        !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '$' | '\'' | '"'));
    accept(sound, "not an image reference; write e.g. 'registry.example/ccm:v1.2.3'")
}

fn flag_name(text: &str) -> Result<(), String> {
    let bare = text.trim_start_matches('-');
    let sound = !bare.is_empty() && bare.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    accept(
        sound,
        "not a flag's name; write e.g. 'node-status-update-frequency', without value, or 'framework'",
    )
}

fn argument(text: &str) -> Result<(), String> {
    accept(
        text.len() > 2 && text.starts_with("--"),
        "not an argument; write e.g. '--cluster-cidr=10.244.0.0/16'",
    )
}

fn provider_id(text: &str) -> Result<(), String> {
    if text.matches("{id}").count() != 1 {
        return Err(String::from("must hold '{id}' exactly once, e.g. 'native://{id}'"));
    }
    accept(
        text.contains("://") && !text.contains(char::is_whitespace),
        "must have the form '<provider>://...{id}'",
    )
}

fn placeholder(text: &str) -> Result<(), String> {
    if OWN_PLACEHOLDERS.contains(&text) {
        return Err(String::from("the harness fills this one in itself"));
    }
    let sound = text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    accept(
        sound,
        "a placeholder's name has capitals, digits and '_' only, e.g. 'CLUSTER_ID' for '${CLUSTER_ID}'",
    )
}

fn variable(text: &str) -> Result<(), String> {
    let sound = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    accept(sound, "not the name of an environment variable")
}

fn check_id(text: &str) -> Result<(), String> {
    let (row, claim) = text.split_once('.').unwrap_or((text, "all"));
    let of = |text: &str, letter: fn(&char) -> bool| {
        !text.is_empty() && text.chars().all(|c| letter(&c) || c.is_ascii_digit() || c == '-')
    };
    let sound = row.contains('-') && of(row, char::is_ascii_uppercase) && of(claim, char::is_ascii_lowercase);
    accept(sound, "not a check's id; write e.g. 'NODE-INIT-01'")
}
