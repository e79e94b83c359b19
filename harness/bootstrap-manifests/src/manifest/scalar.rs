//! How `kubectl` interprets a plain scalar: YAML 1.1 booleans, octal and hexadecimal numbers (`sigs.k8s.io/yaml`).

use super::node::Value;

/// The value of a scalar without quotes.
pub(super) fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y" => {
            return Value::Bool(true);
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N" => {
            return Value::Bool(false);
        }
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Value::Text(text.to_owned());
    }
    if let Some(number) = whole(text) {
        return Value::Int(number);
    }
    let plain = text.replace('_', "");
    let numeric = plain.chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E'));
    if numeric
        && plain.chars().any(|c| c.is_ascii_digit())
        && let Some(number) = plain.parse::<f64>().ok().filter(|number| number.is_finite())
    {
        return as_whole(number).map_or_else(|| Value::Number(text.to_owned()), Value::Int);
    }
    Value::Text(text.to_owned())
}

/// A float without a fraction becomes a whole number in the JSON that kubectl sends: `1e+06` of Helm is 1000000.
fn as_whole(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let is_whole = number.fract() == 0.0 && number.abs() < EXACT;
    is_whole.then(|| format!("{number:.0}").parse().ok()).flatten()
}

fn whole(text: &str) -> Option<i64> {
    let digits = text.replace('_', "");
    let (negative, digits) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits.strip_prefix('+').unwrap_or(&digits)),
    };
    // The number parser would accept a second sign.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let parsed = if let Some(hex) = digits.strip_prefix("0x") {
        i64::from_str_radix(hex, 16)
    } else if let Some(octal) = digits.strip_prefix("0o") {
        i64::from_str_radix(octal, 8)
    } else if let Some(binary) = digits.strip_prefix("0b") {
        i64::from_str_radix(binary, 2)
    } else if digits.len() > 1 && digits.starts_with('0') && digits.chars().all(|c| ('0'..='7').contains(&c))
    {
        i64::from_str_radix(digits, 8)
    } else {
        digits.parse()
    };
    parsed.ok().map(|number| if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::{Value, resolve};

    #[test]
    fn plain_scalars_mean_what_kubectl_takes_them_for() {
        let cases = [
            ("yes", Value::Bool(true)),
            ("off", Value::Bool(false)),
            ("~", Value::Null),
            ("0644", Value::Int(0o644)),
            ("0x10", Value::Int(16)),
            ("1_000", Value::Int(1000)),
            ("-3", Value::Int(-3)),
            ("1.30", Value::Number(String::from("1.30"))),
            ("1e3", Value::Int(1000)),
            ("1e+06", Value::Int(1_000_000)),
            ("65532.0", Value::Int(65532)),
            ("7e12345", Value::Text(String::from("7e12345"))),
            ("1e30", Value::Number(String::from("1e30"))),
            ("10.96.0.1", Value::Text(String::from("10.96.0.1"))),
            ("200m", Value::Text(String::from("200m"))),
            ("-", Value::Text(String::from("-"))),
            ("--", Value::Text(String::from("--"))),
            ("+-5", Value::Text(String::from("+-5"))),
            ("99999999999999999999", Value::Number(String::from("99999999999999999999"))),
        ];
        for (text, expected) in cases {
            assert_eq!(resolve(text), expected, "{text}");
        }
    }
}
