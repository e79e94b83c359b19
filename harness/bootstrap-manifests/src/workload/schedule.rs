//! The schedule of a CronJob (`github.com/robfig/cron`, as the CronJob controller reads it). Pure functions.

use std::collections::BTreeSet;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// The days of each month, in a leap year.
const DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// Whether no day fits the schedule, such as the 30th of February. One that cannot be read is not judged here.
pub(super) fn never_comes(schedule: &str) -> bool {
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    let [_, _, days, months, weekdays] = fields.as_slice() else { return false };
    // With a day of the week as well, either of the two is enough.
    if !weekdays.starts_with(['*', '?']) {
        return false;
    }
    let (Some(days), Some(months)) = (numbers(days, 1, 31), numbers(months, 1, 12)) else { return false };
    let exists = |month: &u32, day: &u32| DAYS.get(*month as usize - 1).is_some_and(|most| day <= most);
    !months.iter().any(|month| days.iter().any(|day| exists(month, day)))
}

/// The numbers that a field selects, between these two; `None` if it has another form.
fn numbers(field: &str, least: u32, most: u32) -> Option<BTreeSet<u32>> {
    let number = |text: &str| {
        let name = || MONTHS.iter().position(|month| text.eq_ignore_ascii_case(month));
        let value = text.parse().ok().or_else(|| u32::try_from(name()? + 1).ok())?;
        (least..=most).contains(&value).then_some(value)
    };
    let mut all = BTreeSet::new();
    for part in field.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<usize>().ok().filter(|step| *step > 0)?)),
            None => (part, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" || range == "?" => (least, most),
            Some((from, to)) => (number(from)?, number(to)?),
            // With a step, a single number is a beginning.
            None => (number(range)?, if step.is_some() { most } else { number(range)? }),
        };
        all.extend((from..=to).step_by(step.unwrap_or(1)));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::never_comes;

    #[test]
    fn only_days_that_no_calendar_has_never_come() {
        for never in ["0 0 31 2 *", "0 0 30-31 feb *", "*/5 * 31 4,6,9,11 ?", "0 0 30/1 2 *"] {
            assert!(never_comes(never), "{never}");
        }
        for comes in [
            "0 0 29 2 *",
            "0 0 31 2,3 *",
            "0 0 31 2 1",
            "0 0 31 */2 *",
            "* * * * *",
            "@yearly",
            "0 0 L 2 *",
            "0 0 28-31 2 *",
            "",
        ] {
            assert!(!never_comes(comes), "{comes}");
        }
    }
}
