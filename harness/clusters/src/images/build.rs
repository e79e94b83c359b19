//! Compiles a program of a Cargo workspace so that it runs in an image without any other file.
//!
//! It knows cargo but is independent of images.

use harness_core::bounded;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// Maximum time of one compilation; the first one on two cores takes two to three minutes.
const BUILD_LIMIT: Duration = Duration::from_secs(1800);
/// Lines of cargo's output that an error shows.
const LINES_SHOWN: usize = 30;

/// A program that could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is no cargo, or it cannot be run.
    #[error(
        "cannot run '{}' to compile {package}; install Rust, or name an existing image instead",
        cargo.display()
    )]
    NoCargo {
        /// The program tried.
        cargo: PathBuf,
        /// The package to be compiled.
        package: String,
        /// Why it cannot be run.
        #[source]
        source: std::io::Error,
    },
    /// The profile is not in a workspace.
    #[error(
        "cannot compile {package}: {} is not in a Cargo workspace; move the profile's folder into the workspace with \
         the package, or name an existing image instead",
        folder.display()
    )]
    NoWorkspace {
        /// The folder that was searched.
        folder: PathBuf,
        /// The package to be compiled.
        package: String,
    },
    /// Cargo ended with an error.
    #[error("{command} failed with {status}; its last lines:\n{lines}")]
    Failed {
        /// The command, for repeating it.
        command: String,
        /// Its exit status.
        status: String,
        /// The end of its output.
        lines: String,
    },
    /// Cargo did not end in time.
    #[error(
        "{command} did not end within {} s; does another build hold the lock of its target folder?",
        .limit.as_secs_f64()
    )]
    TimedOut {
        /// The command, for repeating it.
        command: String,
        /// The time limit.
        limit: Duration,
    },
    /// Cargo succeeded, but the program does not exist.
    #[error("{command} succeeded but did not create {}", path.display())]
    NoProgram {
        /// The command, for repeating it.
        command: String,
        /// Where the program should be.
        path: PathBuf,
    },
}

/// A program of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Program {
    /// Cargo package.
    pub package: String,
    /// Binary of that package.
    pub bin: String,
    /// The package's features, instead of its default ones; `None` keeps those.
    pub features: Option<Vec<String>>,
}

/// Compiles a program of the workspace of `folder` into one static file and returns its path. Takes less than a second if
/// nothing has changed.
///
/// The target folder is `images` in cargo's own (`CARGO_TARGET_DIR`, otherwise the workspace's `target`), so that it is
/// not locked by an outer cargo that waits for this one, such as `cargo test`.
///
/// # Errors
/// No cargo, no workspace, or a compilation that fails or does not end.
pub async fn static_binary(folder: &Path, program: &Program) -> Result<PathBuf, BuildError> {
    let Program { package, bin, features } = program;
    let no_workspace = || BuildError::NoWorkspace { folder: folder.to_owned(), package: package.clone() };
    let folder = std::fs::canonicalize(folder).map_err(|_| no_workspace())?;
    let cargo = PathBuf::from(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    let workspace = find_workspace(&cargo, &folder, package).await?.ok_or_else(no_workspace)?;
    let target = host_triple(&cargo, &workspace, package).await?;
    // If cargo's output is elsewhere, so is this.
    let cargos = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from);
    let folder = cargos.join("images");
    let mut arguments: Vec<OsString> = ["build", "--release", "--locked", "--package", package, "--bin", bin]
        .into_iter()
        .map(OsString::from)
        .collect();
    if let Some(features) = features {
        arguments.extend(["--no-default-features".into(), "--features".into(), features.join(",").into()]);
    }
    arguments.extend([
        "--target".into(),
        OsString::from(&target),
        "--target-dir".into(),
        folder.clone().into(),
    ]);
    let command = shown(&cargo, &arguments);
    tracing::debug!(%command, "compiling");
    let output = run(&cargo, &workspace, &arguments, package, BUILD_LIMIT).await?;
    if !output.status.success() {
        let lines = last_lines(&String::from_utf8_lossy(&output.stderr), LINES_SHOWN);
        return Err(BuildError::Failed { command, status: harness_core::files::ended(output.status), lines });
    }
    let path = folder.join(target).join("release").join(bin);
    if path.is_file() { Ok(path) } else { Err(BuildError::NoProgram { command, path }) }
}

/// What is missing in the workspace of `folder` for building a program: the last word of the key, and what is wrong.
/// `None` if there is no cargo, as nothing can be checked without it.
pub async fn unknown_part(folder: &Path, program: &Program) -> Option<(&'static str, String)> {
    let Program { package, bin, features } = program;
    let cargo = PathBuf::from(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    let nowhere = || Some(("package", format!("{} is not in a Cargo workspace", folder.display())));
    let Ok(found) = std::fs::canonicalize(folder) else { return nowhere() };
    let Ok(workspace) = find_workspace(&cargo, &found, package).await else { return None };
    let Some(workspace) = workspace else { return nowhere() };
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version", "1"].map(OsString::from);
    let output = run(&cargo, &workspace, &arguments, package, Duration::from_secs(60)).await.ok()?;
    let metadata: Value = serde_json::from_slice(&output.stdout).ok()?;
    missing_part(&metadata, package, bin, features.as_deref().unwrap_or_default())
}

/// The same check on cargo's metadata.
fn missing_part(
    metadata: &Value,
    package: &str,
    bin: &str,
    features: &[String],
) -> Option<(&'static str, String)> {
    let name = |of: &Value| of["name"].as_str().unwrap_or_default().to_owned();
    let lacks = |key: &'static str, wanted: &str, what: &str, mut there: Vec<String>| {
        there.sort();
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        (!there.split(", ").any(|one| one == wanted))
            .then(|| (key, format!("{what} has no '{wanted}'; it has {there}")))
    };
    let packages = metadata["packages"].as_array()?;
    let Some(found) = packages.iter().find(|one| one["name"] == package) else {
        let workspace = format!("the workspace {}", metadata["workspace_root"].as_str().unwrap_or_default());
        return lacks("package", package, &workspace, packages.iter().map(name).collect());
    };
    let targets = found["targets"].as_array().into_iter().flatten();
    let programs =
        targets.filter(|one| one["kind"].as_array().is_some_and(|kinds| kinds.contains(&"bin".into())));
    let of_package = format!("package {package}");
    let known: Vec<String> =
        found["features"].as_object().into_iter().flat_map(|all| all.keys().cloned()).collect();
    let mut parts = vec![lacks("binary", bin, &of_package, programs.map(name).collect())];
    // The features of a dependency are not checked.
    let own = features.iter().filter(|feature| !feature.contains('/'));
    parts.extend(own.map(|feature| lacks("features", feature, &of_package, known.clone())));
    parts.into_iter().flatten().next()
}

/// The root of the workspace that contains a folder.
async fn find_workspace(cargo: &Path, folder: &Path, package: &str) -> Result<Option<PathBuf>, BuildError> {
    let arguments = ["locate-project", "--workspace", "--message-format", "plain"].map(OsString::from);
    let output = run(cargo, folder, &arguments, package, Duration::from_secs(60)).await?;
    let manifest = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    Ok(manifest.parent().filter(|_| output.status.success()).map(Path::to_owned))
}

/// The triple of this machine, which must be passed so that `RUSTFLAGS` do not apply to build scripts and procedural
/// macros.
async fn host_triple(cargo: &Path, workspace: &Path, package: &str) -> Result<String, BuildError> {
    let arguments = ["-vV".into()];
    let output = run(cargo, workspace, &arguments, package, Duration::from_secs(60)).await?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().find_map(|line| line.strip_prefix("host: ")) {
        Some(host) => Ok(host.trim().to_owned()),
        None => Err(BuildError::Failed {
            command: shown(cargo, &arguments),
            status: harness_core::files::ended(output.status),
            lines: last_lines(&String::from_utf8_lossy(&output.stderr), LINES_SHOWN),
        }),
    }
}

async fn run(
    cargo: &Path,
    workspace: &Path,
    arguments: &[OsString],
    package: &str,
    limit: Duration,
) -> Result<Output, BuildError> {
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(workspace).stdin(Stdio::null()).kill_on_drop(true);
    command.env_clear().envs(clean_environment(std::env::vars_os()));
    match timeout(limit, bounded::output(&mut command)).await {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(source)) => {
            Err(BuildError::NoCargo { cargo: cargo.to_owned(), package: package.to_owned(), source })
        }
        Err(_) => Err(BuildError::TimedOut { command: shown(cargo, arguments), limit }),
    }
}

/// The environment without the variables of an outer cargo for its children, and with the flags for static linking.
///
/// `RUSTUP_TOOLCHAIN` stays: it makes `rustc` the one that belongs to the `CARGO` in use.
fn clean_environment(outer: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<OsString, OsString> {
    let mut inner: BTreeMap<OsString, OsString> =
        outer.filter(|(name, _)| name.to_str().is_none_or(|name| !is_outer_cargos(name))).collect();
    inner.insert("RUSTFLAGS".into(), "-C target-feature=+crt-static".into());
    inner.insert("CARGO_TERM_COLOR".into(), "never".into());
    inner
}

/// Whether cargo sets this variable for its children, or it would change what or where cargo builds.
fn is_outer_cargos(name: &str) -> bool {
    const STARTS: &[&str] = &[
        "CARGO_PKG_",
        "CARGO_BIN_",
        "CARGO_CFG_",
        "CARGO_FEATURE_",
        "CARGO_MANIFEST_",
        "CARGO_BUILD_",
        "CARGO_PROFILE_",
    ];
    const NAMES: &[&str] = &[
        "CARGO_CRATE_NAME",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_MAKEFLAGS",
        "CARGO_PRIMARY_PACKAGE",
        "CARGO_TARGET_DIR",
        "CARGO_TARGET_TMPDIR",
        "LD_LIBRARY_PATH",
        "MAKEFLAGS",
        "MFLAGS",
        "OUT_DIR",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTDOCFLAGS",
        "RUST_RECURSION_COUNT",
    ];
    NAMES.contains(&name) || STARTS.iter().any(|start| name.starts_with(start))
}

fn shown(cargo: &Path, arguments: &[OsString]) -> String {
    let mut text = cargo.file_name().unwrap_or(cargo.as_os_str()).to_string_lossy().into_owned();
    for argument in arguments {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

/// The last lines of a text that are not empty.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(name: &str) -> bool {
        clean_environment([(OsString::from(name), OsString::from("x"))].into_iter())
            .contains_key(&OsString::from(name))
    }

    #[test]
    fn the_outer_cargo_stays_outside_and_the_users_settings_come_along() {
        for name in [
            "CARGO_HOME",
            "PATH",
            "HOME",
            "RUSTUP_TOOLCHAIN",
            "RUSTC_WRAPPER",
            "CARGO_HTTP_PROXY",
            "CARGO_NET_OFFLINE",
        ] {
            assert!(kept(name), "{name}");
        }
        for name in [
            "CARGO_PKG_NAME",
            "CARGO_MANIFEST_DIR",
            "CARGO_TARGET_DIR",
            "CARGO_ENCODED_RUSTFLAGS",
            "LD_LIBRARY_PATH",
        ] {
            assert!(!kept(name), "{name}");
        }
        let flags =
            clean_environment([(OsString::from("RUSTFLAGS"), OsString::from("-D warnings"))].into_iter());
        assert_eq!(flags[&OsString::from("RUSTFLAGS")], OsString::from("-C target-feature=+crt-static"));
    }

    #[test]
    fn the_end_of_an_output_is_its_last_full_lines() {
        assert_eq!(last_lines("one\ntwo\n\nthree\n\n", 2), "two\nthree");
        assert_eq!(last_lines("", 2), "");
    }

    #[tokio::test]
    async fn without_a_workspace_the_error_says_what_to_do() {
        let program = Program { package: "acme-ccm".into(), bin: "acme-ccm".into(), features: None };
        let elsewhere = tempfile::tempdir().expect("a folder");
        for folder in [Path::new("/nowhere"), Path::new("built-in:acme"), elsewhere.path()] {
            let error = static_binary(folder, &program).await.expect_err("there is nothing to compile");
            let expected = format!(
                "cannot compile acme-ccm: {} is not in a Cargo workspace; move the profile's folder into the \
                 workspace with the package, or name an existing image instead",
                folder.display()
            );
            assert_eq!(error.to_string(), expected);
        }
    }

    #[tokio::test]
    async fn the_workspace_is_the_one_the_folder_is_in() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = find_workspace(Path::new("cargo"), &here.join("src/images"), "harness-clusters")
            .await
            .expect("cargo");
        assert_eq!(found.as_deref(), here.ancestors().nth(2));
    }

    #[tokio::test]
    async fn a_missing_package_is_reported_with_the_available_ones() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let missing = async |package: &str, bin: &str, features: &[&str]| {
            let features = Some(features.iter().map(|one| (*one).to_owned()).collect());
            unknown_part(&here, &Program { package: package.into(), bin: bin.into(), features }).await
        };
        assert_eq!(missing("ccm-conformance", "ccm-conformance", &[]).await, None);
        let (key, what) = missing("harnes", "harnes", &[]).await.expect("it is misspelt");
        assert!(key == "package" && what.contains("has no 'harnes'; it has "), "{key}: {what}");
        assert!(what.contains("fake-cloud, ") && what.contains(", suites"), "{what}");
        let (key, what) = missing("ccm-conformance", "ccm", &[]).await.expect("it has no such program");
        assert!(
            key == "binary" && what.starts_with("package ccm-conformance has no 'ccm'; it has "),
            "{key}: {what}"
        );
        assert!(what.contains("ccm-conformance"), "{what}");
        let (key, what) =
            missing("ccm-conformance", "ccm-conformance", &["fast"]).await.expect("it has no such feature");
        assert!(key == "features" && what.contains("has no 'fast'; it has "), "{key}: {what}");
        let elsewhere = tempfile::tempdir().expect("a folder");
        let program = Program { package: "a".into(), bin: "a".into(), features: None };
        let (key, what) = unknown_part(elsewhere.path(), &program).await.expect("there is no workspace");
        assert!(key == "package" && what.ends_with("is not in a Cargo workspace"), "{key}: {what}");
    }
}
