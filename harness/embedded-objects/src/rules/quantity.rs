//! Resource quantities: parsing, canonical form and comparison.
//!
//! Source: `k8s.io/apimachinery/pkg/api/resource`.

use std::cmp::Ordering;

/// The message about a text that is not a quantity.
pub const FORM: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const SUFFIX: &str = "unable to parse quantity's suffix";

const NANOS: i128 = 1_000_000_000;
/// The largest amount a quantity holds (2^63 - 1), in billionths.
const MOST: i128 = (i64::MAX as i128) * NANOS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Decimal,
    Exponent,
    Binary,
}

/// One quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    nanos: i128,
    form: Form,
    /// The original text, if it is already canonical.
    text: Option<String>,
}

impl Quantity {
    /// Parses a quantity.
    ///
    /// # Errors
    /// The API server's message about the fault.
    pub fn parse(text: &str) -> Result<Quantity, &'static str> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let number_end =
            unsigned.find(|ch: char| !ch.is_ascii_digit() && ch != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(number_end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let whole = whole.trim_start_matches('0');
        let whole = if whole.is_empty() { "0" } else { whole };
        if number.is_empty() || number == "." || fraction.contains('.') || !suffix_formed(suffix) {
            return Err(FORM);
        }
        let (base_two, exponent, form) = interpret(suffix).ok_or(SUFFIX)?;
        let negative = text.starts_with('-');
        let nanos = scaled(whole, fraction, base_two, exponent);
        let mut quantity = Quantity { nanos: if negative { -nanos } else { nanos }, form, text: None };
        if form == Form::Binary && nanos > 0 && nanos < NANOS {
            quantity.form = Form::Decimal;
        }
        if text == "0" || canonical(whole, fraction, base_two, exponent) {
            quantity.text = Some(text.to_owned());
        }
        Ok(quantity)
    }

    /// The canonical text.
    pub fn text(&self) -> String {
        if let Some(text) = &self.text {
            return text.clone();
        }
        if self.nanos == 0 {
            return "0".to_owned();
        }
        let binary = self.form == Form::Binary
            && self.nanos % NANOS == 0
            && !(-1024 * NANOS < self.nanos && self.nanos < 1024 * NANOS);
        if binary {
            let (mut value, mut at) = (self.nanos / NANOS, 0);
            while value % 1024 == 0 && at < 6 {
                value /= 1024;
                at += 1;
            }
            return format!("{value}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][at]);
        }
        let (mut value, mut exponent) = (self.nanos, -9);
        while value % 1000 == 0 && exponent < 18 {
            value /= 1000;
            exponent += 3;
        }
        let suffix = match (self.form, exponent) {
            (Form::Exponent, 0) | (_, 0) => String::new(),
            (Form::Exponent, exponent) => format!("e{exponent}"),
            (_, exponent) => {
                let at = usize::try_from((exponent + 9) / 3).unwrap_or_default();
                ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"]
                    .get(at)
                    .copied()
                    .unwrap_or_default()
                    .to_owned()
            }
        };
        format!("{value}{suffix}")
    }

    /// Whether it is negative.
    pub fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// Whether it is a whole number.
    pub fn is_whole(&self) -> bool {
        self.nanos % NANOS == 0
    }

    /// Compares amounts.
    pub fn compare(&self, other: &Quantity) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// The amount of a quantity's text in billionths; `None` if it is not a quantity.
pub fn billionths(text: &str) -> Option<i128> {
    Quantity::parse(text.trim()).ok().map(|quantity| quantity.nanos)
}

/// The canonical form of a quantity's text.
///
/// # Errors
/// The API server's message about the fault.
pub fn canonicalized(text: &str) -> Result<String, &'static str> {
    Quantity::parse(text.trim()).map(|quantity| quantity.text())
}

fn suffix_formed(suffix: &str) -> bool {
    let letters = suffix.trim_start_matches(|ch: char| "eEinumkKMGTP".contains(ch));
    let digits = letters.strip_prefix(['-', '+']).unwrap_or(letters);
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the suffix counts in powers of two, its exponent, and its form.
fn interpret(suffix: &str) -> Option<(bool, i32, Form)> {
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().position(|known| *known == suffix);
    if let Some(at) = binary {
        return Some((true, 10 * (i32::try_from(at).unwrap_or(0) + 1), Form::Binary));
    }
    let decimal = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"].iter().position(|known| *known == suffix);
    if let Some(at) = decimal {
        return Some((false, 3 * (i32::try_from(at).unwrap_or(0) - 3), Form::Decimal));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    exponent.parse::<i32>().ok().map(|exponent| (false, exponent, Form::Exponent))
}

/// The amount in billionths, rounded up, at most the largest amount.
fn scaled(whole: &str, fraction: &str, base_two: bool, exponent: i32) -> i128 {
    let digits: String = whole.chars().chain(fraction.chars()).collect();
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    // The power of ten that converts the digits to billionths.
    let tens = if base_two { 9i32 } else { exponent.saturating_add(9) }.saturating_sub(places);
    // More digits than a quantity can have only affect the limit or the last billionth.
    let kept: String = digits.chars().take(30).collect();
    let dropped = i32::try_from(digits.len() - kept.len()).unwrap_or(i32::MAX);
    let tens = tens.saturating_add(dropped);
    let mut value: i128 = kept.parse().unwrap_or(i128::MAX);
    if base_two {
        value = value.saturating_mul(1i128 << exponent.clamp(0, 60));
    }
    if tens >= 0 {
        for _ in 0..tens.min(40) {
            value = value.saturating_mul(10);
        }
    } else {
        let mut inexact = dropped > 0;
        for _ in 0..tens.unsigned_abs().min(60) {
            inexact |= value % 10 != 0;
            value /= 10;
        }
        value += i128::from(inexact);
    }
    value.min(MOST)
}

/// Whether the text is kept unchanged.
fn canonical(whole: &str, fraction: &str, base_two: bool, exponent: i32) -> bool {
    let digits = i32::try_from(whole.len() + fraction.len()).unwrap_or(i32::MAX);
    let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let shifted = format!("{whole}{fraction}");
    let Ok(value) = shifted.parse::<i64>() else { return false };
    if base_two {
        let room = 15 - i32::try_from(whole.len()).unwrap_or(i32::MAX) - exponent * 3 / 10 - 1;
        fraction.is_empty() && room >= 0 && value & 7 != 0
    } else {
        let scale = exponent.saturating_sub(places);
        18 - digits >= 0
            && scale >= -9
            && scale % 3 == 0
            && !shifted.ends_with("000")
            && !shifted.starts_with('0')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(canonicalized(text).as_deref(), Ok(expected), "{text}");
    }

    #[test]
    fn quantities_are_written_as_the_server_writes_them() {
        for (text, expected) in [
            ("2", "2"),
            ("0", "0"),
            ("100m", "100m"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("1000m", "1"),
            ("1024Mi", "1Gi"),
            ("100Mi", "100Mi"),
            ("8Mi", "8Mi"),
            ("1.5Gi", "1536Mi"),
            ("1000", "1k"),
            ("3e3", "3e3"),
            ("1e3", "1e3"),
            ("-5", "-5"),
            ("0.1Ki", "102400m"),
            ("12345678901234567890", "9223372036854775807"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            (" 7 ", "7"),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn invalid_quantities_are_reported() {
        assert_eq!(Quantity::parse(""), Err(FORM));
        assert_eq!(Quantity::parse("abc"), Err(FORM));
        assert_eq!(Quantity::parse("1.2.3"), Err(FORM));
        assert_eq!(Quantity::parse("1kk"), Err(SUFFIX));
        assert_eq!(Quantity::parse("1é"), Err(FORM));
    }

    #[test]
    fn amounts_compare() {
        let parse = |text: &str| Quantity::parse(text).expect("a quantity");
        assert_eq!(parse("1Ki").compare(&parse("1k")), Ordering::Greater);
        assert_eq!(parse("500m").compare(&parse("0.5")), Ordering::Equal);
        assert!(parse("-1").is_negative());
        assert!(!parse("1.5").is_whole());
    }
}
