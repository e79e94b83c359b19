//! The formats of texts in files. Each format is a type, so that a key's type determines the format of its text. In JSON
//! Schema it is a `format`, which [`check`] maps back to the type.

use super::cluster::Kubernetes;
use super::duration::HumanDuration;
use harness_core::ledger::Share;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

macro_rules! forms {
    ($($(#[$doc:meta])* $form:ident = $format:literal, $check:ident;)+) => {
        $(
            $(#[$doc])*
            pub(crate) struct $form;

            impl JsonSchema for $form {
                fn schema_name() -> Cow<'static, str> {
                    stringify!($form).into()
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    json_schema!({ "type": "string", "format": $format })
                }
            }
        )+

        /// Checks whether a text has the format with this name; an unknown name allows every text.
        ///
        /// # Errors
        /// The reason why it does not.
        pub(crate) fn check(format: &str, text: &str) -> Result<(), String> {
            match format {
                $($format => $check(text),)+
                _ => Ok(()),
            }
        }
    };
}

forms! {
    /// The name of an object, a package or a place.
    Name = "name", name;
    /// A zone's name, or nothing if the CCM reports no zone.
    Zone = "zone", zone;
    /// A version of the shared framework.
    FrameworkVersion = "framework-version", framework_version;
    /// A reference to a container image.
    ImageReference = "image-reference", image_reference;
    /// An image in the form in which a kubelet asks for its credentials: registry and path, without tag and digest.
    RegistryImage = "registry-image", registry_image;
    /// The name of a command line flag.
    FlagName = "flag-name", flag_name;
    /// A command line argument.
    Argument = "argument", argument;
    /// A provider id with `{id}` for the instance's id.
    ProviderIdText = "provider-id", provider_id;
    /// The name of a placeholder in manifests.
    Placeholder = "placeholder", placeholder;
    /// The name of a placeholder for a credential.
    CredentialName = "credential-name", credential_name;
    /// The name of an environment variable.
    Variable = "variable", variable;
    /// The key of an annotation.
    AnnotationKey = "annotation-key", annotation_key;
    /// The id of a check.
    CheckId = "check-id", check_id;
    /// A version of Kubernetes or a node image.
    KubernetesText = "kubernetes", kubernetes;
    /// A part of the checks, `K/N`.
    ShareText = "share", share;
    /// A length of time with its unit, longer than zero.
    Span = "span", span;
}

/// Placeholders in manifests that the harness fills in itself; a profile cannot set them.
pub const OWN_PLACEHOLDERS: &[&str] = &[
    "CLOUD_CA",
    "CLOUD_CA_BUNDLE",
    "CLOUD_ENDPOINT",
    "CLOUD_HOST",
    "CLOUD_PORT",
    "CLOUD_TOKEN",
    "IMAGE",
    "KUBECONFIG",
    "METADATA",
    "METADATA_HOST",
];

/// The newest minor version of the shared framework that the contract covers.
const NEWEST_FRAMEWORK: u32 = 36;

/// The minor version in `1.<minor>`.
///
/// # Errors
/// It has another form, or the contract does not cover that version.
pub(crate) fn framework_minor(text: &str) -> Result<u32, String> {
    let minor = text.strip_prefix("1.").and_then(|minor| minor.parse().ok());
    match minor {
        Some(minor) if minor > NEWEST_FRAMEWORK => Err(format!(
            "newer than 1.{NEWEST_FRAMEWORK}, the newest version that is judged; write \"1.{NEWEST_FRAMEWORK}\""
        )),
        Some(minor) if minor >= 20 => Ok(minor),
        Some(_) => Err(String::from("older than 1.20, the oldest version that is judged")),
        None => Err(String::from("not a framework version; write e.g. \"1.36\"")),
    }
}

fn share(text: &str) -> Result<(), String> {
    text.parse::<Share>().map(|_| ())
}

fn accept(sound: bool, why: &str) -> Result<(), String> {
    if sound { Ok(()) } else { Err(why.to_owned()) }
}

/// Checks whether a text can be the name of a profile.
///
/// # Errors
/// The reason why it cannot.
pub fn name(text: &str) -> Result<(), String> {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let sound = text.chars().all(inner)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric());
    accept(
        sound,
        "a name has letters, digits, '-', '_' and '.' only and begins and ends with a letter or digit",
    )
}

fn zone(text: &str) -> Result<(), String> {
    if text.is_empty() { Ok(()) } else { name(text) }
}

fn framework_version(text: &str) -> Result<(), String> {
    framework_minor(text).map(|_| ())
}

fn registry_image(text: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("{why}; write e.g. registry.example/team/app"));
    let Some((host, path)) = text.split_once('/') else { return wrong("names no registry before a '/'") };
    if path.contains(['@', ':']) {
        return wrong("has a tag or digest, which a plugin never receives");
    }
    if text.contains(char::is_whitespace) || text.contains("://") || text.contains('*') {
        return wrong("is not an image");
    }
    if path.is_empty() || !(host.contains(['.', ':']) || host == "localhost") {
        return wrong(
            "does not begin with the host of a registry (short names are written out: docker.io/library/nginx)",
        );
    }
    Ok(())
}

/// Checks whether a text can be the name of an image.
///
/// # Errors
/// The reason why it cannot.
pub fn image_reference(text: &str) -> Result<(), String> {
    let sound =
        !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '$' | '\'' | '"'));
    let named = text.split('@').next().unwrap_or_default();
    let path = match named.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => path,
        _ => named,
    };
    // The first of several parts may be the name of a registry, which any case will do for.
    let parts: Vec<&str> = path.split('/').collect();
    let repository = if parts.len() > 1 { &parts[1..] } else { &parts[..] };
    let lower = |part: &&str| !part.is_empty() && !part.chars().any(char::is_uppercase);
    accept(
        sound && repository.iter().all(lower),
        "not an image reference; write e.g. 'registry.example/ccm:v1.2.3', with a name in lower case",
    )
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

/// The placeholder for the credential of a replica, which a profile sets if the cloud is a real one.
pub const CLOUD_TOKEN: &str = "CLOUD_TOKEN";

fn credential_name(text: &str) -> Result<(), String> {
    if text == CLOUD_TOKEN { Ok(()) } else { placeholder(text) }
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

fn annotation_key(text: &str) -> Result<(), String> {
    let name = text.rsplit_once('/').map_or(text, |(_, name)| name);
    let sound = (1..=63).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    accept(sound, "not the key of an annotation, such as 'acme.example/handled-by'")
}

fn check_id(text: &str) -> Result<(), String> {
    let (row, claim) = text.split_once('.').unwrap_or((text, "all"));
    let of = |text: &str, letter: fn(&char) -> bool| {
        !text.is_empty() && text.chars().all(|c| letter(&c) || c.is_ascii_digit() || c == '-')
    };
    let sound = row.contains('-') && of(row, char::is_ascii_uppercase) && of(claim, char::is_ascii_lowercase);
    accept(sound, "not a check's id; write e.g. 'NODE-INIT-01'")
}

fn kubernetes(text: &str) -> Result<(), String> {
    text.parse::<Kubernetes>().map(|_| ())
}

fn span(text: &str) -> Result<(), String> {
    match text.parse::<HumanDuration>() {
        Ok(HumanDuration(value)) if value.is_zero() => Err(String::from("must be longer than zero")),
        Ok(_) => Ok(()),
        Err(why) => Err(why.to_string()),
    }
}
