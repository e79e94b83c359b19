//! Which checks `dev` judges next.

use harness_config::SelectKeys;

/// The checks of one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    /// Those that the options select.
    Typed,
    /// All that take less than five seconds.
    Quick,
    /// All.
    All,
    /// These ids, which failed last.
    Failed(Vec<String>),
    /// Ids and patterns that the user has entered.
    Named(String),
}

impl Selection {
    /// The first one: what the options select, or the quick checks.
    pub(super) fn of(typed: &SelectKeys) -> Selection {
        if *typed == SelectKeys::default() { Selection::Quick } else { Selection::Typed }
    }

    /// The keys of the run file for it.
    pub(super) fn keys(&self, typed: &SelectKeys) -> SelectKeys {
        let only = |ids: Vec<String>| SelectKeys { only: Some(ids), ..SelectKeys::default() };
        match self {
            Selection::Typed => typed.clone(),
            Selection::Quick => SelectKeys { quick: Some(true), ..SelectKeys::default() },
            Selection::All => SelectKeys::default(),
            Selection::Failed(ids) => only(ids.clone()),
            Selection::Named(text) => {
                let ids = text.split([',', ' ']).map(str::trim).filter(|id| !id.is_empty());
                only(ids.map(str::to_owned).collect())
            }
        }
    }

    /// The command that judges the same checks once, for a user who has typed these words after `dev`.
    pub(super) fn reproduced(&self, typed: &[String]) -> String {
        let mut words = vec!["ccm-conformance".to_owned(), "run".to_owned()];
        let keeps_selection = matches!(self, Selection::Typed);
        let mut rest = typed.iter();
        while let Some(word) = rest.next() {
            let (option, value) =
                word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
            let selects = SELECTING.contains(&option);
            if OF_DEV.contains(&option) || selects && !keeps_selection {
                // `--quick` has no value.
                if value.is_none() && option != "--quick" {
                    rest.next();
                }
                continue;
            }
            words.push(word.clone());
        }
        if !typed.iter().any(|word| word.split('=').next() == Some("--cluster")) {
            words.extend(["--cluster", "embedded"].map(str::to_owned));
        }
        match self {
            Selection::Typed | Selection::All => {}
            Selection::Quick => words.push("--quick".to_owned()),
            Selection::Failed(ids) => words.extend(["--only".to_owned(), ids.join(",")]),
            Selection::Named(text) => words.extend(["--only".to_owned(), text.clone()]),
        }
        shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
    }
}

/// The options that `run` does not have; each has a value.
const OF_DEV: [&str; 2] = ["--build", "--source"];
/// The options that select checks.
const SELECTING: [&str; 5] = ["--only", "--suite", "--skip", "--quick", "--failed-from"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_options_the_quick_checks_are_first() {
        let none = SelectKeys::default();
        assert_eq!(Selection::of(&none), Selection::Quick);
        assert_eq!(Selection::Quick.keys(&none).quick, Some(true));
        let typed = SelectKeys { suites: Some(vec!["routes".to_owned()]), ..none.clone() };
        assert_eq!(Selection::of(&typed), Selection::Typed);
        assert_eq!(Selection::Typed.keys(&typed), typed);
        assert_eq!(Selection::All.keys(&typed), none);
        let named = Selection::Named("SVC-UPD-*, NODE-INIT-01 ".to_owned()).keys(&typed);
        assert_eq!(named.only, Some(vec!["SVC-UPD-*".to_owned(), "NODE-INIT-01".to_owned()]));
        assert_eq!(named.suites, None);
    }

    #[test]
    fn the_command_that_repeats_a_round_is_one_of_run() {
        let words = ["--build", "make acme", "--suite", "routes", "--profile", "./acme", "--quick"];
        let typed = words.map(str::to_owned);
        for (selection, command) in [
            (Selection::Typed, "run --suite routes --profile ./acme --quick --cluster embedded"),
            (Selection::All, "run --profile ./acme --cluster embedded"),
            (
                Selection::Failed(vec!["A-01".to_owned(), "A-02".to_owned()]),
                "run --profile ./acme --cluster embedded --only 'A-01,A-02'",
            ),
        ] {
            assert_eq!(selection.reproduced(&typed), format!("ccm-conformance {command}"));
        }
    }
}
