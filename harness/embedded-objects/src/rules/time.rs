//! Points in time as the API writes them.

use jiff::Timestamp;

const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
const MICROS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// A time with whole seconds in UTC, from any RFC 3339 text.
///
/// # Errors
/// The message of Go's parser.
pub fn seconds(text: &str) -> Result<String, String> {
    let time = parse(text, SECONDS)?;
    Ok(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// A time in UTC with six decimal places.
///
/// # Errors
/// The message of Go's parser: the six digits are required.
pub fn micros(text: &str) -> Result<String, String> {
    let time = parse(text, MICROS)?;
    let digits = text.get(20..).map(|rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    if text.as_bytes().get(19) != Some(&b'.') || digits != Some(6) {
        let rest = text.get(19..).unwrap_or_default();
        return Err(refusal(text, MICROS, rest, ".000000"));
    }
    Ok(time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string())
}

/// Seconds since 1970 and nanoseconds of a time in the API's form.
pub fn to_unix(text: &str) -> Option<(i64, i32)> {
    let time: Timestamp = text.parse().ok()?;
    Some((time.as_second(), time.subsec_nanosecond()))
}

/// The whole seconds from one time to another; `None` if either is not a time.
pub fn seconds_between(from: &str, to: &str) -> Option<i64> {
    Some(to_unix(to)?.0 - to_unix(from)?.0)
}

/// A time with whole seconds from seconds since 1970.
pub fn of_unix(seconds: i64) -> Option<String> {
    let time = Timestamp::from_second(seconds).ok()?;
    Some(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// A time with microseconds from seconds since 1970 and nanoseconds.
pub fn of_unix_micros(seconds: i64, nanos: i32) -> Option<String> {
    let time = Timestamp::new(seconds, nanos).ok()?;
    Some(time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string())
}

fn parse(text: &str, layout: &str) -> Result<Timestamp, String> {
    let strict = text.len() >= 20 && text.as_bytes().get(10) == Some(&b'T');
    match text.parse::<Timestamp>() {
        Ok(time) if strict => Ok(time),
        _ => {
            let (rest, element) = first_misfit(text);
            Err(refusal(text, layout, rest, element))
        }
    }
}

fn refusal(text: &str, layout: &str, rest: &str, element: &str) -> String {
    format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {element:?}")
}

/// The position where the text does not follow the layout, and the element of the layout that is expected there.
fn first_misfit(text: &str) -> (&str, &'static str) {
    let elements = [
        ("2006", 4),
        ("-", 0),
        ("01", 2),
        ("-", 0),
        ("02", 2),
        ("T", 0),
        ("15", 2),
        (":", 0),
        ("04", 2),
        (":", 0),
        ("05", 2),
    ];
    let mut rest = text;
    for (element, digits) in elements {
        let next = if digits == 0 {
            rest.strip_prefix(element)
        } else {
            rest.get(..digits)
                .filter(|head| head.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|_| rest.get(digits..))
        };
        match next {
            Some(next) => rest = next,
            None => return (rest, element),
        }
    }
    (rest, "Z07:00")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(seconds("2026-01-01T02:00:00.9+02:00").as_deref(), Ok("2026-01-01T00:00:00Z"));
        assert_eq!(micros("2026-01-01T00:00:02.000001Z").as_deref(), Ok("2026-01-01T00:00:02.000001Z"));
        assert_eq!(to_unix("1970-01-01T00:00:01.5Z"), Some((1, 500_000_000)));
        assert_eq!(seconds_between("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"), Some(60));
    }

    #[test]
    fn invalid_times_are_reported_as_go_does() {
        assert_eq!(
            seconds("x").expect_err("no time"),
            "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\""
        );
        assert_eq!(
            micros("2026-01-01T00:00:00Z").expect_err("no micros"),
            "parsing time \"2026-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\""
        );
    }
}
