//! `init cloud`: a driver to begin with.

use super::folder::put;
use crate::cli::arguments::{InitCloudOptions, Language};
use crate::config::REFERENCE_PROFILE;
use crate::files;
use std::path::PathBuf;

/// The built-in driver in Python.
const PYTHON: &str = "drivers/python/driver.py";

/// The built-in file that says what the calls of its simulator mean, for a recording proxy before it.
const ROUTES: &str = "routes/native.yaml";

/// Writes driver, profile and manifests; what was written, in words.
///
/// # Errors
/// The folder is there already, or cannot be written.
pub(super) fn make(options: &InitCloudOptions) -> Result<String, String> {
    let name = &options.name;
    let sound = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(sound) || name.starts_with('-') {
        return Err(format!("'{name}' is no name for a cloud: small letters, digits and '-'"));
    }
    let folder = options.out.clone().unwrap_or_else(|| PathBuf::from(name));
    if folder.exists() {
        return Err(format!("{} is there already; choose another folder with --out", folder.display()));
    }
    let (program, driver) = match options.driver {
        Language::Python => ("driver.py", PYTHON),
    };
    let text = |file| files::read(&files::built_in(file)).map_err(|error| error.to_string());
    let mut written = vec![
        (program.to_owned(), text(driver)?.replace("python-simulator", name)),
        ("profile.yaml".to_owned(), profile(name, program)?),
        ("routes.yaml".to_owned(), text(ROUTES)?),
    ];
    let manifests = files::list(&files::built_in(&format!("{REFERENCE_PROFILE}/manifests")));
    for file in manifests.map_err(|error| error.to_string())? {
        let text = files::read(&file).map_err(|error| error.to_string())?;
        let file = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        written.push((format!("manifests/{file}"), text));
    }
    put(&folder, &written).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut text = String::new();
    written.iter().for_each(|(file, _)| text.push_str(&format!("wrote {}\n", folder.join(file).display())));
    let (shown, path) = (folder.display(), if folder.is_absolute() { "" } else { "./" });
    text.push_str(&format!(
        "\nNext:\n  ccm-conformance driver check --command python3 {shown}/{program} --listen '${{DRIVER_LISTEN}}' --token-file \
         '${{DRIVER_TOKEN_FILE}}'\n  ccm-conformance run --cluster embedded --profile {path}{shown}\nThen put your simulator in the \
         place of VendorApi and Cloud, and your CCM's manifests in those of the reference CCM.\n"
    ));
    Ok(text)
}

/// The reference CCM's profile, with the driver as its cloud.
fn profile(name: &str, program: &str) -> Result<String, String> {
    let file = files::built_in(&format!("{REFERENCE_PROFILE}/profile.yaml"));
    let reference = files::read(&file).map_err(|error| error.to_string())?;
    let driver = format!(
        "cloud:\n  driver:\n    command: [python3, {program}, --listen, \"${{DRIVER_LISTEN}}\", --token-file, \
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
    let head = "# Written by 'ccm-conformance init cloud': the reference CCM against the driver beside this file. Put your CCM in its\n\
         # place: image, manifests, capabilities.\n";
    Ok(head.to_owned() + &lines.collect::<String>())
}
