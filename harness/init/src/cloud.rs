//! `init cloud`: writes a driver to start from.

use super::folder::{exists, is_a_path, put};
use super::{InitCloudOptions, Language};
use harness_config::REFERENCE_PROFILE;
use harness_core::files;
use std::path::PathBuf;

/// A built-in driver to start from.
struct Skeleton {
    /// The built-in folder of its files.
    folder: &'static str,
    /// Its files.
    files: &'static [&'static str],
    /// Its name in these files.
    name: &'static str,
    /// The program and its first arguments, relative to the folder that is written.
    line: &'static [&'static str],
    /// The part that stands for the simulator, which the user's own replaces.
    simulator: &'static str,
}

const PYTHON: Skeleton = Skeleton {
    folder: "drivers/python",
    files: &["driver.py"],
    name: "python-simulator",
    line: &["python3", "driver.py"],
    simulator: "VendorApi and Cloud",
};

/// A separate project.
const RUST: Skeleton = Skeleton {
    folder: "drivers/rust",
    files: &["Cargo.toml", "src/main.rs", "src/cloud.rs", "src/driver.rs", "src/vendor.rs"],
    name: "rust-simulator",
    line: &["target/release/driver"],
    simulator: "src/vendor.rs and src/cloud.rs",
};

/// The built-in routes file of its simulator, for a recording proxy in front of it.
const ROUTES: &str = "routes/native.yaml";

/// Writes driver, profile and manifests; returns a description of them.
///
/// # Errors
/// The folder already exists, or cannot be written.
pub(super) fn make(options: &InitCloudOptions) -> Result<String, String> {
    let name = &options.name;
    let sound = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(sound) || name.starts_with('-') {
        return Err(format!("invalid name of a cloud '{name}': expected lower-case letters, digits and '-'"));
    }
    let folder = options.out.clone().unwrap_or_else(|| PathBuf::from(name));
    if folder.exists() {
        return Err(exists(&folder));
    }
    let skeleton = match options.driver {
        Language::Python => PYTHON,
        Language::Rust => RUST,
    };
    let text = |file: &str| files::read(&files::built_in(file)).map_err(|error| error.to_string());
    let mut written = Vec::new();
    for file in skeleton.files {
        let text = text(&format!("{}/{file}", skeleton.folder))?;
        written.push(((*file).to_owned(), text.replace(skeleton.name, name)));
    }
    written.push(("profile.yaml".to_owned(), profile(name, &skeleton)?));
    written.push(("routes.yaml".to_owned(), text(ROUTES)?));
    if options.driver == Language::Rust {
        written.push((".gitignore".to_owned(), "/target\n".to_owned()));
    }
    let manifests = files::list(&files::built_in(&format!("{REFERENCE_PROFILE}/manifests")));
    for file in manifests.map_err(|error| error.to_string())? {
        let text = files::read(&file).map_err(|error| error.to_string())?;
        let file = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        written.push((format!("manifests/{file}"), text));
    }
    put(&folder, &written)
        .map_err(|error| format!("{}: {}", folder.display(), files::why_not_written(&error)))?;
    let mut text = String::new();
    written.iter().for_each(|(file, _)| text.push_str(&format!("wrote {}\n", folder.join(file).display())));
    let (shown, path) = (folder.display(), if is_a_path(&folder) { "" } else { "./" });
    text.push_str("\nNext:\n");
    if options.driver == Language::Rust {
        let line = format!(
            "  cargo build --release --manifest-path {shown}/Cargo.toml --target-dir {shown}/target\n"
        );
        text.push_str(&line);
    }
    let (program, first) = skeleton.line.split_last().expect("a program");
    let first: String = first.iter().map(|part| format!("{part} ")).collect();
    text.push_str(&format!(
        "  ccm-conformance driver check --command {first}{path}{shown}/{program} --listen '${{DRIVER_LISTEN}}' --token-file \
         '${{DRIVER_TOKEN_FILE}}'\n  ccm-conformance run --cluster embedded --profile {path}{shown}    # tests the reference CCM with this \
         driver\nThen put your simulator in the place of {}, and your CCM's manifests and image in those of the reference CCM: until \
         then the result says nothing about your CCM.\n",
        skeleton.simulator
    ));
    Ok(text)
}

/// The reference CCM's profile, with the driver as its cloud.
fn profile(name: &str, skeleton: &Skeleton) -> Result<String, String> {
    let file = files::built_in(&format!("{REFERENCE_PROFILE}/profile.yaml"));
    let reference = files::read(&file).map_err(|error| error.to_string())?;
    // A program that is not part of the system is next to the profile.
    let line = skeleton.line.join(", ");
    let driver = format!(
        "cloud:\n  driver:\n    command: [{line}, --listen, \"${{DRIVER_LISTEN}}\", --token-file, \
         \"${{DRIVER_TOKEN_FILE}}\"]\n  # A recording proxy before it gives journal, faults and barriers; routes.yaml says what calls \
         mean.\n  # proxy: {{routes: routes.yaml}}\n"
    );
    let lines = reference.lines().skip(1).map(|line| match line.split(':').next() {
        Some("cloud") => driver.clone(),
        Some("name") => format!("name: {name}\n"),
        Some("description") => {
            format!("description: The reference CCM with the driver of {name} as its cloud.\n")
        }
        _ => format!("{line}\n"),
    });
    let head = "# Written by 'ccm-conformance init cloud': the reference CCM against the driver next to this file. Put your CCM in\n\
         # its place: image, manifests, capabilities.\n";
    Ok(head.to_owned() + &lines.collect::<String>())
}
