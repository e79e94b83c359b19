//! The profile file: how a vendor describes a CCM. Keys, meaning and defaults are said here and nowhere else: the schema,
//! the table in `docs/profile.md` and what is said of mistakes come from these types. [`super::Profile`] is what
//! a profile means.

use super::capabilities::Capabilities;
use super::csi_migration::CsiMigrationKeys;
use super::duration::{HumanDuration, in_words};
use super::flags::LeaseTiming;
use super::forms::{
    AnnotationKey, Argument, CheckId, CredentialName, FlagName, FrameworkVersion, ImageReference, Name,
    Placeholder, ProviderIdText, Span, Variable, Zone,
};
use super::image_credentials::ImageCredentialKeys;
use super::limits::Limits;
use super::network_proxy::NetworkProxyKeys;
use super::schema::{Keyed, ordered};
use super::sections::required_without_ccm;
use super::words::{API_VERSION, AddressType, Budget, CcmCommand, Deployment, Ownership, ProfileKind};
use fake_cloud::dialects::NAMES as DIALECTS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// A profile: a CCM as it is described to the harness. Paths are relative to the profile, durations have a unit (`30s`).
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
    /// Its name in reports.
    #[schemars(with = "Name", example = &"acme", extend("x-missing" = "write the CCM's name"))]
    pub(crate) name: String,
    /// One sentence about it.
    #[schemars(example = &"The CCM of Acme.")]
    pub(crate) description: String,
    /// What it declares about the shared framework `k8s.io/cloud-provider`.
    #[schemars(extend("x-default" = "not built on it"))]
    pub(crate) framework: FrameworkKeys,
    /// Its image, for `${IMAGE}` in the manifests: one of the next three. Without it the manifests name the image
    /// themselves.
    pub(crate) image: Option<ImageKeys>,
    /// Manifest files and folders, applied in this order; of a folder every `.yaml`, `.yml` and `.json` file, by name.
    /// `[]` deploys nothing: for a CCM that runs already.
    #[schemars(example = ["manifests"])]
    #[schemars(extend("x-default" = "required of a CCM"))]
    pub(crate) manifests: Vec<String>,
    /// The CCM's Deployment or DaemonSet among the manifests.
    #[schemars(extend("x-default" = "the only one there"))]
    pub(crate) workload: Option<Workload>,
    /// The cloud it is run against: one of the next three, and perhaps a proxy before it.
    #[schemars(extend("x-default" = "`{dialect: native}`"))]
    pub(crate) cloud: CloudKeys,
    /// What it can do. Checks of what is not declared do not apply.
    #[schemars(extend("x-default" = "required of a CCM"))]
    pub(crate) capabilities: Capabilities,
    /// Its leader election lease.
    pub(crate) lease: Lease,
    /// The pace of its leader election when no flag says otherwise; limits for failover follow from it. The lease must
    /// outlast the renew deadline, and that 1.2 retry periods.
    pub(crate) lease_timing: LeaseTiming,
    /// Port of `/healthz` and `/metrics` (HTTPS); `0` when it serves none. Where `--bind-address` keeps it to its own node,
    /// checks of it are 'not observable'.
    pub(crate) secure_port: u16,
    /// On how many Services, and on how many Nodes, it works at the same time: the lower of the framework's
    /// `--concurrent-service-syncs` and `--concurrent-node-syncs`, both 1 unless set. With less than 8, checks that keep a
    /// worker busy do not run beside others, and a run takes longer.
    #[schemars(range(min = 1, max = 1000), example = 16)]
    pub(crate) workers: u32,
    /// Its command line flags.
    pub(crate) flags: FlagKeys,
    /// Its provider ids.
    pub(crate) provider_id: ProviderIdKeys,
    /// Where its machines are, in the cloud's words: real Nodes, and those of checks that do not care.
    pub(crate) location: Location,
    /// The type that it reports of every machine, where it makes that of something else than the cloud's own word for it: of
    /// processors and memory, say, which are the same for all machines of a run.
    #[schemars(with = "Option<Name>", example = &"acme.cpu-1.mem-1gb", extend("x-default" = "what the cloud says"))]
    pub(crate) instance_type: Option<String>,
    /// How old what it knows of a machine may be: it keeps what it has looked up for so long. Limits of checks that change a
    /// machine are longer by this.
    #[serde(with = "in_words")]
    #[schemars(with = "Span", example = &"60s")]
    pub(crate) instance_cache: Duration,
    /// The types of addresses in the order in which it reports them, where that is not the cloud's. With `InternalDNS` it
    /// reports a machine's name as an address of that type, too.
    #[schemars(example = ["Hostname", "ExternalIP", "InternalIP"], extend("x-default" = "the cloud's"))]
    pub(crate) address_order: Vec<AddressType>,
    /// What of its load balancers says which Service they are for.
    pub(crate) load_balancer_owner: Ownership,
    /// Annotations that every Service of a check carries: what users have to write to it, or by which a load balancer says
    /// which Service it is for. `${SERVICE}` is the Service's namespace and name with a slash between them.
    #[schemars(with = "Keyed<AnnotationKey, String>")]
    #[schemars(example = BTreeMap::from([("acme.example/tags", "${SERVICE}")]))]
    pub(crate) service_annotations: BTreeMap<String, String>,
    /// Annotations by which it knows a Service whose load balancer somebody else makes ("implemented elsewhere"), where
    /// there are such. Without `loadBalancer` they say nothing.
    #[schemars(with = "Keyed<AnnotationKey, String>")]
    #[schemars(example = BTreeMap::from([("acme.example/handled-by", "ingress")]))]
    pub(crate) implemented_elsewhere: BTreeMap<String, String>,
    /// Replicas that run.
    #[schemars(range(min = 1, max = 9), example = 3)]
    #[schemars(extend("x-default" = "`2` with leader election, else `1`"))]
    pub(crate) replicas: Option<u32>,
    /// Values for further `${NAME}` in the manifests, besides those the harness fills in (see below).
    #[schemars(with = "Keyed<Placeholder, String>", example = BTreeMap::from([("CLUSTER_ID", "demo")]))]
    pub(crate) placeholders: BTreeMap<String, String>,
    /// Variables for the CCM's container; values may hold `${NAME}`.
    #[schemars(with = "Keyed<Variable, String>")]
    #[schemars(example = BTreeMap::from([("ACME_URL", "${CLOUD_ENDPOINT}/v2")]))]
    pub(crate) environment: BTreeMap<String, String>,
    /// Its image credential provider, which the suite `image-credentials` judges.
    pub(crate) image_credentials: Option<ImageCredentialKeys>,
    /// Its network proxy for API servers, which the suite `network-proxy` judges.
    pub(crate) network_proxy: Option<NetworkProxyKeys>,
    /// Drivers that in-tree volumes moved to, by which the suite `csi-migration` judges a cluster; of `kind: csi-migration` alone.
    pub(crate) csi_migration: Option<CsiMigrationKeys>,
    /// Wait budgets of its own by name: how long it may take for what others do faster. A run file wins over it. One
    /// that is looser than the contract makes the result at most partial.
    #[schemars(with = "Keyed<Budget, Span>", example = BTreeMap::from([("life", "60s")]))]
    pub(crate) budgets: BTreeMap<Budget, HumanDuration>,
    /// Deviations you document. The report shows them beside the outcome; a failed MUST stays a failed MUST.
    pub(crate) declared: Vec<Deviation>,
    /// Where its Pods run. `hosted`: on a management cluster, which the harness makes beside the cluster under test, with the
    /// kubeconfig that the manifests take from `${KUBECONFIG}` (see below).
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
            load_balancer_owner: Ownership::Uid,
            service_annotations: BTreeMap::new(),
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
    /// Whether it is built on the framework. Then the framework's exact strings and timings bind it; for others these
    /// rows are SHOULD.
    #[schemars(extend("x-default" = "`true` with a version, else `false`"))]
    pub(crate) profile: Option<bool>,
    /// The framework's version. It is judged by the behaviour of this version, whatever the cluster's is.
    #[schemars(with = "FrameworkVersion", example = &"1.36")]
    #[schemars(extend("x-default" = "required with `framework.profile: true`"))]
    pub(crate) version: Option<String>,
}

/// `image` of a profile: one of the three.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub(crate) struct ImageKeys {
    /// An image that Docker has or can pull; `--image` and the run file's `image` put another in its place.
    #[schemars(with = "ImageReference", example = &"registry.example/acme-ccm:v1.2.3")]
    pub(crate) reference: Option<String>,
    /// This program itself under a command that is a CCM; for the project's own.
    pub(crate) command: Option<CcmCommand>,
    /// An image built from a package of the Cargo workspace that the profile is in.
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
    /// Its binary.
    #[schemars(with = "Name", extend("x-default" = "the package's name"))]
    pub(crate) binary: Option<String>,
    /// Its features.
    #[schemars(with = "BTreeSet<Name>", example = ["metrics"])]
    pub(crate) features: BTreeSet<String>,
}

/// `cloud` of a profile: one of the first three.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub(crate) struct CloudKeys {
    /// The fake cloud, which answers in this dialect.
    #[schemars(extend("enum" = DIALECTS))]
    pub(crate) dialect: Option<String>,
    /// A cloud or simulator of your own behind a driver, which speaks the driver protocol (`docs/driver/openapi.json`): `url`
    /// with `tokenFile`, `command`, or `image`.
    pub(crate) driver: Option<DriverKeys>,
    /// A real cloud, on whose machines the cluster already runs (`--cluster existing`). It is looked at and nothing is put into it
    /// but what the CCM makes; checks that need more are 'not observable'.
    pub(crate) real: Option<RealKeys>,
    /// A recording proxy between the CCM and this cloud, of which journal, faults and barriers then are. Each replica of the
    /// CCM has a port of its own, so that its calls are known without its credential.
    pub(crate) proxy: Option<ProxyKeys>,
}

/// `cloud.real` of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>, extend("required" = ["driver"]))]
pub(crate) struct RealKeys {
    /// By whose eyes it is seen: a driver as above, of which the inventory is asked.
    #[schemars(extend("x-missing" = "name the driver that reads the cloud's inventory"))]
    pub(crate) driver: Option<DriverKeys>,
    /// What the CCM needs to be let in, for `${NAME}` in the manifests and in `environment`; `CLOUD_TOKEN` is every replica's. Each is
    /// taken from a variable of the harness's (`env`) or from a file (`file`), and stands in no output.
    #[schemars(with = "Keyed<CredentialName, CredentialKeys>")]
    #[schemars(example = BTreeMap::from([("ACME_TOKEN", BTreeMap::from([("env", "ACME_TOKEN")]))]))]
    pub(crate) credentials: BTreeMap<String, CredentialKeys>,
}

/// A credential of `cloud.real`: one of the two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub(crate) struct CredentialKeys {
    /// The variable of the harness's environment that holds it.
    pub(crate) env: Option<String>,
    /// The file that holds it.
    pub(crate) file: Option<String>,
}

/// `cloud.proxy` of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>, extend("required" = ["routes"]))]
pub(crate) struct ProxyKeys {
    /// The file that says what the calls of the cloud's API mean (`ccm-conformance schema routes`).
    #[schemars(example = &"routes.yaml", extend("x-missing" = "name the file that says what the API's calls mean"))]
    pub(crate) routes: String,
    /// URL of the cloud's API, as this machine reaches it.
    #[schemars(example = &"https://127.0.0.1:5000", extend("x-default" = "the driver's `endpoint`"))]
    pub(crate) upstream: Option<String>,
    /// Certificates in PEM by which the cloud is known, beside those that this machine trusts.
    #[schemars(example = &"ca.pem")]
    pub(crate) upstream_ca: Option<String>,
    /// The CCM speaks TLS to it: `${CLOUD_ENDPOINT}` is an `https` URL then, `${CLOUD_CA}` a file in the CCM's container with
    /// the CA of the run, `${CLOUD_CA_BUNDLE}` one with this machine's as well.
    pub(crate) tls: bool,
}

/// `cloud.driver` of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub(crate) struct DriverKeys {
    /// Where a driver listens that runs already. It holds one cloud, so the run has one cluster.
    #[schemars(example = &"http://127.0.0.1:8081")]
    pub(crate) url: Option<String>,
    /// The file that holds its token.
    #[schemars(example = &"driver.token")]
    pub(crate) token_file: Option<String>,
    /// A driver that is started and ended with each cloud of the run, in the profile's folder. `${DRIVER_LISTEN}` is the
    /// address and port where it is to listen (port 0: any free one), `${DRIVER_TOKEN_FILE}` the file that holds its token.
    /// Once it answers it prints one line, `{"ready": true, "driver": "ADDRESS:PORT"}`.
    #[schemars(example = ["python3", "driver.py", "--listen", "${DRIVER_LISTEN}", "--token-file", "${DRIVER_TOKEN_FILE}"])]
    pub(crate) command: Option<Vec<String>>,
    /// An image whose container is the driver, started and removed with each cloud of the run: on the network of the cluster's
    /// machines, or on this machine's own where the cluster is embedded, which then needs Docker, too. It says that it
    /// answers as a `command` does.
    #[schemars(with = "ImageReference", example = &"registry.example/acme-driver:v1")]
    pub(crate) image: Option<String>,
    /// What the image's entry point is told.
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
    /// The CCM's container in it.
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
    /// Flags it accepts, without values; dashes may be left out. `framework` stands for all flags of the framework. With
    /// the four flags of `timing: fast` among them, runs use that.
    #[schemars(with = "Vec<FlagName>", example = ["framework", "acme-region"])]
    pub(crate) accepted: Vec<String>,
    /// Arguments it always gets beyond those in its manifests.
    #[schemars(with = "Vec<Argument>", example = ["--cluster-cidr=10.244.0.0/16"])]
    pub(crate) extra: Vec<String>,
}

/// `providerId` of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub(crate) struct ProviderIdKeys {
    /// Their form; `{id}` is the instance's id in the cloud.
    #[schemars(with = "ProviderIdText", example = &"acme:///{id}", extend("x-default" = "`<dialect>://{id}`; with a driver it has to be given"))]
    pub(crate) format: Option<String>,
}

/// Where a machine is, in the cloud's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub struct Location {
    /// The region.
    #[schemars(with = "Name", example = &"fsn1")]
    pub region: String,
    /// The zone; `""` when the CCM reports none.
    #[schemars(with = "Zone", example = &"fsn1-dc14")]
    pub zone: String,
    /// It takes zone and region from a table or its configuration and not from the machine: they are these for every
    /// machine.
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
