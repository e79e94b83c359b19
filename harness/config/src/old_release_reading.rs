//! Reads which release a run upgrades from, and whether the CCM under test can replace it.

use super::cluster::WantedCluster;
use super::old_release::{OldRelease, UpgradeKeys};
use super::plan::Planning;
use super::profile::{self, Profile};
use super::profile_reading;
use std::path::{Path, PathBuf};

impl Planning {
    /// The release that the keys describe, next to the CCM under test with its program; `None` without keys. What cannot be
    /// upgraded, or from that release, is a problem.
    pub(super) fn old_release(
        &mut self,
        keys: UpgradeKeys,
        cluster: &WantedCluster,
        (new, binary): (&Profile, Option<&Path>),
    ) -> Option<OldRelease> {
        const PROFILE: &str = "upgradeFrom.profile";
        if keys == UpgradeKeys::default() {
            return None;
        }
        if let Some(why) = not_upgraded(new) {
            self.problem("upgradeFrom", format!("profile '{}' {why}", new.name));
            return None;
        }
        let mut profile = match &keys.profile {
            None => new.clone(),
            Some(name) => match profile::find(name) {
                Ok(file) => profile_reading::read(&file, &self.over_old_profile, &mut self.problems)?,
                Err(what) => {
                    self.problem(PROFILE, what);
                    return None;
                }
            },
        };
        if let Some(why) = not_upgraded(&profile) {
            self.problem(PROFILE, format!("profile '{}' {why}", profile.name));
        }
        if profile.cloud != new.cloud {
            let what = format!(
                "profile '{}' has another cloud than '{}'; both releases use the same one in an upgrade",
                profile.name, new.name
            );
            self.problem(PROFILE, what);
        }
        if keys.image.is_some() && keys.binary.is_some() {
            self.problem(
                "upgradeFrom.image",
                "names an image, and a program was named as well; name one of the two",
            );
        }
        if let Some(image) = keys.image {
            self.replace_image("upgradeFrom.image", &mut profile, image);
        }
        let old_binary = keys.binary.map(PathBuf::from);
        if let Some(old_binary) = &old_binary {
            self.check_binary("upgradeFrom.binary", old_binary, cluster, Some(&profile));
        }
        let is_same = profile == *new && old_binary.as_deref() == binary;
        if is_same {
            let what = "is the CCM under test itself: name another image, program or profile";
            self.problem("upgradeFrom", what);
        }
        Some(OldRelease { profile, binary: old_binary })
    }
}

/// Why the CCM of a profile cannot be part of an upgrade.
fn not_upgraded(profile: &Profile) -> Option<&'static str> {
    if !profile.has_ccm() || profile.deploys_nothing() {
        return Some("deploys no CCM, and an upgrade needs one before and after it");
    }
    profile.is_hosted().then_some("runs its CCM outside the cluster, where the harness does not upgrade it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RunFile, Source, plan};

    /// The problems of a run that upgrades the reference CCM from that release; none if there is a plan.
    fn said(upgrade_from: UpgradeKeys) -> Vec<String> {
        let run = RunFile { upgrade_from, ..RunFile::default() };
        match plan(&Source::Defaults, run) {
            Ok(_) => Vec::new(),
            Err(problems) => problems.0.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn the_old_release_is_another_one_with_a_ccm_and_the_same_cloud() {
        let profile = |name: &str| UpgradeKeys { profile: Some(name.to_owned()), ..UpgradeKeys::default() };
        assert_eq!(said(profile("mutants")), Vec::<String>::new());
        for (keys, why) in [
            (profile("reference"), "is the CCM under test itself"),
            (profile("null"), "deploys no CCM"),
            (profile("reference-hosted"), "outside the cluster"),
            (profile("hcloud"), "has another cloud"),
            (profile("refrence"), "reference"),
            (
                UpgradeKeys {
                    image: Some("a:1".to_owned()),
                    binary: Some("/bin/true".to_owned()),
                    profile: None,
                },
                "name one of the two",
            ),
            (
                UpgradeKeys { binary: Some("/nowhere/ccm".to_owned()), ..UpgradeKeys::default() },
                "/nowhere/ccm",
            ),
        ] {
            let said = said(keys);
            assert!(said.iter().any(|one| one.contains(why)), "{why}: {said:?}");
        }
    }
}
