//! The age of a time, as kubectl shows it.

use embedded_objects::rules::time;

/// The age of a time, as kubectl shows it.
pub(super) fn age(since: &str, now: &str) -> String {
    match time::seconds_between(since, now) {
        None => "<unknown>".to_owned(),
        Some(seconds) => duration(seconds),
    }
}

/// A time span in the one or two units that matter. Source: `k8s.io/apimachinery/pkg/util/duration`.
pub(super) fn duration(seconds: i64) -> String {
    let two = |big: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{small_unit}") }
    };
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => two(hours / 24, "d", hours % 24, "h"),
        _ if hours < 24 * 365 * 2 => format!("{}d", hours / 24),
        _ if hours < 24 * 365 * 8 => two(hours / 24 / 365, "y", hours / 24 % 365, "d"),
        _ => format!("{}y", hours / 24 / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_the_units_that_matter() {
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (700, "11m"),
            (3 * 3600 + 60, "3h1m"),
            (10 * 3600, "10h"),
            (49 * 3600, "2d1h"),
            (200 * 3600, "8d"),
            (-5, "<invalid>"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
