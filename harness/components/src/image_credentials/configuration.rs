//! The kubelet's configuration of plugins (`--image-credential-provider-config`), and errors with which a kubelet does
//! not start (kubernetes pkg/credentialprovider/plugin/config.go).

use super::go_duration::go_duration;
use super::patterns::Pattern;
use harness_config::yaml;
use harness_core::files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The newest version of requests to plugins.
pub const NEWEST: &str = "credentialprovider.kubelet.k8s.io/v1";
/// The versions of requests to plugins.
pub const API_VERSIONS: &[&str] =
    &[NEWEST, "credentialprovider.kubelet.k8s.io/v1beta1", "credentialprovider.kubelet.k8s.io/v1alpha1"];
/// The kind of the file.
const KIND: &str = "CredentialProviderConfig";
/// The version of the file with all fields.
const FILE_V1: &str = "kubelet.config.k8s.io/v1";
/// The versions of the file.
const FILE_VERSIONS: &[&str] = &[FILE_V1, "kubelet.config.k8s.io/v1beta1", "kubelet.config.k8s.io/v1alpha1"];

/// A configuration file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Configuration {
    kind: String,
    api_version: String,
    /// The plugins.
    pub providers: Vec<Provider>,
}

/// A plugin in it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Provider {
    /// The name of its program.
    pub name: String,
    /// The images for which it is called.
    pub match_images: Vec<String>,
    /// How long a response without a duration is cached.
    pub default_cache_duration: Option<String>,
    /// The version of its requests.
    pub api_version: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its variables.
    pub env: Vec<Variable>,
    /// The service account data that it gets.
    pub token_attributes: Option<TokenAttributes>,
}

/// A variable of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The service account data that a plugin gets.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TokenAttributes {
    /// The audience of the tokens.
    pub service_account_token_audience: String,
    /// `Token` or `ServiceAccount`.
    pub cache_type: String,
    require_service_account: Option<bool>,
    /// Annotations without which it is not called.
    pub required_service_account_annotation_keys: Vec<String>,
    /// Annotations that it gets if they exist.
    pub optional_service_account_annotation_keys: Vec<String>,
}

impl Configuration {
    /// Reads a file, or all files of a folder as one.
    ///
    /// # Errors
    /// Which file cannot be read, and why; a name that is in two files.
    pub fn read(path: &Path) -> Result<Configuration, String> {
        let mut whole = Configuration::default();
        for file in files_of(path)? {
            let invalid = |why: String| format!("{}: {why}", file.display());
            let text = files::read(&file).map_err(|error| invalid(error.to_string()))?;
            let one: Configuration = yaml::from_str(&text, &file).map_err(|error| error.to_string())?;
            if one.kind != KIND {
                return Err(invalid(format!("kind is '{}', expected {KIND}", one.kind)));
            }
            if !FILE_VERSIONS.contains(&one.api_version.as_str()) {
                return Err(invalid(format!(
                    "apiVersion is '{}', expected one of {}",
                    one.api_version,
                    FILE_VERSIONS.join(", ")
                )));
            }
            if let Some(provider) = one.providers.iter().find(|provider| provider.token_attributes.is_some())
                && one.api_version != FILE_V1
            {
                return Err(invalid(format!(
                    "provider '{}': {} has no tokenAttributes",
                    provider.name, one.api_version
                )));
            }
            for provider in &one.providers {
                if whole.providers.iter().any(|known| known.name == provider.name) {
                    return Err(invalid(format!("the provider name '{}' is given twice", provider.name)));
                }
                whole.providers.push(provider.clone());
            }
        }
        Ok(whole)
    }

    /// The plugin with that name; without a name, the only one.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn provider(&self, name: Option<&str>) -> Result<&Provider, String> {
        let names = || self.providers.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
        match (name, self.providers.as_slice()) {
            (Some(name), all) => all
                .iter()
                .find(|one| one.name == name)
                .ok_or_else(|| format!("it has no provider '{name}', only {}", names())),
            (None, [one]) => Ok(one),
            (None, []) => Err("it has no provider".to_owned()),
            (None, _) => Err(format!("it has the providers {}; name one", names())),
        }
    }
}

impl Provider {
    /// How long a response without a duration is cached, in seconds; `None` if the configuration does not say that
    /// either.
    pub fn keeps_for(&self) -> Option<f64> {
        go_duration(self.default_cache_duration.as_deref()?).ok()
    }
}

fn files_of(path: &Path) -> Result<Vec<PathBuf>, String> {
    if files::is_file(path) {
        return Ok(vec![path.to_owned()]);
    }
    let listed = files::list(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let is_one =
        |file: &PathBuf| file.extension().is_some_and(|end| end == "json" || end == "yaml" || end == "yml");
    let files: Vec<PathBuf> = listed.into_iter().filter(is_one).collect();
    if files.is_empty() { Err(format!("{} contains no configuration", path.display())) } else { Ok(files) }
}

/// Why a kubelet would not start with the configuration, one line each; `program` is the path of a provider's program, if
/// known.
pub fn lint(path: &Path, program: impl Fn(&str) -> Option<PathBuf>) -> Vec<String> {
    let configuration = match Configuration::read(path) {
        Ok(configuration) => configuration,
        Err(why) => return vec![why],
    };
    let mut found = Vec::new();
    if configuration.providers.is_empty() {
        found.push("providers: at least one is required".to_owned());
    }
    for provider in &configuration.providers {
        let mut wrong = of_provider(provider);
        wrong.extend(program(&provider.name).and_then(|program| of_program(&program)));
        found.extend(wrong.into_iter().map(|what| format!("provider '{}': {what}", provider.name)));
    }
    found
}

fn of_program(program: &Path) -> Option<String> {
    match std::fs::metadata(program) {
        Err(error) => Some(format!("{}: {}", program.display(), files::why(&error))),
        Ok(file) if !file.is_file() || file.permissions().mode() & 0o111 == 0 => {
            Some(format!("{} is not an executable file", program.display()))
        }
        Ok(_) => None,
    }
}

fn of_provider(provider: &Provider) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = provider.name.as_str();
    if name.contains(['/', ' ']) || [".", "..", ""].contains(&name) {
        wrong.push("name: must be the name of a file, without '/' and spaces".to_owned());
    }
    if !API_VERSIONS.contains(&provider.api_version.as_str()) {
        wrong.push(format!(
            "apiVersion: '{}' is not one of {}",
            provider.api_version,
            API_VERSIONS.join(", ")
        ));
    }
    if provider.match_images.is_empty() {
        wrong.push("matchImages: at least one is required".to_owned());
    }
    let patterns = provider.match_images.iter().filter_map(|text| Pattern::new(text).err());
    wrong.extend(patterns.map(|bad| format!("matchImages: {bad}")));
    match provider.default_cache_duration.as_deref().map(go_duration) {
        None => wrong.push("defaultCacheDuration: is missing".to_owned()),
        Some(Err(why)) => wrong.push(format!("defaultCacheDuration: {why}")),
        Some(Ok(seconds)) if seconds < 0.0 => {
            wrong.push("defaultCacheDuration: must not be negative".to_owned())
        }
        Some(Ok(_)) => {}
    }
    if let Some(attributes) = &provider.token_attributes {
        let of_tokens = of_tokens(provider, attributes);
        wrong.extend(of_tokens.into_iter().map(|what| format!("tokenAttributes: {what}")));
    }
    wrong
}

fn of_tokens(provider: &Provider, attributes: &TokenAttributes) -> Vec<String> {
    let mut wrong = Vec::new();
    let (required, optional) = (
        &attributes.required_service_account_annotation_keys,
        &attributes.optional_service_account_annotation_keys,
    );
    let mut unless = |holds: bool, what: &str| {
        if !holds {
            wrong.push(what.to_owned());
        }
    };
    unless(provider.api_version == NEWEST, &format!("only {NEWEST} supports them"));
    unless(!attributes.service_account_token_audience.is_empty(), "serviceAccountTokenAudience is missing");
    unless(attributes.require_service_account.is_some(), "requireServiceAccount is missing");
    unless(
        attributes.require_service_account != Some(false) || required.is_empty(),
        "required annotations need requireServiceAccount: true",
    );
    unless(
        ["Token", "ServiceAccount"].contains(&attributes.cache_type.as_str()),
        "cacheType must be Token or ServiceAccount",
    );
    let mut seen = BTreeSet::new();
    for key in required.iter().chain(optional) {
        unless(is_qualified_name(key), &format!("'{key}' is not a valid annotation key"));
        unless(seen.insert(key), &format!("duplicate annotation '{key}'"));
    }
    wrong
}

/// Whether a text is a valid annotation key (k8s.io/apimachinery pkg/util/validation IsQualifiedName), in any case.
fn is_qualified_name(key: &str) -> bool {
    let ends = |text: &str| {
        let alphanumeric = |sign: Option<char>| sign.is_some_and(|sign| sign.is_ascii_alphanumeric());
        alphanumeric(text.chars().next()) && alphanumeric(text.chars().next_back())
    };
    let of = |text: &str, signs: &str| {
        text.chars().all(|sign| sign.is_ascii_alphanumeric() || signs.contains(sign))
    };
    let name = |text: &str| text.len() <= 63 && ends(text) && of(text, "-_.");
    match key.split_once('/') {
        None => name(key),
        Some((prefix, rest)) => {
            prefix.len() <= 253 && prefix.split('.').all(|label| ends(label) && of(label, "-")) && name(rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "kind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/v1\nproviders:\n- name: acme\n  matchImages: ['*.acme.example']\n  defaultCacheDuration: 10m\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n";

    fn found(text: &str) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, text).expect("written");
        lint(&file, |_| None)
    }

    #[test]
    fn a_kubelet_starts_with_what_is_right_and_with_nothing_else() {
        assert_eq!(found(GOOD), [""; 0]);
        let tokens = "  tokenAttributes: {serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: true}\n";
        assert_eq!(found(&format!("{GOOD}{tokens}")), [""; 0]);
        let twice = GOOD
            .replace("providers:\n", "")
            .split_once("- name")
            .map(|(_, rest)| format!("- name{rest}"))
            .expect("a provider");
        for (text, what) in [
            (GOOD.replace("acme\n", "../acme\n"), "provider '../acme': name: must be"),
            (GOOD.replace("name: acme\n", "name: 'acme x'\n"), "name: must be"),
            (GOOD.replace("['*.acme.example']", "[]"), "matchImages: at least one is required"),
            (GOOD.replace("*.acme.example", "acme:port"), "'port' is not a port"),
            (GOOD.replace("  defaultCacheDuration: 10m\n", ""), "defaultCacheDuration: is missing"),
            (GOOD.replace("10m", "1d"), "'1d' is not a Go duration"),
            (GOOD.replace("10m", "-1s"), "must not be negative"),
            (GOOD.replace("k8s.io/v1\n", "k8s.io/v2\n"), "expected one of"),
            (
                GOOD.replace("kubelet.k8s.io/v1", "kubelet.k8s.io/v3"),
                "apiVersion: 'credentialprovider.kubelet.k8s.io/v3' is not one of",
            ),
            (GOOD.replace("CredentialProviderConfig", "Config"), "kind is 'Config'"),
            (format!("{GOOD}{twice}"), "the provider name 'acme' is given twice"),
            (format!("{GOOD}  command: x\n"), "command"),
            (
                format!("{GOOD}{}", tokens.replace("audience: a", "")).replace("Token,", "Pod,"),
                "cacheType must be",
            ),
            (
                format!("{GOOD}{tokens}").replace("config.k8s.io/v1", "config.k8s.io/v1beta1"),
                "has no tokenAttributes",
            ),
        ] {
            let said = found(&text).join("; ");
            assert!(said.contains(what), "{what} is not in {said:?} of {text}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_keeps_a_kubelet_from_starting() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, GOOD).expect("written");
        let said = || lint(&file, |name| Some(folder.path().join(name))).join("; ");
        assert!(said().contains("there is no such file"), "{}", said());
        std::fs::write(folder.path().join("acme"), "").expect("written");
        assert!(said().contains("is not an executable file"), "{}", said());
    }
}
