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
    /// Those that failed last, and no others.
    OnlyFailed,
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
            Selection::Typed | Selection::OnlyFailed => typed.clone(),
            Selection::Quick => SelectKeys { quick: Some(true), ..SelectKeys::default() },
            Selection::All => SelectKeys::default(),
            Selection::Failed(ids) => only(ids.clone()),
            Selection::Named(text) => {
                let ids = text.split([',', ' ']).map(str::trim).filter(|id| !id.is_empty());
                only(ids.map(str::to_owned).collect())
            }
        }
    }

    /// The command that judges the same checks, without the options of the user.
    pub(super) fn reproduced(&self) -> String {
        let typed: Vec<String> = std::env::args().skip(2).collect();
        let own = shlex::try_join(typed.iter().map(String::as_str)).unwrap_or_else(|_| typed.join(" "));
        format!("ccm-conformance dev {own}").trim_end().to_owned()
    }
}

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
}
