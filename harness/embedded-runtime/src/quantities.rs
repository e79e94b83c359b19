//! Amounts as Kubernetes writes them: `100m`, `1.5`, `16Gi`, `2e3`. Pure functions.

/// An amount in thousandths, rounded up; `None` if the text is not an amount.
pub fn milli(text: &str) -> Option<i128> {
    let text = text.trim();
    let split = text
        .char_indices()
        .find(|(at, letter)| {
            let exponent = (*letter == 'e' || *letter == 'E')
                && text[at + 1..]
                    .starts_with(|next: char| next.is_ascii_digit() || next == '-' || next == '+');
            !(letter.is_ascii_digit() || *letter == '.' || *letter == '-' || *letter == '+') || exponent
        })
        .map_or(text.len(), |(at, _)| at);
    let (number, suffix) = text.split_at(split);
    let (numerator, denominator): (i128, i128) = match suffix {
        "" => (1000, 1),
        "n" => (1, 1_000_000),
        "u" => (1, 1000),
        "m" => (1, 1),
        "k" => (1000 * 1000, 1),
        "M" => (1000 * 1_000_000, 1),
        "G" => (1000 * 1_000_000_000, 1),
        "T" => (1000 * 1_000_000_000_000, 1),
        "P" => (1000 * 1_000_000_000_000_000, 1),
        "E" => (1000 * 1_000_000_000_000_000_000, 1),
        "Ki" => (1000 << 10, 1),
        "Mi" => (1000 << 20, 1),
        "Gi" => (1000 << 30, 1),
        "Ti" => (1000 << 40, 1),
        "Pi" => (1000 << 50, 1),
        "Ei" => (1000_i128 << 60, 1),
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            let factor = 10_i128.checked_pow(power.unsigned_abs())?;
            if power < 0 { (1000, factor) } else { (factor.checked_mul(1000)?, 1) }
        }
    };
    let (negative, digits) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty()
        || !(whole.bytes().chain(fraction.bytes())).all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let value: i128 = format!("{whole}{fraction}").parse().ok()?;
    let top = value.checked_mul(numerator)?;
    let bottom = scale.checked_mul(denominator)?;
    let result = top.checked_add(bottom - 1)?.checked_div(bottom)?;
    Some(if negative { -result } else { result })
}

/// An amount divided by another, both as text, rounded up: the value of a `resourceFieldRef` with a divisor.
pub fn divided(amount: &str, divisor: &str) -> Option<i128> {
    let (amount, divisor) = (milli(amount)?, milli(divisor)?);
    // A divisor of zero means one.
    let divisor = if divisor == 0 { 1000 } else { divisor };
    amount.checked_add(divisor - 1)?.checked_div(divisor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_in_every_notation() {
        let cases = [
            ("1", Some(1000)),
            ("100m", Some(100)),
            ("1.5", Some(1500)),
            ("1Ki", Some(1_024_000)),
            ("16Gi", Some(17_179_869_184_000)),
            ("2e3", Some(2_000_000)),
            ("1E", Some(1_000_000_000_000_000_000_000)),
            ("1e-3", Some(1)),
            ("1n", Some(1)),
            ("-1", Some(-1000)),
            ("", None),
            ("x", None),
            ("1Zi", None),
            ("1e99", None),
            ("é", None),
        ];
        for (text, expected) in cases {
            assert_eq!(milli(text), expected, "{text:?}");
        }
        assert_eq!(divided("1500m", "1"), Some(2));
        assert_eq!(divided("1Gi", "1Mi"), Some(1024));
        assert_eq!(divided("1", "0"), Some(1));
    }
}
