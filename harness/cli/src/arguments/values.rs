//! Values that options choose from.

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::str::FromStr;

/// Whether output has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

impl Color {
    /// What was asked for; `None` leaves it to the terminal.
    pub(crate) fn wanted(self) -> Option<bool> {
        match self {
            Color::Auto => None,
            Color::Always => Some(true),
            Color::Never => Some(false),
        }
    }
}

/// Accepts the words of a type that is read from them, and shows them in help and completions.
pub(super) fn words<T>(words: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| word.parse::<T>())
}

/// No upper limit for [`whole`].
pub(super) const ANY: u64 = u64::MAX;

/// Accepts whole numbers of a range, and names it in the error, whatever was typed.
pub(super) fn whole<T: TryFrom<u64>>(
    from: u64,
    to: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number| (from..=to).contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match to {
            ANY => format!("expected a whole number from {from} on"),
            _ => format!("expected a whole number from {from} to {to}"),
        })
    }
}

/// A level of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListedLevel {
    Must,
    Should,
    Info,
}

/// The form of what a command prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListOutput {
    #[default]
    Text,
    Json,
}
