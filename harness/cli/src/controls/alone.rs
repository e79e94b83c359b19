//! The plan for one mutant or conforming variant of the reference CCM outside of `controls`.

use super::choose::{changed, given};
use super::list;
use harness_components::component::{Change, of_kind};
use harness_config::{ProfileKind, RunFile, RunPlan, WantedCluster};
use harness_core::ledger::Share;

/// The plan for the mutant or the conforming variant with this id, and these other options.
///
/// # Errors
/// There is none with this id, it is not a CCM, or its plan is not valid.
pub(crate) fn plan_of(change: Change, id: &str, run: RunFile) -> Result<RunPlan<WantedCluster>, String> {
    let chosen = [id.to_owned()];
    let (of, as_is, keys) = match change {
        Change::Mutant => {
            let mutant = list::mutants(&chosen, Share::WHOLE)?.swap_remove(0);
            (mutant.of, mutant.as_is, mutant.profile)
        }
        Change::Variant => {
            let variant = list::variants(&chosen, Share::WHOLE)?.swap_remove(0);
            (variant.of, variant.as_is, variant.profile)
        }
    };
    if of != ProfileKind::Profile {
        return Err(format!("{id} is not a CCM: only CCMs are explored"));
    }
    let ccm = of_kind(of);
    let keys = changed(ccm, as_is, (change, id), keys);
    let run = RunFile { profile: Some(ccm.changeable().to_owned()), ..run };
    given(run, &keys).map_err(|problems| problems.to_string())
}
