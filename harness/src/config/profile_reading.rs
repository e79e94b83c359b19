//! From a profile's text to its meaning: defaults, files, and what only shows when keys are seen together.

use super::capabilities::Capabilities;
use super::duration::HumanDuration;
use super::flags::{FAST_FLAGS, LeaseTiming};
use super::problem::{Origin, Problem, Problems};
use super::profile::{
    Build, Deviation, Framework, Image, Lease, Location, Profile, ProviderIdFormat, Workload, framework_minor,
};
use super::profile_file::{CapabilityKeys, DIALECTS, ImageKeys, KEYS, ProfileFile};
use super::schema::{self, Places};
use super::words::{Deployment, Instances, Ownership, Protocol};
use super::yaml;
use crate::files;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Reads a profile; `None` when too little of it is sound to go on. What is wrong goes to `problems`.
pub(crate) fn read(file: &Path, problems: &mut Problems) -> Option<Profile> {
    let text = match files::read(file) {
        Ok(text) => text,
        Err(error) => {
            problems.file(file, format!("cannot be read: {error}"));
            return None;
        }
    };
    let root = yaml::tree(&text, file).map_err(|error| problems.yaml(error)).ok()?;
    let (sound, places) = schema::walk(&root, KEYS, Some(file), problems);
    schema::header(&sound, ProfileFile::KIND, &places, file, problems);
    let written: ProfileFile = problems.typed(sound, file);
    Some(Reading { file, places, problems }.profile(written))
}

struct Reading<'a> {
    file: &'a Path,
    places: Places,
    problems: &'a mut Problems,
}

impl Reading<'_> {
    fn problem(&mut self, key: &str, what: impl Into<String>) {
        self.problems.0.push(Problem {
            origin: Origin::File { path: self.file.to_owned(), line: self.places.line(key) },
            key: key.to_owned(),
            what: what.into(),
        });
    }

    /// The value of a key that must be there. A fault of form under it was reported already.
    fn required<T>(&mut self, key: &str, value: Option<T>, say: &str) -> Option<T> {
        let refused = self.problems.has(self.file, key);
        if value.is_none() && !refused {
            self.problem(key, format!("is missing; {say}"));
        }
        value
    }

    fn profile(mut self, written: ProfileFile) -> Profile {
        let name = self.required("name", written.name, "write the CCM's name").unwrap_or_default();
        let framework = self.framework(written.framework.profile, written.framework.version.as_deref());
        let image = written.image.and_then(|image| self.image(image));
        let say = "list the CCM's manifests ('[]' deploys nothing)";
        let listed = self.required("manifests", written.manifests, say).unwrap_or_default();
        if image.is_some() && listed.is_empty() {
            self.problem("image", "has no use without manifests");
        }
        let manifests = self.manifests(&listed);
        let workload =
            self.workload(written.workload.namespace, written.workload.name, written.workload.container);
        let say = "say what the CCM can do, e.g. 'instances: v2'";
        let capabilities = self.required("capabilities", written.capabilities, say).unwrap_or_default();
        let capabilities = self.capabilities(capabilities);
        let default = LeaseTiming::DEFAULT;
        let timing = written.lease_timing;
        let lease_timing = LeaseTiming {
            duration: timing.duration.map_or(default.duration, |d| d.0),
            renew_deadline: timing.renew_deadline.map_or(default.renew_deadline, |d| d.0),
            retry_period: timing.retry_period.map_or(default.retry_period, |d| d.0),
        };
        if let Some(fault) = lease_timing.fault() {
            self.problem("leaseTiming", fault);
        }
        let extra_arguments = written.flags.extra.unwrap_or_default();
        self.arguments(&extra_arguments);
        let dialect = written.dialect.unwrap_or_else(|| DIALECTS[0].to_owned());
        let format = written.provider_id.format.unwrap_or_else(|| format!("{dialect}://{{id}}"));
        let replicas = written.replicas.unwrap_or(if capabilities.leader_election { 2 } else { 1 });
        if capabilities.leader_election && replicas < 2 {
            self.problem("replicas", "leader election shows with at least 2 replicas");
        }
        let declared = self.declared(written.declared);
        Profile {
            name,
            description: written.description.unwrap_or_default(),
            file: self.file.to_owned(),
            framework,
            image,
            manifests,
            workload,
            provider_id: ProviderIdFormat::new(&format).expect("the schema and the default hold '{id}'"),
            dialect,
            capabilities,
            lease: Lease {
                namespace: written.lease.namespace.unwrap_or_else(|| String::from("kube-system")),
                name: written.lease.name.unwrap_or_else(|| String::from("cloud-controller-manager")),
            },
            lease_timing,
            secure_port: written.secure_port.unwrap_or(10_258),
            accepted_flags: Profile::flag_names(&written.flags.accepted.unwrap_or_default()),
            extra_arguments,
            location: Location {
                region: written.location.region.unwrap_or_else(|| String::from("region-1")),
                zone: written.location.zone.unwrap_or_else(|| String::from("zone-a")),
            },
            address_order: written.address_order.unwrap_or_default(),
            load_balancer_owner: written.load_balancer_owner.unwrap_or(Ownership::Uid),
            replicas,
            placeholders: written.placeholders,
            environment: written.environment,
            budgets: written
                .budgets
                .into_iter()
                .map(|(budget, HumanDuration(limit))| (budget, limit))
                .collect(),
            declared,
            deployment: written.deployment.unwrap_or(Deployment::InCluster),
        }
    }

    fn framework(&mut self, profile: Option<bool>, version: Option<&str>) -> Framework {
        let minor = version.and_then(|text| framework_minor(text).ok());
        match (profile, minor) {
            (Some(true) | None, Some(minor)) => Framework::Version { minor },
            (Some(true), None) => {
                self.required::<()>("framework.version", None, "name the framework's version, e.g. \"1.36\"");
                Framework::Other
            }
            (Some(false), Some(_)) => {
                self.problem("framework.version", "has no meaning with 'profile: false'");
                Framework::Other
            }
            (Some(false) | None, None) => Framework::Other,
        }
    }

    fn image(&mut self, image: ImageKeys) -> Option<Image> {
        match (image.reference, image.command, image.build) {
            (Some(reference), None, None) => Some(Image::Reference(reference)),
            (None, Some(command), None) => Some(Image::Command(command)),
            (None, None, Some(build)) => {
                let package =
                    self.required("image.build.package", build.package, "name the package to build")?;
                let binary = build.binary.unwrap_or_else(|| package.clone());
                let features = build.features.unwrap_or_default().into_iter().collect();
                Some(Image::Build(Build { package, binary, features }))
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

    fn manifests(&mut self, listed: &[String]) -> Vec<PathBuf> {
        let folder = self.file.parent().unwrap_or(Path::new("")).to_owned();
        let mut manifests = Vec::new();
        for (at, text) in listed.iter().enumerate() {
            let (key, path) = (format!("manifests[{at}]"), folder.join(text));
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

    fn workload(
        &mut self,
        namespace: Option<String>,
        name: Option<String>,
        container: Option<String>,
    ) -> Option<Workload> {
        if name.is_none() && (namespace.is_some() || container.is_some()) {
            self.required::<()>("workload.name", None, "name the Deployment or DaemonSet");
        }
        let namespace = namespace.unwrap_or_else(|| String::from("kube-system"));
        name.map(|name| Workload { namespace, name, container })
    }

    fn capabilities(&mut self, keys: CapabilityKeys) -> Capabilities {
        let on = |flag: Option<bool>| flag.unwrap_or(false);
        let load_balancer = on(keys.load_balancer);
        for (key, given) in [
            ("affinity", on(keys.affinity)),
            ("sourceRanges", on(keys.source_ranges)),
            ("sharedLB", on(keys.shared_lb)),
            ("ipMode", on(keys.ip_mode)),
            ("protocols", keys.protocols.is_some()),
        ] {
            if given && !load_balancer {
                self.problem(&format!("capabilities.{key}"), "has no meaning without 'loadBalancer: true'");
            }
        }
        let instances = keys.instances.unwrap_or(Instances::None);
        for (key, given) in [("zones", on(keys.zones)), ("additionalLabels", on(keys.additional_labels))] {
            if given && instances == Instances::None {
                self.problem(&format!("capabilities.{key}"), "has no meaning without 'instances'");
            }
        }
        let protocols = keys.protocols.map_or_else(|| BTreeSet::from([Protocol::Tcp]), BTreeSet::from_iter);
        Capabilities {
            instances,
            zones: on(keys.zones),
            load_balancer,
            routes: on(keys.routes),
            clusters: on(keys.clusters),
            additional_labels: on(keys.additional_labels),
            ip_mode: on(keys.ip_mode),
            dual_stack: on(keys.dual_stack),
            protocols,
            affinity: on(keys.affinity),
            source_ranges: on(keys.source_ranges),
            shared_lb: on(keys.shared_lb),
            leader_election: keys.leader_election.unwrap_or(true),
        }
    }

    fn arguments(&mut self, extra: &[String]) {
        for (at, argument) in extra.iter().enumerate() {
            let name = argument.trim_start_matches('-').split('=').next().unwrap_or_default();
            if FAST_FLAGS.iter().any(|(fast, _)| *fast == name) {
                let key = format!("flags.extra[{at}]");
                self.problem(&key, format!("the harness sets --{name} itself; see 'timing' of the run file"));
            }
        }
    }

    fn declared(&mut self, written: Vec<super::profile_file::DeclaredKeys>) -> Vec<Deviation> {
        let mut declared: Vec<Deviation> = Vec::new();
        for (at, entry) in written.into_iter().enumerate() {
            let id = self.required(&format!("declared[{at}].id"), entry.id, "name the check");
            let reason =
                self.required(&format!("declared[{at}].reason"), entry.reason, "say why the CCM deviates");
            let (Some(id), Some(reason)) = (id, reason) else { continue };
            if declared.iter().any(|known| known.id == id) {
                self.problem(&format!("declared[{at}].id"), format!("'{id}' is declared twice"));
            } else {
                declared.push(Deviation { id, reason });
            }
        }
        declared
    }
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json")
}
