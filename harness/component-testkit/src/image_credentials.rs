//! The image credential provider under test, executed as a kubelet does it.

use harness_clusters::images::own_program;
use harness_components::image_credentials::{
    API_VERSIONS, Answer, Behaviour, Configuration, Execution, Fault, KUBELET_LIMIT, Plugin, Provider,
    StandIn, lint as faults_of, request,
};
use harness_config::{ImageCredentials, PROGRAM, PluginProgram};
use harness_core::check::{CheckError, SubjectName, Violation};
use harness_core::files;
use harness_core::secrets;
use harness_testkit::CheckCx;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A token in the form of a service account's, without a valid signature.
const UNSIGNED: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImNjbS1jb25mb3JtYW5jZSJ9.eyJhdWQiOlsicmVnaXN0cnkiXSwic3ViIjoic3lzdGVtOnNlcnZpY2VhY2NvdW50OnRlYW06cHVsbGVyIn0.bm9ib2R5LWhhcy1zaWduZWQtdGhpcy10b2tlbi1vZi1hLXNlcnZpY2UtYWNjb3VudA";
/// The placeholder for the URL of the cloud.
const ENDPOINT: &str = "${CLOUD_ENDPOINT}";
/// The placeholder for a credential of the cloud.
const TOKEN: &str = "${CLOUD_TOKEN}";
/// Suffixes of the names of variables whose values are secrets.
const SECRET_NAMES: &[&str] = &["TOKEN", "SECRET", "PASSWORD", "KEY"];
/// Shorter values are not secrets.
const SHORTEST_SECRET: usize = 8;

/// The plugin under test.
///
/// ```
/// # use harness_component_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let plugin = ImageCredentialProvider::of(cx)?;
/// let answer = plugin.asked_for(&plugin.images()[0]).answered().await?;
/// if answer.auth.is_empty() {
///     return Err(plugin.violation("it has credentials for its images", "credentials", "none"));
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ImageCredentialProvider<'a> {
    pub(super) cx: &'a CheckCx,
    written: &'a ImageCredentials,
    provider: Provider,
    token: Option<String>,
    home: PathBuf,
}

/// A request for it.
#[derive(Debug)]
pub struct Ask<'a> {
    plugin: &'a ImageCredentialProvider<'a>,
    image: String,
    version: String,
    input: Option<Vec<u8>>,
    pieces: usize,
    home: Home,
    cloud: Option<String>,
}

/// The home folder of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// The run's, which keeps the files of other executions.
    Shared,
    /// An empty one of its own.
    Fresh,
    /// None.
    Without,
}

/// The profile's section about the plugin.
fn written(cx: &CheckCx) -> Result<&ImageCredentials, CheckError> {
    let written = cx.session().plan().profile.image_credentials.as_ref();
    written.ok_or_else(|| CheckError::Error("the profile names no image credential provider".to_owned()))
}

impl<'a> ImageCredentialProvider<'a> {
    /// Reads the plugin under test.
    ///
    /// # Errors
    /// Its configuration cannot be read, so it cannot be executed.
    pub fn of(cx: &'a CheckCx) -> Result<ImageCredentialProvider<'a>, CheckError> {
        let written = written(cx)?;
        let read = Configuration::read(&written.config);
        let provider = read.and_then(|all| all.provider(written.provider.as_deref()).cloned());
        let provider = provider.map_err(|why| {
            CheckError::violation(
                "the kubelet's configuration can be read",
                "a configuration that a kubelet accepts",
                why,
            )
        })?;
        let token = match (&written.token_file, written.takes_tokens) {
            (Some(file), true) => Some(files::read(file)?.trim().to_owned()),
            (None, true) => Some(UNSIGNED.to_owned()),
            (_, false) => None,
        };
        token.iter().for_each(|token| secrets::know(token));
        let home = cx.session().dir().path().join("home");
        std::fs::create_dir_all(&home)?;
        Ok(ImageCredentialProvider { cx, written, provider, token, home })
    }

    /// Why a kubelet would not start with the plugin's configuration, one line each.
    ///
    /// # Errors
    /// The profile does not name a plugin.
    pub fn lint(cx: &CheckCx) -> Result<Vec<String>, CheckError> {
        let written = written(cx)?;
        Ok(match &written.program {
            PluginProgram::In(folder) => faults_of(&written.config, |name| Some(folder.join(name))),
            PluginProgram::Line(line) => {
                let program = PathBuf::from(&line[0]);
                // Other programs are looked up, or are this program.
                let is_a_path = program.is_absolute();
                faults_of(&written.config, |_| is_a_path.then(|| program.clone()))
            }
        })
    }

    /// Images for which it has credentials; at least one.
    pub fn images(&self) -> &[String] {
        &self.written.images
    }

    /// Images for which it is called but has no credentials.
    pub fn without(&self) -> &[String] {
        &self.written.without
    }

    /// The API versions in which it is called, the configuration's first.
    pub fn versions(&self) -> Vec<String> {
        let mut all = vec![self.provider.api_version.clone()];
        all.extend(
            self.written.api_versions.iter().filter(|one| **one != self.provider.api_version).cloned(),
        );
        // An invalid version is an error of the configuration.
        all.retain(|one| API_VERSIONS.contains(&one.as_str()) || *one == self.provider.api_version);
        all
    }

    /// The minimum lifetime of its credentials, if the profile states it.
    pub fn credential_lifetime(&self) -> Option<Duration> {
        self.written.credential_lifetime
    }

    /// How long the configuration caches an answer without a duration, in seconds.
    pub fn default_cache_duration(&self) -> Option<f64> {
        self.provider.keeps_for()
    }

    /// The token of the requesting service account, if the plugin gets one, and whether answers are cached by token.
    pub fn token(&self) -> Option<(&str, bool)> {
        let attributes = self.provider.token_attributes.as_ref()?;
        Some((self.token.as_deref()?, attributes.cache_type == "Token"))
    }

    /// A request for the credentials of its first image.
    pub fn asked(&'a self) -> Ask<'a> {
        self.asked_for(&self.written.images[0])
    }

    /// A request for the credentials of an image.
    pub fn asked_for(&'a self, image: &str) -> Ask<'a> {
        Ask {
            plugin: self,
            image: image.to_owned(),
            version: self.provider.api_version.clone(),
            input: None,
            pieces: 1,
            home: Home::Shared,
            cloud: None,
        }
    }

    /// Its part of the kubelet's configuration.
    pub(super) fn provider(&self) -> &Provider {
        &self.provider
    }

    /// The annotations of the requesting service account.
    pub fn annotations(&self) -> &BTreeMap<String, String> {
        &self.written.annotations
    }

    /// The audience of its tokens; `None` if it gets none.
    pub fn audience(&self) -> Option<&str> {
        let attributes = self.provider.token_attributes.as_ref()?;
        Some(&attributes.service_account_token_audience)
    }

    /// Whether it gets its credentials from a cloud of the run.
    ///
    /// # Errors
    /// 'Not observable' if none of its settings names that cloud.
    pub(super) fn has_a_cloud_of_ours(&self) -> Result<(), CheckError> {
        if self.written.environment.values().any(|value| value.contains(ENDPOINT)) {
            return Ok(());
        }
        let why = format!(
            "no value of imageCredentials.environment contains {ENDPOINT}, so its cloud cannot be made to fail"
        );
        Err(CheckError::NotObservable(why))
    }

    /// A failing cloud that replaces the plugin's.
    ///
    /// # Errors
    /// 'Not observable' if none of its settings names its cloud.
    pub async fn cloud_that(&self, behaviour: Behaviour) -> Result<StandIn, CheckError> {
        self.has_a_cloud_of_ours()?;
        Ok(StandIn::begin(behaviour).await?)
    }

    /// What must not appear in its log: its tokens, and variables with names of secrets.
    pub fn secrets(&self) -> Vec<(String, String)> {
        let variables = self.environment(None, None);
        let last = |name: &str| name.to_ascii_uppercase().rsplit('_').next().unwrap_or_default().to_owned();
        let named = |name: &str| SECRET_NAMES.contains(&last(name).as_str());
        let all = variables.into_iter().filter(|(name, value)| named(name) && value.len() >= SHORTEST_SECRET);
        let all = all.map(|(name, value)| (format!("the value of {name}"), value));
        let token = self.token.clone().map(|token| ("the service account's token".to_owned(), token));
        let cloud = self.cx.session().state().plugin.as_ref();
        let cloud = cloud.map(|plugin| ("its credential for the cloud".to_owned(), plugin.token.clone()));
        all.chain(token).chain(cloud).collect()
    }

    /// A violation by the plugin.
    pub fn violation(&self, promise: &str, expected: &str, seen: impl Into<String>) -> CheckError {
        let name = self.provider.name.clone();
        let subject = Some(SubjectName { kind: "image credential provider", name, uid: None });
        CheckError::Violation(Box::new(Violation { subject, ..Violation::new(promise, expected, seen) }))
    }

    /// Its variables in addition to the configuration's, with its cloud at that URL; without one, the run's cloud.
    pub(super) fn own_environment(&self, cloud: Option<&str>) -> BTreeMap<String, String> {
        let own = self.cx.session().state().plugin.clone();
        let (endpoint, token) = own.map_or_else(Default::default, |own| (own.endpoint, own.token));
        let endpoint = cloud.unwrap_or(&endpoint);
        let filled = |value: &String| value.replace(ENDPOINT, endpoint).replace(TOKEN, &token);
        self.written.environment.iter().map(|(name, value)| (name.clone(), filled(value))).collect()
    }

    fn environment(&self, cloud: Option<&str>, home: Option<&Path>) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        all.extend(std::env::var("PATH").ok().map(|path| ("PATH".to_owned(), path)));
        all.extend(home.map(|home| ("HOME".to_owned(), home.display().to_string())));
        all.extend(self.provider.env.iter().map(|one| (one.name.clone(), one.value.clone())));
        all.extend(self.own_environment(cloud));
        all
    }

    fn line(&self) -> Result<Vec<String>, CheckError> {
        let mut line = self.program_line()?;
        line.extend(self.provider.args.iter().cloned());
        Ok(line)
    }

    /// The folder of its program, if it is a separate one.
    pub(super) fn program_folder(&self) -> Option<PathBuf> {
        match &self.written.program {
            PluginProgram::In(programs) => Some(programs.clone()),
            PluginProgram::Line(_) => None,
        }
    }

    /// Its program and first arguments, without those of the configuration.
    pub(super) fn program_line(&self) -> Result<Vec<String>, CheckError> {
        let folder = self.cx.session().plan().profile.folder();
        let mut line = match &self.written.program {
            PluginProgram::In(programs) => {
                vec![std::path::absolute(programs.join(&self.provider.name))?.display().to_string()]
            }
            PluginProgram::Line(line) => line.clone(),
        };
        let own = own_program()?.display().to_string();
        line.iter_mut().for_each(|part| *part = part.replace(PROGRAM, &own));
        if line[0].contains('/') && Path::new(&line[0]).is_relative() {
            line[0] = std::path::absolute(folder.join(&line[0]))?.display().to_string();
        }
        Ok(line)
    }
}

impl Ask<'_> {
    /// Uses this version.
    #[must_use]
    pub fn in_version(mut self, version: &str) -> Self {
        self.version = version.to_owned();
        self
    }

    /// Uses this as standard input instead of a request.
    #[must_use]
    pub fn with_input(mut self, input: &[u8]) -> Self {
        self.input = Some(input.to_vec());
        self
    }

    /// Sends the request in this many pieces, one after the other.
    #[must_use]
    pub fn in_pieces(mut self, pieces: usize) -> Self {
        self.pieces = pieces;
        self
    }

    /// Runs it without a home folder.
    #[must_use]
    pub fn without_home(mut self) -> Self {
        self.home = Home::Without;
        self
    }

    /// Runs it while its cloud fails, and with an empty home folder, so that nothing cached from its cloud is left.
    #[must_use]
    pub fn before(mut self, cloud: &StandIn) -> Self {
        self.cloud = Some(cloud.url().to_owned());
        self.home = Home::Fresh;
        self
    }

    /// The request.
    pub fn request(&self) -> String {
        let plugin = self.plugin;
        request(&self.version, &self.image, plugin.token.as_deref(), &plugin.written.annotations)
    }

    /// Executes it.
    ///
    /// # Errors
    /// It is unknown what to execute, or the run is interrupted.
    pub async fn executed(self) -> Result<Execution, CheckError> {
        let plugin = self.plugin;
        let input = self.input.clone().unwrap_or_else(|| self.request().into_bytes());
        let size = input.len().div_ceil(self.pieces).max(1);
        let pieces: Vec<&[u8]> = input.chunks(size).collect();
        let fresh = match self.home {
            Home::Fresh => Some(tempfile::tempdir_in(plugin.cx.session().dir().path())?),
            Home::Shared | Home::Without => None,
        };
        let home = match self.home {
            Home::Without => None,
            Home::Shared | Home::Fresh => {
                Some(fresh.as_ref().map_or(plugin.home.as_path(), |home| home.path()))
            }
        };
        let environment = plugin.environment(self.cloud.as_deref(), home);
        let program = Plugin { line: plugin.line()?, environment };
        let executed = async { Ok(program.execute(&pieces, KUBELET_LIMIT).await) };
        let execution = plugin.cx.session().unless_interrupted(executed).await?;
        // Its answer must be redacted everywhere.
        drop(Answer::read(&execution.stdout, &self.version));
        plugin.cx.record("took_ms", execution.took.as_millis());
        Ok(execution)
    }

    /// Executes it and reads its answer, including errors in it.
    ///
    /// # Errors
    /// It does not exit by itself, in time and with code 0.
    pub async fn answered(self) -> Result<Answer, CheckError> {
        let (plugin, image, version) = (self.plugin, self.image.clone(), self.version.clone());
        let execution = self.executed().await?;
        if !execution.succeeded() {
            let (promise, expected) =
                (format!("it answers a request for {image}"), "exit code 0 and an answer");
            return Err(plugin.violation(&promise, expected, execution.shown()));
        }
        let answer = Answer::read(&execution.stdout, &version);
        // Without an answer there is nothing to judge.
        match answer.faults.iter().find(|fault| matches!(fault, Fault::NotOne(_))) {
            Some(fault) => Err(plugin.violation(
                "standard output contains one answer and nothing else",
                "one CredentialProviderResponse in JSON",
                format!("asked for {image}: {fault}; {}", execution.shown()),
            )),
            None => Ok(answer),
        }
    }
}
