//! An image or program that the user names instead of the one in the profile.

use super::cluster::WantedCluster;
use super::enums::BackendKind;
use super::executable::not_executable_here;
use super::plan::Planning;
use super::profile::{Image, Profile};
use harness_core::files;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

impl Planning {
    /// Replaces the image of the profile by the one that the user names.
    pub(super) fn replace_image(&mut self, key: &str, profile: &mut Profile, image: String) {
        if profile.deploys_nothing() {
            self.problem(key, format!("profile '{}' deploys nothing", profile.name));
        } else if profile.image.is_none() && !leave_the_image_open(profile) {
            let say = "its manifests name the image; write '${IMAGE}' there instead";
            self.problem(key, format!("cannot be chosen for profile '{}': {say}", profile.name));
        } else {
            profile.image = Some(Image::Reference(image));
        }
    }

    /// Checks that the program exists, and that the cluster can run programs.
    pub(super) fn check_binary(
        &mut self,
        key: &str,
        binary: &Path,
        cluster: &WantedCluster,
        profile: Option<&Profile>,
    ) {
        match std::fs::metadata(binary) {
            Ok(file) if !file.is_file() => {
                self.problem(key, format!("{} is not a file", binary.display()));
            }
            Ok(file) if file.permissions().mode() & 0o111 == 0 => {
                self.problem(key, format!("{} is not executable", binary.display()));
            }
            Ok(_) => {
                if let Some(why) = not_executable_here(binary) {
                    self.problem(key, format!("{} {why}", binary.display()));
                }
            }
            Err(error) => self.problem(key, format!("{}: {}", binary.display(), files::why(&error))),
        }
        if profile.is_some_and(|profile| !profile.has_ccm() && profile.image_credentials.is_some()) {
            return;
        }
        if cluster.backend().is_some_and(|backend| backend != BackendKind::Embedded) {
            let with = self.backend_words("embedded");
            let what = format!("has a meaning only with {with}; on other clusters the CCM is an image");
            self.problem(key, what);
        }
        // A profile that is not complete has other problems, of which this one is a consequence.
        if let Some(profile) =
            profile.filter(|profile| profile.deploys_nothing() && self.problems.0.is_empty())
        {
            self.problem(key, format!("profile '{}' deploys nothing", profile.name));
        }
    }
}

/// Whether the manifests of a profile have a place for an image that they do not name. A manifest that cannot be read is
/// reported when it is deployed.
fn leave_the_image_open(profile: &Profile) -> bool {
    profile.manifests.iter().any(|file| files::read(file).is_ok_and(|text| text.contains("${IMAGE}")))
}

#[cfg(test)]
mod tests {
    use crate::{PluginProgram, RunFile, Source, plan};

    #[test]
    fn of_a_plugin_alone_the_program_is_the_plugins() {
        let program = tempfile::NamedTempFile::new().expect("a file").into_temp_path();
        std::fs::write(&program, "#!/bin/sh\n").expect("written");
        let path = program.canonicalize().expect("there").to_string_lossy().into_owned();
        let named = |profile: &str| RunFile {
            profile: Some(profile.to_owned()),
            binary: Some(path.clone()),
            ..RunFile::default()
        };
        let refused = plan(&Source::Defaults, named("ecr-credential-provider")).expect_err("no program");
        assert!(refused.to_string().contains("is not executable"), "{refused}");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&program, mode).expect("ours");
        for (profile, arguments) in [
            ("ecr-credential-provider", None),
            ("reference-credential-provider", Some("reference-credential-provider")),
        ] {
            let planned = plan(&Source::Defaults, named(profile)).expect("a plan");
            let line = [path.as_str()].into_iter().chain(arguments).map(str::to_owned).collect();
            let plugin = planned.profile.image_credentials.expect("it has one");
            assert_eq!((plugin.program, planned.binary), (PluginProgram::Line(line), None));
        }
        assert!(
            plan(&Source::Defaults, named("reference-network-proxy")).is_err(),
            "there is no program to replace"
        );
    }
}
