//! Labelled text that fits the window.

use harness_components::component::{Component, of_party};
use harness_core::check::Party;
use harness_core::output;
use harness_testkit::Check;

/// The option that names the CCM under test; without it the reference CCM is tested.
const PROFILE: &str = "--profile DIR ";

/// The option that checks of upgrades need.
const OLD_RELEASE: &str = "--upgrade-from binary:PATH ";

/// The option that checks of a soak need.
const SOAK: &str = "--soak 10m ";

/// The beginning of the command that runs these checks of one party, up to the options that name them.
pub(super) fn command(judged: Party, checks: &[&Check]) -> String {
    let profile = of_party(judged).map(Component::option).unwrap_or_default();
    let is_default = profile.is_empty() && of_party(judged).is_some();
    let profile = if is_default { PROFILE.to_owned() } else { profile };
    let before = if checks.iter().any(|check| check.upgrades) { OLD_RELEASE } else { "" };
    let soak = if checks.iter().all(|check| check.soaks) { SOAK } else { "" };
    format!("ccm-conformance run {profile}{before}{soak}")
}

/// Text after a label, wrapped at spaces to the width of the terminal; a word that is too long for that stays whole.
pub(super) fn labelled(label: &str, text: &str) -> String {
    wrapped(label, text, width_of(output::columns()))
}

/// The width of texts, without their labels, on a terminal with this many columns. 0 columns: the output is not a
/// terminal.
fn width_of(columns: usize) -> usize {
    const WIDEST: usize = 100;
    const LABELS: usize = 16;
    const NARROWEST: usize = 40;
    if columns == 0 { WIDEST } else { columns.saturating_sub(LABELS).clamp(NARROWEST, WIDEST) }
}

fn wrapped(label: &str, text: &str, width: usize) -> String {
    let mut out = format!("  {label:<14}");
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            out.push_str("\n                ");
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_as_wide_as_the_window() {
        let text = "word ".repeat(60);
        for (columns, widest) in [(0, 116), (80, 80), (120, 116), (20, 56)] {
            let lines = wrapped("label:", &text, width_of(columns));
            let longest = lines.lines().map(str::len).max();
            assert!(
                longest.is_some_and(|longest| longest <= widest && longest > widest - 5),
                "{columns}: {lines}"
            );
        }
    }
}
