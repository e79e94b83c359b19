//! Durations in Go's format: <https://pkg.go.dev/time#ParseDuration>.

const UNITS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];
/// Maximum of a `time.Duration`, in nanoseconds.
const MOST: f64 = i64::MAX as f64;

/// The seconds of a Go duration, which may be negative.
///
/// # Errors
/// Why the text is not a duration.
pub fn go_duration(text: &str) -> Result<f64, String> {
    let wrong = |why: &str| format!("'{text}' is not a Go duration: {why}");
    let (sign, mut rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (if text.starts_with('-') { -1.0 } else { 1.0 }, rest),
        None => (1.0, text),
    };
    if rest == "0" {
        return Ok(0.0);
    }
    if rest.is_empty() {
        return Err(wrong("it is empty"));
    }
    let mut nanoseconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let sound = number.bytes().any(|byte| byte.is_ascii_digit()) && number.matches('.').count() <= 1;
        let value: f64 =
            number.parse().ok().filter(|_| sound).ok_or_else(|| wrong("a number is expected"))?;
        let unit = &tail[..tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len())];
        if unit.is_empty() {
            return Err(wrong("a unit is missing, e.g. '30s'"));
        }
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        nanoseconds += value * known.ok_or_else(|| wrong(&format!("'{unit}' is not a unit")))?.1;
        rest = &tail[unit.len()..];
    }
    if nanoseconds > MOST { Err(wrong("it is too long")) } else { Ok(sign * nanoseconds / 1e9) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_durations_that_go_accepts_are_accepted() {
        for (text, seconds) in [
            ("0", 0.0),
            ("0s", 0.0),
            ("10m", 600.0),
            ("1h30m", 5400.0),
            ("1.5h", 5400.0),
            ("-5s", -5.0),
            ("250ms", 0.25),
            (".5s", 0.5),
            ("1m1h", 3660.0),
        ] {
            assert_eq!(go_duration(text), Ok(seconds), "{text}");
        }
        for text in ["", "10", "5 m", "1d", "m", "PT5M", "1.2.3s", ".s", "+", "9999999h"] {
            assert!(go_duration(text).is_err(), "{text}");
        }
    }
}
