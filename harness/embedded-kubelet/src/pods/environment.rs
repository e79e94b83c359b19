//! A container's environment and command line, as a kubelet resolves them. Pure functions.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVarSource};
use kube::ResourceExt;

use super::expansion::{expand, fill};
use super::facts::{Facts, Refusal};
use embedded_runtime::settings::Program;

/// The environment of a container: the cluster's variables, then `envFrom`, then `env`; later ones replace
/// earlier ones.
pub(crate) fn environment(
    container: &Container,
    cluster: &BTreeMap<String, String>,
    facts: &Facts<'_>,
) -> Result<BTreeMap<String, String>, Refusal> {
    let mut result = BTreeMap::new();
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.clone().unwrap_or_default();
        if let Some(reference) = &source.config_map_ref
            && let Some(map) = facts.config_map(&reference.name, reference.optional)?
        {
            for (key, value) in map.data.iter().flatten() {
                result.insert(format!("{prefix}{key}"), value.clone());
            }
        }
        if let Some(reference) = &source.secret_ref
            && let Some(secret) = facts.secret(&reference.name, reference.optional)?
        {
            for (key, value) in secret.data.iter().flatten() {
                result.insert(format!("{prefix}{key}"), String::from_utf8_lossy(&value.0).into_owned());
            }
        }
    }
    // References can use the variables before them and those of the cluster.
    let mut known = cluster.clone();
    for variable in container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (Some(value), _) if !value.is_empty() => Some(expand(value, &known)),
            (_, Some(source)) => from_source(source, container, facts)?,
            _ => Some(String::new()),
        };
        if let Some(value) = value {
            known.insert(variable.name.clone(), value.clone());
            result.insert(variable.name.clone(), value);
        }
    }
    for (name, value) in cluster {
        result.entry(name.clone()).or_insert_with(|| value.clone());
    }
    Ok(result)
}

/// The value of a variable with a source; `None` if an optional source is missing.
fn from_source(
    source: &EnvVarSource,
    container: &Container,
    facts: &Facts<'_>,
) -> Result<Option<String>, Refusal> {
    let namespace = facts.pod.namespace().unwrap_or_default();
    if let Some(field) = &source.field_ref {
        return facts.field(&field.field_path).map(Some);
    }
    if let Some(resource) = &source.resource_field_ref {
        return facts.resource(resource, Some(container)).map(Some);
    }
    if let Some(reference) = &source.config_map_key_ref {
        let Some(map) = facts.config_map(&reference.name, reference.optional)? else { return Ok(None) };
        return match map.data.iter().flatten().find(|(key, _)| **key == reference.key) {
            Some((_, value)) => Ok(Some(value.clone())),
            None if reference.optional == Some(true) => Ok(None),
            None => Err(Refusal(format!(
                "couldn't find key {} in ConfigMap {namespace}/{}",
                reference.key, reference.name
            ))),
        };
    }
    if let Some(reference) = &source.secret_key_ref {
        let Some(secret) = facts.secret(&reference.name, reference.optional)? else { return Ok(None) };
        return match secret.data.iter().flatten().find(|(key, _)| **key == reference.key) {
            Some((_, value)) => Ok(Some(String::from_utf8_lossy(&value.0).into_owned())),
            None if reference.optional == Some(true) => Ok(None),
            None => Err(Refusal(format!(
                "couldn't find key {} in Secret {namespace}/{}",
                reference.key, reference.name
            ))),
        };
    }
    Ok(Some(String::new()))
}

/// The command line of a container: the program's entry point and arguments, replaced by the container's.
pub(crate) fn command_line(
    container: &Container,
    program: &Program,
    environment: &BTreeMap<String, String>,
    placeholders: &BTreeMap<&str, String>,
) -> Vec<String> {
    let own_command =
        container.command.as_deref().filter(|command| !command.is_empty() && !program.keeps_entry_point);
    let own_args = container.args.as_deref().filter(|args| !args.is_empty());
    let mut line: Vec<String> = match own_command {
        Some(command) => command.iter().map(|part| expand(part, environment)).collect(),
        None => program.entry_point.iter().map(|part| fill(part, placeholders)).collect(),
    };
    match own_args {
        Some(args) => line.extend(args.iter().map(|part| expand(part, environment))),
        // A container's command drops the image's arguments too.
        None if own_command.is_none() => {
            line.extend(program.arguments.iter().map(|part| fill(part, placeholders)))
        }
        None => {}
    }
    // A replaced command may have had arguments after the path of the program.
    if program.keeps_entry_point
        && let Some(command) = container.command.as_deref()
    {
        let at = program.entry_point.len();
        let carried: Vec<_> = command.iter().skip(1).map(|part| expand(part, environment)).collect();
        line.splice(at..at, carried);
    }
    line.extend(program.more_arguments.iter().map(|part| fill(part, placeholders)));
    line
}

/// The variables for the Services in a container's namespace, in the style of Docker links.
pub(crate) fn service_variables<'s>(
    services: impl Iterator<Item = (&'s str, &'s str, i32)>,
) -> BTreeMap<String, String> {
    let mut result = BTreeMap::new();
    for (name, address, port) in services {
        let prefix = name.to_uppercase().replace('-', "_");
        result.insert(format!("{prefix}_SERVICE_HOST"), address.to_owned());
        result.insert(format!("{prefix}_SERVICE_PORT"), port.to_string());
    }
    result
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
