//! Explains the CCMs of `controls`: mutants, conforming variants and adversaries.

use super::lines::labelled;
use crate::controls::list::{Adversary, Mutant, Variant, adversaries, mutants, variants};
use harness_components::component::of_kind;
use harness_config::yaml;
use harness_core::ledger::Share;
use serde_json::{Map, Value};

/// The explanation of a mutant, a conforming variant or an adversary; `None` for another name.
///
/// # Errors
/// A list of them cannot be read.
pub(super) fn explanation(id: &str) -> Result<Option<String>, String> {
    let same = |name: &str| name.eq_ignore_ascii_case(id);
    if let Some(one) = mutants(&[], Share::WHOLE)?.iter().find(|one| same(&one.mutant)) {
        return Ok(Some(of_mutant(one)));
    }
    if let Some(one) = variants(&[], Share::WHOLE)?.iter().find(|one| same(&one.variant)) {
        return Ok(Some(of_variant(one)));
    }
    let adversaries = adversaries(&[], Share::WHOLE)?;
    Ok(adversaries.iter().find(|one| same(&one.adversary)).map(of_adversary))
}

fn of_mutant(mutant: &Mutant) -> String {
    let id = &mutant.mutant;
    let noun = of_kind(mutant.of).noun();
    let head = match mutant.as_is {
        true => format!("{id}  a mutant: {noun} with a fault in its profile\n\n"),
        false => format!("{id}  a mutant: {noun} with a bug on purpose\n\n"),
    };
    let mut text = head + &labelled("the bug:", &mutant.what);
    text.push_str(&changed(&mutant.profile));
    text.push_str(&labelled("must fail:", &mutant.checks.join(", ")));
    text + &labelled("see it fail:", &format!("ccm-conformance controls --mutant {id}"))
}

fn of_variant(variant: &Variant) -> String {
    let id = &variant.variant;
    let noun = of_kind(variant.of).noun();
    let mut text = format!("{id}  a conforming variant: {noun} that is correct in an unusual way\n\n");
    text.push_str(&labelled("what it does:", &variant.what));
    text.push_str(&changed(&variant.profile));
    let checks = match variant.checks.as_slice() {
        [] => "all checks that apply".to_owned(),
        checks => checks.join(", "),
    };
    text.push_str(&labelled("must pass:", &checks));
    text + &labelled("see it pass:", &format!("ccm-conformance controls --variant {id}"))
}

fn of_adversary(adversary: &Adversary) -> String {
    let id = &adversary.adversary;
    let mut text = format!("{id}  an adversary: a CCM that works, and also does harm\n\n");
    text.push_str(&labelled("what it does:", &adversary.what));
    let lists = [
        ("must fail:", &adversary.fails),
        ("is blocked:", &adversary.blocked),
        ("must pass:", &adversary.passes),
    ];
    for (label, checks) in lists.into_iter().filter(|(_, checks)| !checks.is_empty()) {
        text.push_str(&labelled(label, &checks.join(", ")));
    }
    if let Some(why) = &adversary.unblamed {
        text.push_str(&labelled("no check fails:", why));
    }
    text.push_str(&labelled("may take:", &format!("{} s", adversary.within)));
    text + &labelled("see it:", &format!("ccm-conformance controls --adversary {id}"))
}

/// The keys of the profile that differ from the reference's.
fn changed(profile: &Map<String, Value>) -> String {
    match profile.is_empty() {
        true => String::new(),
        false => {
            let mut text = "  its profile:\n".to_owned();
            let keys = yaml::to_string(&Value::Object(profile.clone()));
            keys.unwrap_or_default().lines().for_each(|line| text.push_str(&format!("    {line}\n")));
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ccm_of_controls_is_explained_with_its_checks() {
        let explained = |id: &str| explanation(id).expect("lists").unwrap_or_else(|| panic!("{id}"));
        let mutant = explained("m-ni-12");
        for part in
            ["M-NI-12  a mutant: a CCM with a bug", "    budgets:\n", "NODE-INIT-18", "--mutant M-NI-12"]
        {
            assert!(mutant.contains(part), "{part}:\n{mutant}");
        }
        let variant = explained("S-PATIENT");
        assert!(variant.contains("waits for the API server") && variant.contains("BOOT-DYN"), "{variant}");
        let adversary = explained("A-SIGTERM");
        assert!(adversary.contains("must fail:    OBS-09") && adversary.contains("240 s"), "{adversary}");
        assert_eq!(explanation("NODE-INIT-01"), Ok(None));
        assert!(explained("M-SV-13").contains("the bug:      does not remove old ports\n"));
    }
}
