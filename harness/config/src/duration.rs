//! Durations as people write them: `90s`, `1m30s`, `250ms`, `2h`. Crates such as humantime accept more (`1 day`), which the
//! JSON Schema of the files and Go programs do not.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A length of time with its unit: one or more of `<number>h`, `<number>m`, `<number>s`, `<number>ms`, largest first,
/// without spaces; only the last number may have a fraction (`1.5s`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HumanDuration(pub Duration);

/// The reason why a text is not a [`HumanDuration`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDuration {
    /// A bare number.
    #[error("a duration needs a unit, e.g. '30s' or '1m30s'")]
    NoUnit,
    /// Any other invalid form.
    #[error("not a duration; write e.g. '250ms', '30s', '1m30s' or '2h'")]
    Form,
    /// More than the harness can wait for: over a week.
    #[error("a duration of more than 168h makes no sense here")]
    TooLong,
}

const UNITS: &[(&str, f64)] = &[("h", 3600.0), ("m", 60.0), ("s", 1.0), ("ms", 0.001)];
const WEEK_S: f64 = 168.0 * 3600.0;

impl FromStr for HumanDuration {
    type Err = BadDuration;

    fn from_str(text: &str) -> Result<Self, BadDuration> {
        let (mut rest, mut units, mut seconds) = (text, UNITS, 0.0);
        if rest.is_empty() {
            return Err(BadDuration::Form);
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let (number, tail) = rest.split_at(digits);
            let value: f64 = match number.parse() {
                Ok(value) if !number.ends_with('.') && !number.starts_with('.') => value,
                _ => return Err(BadDuration::Form),
            };
            let word = &tail[..tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len())];
            if word.is_empty() {
                return Err(if tail.is_empty() { BadDuration::NoUnit } else { BadDuration::Form });
            }
            let at = units.iter().position(|(unit, _)| *unit == word).ok_or(BadDuration::Form)?;
            seconds += value * units[at].1;
            units = &units[at + 1..];
            rest = &tail[word.len()..];
            if number.contains('.') && !rest.is_empty() {
                return Err(BadDuration::Form);
            }
        }
        if seconds > WEEK_S {
            return Err(BadDuration::TooLong);
        }
        Ok(HumanDuration(Duration::from_millis((seconds * 1000.0).round() as u64)))
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let (hours, minutes) = (millis / 3_600_000, millis / 60_000 % 60);
        let (seconds, rest) = (millis / 1000 % 60, millis % 1000);
        if millis < 1000 {
            return f.pad(&if millis == 0 { String::from("0s") } else { format!("{millis}ms") });
        }
        let mut text = String::new();
        if hours > 0 {
            text.push_str(&format!("{hours}h"));
        }
        if minutes > 0 {
            text.push_str(&format!("{minutes}m"));
        }
        if rest > 0 {
            let fraction = format!("{rest:03}");
            text.push_str(&format!("{seconds}.{}s", fraction.trim_end_matches('0')));
        } else if seconds > 0 {
            text.push_str(&format!("{seconds}s"));
        }
        f.pad(&text)
    }
}

impl From<Duration> for HumanDuration {
    fn from(duration: Duration) -> Self {
        HumanDuration(duration)
    }
}

impl Serialize for HumanDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HumanDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|e| serde::de::Error::custom(format!("'{text}': {e}")))
    }
}

impl JsonSchema for HumanDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A length of time with its unit, such as 250ms, 30s, 1m30s or 2h.",
            "pattern": r"^([0-9]+h)?([0-9]+m)?([0-9]+(\.[0-9]+)?s)?([0-9]+ms)?$",
        })
    }
}

/// A [`Duration`] as people write it; for `#[serde(with = ..)]`.
pub(super) mod in_words {
    use super::HumanDuration;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::time::Duration;

    pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        HumanDuration(*duration).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        HumanDuration::deserialize(deserializer).map(|HumanDuration(duration)| duration)
    }
}

#[cfg(test)]
mod tests {
    use super::{BadDuration, HumanDuration};
    use std::time::Duration;

    #[test]
    fn reads_and_writes() {
        for (text, millis, back) in [
            ("0s", 0, "0s"),
            ("250ms", 250, "250ms"),
            ("30s", 30_000, "30s"),
            ("1.5s", 1_500, "1.5s"),
            ("0.25m", 15_000, "15s"),
            ("90s", 90_000, "1m30s"),
            ("1m30s", 90_000, "1m30s"),
            ("2h", 7_200_000, "2h"),
            ("1h0m2s5ms", 3_602_005, "1h2.005s"),
        ] {
            let read: HumanDuration = text.parse().expect("the table holds good durations");
            assert_eq!(read.0, Duration::from_millis(millis), "{text}");
            assert_eq!(read.to_string(), back, "{text}");
        }
    }

    #[test]
    fn refuses() {
        for (text, why) in [
            ("", BadDuration::Form),
            ("30", BadDuration::NoUnit),
            ("1.5", BadDuration::NoUnit),
            ("s", BadDuration::Form),
            ("-5s", BadDuration::Form),
            ("5 s", BadDuration::Form),
            ("5sec", BadDuration::Form),
            ("30s1m", BadDuration::Form),
            ("1.5m2s", BadDuration::Form),
            ("1m30", BadDuration::NoUnit),
            (".5s", BadDuration::Form),
            ("1e3s", BadDuration::Form),
            ("9999h", BadDuration::TooLong),
        ] {
            assert_eq!(text.parse::<HumanDuration>(), Err(why), "{text}");
        }
    }
}
