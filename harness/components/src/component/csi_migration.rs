//! A cluster whose in-tree volumes were migrated to CSI drivers.

use super::{Change, Component, Keys, run_instead};
use harness_config::{Profile, ProfileKind, Section};
use harness_core::check::Facility;

/// Volumes that were migrated to CSI drivers.
pub(super) struct CsiMigration;

/// The command of this program that is the reference driver with mutants and variants.
const CHANGEABLE: &str = "reference-csi-driver-mutant";
/// The variable that selects one.
const VARIABLE: &str = "REFERENCE_CSI_DRIVER_MUTANT";

impl Component for CsiMigration {
    fn section(&self) -> &'static Section {
        Section::of(ProfileKind::CsiMigration)
    }

    fn noun(&self) -> &'static str {
        "a cluster"
    }

    fn reference(&self) -> &'static str {
        "reference-csi-driver"
    }

    fn change(&self, _: Change, id: &str, keys: &mut Keys) {
        run_instead(self.section(), CHANGEABLE, (VARIABLE, id), keys);
    }

    fn feature(&self) -> Option<Facility> {
        Some(Facility::CsiDrivers)
    }

    fn shown(&self, profile: &Profile) -> Option<(&'static str, String)> {
        profile.csi_migration.as_ref().map(|drivers| ("drivers", drivers.to_string()))
    }
}
