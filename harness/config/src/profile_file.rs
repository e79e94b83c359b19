//! The profile file, with which a vendor describes a CCM. The keys, their meaning and their defaults are
//! defined only here: the schema, the table in `docs/profile-keys.md` and error messages are generated from
//! these types. [`super::Profile`] is the meaning of a profile.

use super::annotation_effects::AnnotationEffectKeys;
use super::capabilities::Capabilities;
use super::csi_migration::CsiMigrationKeys;
use super::duration::{HumanDuration, in_words};
use super::enums::{API_VERSION, AddressType, Budget, CcmCommand, Deployment, Ownership, ProfileKind};
use super::flags::LeaseTiming;
use super::formats::{
    AnnotationKey, Argument, CheckId, CredentialName, FlagName, FrameworkVersion, ImageReference, Name,
    Placeholder, ProviderIdText, Span, Variable, Zone,
};
use super::image_credentials::ImageCredentialKeys;
use super::limits::Limits;
use super::network_proxy::NetworkProxyKeys;
use super::schema::{Keyed, ordered};
use super::section_keys::required_without_ccm;
use fake_cloud_dialects::NAMES as DIALECTS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// A profile: the description of a CCM for the harness. Paths are relative to the profile. Durations have a unit
/// (`30s`).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Profile", transform = ordered::<Self>)]
#[schemars(extend("required" = ["apiVersion", "kind", "name"]))]
#[schemars(extend("if" = json!({"properties": {"kind": {"const": "Profile"}}})))]
#[schemars(extend("then" = json!({"required": ["manifests", "capabilities"]})))]
#[schemars(extend("else" = required_without_ccm()))]
pub(crate) struct ProfileFile {
    /// Version of this format.
    #[schemars(extend("const" = API_VERSION))]
    pub(crate) api_version: String,
    /// What this file describes.
    #[schemars(extend("x-missing" = "write 'kind: Profile'"))]
    pub(crate) kind: ProfileKind,
    /// The name in reports.
    #[schemars(with = "Name", example = &"acme", extend("x-missing" = "write the CCM's name"))]
    pub(crate) name: String,
    /// One sentence about the CCM.
    #[schemars(example = &"The CCM of Acme.")]
    pub(crate) description: String,
    /// Declarations about the shared framework `k8s.io/cloud-provider`.
    #[schemars(extend("x-default" = "not built on it"))]
    pub(crate) framework: FrameworkKeys,
    /// The image of the CCM, for `${IMAGE}` in the manifests: one of the next three. Not needed if the manifests name
    /// the image themselves.
    pub(crate) image: Option<ImageKeys>,
    /// Manifest files and folders, applied in this order. In a folder, every `.yaml`, `.yml` and `.json` file is
    /// applied, sorted by name. `[]` deploys nothing, for a CCM that is already running.
    #[schemars(example = ["manifests"])]
    #[schemars(extend("x-default" = "required of a CCM"))]
    pub(crate) manifests: Vec<String>,
    /// The Deployment or DaemonSet of the CCM in the manifests.
    #[schemars(extend("x-default" = "the only one in the manifests"))]
    pub(crate) workload: Option<Workload>,
    /// The cloud for the run: one of the next three, optionally with a proxy in front of it.
    #[schemars(extend("x-default" = "`{dialect: native}`"))]
    pub(crate) cloud: CloudKeys,
    /// What the CCM can do. Checks of undeclared capabilities do not apply.
    #[schemars(extend("x-default" = "required of a CCM"))]
    pub(crate) capabilities: Capabilities,
    /// The leader election Lease.
    pub(crate) lease: Lease,
    /// The timing of leader election if no flag sets it. Limits for failover follow from it. The duration must be
    /// longer than the renew deadline, and the renew deadline longer than 1.2 retry periods.
    pub(crate) lease_timing: LeaseTiming,
    /// Port of `/healthz` and `/metrics` (HTTPS); `0` if the CCM serves none. If `--bind-address` restricts the port to
    /// its own node, checks of it are 'not observable'.
    pub(crate) secure_port: u16,
    /// The number of Services, and of Nodes, that the CCM handles at the same time: the lower of
    /// `--concurrent-service-syncs` and `--concurrent-node-syncs`, both 1 by default. With less than 8, checks that
    /// keep a worker busy do not run together with others, and a run takes longer.
    #[schemars(range(min = 1, max = 1000), example = 16)]
    pub(crate) workers: u32,
    /// The command line flags of the CCM.
    pub(crate) flags: FlagKeys,
    /// The provider ids of the CCM.
    pub(crate) provider_id: ProviderIdKeys,
    /// The location of machines, in the terms of the cloud: for real Nodes, and for checks to which it does not matter.
    pub(crate) location: Location,
    /// The instance type that the CCM reports for every machine, if it does not use the type of the cloud. For example,
    /// it may derive the type from processors and memory, which are the same for all machines of a run.
    #[schemars(with = "Option<Name>", example = &"acme.cpu-1.mem-1gb", extend("x-default" = "the type of the cloud"))]
    pub(crate) instance_type: Option<String>,
    /// How long the CCM caches what it knows about a machine. Limits of checks that change a machine are longer by
    /// this.
    #[serde(with = "in_words")]
    #[schemars(with = "Span", example = &"60s")]
    pub(crate) instance_cache: Duration,
    /// The order in which the CCM reports address types, if it differs from the order of the cloud. With `InternalDNS`,
    /// it also reports the name of a machine as an address of that type.
    #[schemars(example = ["Hostname", "ExternalIP", "InternalIP"], extend("x-default" = "the cloud's"))]
    pub(crate) address_order: Vec<AddressType>,
    /// Address types that the CCM reports a second time under another type. For example, on a cloud without private
    /// addresses it may report the public address as `ExternalIP` and as `InternalIP`.
    #[schemars(with = "Keyed<AddressType, AddressType>")]
    #[schemars(example = BTreeMap::from([("ExternalIP", "InternalIP")]))]
    pub(crate) also_reported_as: BTreeMap<AddressType, AddressType>,
    /// What identifies the Service of a load balancer.
    pub(crate) load_balancer_owner: Ownership,
    /// Annotations for every Service of a check: those that users have to set, or that identify the Service of a load
    /// balancer. `${SERVICE}` is replaced by namespace and name of the Service, separated by a slash.
    #[schemars(with = "Keyed<AnnotationKey, String>")]
    #[schemars(example = BTreeMap::from([("acme.example/tags", "${SERVICE}")]))]
    pub(crate) service_annotations: BTreeMap<String, String>,
    /// Finalizers that the CCM adds to a Service, in addition to the one of Kubernetes
    /// (`service.kubernetes.io/load-balancer-cleanup`). Ignored without `loadBalancer`.
    #[schemars(with = "Vec<AnnotationKey>", example = ["acme.example/balancer"])]
    pub(crate) service_finalizers: Vec<String>,
    /// Annotations of the vendor that change a load balancer, by annotation (`*` below), each with two values. A check edits
    /// one value into the other and expects the effect. Ignored without `loadBalancer`.
    #[schemars(with = "Keyed<AnnotationKey, AnnotationEffectKeys>")]
    pub(crate) annotation_effects: BTreeMap<String, AnnotationEffectKeys>,
    /// Annotations that mark a Service whose load balancer another controller creates ("implemented elsewhere").
    /// Ignored without `loadBalancer`.
    #[schemars(with = "Keyed<AnnotationKey, String>")]
    #[schemars(example = BTreeMap::from([("acme.example/handled-by", "ingress")]))]
    pub(crate) implemented_elsewhere: BTreeMap<String, String>,
    /// The number of replicas.
    #[schemars(range(min = 1, max = 9), example = 3)]
    #[schemars(extend("x-default" = "`2` with leader election, otherwise `1`"))]
    pub(crate) replicas: Option<u32>,
    /// Values for further `${NAME}` in the manifests, in addition to those that the harness sets.
    #[schemars(with = "Keyed<Placeholder, String>", example = BTreeMap::from([("CLUSTER_ID", "demo")]))]
    pub(crate) placeholders: BTreeMap<String, String>,
    /// Environment variables for the container of the CCM. Values may contain `${NAME}`.
    #[schemars(with = "Keyed<Variable, String>")]
    #[schemars(example = BTreeMap::from([("ACME_URL", "${CLOUD_ENDPOINT}/v2")]))]
    pub(crate) environment: BTreeMap<String, String>,
    /// The image credential provider of the vendor, tested by the suite `image-credentials`.
    pub(crate) image_credentials: Option<ImageCredentialKeys>,
    /// The API server network proxy of the vendor, tested by the suite `network-proxy`.
    pub(crate) network_proxy: Option<NetworkProxyKeys>,
    /// Drivers that in-tree volumes moved to, for the suite `csi-migration`. Only with `kind: csi-migration`.
    pub(crate) csi_migration: Option<CsiMigrationKeys>,
    /// Wait budgets for this CCM, by name, if it is slower than others. A run file overrides them. A budget that is
    /// looser than the contract makes the result at most partial.
    #[schemars(with = "Keyed<Budget, Span>", example = BTreeMap::from([("life", "60s")]))]
    pub(crate) budgets: BTreeMap<Budget, HumanDuration>,
    /// Documented deviations, a list. The report shows them next to the outcome. A failed MUST stays a failed MUST.
    pub(crate) declared: Vec<Deviation>,
    /// Where the Pods of the CCM run. With `hosted`, they run on a management cluster that the harness creates next to
    /// the cluster under test, with the kubeconfig from `${KUBECONFIG}`.
    pub(crate) deployment: Deployment,
}

impl Default for ProfileFile {
    fn default() -> Self {
        ProfileFile {
            api_version: String::new(),
            kind: ProfileKind::Profile,
            name: String::new(),
            description: String::new(),
            framework: FrameworkKeys::default(),
            image: None,
            manifests: Vec::new(),
            workload: None,
            cloud: CloudKeys::default(),
            capabilities: Capabilities::default(),
            lease: Lease::default(),
            lease_timing: LeaseTiming::DEFAULT,
            secure_port: 10_258,
            workers: 1,
            flags: FlagKeys::default(),
            provider_id: ProviderIdKeys::default(),
            location: Location::default(),
            instance_type: None,
            instance_cache: Limits::INSTANCE_CACHE,
            address_order: Vec::new(),
            also_reported_as: BTreeMap::new(),
            load_balancer_owner: Ownership::Uid,
            service_annotations: BTreeMap::new(),
            service_finalizers: Vec::new(),
            annotation_effects: BTreeMap::new(),
            implemented_elsewhere: BTreeMap::new(),
            replicas: None,
            placeholders: BTreeMap::new(),
            environment: BTreeMap::new(),
            image_credentials: None,
            network_proxy: None,
            csi_migration: None,
            budgets: BTreeMap::new(),
            declared: Vec::new(),
            deployment: Deployment::InCluster,
        }
    }
}

/// `framework` of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub(crate) struct FrameworkKeys {
    /// Whether the CCM is built on the framework. If so, the exact strings and timings of the framework are MUST; for
    /// others these rows are SHOULD.
    #[schemars(extend("x-default" = "`true` with a version, otherwise `false`"))]
    pub(crate) profile: Option<bool>,
    /// The version of the framework. The CCM is judged by the behaviour of this version, whatever the version of the
    /// cluster.
    #[schemars(with = "FrameworkVersion", example = &"1.36")]
    #[schemars(extend("x-default" = "required with `framework.profile: true`"))]
    pub(crate) version: Option<String>,
}

/// `image` of a profile: one of the three.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub(crate) struct ImageKeys {
    /// An image that Docker has or can pull. `--image` and `image` in the run file override it.
    #[schemars(with = "ImageReference", example = &"registry.example/acme-ccm:v1.2.3")]
    pub(crate) reference: Option<String>,
    /// This program itself, with a command that is a CCM. For profiles of this project.
    pub(crate) command: Option<CcmCommand>,
    /// An image that is built from a package of the Cargo workspace that contains the profile.
    pub(crate) build: Option<BuildKeys>,
}

/// `image.build` of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>, extend("required" = ["package"]))]
pub(crate) struct BuildKeys {
    /// The package.
    #[schemars(with = "Name", example = &"acme-ccm", extend("x-missing" = "name the package to build"))]
    pub(crate) package: String,
    /// The binary of the package.
    #[schemars(with = "Name", extend("x-default" = "the package's name"))]
    pub(crate) binary: Option<String>,
    /// The features of the package.
    #[schemars(with = "BTreeSet<Name>", example = ["metrics"])]
    pub(crate) features: BTreeSet<String>,
}

/// `cloud` of a profile: one of the first three.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub(crate) struct CloudKeys {
    /// The fake cloud, with this dialect. `azure` and `gcp` are the HTTPS proxy of their clients at `${CLOUD_ENDPOINT}`, with
    /// a CA in the files `${CLOUD_CA}` and `${CLOUD_CA_BUNDLE}`.
    #[schemars(extend("enum" = DIALECTS))]
    pub(crate) dialect: Option<String>,
    /// A cloud or simulator of your own, through a driver that speaks the driver protocol (`docs/driver/openapi.json`):
    /// `url` with `tokenFile`, `command`, or `image`.
    pub(crate) driver: Option<DriverKeys>,
    /// A real cloud whose machines the cluster runs on (`--cluster existing`). The harness only reads it, and only the
    /// CCM changes it. Checks that need more are 'not observable'.
    pub(crate) real: Option<RealKeys>,
    /// A recording proxy between the CCM and this cloud, which provides request log (journal), faults and barriers.
    /// Each replica of the CCM has its own port, so that its calls are known without its credential.
    pub(crate) proxy: Option<ProxyKeys>,
}

/// `cloud.real` of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>, extend("required" = ["driver"]))]
pub(crate) struct RealKeys {
    /// A driver as above that reads the inventory of the cloud.
    #[schemars(extend("x-missing" = "name the driver that reads the cloud's inventory"))]
    pub(crate) driver: Option<DriverKeys>,
    /// Credentials for the CCM, for `${NAME}` in the manifests and in `environment`. All replicas share `CLOUD_TOKEN`.
    /// Each value is read from an environment variable of the harness (`env`) or from a file (`file`), and appears in
    /// no output.
    #[schemars(with = "Keyed<CredentialName, CredentialKeys>")]
    #[schemars(example = BTreeMap::from([("ACME_TOKEN", BTreeMap::from([("env", "ACME_TOKEN")]))]))]
    pub(crate) credentials: BTreeMap<String, CredentialKeys>,
}

/// A credential of `cloud.real`: one of the two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub(crate) struct CredentialKeys {
    /// The environment variable of the harness that contains it.
    pub(crate) env: Option<String>,
    /// The file that contains it.
    pub(crate) file: Option<String>,
}

/// `cloud.proxy` of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>, extend("required" = ["routes"]))]
pub(crate) struct ProxyKeys {
    /// The file that describes the calls of the cloud API (`ccm-conformance schema routes`).
    #[schemars(example = &"routes.yaml", extend("x-missing" = "name the file that says what the API's calls mean"))]
    pub(crate) routes: String,
    /// URL of the cloud API, as seen from this machine.
    #[schemars(example = &"https://127.0.0.1:5000", extend("x-default" = "the driver's `endpoint`"))]
    pub(crate) upstream: Option<String>,
    /// PEM certificates to verify the cloud, in addition to those that this machine trusts.
    #[schemars(example = &"ca.pem")]
    pub(crate) upstream_ca: Option<String>,
    /// Whether the CCM connects to the proxy with TLS. `${CLOUD_ENDPOINT}` is then an `https` URL, `${CLOUD_CA}` a file
    /// in the container of the CCM with the CA of the run, and `${CLOUD_CA_BUNDLE}` a file that also has the
    /// certificates of this machine.
    pub(crate) tls: bool,
    /// Whether the CCM reaches the proxy through the environment variable `HTTP_PROXY`, for an API that puts absolute URLs into
    /// its answers. `${CLOUD_ENDPOINT}` is then `http://cloud.ccm-conformance.internal`, a name that resolves nowhere, so
    /// that no call can go past the proxy. Not together with `tls`.
    pub(crate) http_proxy: bool,
}

/// `cloud.driver` of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub(crate) struct DriverKeys {
    /// The URL of a driver that is already running. It has only one cloud, so the run has only one cluster.
    #[schemars(example = &"http://127.0.0.1:8081")]
    pub(crate) url: Option<String>,
    /// The file with its token.
    #[schemars(example = &"driver.token")]
    pub(crate) token_file: Option<String>,
    /// A driver that is started and ended with each cloud of the run, in the folder of the profile. `${DRIVER_LISTEN}`
    /// is the address and port to listen at (port 0: any free port), and `${DRIVER_TOKEN_FILE}` the file with its
    /// token. When it is ready, it prints one line, `{"ready": true, "driver": "ADDRESS:PORT"}`.
    #[schemars(example = ["python3", "driver.py", "--listen", "${DRIVER_LISTEN}", "--token-file", "${DRIVER_TOKEN_FILE}"])]
    pub(crate) command: Option<Vec<String>>,
    /// An image whose container is the driver, started and removed with each cloud of the run. It uses the network of
    /// the cluster's machines, or that of this machine if the cluster is embedded, which then needs Docker as well. It
    /// prints the same line as a `command` when it is ready.
    #[schemars(with = "ImageReference", example = &"registry.example/acme-driver:v1")]
    pub(crate) image: Option<String>,
    /// Arguments for the entry point of the image.
    #[schemars(extend("x-default" = "`[--listen, ${DRIVER_LISTEN}, --token-file, ${DRIVER_TOKEN_FILE}]`"))]
    pub(crate) arguments: Option<Vec<String>>,
}

/// The workload that runs a CCM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>, extend("required" = ["name"]))]
pub struct Workload {
    /// Its namespace.
    #[schemars(with = "Name")]
    pub namespace: String,
    /// Its name.
    #[schemars(with = "Name", example = &"acme-ccm", extend("x-missing" = "name the Deployment or DaemonSet"))]
    pub name: String,
    /// The container of the CCM in the workload.
    #[schemars(with = "Name", example = &"manager", extend("x-default" = "the first"))]
    pub container: Option<String>,
}

impl Default for Workload {
    fn default() -> Self {
        Workload { namespace: String::from("kube-system"), name: String::new(), container: None }
    }
}

/// A leader election lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub struct Lease {
    /// Its namespace.
    #[schemars(with = "Name")]
    pub namespace: String,
    /// Its name.
    #[schemars(with = "Name")]
    pub name: String,
}

impl Default for Lease {
    fn default() -> Self {
        Lease { namespace: String::from("kube-system"), name: String::from("cloud-controller-manager") }
    }
}

impl fmt::Display for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// `flags` of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub(crate) struct FlagKeys {
    /// Flags that the CCM accepts, without values; the dashes are optional. `framework` stands for all flags of the
    /// framework. If the four flags of `timing: fast` are included, runs use fast timing.
    #[schemars(with = "Vec<FlagName>", example = ["framework", "acme-region"])]
    pub(crate) accepted: Vec<String>,
    /// Arguments that are always added to those in the manifests.
    #[schemars(with = "Vec<Argument>", example = ["--cluster-cidr=10.244.0.0/16"])]
    pub(crate) extra: Vec<String>,
}

/// `providerId` of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub(crate) struct ProviderIdKeys {
    /// The format of provider ids; `{id}` is the id of the instance in the cloud.
    #[schemars(with = "ProviderIdText", example = &"acme:///{id}", extend("x-default" = "`<dialect>://{id}`; required with a driver"))]
    pub(crate) format: Option<String>,
}

/// The location of a machine, in the cloud's terms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub struct Location {
    /// The region.
    #[schemars(with = "Name", example = &"fsn1")]
    pub region: String,
    /// The zone; `""` if the CCM reports none.
    #[schemars(with = "Zone", example = &"fsn1-dc14")]
    pub zone: String,
    /// Whether the CCM takes zone and region from a table or its configuration, and not from the machine, so that they
    /// are the same for every machine.
    pub fixed: bool,
}

impl Default for Location {
    fn default() -> Self {
        Location { region: String::from("region-1"), zone: String::from("zone-a"), fixed: false }
    }
}

/// A deviation that a vendor documents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>, extend("required" = ["id", "reason"]))]
pub struct Deviation {
    /// The check.
    #[schemars(with = "CheckId", example = &"SVC-DEL-01", extend("x-missing" = "name the check"))]
    pub id: String,
    /// Why the CCM deviates.
    #[schemars(example = &"Load balancers are deleted lazily.")]
    #[schemars(extend("x-missing" = "say why the CCM deviates"))]
    pub reason: String,
}
