//! Durations as flags of programs in Go write them (`time.ParseDuration`). Pure functions.

/// The units and their length in seconds.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("\u{b5}s", 1e-6),
    ("\u{3bc}s", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

/// The length of a duration such as `1m30s` in seconds; `None` if it is not one.
pub fn seconds(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0.0);
    }
    let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut total = 0.0;
    loop {
        let (number, after) = rest.split_at(rest.find(|c| !is_of_number(c))?);
        let (unit, after) = after.split_at(after.find(is_of_number).unwrap_or(after.len()));
        let (_, length) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total += number.parse::<f64>().ok()? * length;
        if after.is_empty() {
            return Some(sign * total);
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn durations_have_units() {
        for (text, length) in
            [("1m30s", 90.0), ("1.5h", 5400.0), ("250ms", 0.25), ("0", 0.0), ("-2s", -2.0), (".5s", 0.5)]
        {
            assert_eq!(seconds(text), Some(length), "{text}");
        }
        for text in ["", "15", "s", "1m30", "10 s", "1d", "--1s", "1,5s"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
