//! `imageCredentials` of a profile: a vendor's image credential provider, as keys and as their meaning.

use super::duration::HumanDuration;
use super::formats::{AnnotationKey, Name, RegistryImage, Span, Variable};
use super::schema::{Keyed, ordered};
use super::yaml;
use harness_core::files;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `imageCredentials` of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>, extend("required" = ["config", "images"]))]
pub(crate) struct ImageCredentialKeys {
    /// The kubelet configuration of the provider, a file or a folder (`--image-credential-provider-config`). Arguments,
    /// variables, versions and durations are taken from it.
    #[schemars(example = &"credential-provider-config.yaml")]
    #[schemars(extend("x-missing" = "name the kubelet's CredentialProviderConfig"))]
    pub(crate) config: String,
    /// The folder of the program, which has the name of the provider (`--image-credential-provider-bin-dir`).
    #[schemars(example = &"bin", extend("x-default" = "this or `command` is required"))]
    pub(crate) bin_dir: Option<String>,
    /// The program and its first arguments, if it is not a file with the name of the provider. `${PROGRAM}` is this
    /// program.
    #[schemars(example = ["./acme-credentials", "get"])]
    pub(crate) command: Option<Vec<String>>,
    /// Which provider of the configuration is tested.
    #[schemars(with = "Name", example = &"acme-credential-provider", extend("x-default" = "the only one"))]
    pub(crate) provider: Option<String>,
    /// Images for which the provider has credentials, without tag and digest. Two or more show for which images an
    /// answer is cached.
    #[schemars(with = "Vec<RegistryImage>", example = ["registry.acme.example/team/app"])]
    #[schemars(extend("x-missing" = "list images for which it has credentials"))]
    pub(crate) images: Option<Vec<String>>,
    /// Images that match its `matchImages`, but for which it has no credentials.
    #[schemars(with = "Vec<RegistryImage>", example = ["registry.acme.example/unknown/app"])]
    pub(crate) without: Vec<String>,
    /// Further API versions that it supports.
    #[schemars(example = ["credentialprovider.kubelet.k8s.io/v1beta1"])]
    pub(crate) api_versions: Vec<String>,
    /// Environment variables in addition to those of the configuration. `${CLOUD_ENDPOINT}` is the URL of the cloud of
    /// the run, or of a failing one in its place, and `${CLOUD_TOKEN}` a credential for it.
    #[schemars(with = "Keyed<Variable, String>")]
    #[schemars(example = BTreeMap::from([("ACME_URL", "${CLOUD_ENDPOINT}/v2")]))]
    pub(crate) environment: BTreeMap<String, String>,
    /// The minimum lifetime of a credential; no credential may be cached for longer.
    #[schemars(with = "Span", example = &"12h")]
    pub(crate) credential_lifetime: Option<HumanDuration>,
    /// The service account of the requests, if the configuration has `tokenAttributes`.
    pub(crate) service_account: ServiceAccountKeys,
}

/// `imageCredentials.serviceAccount` of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub(crate) struct ServiceAccountKeys {
    /// The file with its token.
    #[schemars(example = &"token", extend("x-default" = "an unsigned token"))]
    pub(crate) token_file: Option<String>,
    /// Its annotations.
    #[schemars(with = "Keyed<AnnotationKey, String>")]
    #[schemars(example = BTreeMap::from([("acme.example/role", "puller")]))]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// An image credential provider under test.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageCredentials {
    /// Its kubelet configuration, a file or a folder.
    pub config: PathBuf,
    /// Its program.
    pub program: PluginProgram,
    /// Its name in the configuration; `None` if there is only one provider.
    pub provider: Option<String>,
    /// Images for which it has credentials.
    pub images: Vec<String>,
    /// Images for which it is called but has no credentials.
    pub without: Vec<String>,
    /// Versions that it supports in addition to that of the configuration.
    pub api_versions: Vec<String>,
    /// Its environment variables in addition to those of the configuration.
    pub environment: BTreeMap<String, String>,
    /// The minimum lifetime of a credential, if known.
    pub credential_lifetime: Option<Duration>,
    /// The file with the token of the service account in requests.
    pub token_file: Option<PathBuf>,
    /// The annotations of that service account.
    pub annotations: BTreeMap<String, String>,
    /// Whether the configuration passes tokens of service accounts to it.
    pub takes_tokens: bool,
}

/// The location of a plugin's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginProgram {
    /// In this folder, with the provider's name.
    In(PathBuf),
    /// This program and its first arguments.
    Line(Vec<String>),
}

impl fmt::Display for ImageCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.program {
            PluginProgram::In(folder) => write!(f, "of {} in {}", self.config.display(), folder.display()),
            PluginProgram::Line(line) => write!(f, "'{}' with {}", line.join(" "), self.config.display()),
        }
    }
}

impl ImageCredentials {
    /// Replaces its program by `program`, keeping its first arguments. Returns `None`, so that no other component
    /// uses the program.
    pub(super) fn by_program(&mut self, program: Option<PathBuf>) -> Option<PathBuf> {
        let program = program?;
        // It is executed in another folder.
        let program = program.canonicalize().unwrap_or(program).to_string_lossy().into_owned();
        let arguments = match &self.program {
            PluginProgram::In(_) => &[],
            PluginProgram::Line(line) => line.get(1..).unwrap_or_default(),
        };
        self.program = PluginProgram::Line([&[program], arguments].concat());
        None
    }
}

/// The placeholder for this program in a command.
pub const PROGRAM: &str = "${PROGRAM}";

/// Converts the keys of a plugin, in the profile in this folder, to their meaning; `None` if too much is
/// invalid. Faults are reported to `problem`, by key.
pub(super) fn read(
    written: ImageCredentialKeys,
    folder: &Path,
    mut problem: impl FnMut(&str, String),
) -> Option<ImageCredentials> {
    // A missing key was already reported.
    let images = written.images.filter(|_| !written.config.is_empty())?;
    if images.is_empty() {
        problem("imageCredentials.images", "is empty; name an image for which it has credentials".to_owned());
        return None;
    }
    let config = folder.join(&written.config);
    if !files::is_file(&config) && files::list(&config).is_err() {
        problem("imageCredentials.config", format!("there is no file or folder {}", config.display()));
    }
    let program = match (written.bin_dir, written.command) {
        (Some(inside), None) => {
            let inside = folder.join(inside);
            if !inside.is_dir() {
                problem("imageCredentials.binDir", format!("there is no folder {}", inside.display()));
            }
            PluginProgram::In(inside)
        }
        (None, Some(line)) if line.first().is_some_and(|program| !program.is_empty()) => {
            PluginProgram::Line(line)
        }
        (None, Some(_)) => {
            problem("imageCredentials.command", "is empty; write the program and its arguments".to_owned());
            return None;
        }
        (Some(_), Some(_)) => {
            problem("imageCredentials", "has both 'binDir' and 'command'; keep one".to_owned());
            return None;
        }
        (None, None) => {
            problem("imageCredentials", "names no program; write 'binDir' or 'command'".to_owned());
            return None;
        }
    };
    let token_file = written.service_account.token_file.map(|file| folder.join(file));
    if let Some(file) = token_file.as_ref().filter(|file| !file.is_file()) {
        let what = format!("there is no file {}", file.display());
        problem("imageCredentials.serviceAccount.tokenFile", what);
    }
    Some(ImageCredentials {
        takes_tokens: takes_tokens(&config, written.provider.as_deref()),
        config,
        program,
        provider: written.provider,
        images,
        without: written.without,
        api_versions: written.api_versions,
        environment: written.environment,
        credential_lifetime: written.credential_lifetime.map(|HumanDuration(time)| time),
        token_file,
        annotations: written.service_account.annotations,
    })
}

/// Whether a kubelet's configuration passes tokens of service accounts to a plugin. Faults in it are judged
/// by checks, and not reported here.
fn takes_tokens(config: &Path, provider: Option<&str>) -> bool {
    let files = if files::is_file(config) {
        vec![config.to_owned()]
    } else {
        files::list(config).unwrap_or_default()
    };
    let read = files.iter().filter_map(|file| yaml::from_str::<Value>(&files::read(file).ok()?, file).ok());
    let is_it =
        |one: &Value| provider.is_none_or(|name| one["name"] == name) && one["tokenAttributes"].is_object();
    read.flat_map(|all| all["providers"].as_array().cloned().unwrap_or_default()).any(|one| is_it(&one))
}
