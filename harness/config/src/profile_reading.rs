//! Converts a profile's text to its meaning: defaults, files, and faults that only show when keys are seen
//! together.

use super::capabilities::Capabilities;
use super::cloud_source::CloudSource;
use super::csi_migration;
use super::duration::HumanDuration;
use super::enums::{Instances, ProfileKind, RouteTrigger, Targets};
use super::flags::{FAST_FLAGS, FAST_ROUTES};
use super::formats::framework_minor;
use super::image_credentials;
use super::network_proxy;
use super::problem::{Origin, Problem, Problems, nearest};
use super::profile::{ALL_OF_FRAMEWORK, Build, Framework, Image, Profile, ProviderIdFormat, find};
use super::profile_file::{Deviation, ImageKeys, ProfileFile};
use super::schema::{self, keys};
use super::schema_check::{Places, walk};
use super::sections::{SECTIONS, Section};
use super::yaml::{self, Tree};
use harness_core::check::Party;
use harness_core::files;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The schema of a profile file.
pub(crate) static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of_file::<ProfileFile>);

impl Profile {
    /// Loads the profile with this name, or at this path (its folder or its file).
    ///
    /// # Errors
    /// There is none, or it is not valid; all its problems together.
    pub fn load(name_or_path: &str) -> Result<Profile, Problems> {
        let mut problems = Problems::default();
        let found = match find(name_or_path) {
            Ok(file) => read(&file, &Map::new(), &mut problems),
            Err(what) => {
                problems.file(Path::new(name_or_path), what);
                None
            }
        };
        match found {
            Some(profile) => problems.or(profile),
            None => Err(problems.sorted()),
        }
    }
}

/// Reads a profile, whose keys `over` overrides; `None` if too much is invalid. Faults are reported to `problems`.
pub(crate) fn read(file: &Path, over: &Map<String, Value>, problems: &mut Problems) -> Option<Profile> {
    let text = match files::read(file) {
        Ok(text) => text,
        Err(error) => {
            problems.file(file, format!("cannot be read: {error}"));
            return None;
        }
    };
    let mut root = yaml::tree(&text, file).map_err(|error| problems.yaml(error)).ok()?;
    if !matches!(root.tree, Tree::Map(_) | Tree::Null(_)) {
        // Then it has no keys of which any could be missing.
        walk(&root, &SCHEMA, Some(file), problems);
        return None;
    }
    root.tree.overlay(Tree::from(Value::Object(over.clone())));
    let (sound, places) = walk(&root, &SCHEMA, Some(file), problems);
    let written: ProfileFile = problems.typed(sound, file);
    let given = given(&root.tree);
    Some(Reading { file, places, problems, given }.profile(written))
}

/// The keys that a profile without a CCM may have in addition to its own.
const OF_ALL: &[&str] = &["apiVersion", "kind", "name", "description", "cloud", "budgets", "declared"];

fn given(tree: &Tree) -> BTreeSet<String> {
    let Tree::Map(entries) = tree else { return BTreeSet::new() };
    let given = entries.iter().filter(|(_, node)| !matches!(node.tree, Tree::Null(_)));
    given.map(|(key, _)| key.clone()).collect()
}

pub(super) struct Reading<'a> {
    pub(super) file: &'a Path,
    pub(super) places: Places,
    pub(super) problems: &'a mut Problems,
    /// The keys of the file that have a value.
    given: BTreeSet<String>,
}

impl Reading<'_> {
    pub(super) fn problem(&mut self, key: &str, what: impl Into<String>) {
        self.problems.0.push(Problem {
            origin: Origin::File { path: self.file.to_owned(), line: self.places.line(key) },
            key: key.to_owned(),
            what: what.into(),
        });
    }

    fn profile(mut self, written: ProfileFile) -> Profile {
        let has_ccm = self.kind(written.kind);
        let image_credentials = written.image_credentials.and_then(|keys| {
            let folder = self.folder();
            image_credentials::read(keys, &folder, |key, what| self.problem(key, what))
        });
        let network_proxy = written.network_proxy.and_then(|keys| {
            let (folder, listed) = (self.folder(), self.manifests("networkProxy.manifests", &keys.manifests));
            network_proxy::read(keys, listed, &folder, |key, what| self.problem(key, what))
        });
        let csi_migration = written.csi_migration.and_then(|keys| {
            let listed = self.manifests("csiMigration.manifests", &keys.manifests);
            csi_migration::read(keys, listed)
        });
        let framework = self.framework(written.framework.profile, written.framework.version.as_deref());
        let image = written.image.and_then(|image| self.image(image));
        let faulty = self.problems.0.iter().any(|problem| problem.key.starts_with("manifests"));
        if has_ccm && image.is_some() && written.manifests.is_empty() && !faulty {
            self.problem("image", "has no use without manifests");
        }
        let manifests = self.manifests("manifests", &written.manifests);
        let mut capabilities = written.capabilities;
        capabilities.leader_election &= has_ccm;
        self.capabilities(&capabilities);
        if let Some(fault) = written.lease_timing.fault() {
            self.problem("leaseTiming", fault);
        }
        self.accepted(&written.flags.accepted);
        self.arguments(&written.flags.extra);
        let cloud = self.cloud(written.cloud);
        let provider_id = self.provider_id(has_ccm, written.provider_id.format, &cloud);
        let replicas = written.replicas.unwrap_or(if capabilities.leader_election { 2 } else { 1 });
        if capabilities.leader_election && replicas < 2 {
            self.problem("replicas", "leader election shows with at least 2 replicas");
        }
        self.declared(&written.declared);
        let annotation_effects = self.annotation_effects(written.annotation_effects);
        Profile {
            name: written.name,
            description: written.description,
            file: self.file.to_owned(),
            framework,
            image,
            manifests,
            workload: written.workload,
            provider_id,
            cloud,
            capabilities,
            lease: written.lease,
            lease_timing: written.lease_timing,
            secure_port: if has_ccm { written.secure_port } else { 0 },
            workers: written.workers,
            accepted_flags: Profile::flag_names(&written.flags.accepted),
            extra_arguments: written.flags.extra,
            location: written.location,
            instance_type: written.instance_type,
            instance_cache: written.instance_cache,
            address_order: written.address_order,
            also_reported_as: written.also_reported_as,
            load_balancer_owner: written.load_balancer_owner,
            service_annotations: written.service_annotations,
            service_finalizers: written.service_finalizers,
            annotation_effects,
            implemented_elsewhere: written.implemented_elsewhere,
            replicas,
            placeholders: written.placeholders,
            environment: written.environment,
            budgets: written
                .budgets
                .into_iter()
                .map(|(budget, HumanDuration(limit))| (budget, limit))
                .collect(),
            declared: written.declared,
            deployment: written.deployment,
            kind: written.kind,
            image_credentials,
            network_proxy,
            csi_migration,
        }
    }

    /// Whether it describes a CCM; reports keys that are missing then, or have no effect.
    fn kind(&mut self, kind: ProfileKind) -> bool {
        let own = Section::of(kind);
        for (key, say) in own.required {
            if !self.given.contains(*key) {
                self.problem(key, format!("is missing; {say}"));
            }
        }
        let has_ccm = own.party == Party::Ccm;
        match has_ccm {
            true => self.without_lone_sections(),
            false => self.without_keys_of_a_ccm(own),
        }
        has_ccm
    }

    /// Reports sections that have no effect in the profile of a CCM.
    fn without_lone_sections(&mut self) {
        for section in SECTIONS.iter().filter(|section| section.alone) {
            if self.given.contains(section.key) {
                self.problem(section.key, format!("has a meaning only with 'kind: {}'", section.kind));
            }
        }
    }

    /// Reports keys that have no effect without a CCM.
    fn without_keys_of_a_ccm(&mut self, own: &Section) {
        let of_ccm = |key: &&str| !OF_ALL.contains(key) && *key != own.key && !own.shares.contains(key);
        for key in keys(&SCHEMA).map(|(key, _)| key).filter(of_ccm) {
            if self.places.has(key) {
                self.problem(key, format!("has no meaning with 'kind: {}'; it is of a CCM", own.kind));
            }
        }
    }

    fn provider_id(
        &mut self,
        has_ccm: bool,
        written: Option<String>,
        cloud: &CloudSource,
    ) -> ProviderIdFormat {
        let usual = cloud.dialect().map(|dialect| format!("{dialect}://{{id}}"));
        if has_ccm && usual.is_none() && written.is_none() {
            self.problem(
                "providerId.format",
                "is missing; with a driver no dialect says it: write e.g. 'acme://{id}'",
            );
        }
        let format = written.or(usual).unwrap_or_else(|| "{id}".to_owned());
        ProviderIdFormat::new(&format).expect("the schema and the default hold '{id}'")
    }

    /// Reports misspellings of `framework`, which stands for many flags.
    fn accepted(&mut self, listed: &[String]) {
        for (at, flag) in listed.iter().enumerate() {
            let near = nearest(flag, [ALL_OF_FRAMEWORK]).filter(|near| near != flag.trim_start_matches('-'));
            if let Some(near) = near {
                self.problem(
                    &format!("flags.accepted[{at}]"),
                    format!("'{flag}' would be one flag; did you mean '{near}', all flags of the framework?"),
                );
            }
        }
    }

    fn framework(&mut self, profile: Option<bool>, version: Option<&str>) -> Framework {
        let minor = version.and_then(|text| framework_minor(text).ok());
        match (profile, minor) {
            (Some(true) | None, Some(minor)) => return Framework::Version { minor },
            // An invalid version was already reported.
            (Some(true), None) if !self.places.has("framework.version") => {
                self.problem("framework.version", "is missing; name the framework's version, e.g. \"1.36\"")
            }
            (Some(false), Some(_)) => {
                self.problem("framework.version", "has no meaning with 'profile: false'");
            }
            (_, None) => {}
        }
        Framework::Other
    }

    fn image(&mut self, image: ImageKeys) -> Option<Image> {
        match (image.reference, image.command, image.build) {
            (Some(reference), None, None) => Some(Image::Reference(reference)),
            (None, Some(command), None) => Some(Image::Command(command)),
            (None, None, Some(build)) => {
                let binary = build.binary.unwrap_or_else(|| build.package.clone());
                Some(Image::Build(Build { package: build.package, binary, features: build.features }))
            }
            (None, None, None) => {
                let reported = self.problems.0.iter().any(|p| p.key.starts_with("image."));
                if !reported {
                    self.problem("image", "is empty; write 'reference', 'command' or 'build'");
                }
                None
            }
            _ => {
                self.problem("image", "has more than one of 'reference', 'command' and 'build'; keep one");
                None
            }
        }
    }

    /// The folder that paths are relative to.
    pub(super) fn folder(&self) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).to_owned()
    }

    fn manifests(&mut self, under: &str, listed: &[String]) -> Vec<PathBuf> {
        let folder = self.folder();
        let mut manifests = Vec::new();
        for (at, text) in listed.iter().enumerate() {
            let (key, path) = (format!("{under}[{at}]"), folder.join(text));
            if files::is_file(&path) {
                manifests.push(path);
                continue;
            }
            let mut inside: Vec<PathBuf> = match files::list(&path) {
                Ok(inside) => inside.into_iter().filter(|file| is_manifest(file)).collect(),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    self.problem(&key, format!("there is no file or folder {}", path.display()));
                    continue;
                }
                Err(error) => {
                    self.problem(&key, format!("{} cannot be read: {error}", path.display()));
                    continue;
                }
            };
            if inside.is_empty() {
                self.problem(
                    &key,
                    format!("the folder {} holds no .yaml, .yml or .json file", path.display()),
                );
            }
            manifests.append(&mut inside);
        }
        manifests
    }

    fn capabilities(&mut self, declared: &Capabilities) {
        // `[]` already shows it.
        let carries = self.places.has("capabilities.protocols") && !declared.protocols.is_empty();
        for (key, given) in [
            ("affinity", declared.affinity),
            ("sourceRanges", declared.source_ranges),
            ("sharedLB", declared.shared_lb),
            ("ipMode", declared.ip_mode),
            ("protocols", carries),
            ("targets", declared.targets != Targets::NodePorts),
        ] {
            if given && !declared.load_balancer {
                self.problem(&format!("capabilities.{key}"), "has no meaning without 'loadBalancer: true'");
            }
        }
        if declared.route_trigger != RouteTrigger::Period && !declared.routes {
            self.problem("capabilities.routeTrigger", "has no meaning without 'routes: true'");
        }
        if !declared.shutdown && declared.instances == Instances::V2 {
            let why = "InstancesV2 has to tell it; only interface 'v1' may leave it out";
            self.problem("capabilities.shutdown", why);
        }
        for (key, given) in [
            ("zones", declared.zones),
            ("regions", declared.regions == Some(true)),
            ("additionalLabels", declared.additional_labels),
        ] {
            // An invalid value is reported already.
            let is_invalid = || self.problems.0.iter().any(|problem| problem.key == "capabilities.instances");
            if given && declared.instances == Instances::None && !is_invalid() {
                self.problem(&format!("capabilities.{key}"), "has no meaning without 'instances'");
            }
        }
    }

    fn arguments(&mut self, extra: &[String]) {
        for (at, argument) in extra.iter().enumerate() {
            let name = argument.trim_start_matches('-').split('=').next().unwrap_or_default();
            if FAST_FLAGS.iter().chain([&FAST_ROUTES]).any(|(fast, _)| *fast == name) {
                let key = format!("flags.extra[{at}]");
                self.problem(&key, format!("the harness sets --{name} itself; see 'timing' of the run file"));
            }
        }
    }

    fn declared(&mut self, declared: &[Deviation]) {
        for (at, Deviation { id, .. }) in declared.iter().enumerate() {
            if !id.is_empty() && declared[..at].iter().any(|known| known.id == *id) {
                self.problem(&format!("declared[{at}].id"), format!("'{id}' is declared twice"));
            }
        }
    }
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json")
}
