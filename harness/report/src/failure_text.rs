//! Splits the text of a failure by its labels: the expected state, the observed state, and the rest.

use serde::Serialize;

/// The labels at the beginning of lines in such a text.
/// `resembles` was the earlier word for `same row`.
const LABELS: [&str; 10] = [
    "expected",
    "last seen",
    "promise",
    "subject",
    "waited",
    "cloud",
    "likely",
    "same row",
    "resembles",
    "explained",
];

/// The parts of a failure's text. A text without labels, such as that of an environment error, has no parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct FailureText {
    /// The expected state.
    pub(super) expected: String,
    /// The observed state.
    pub(super) seen: String,
    /// The other labels and their texts, in order.
    pub(super) rest: Vec<(&'static str, String)>,
}

impl FailureText {
    /// Splits a message; `None` if it does not contain the expected and the observed state.
    pub(super) fn of(message: &str) -> Option<FailureText> {
        let mut parts: Vec<(&'static str, String)> = Vec::new();
        for line in message.lines() {
            match (labelled(line), parts.last_mut()) {
                (Some((label, text)), _) => parts.push((label, text.to_owned())),
                (None, Some((_, text))) => {
                    text.push('\n');
                    text.push_str(unindented(line));
                }
                (None, None) => return None,
            }
        }
        let mut take = |label: &str| -> Option<String> {
            let at = parts.iter().position(|(known, _)| *known == label)?;
            Some(parts.remove(at).1)
        };
        let (expected, seen) = (take("expected")?, take("last seen")?);
        let trimmed = |(label, text): (&'static str, String)| (label, text.trim().to_owned());
        Some(FailureText { expected, seen, rest: parts.into_iter().map(trimmed).collect() })
    }

    /// The subject of the failure without its uid; empty if there is none.
    pub(super) fn subject(&self) -> &str {
        let subject = self.rest.iter().find(|(label, _)| *label == "subject");
        subject.map_or("", |(_, text)| text.split(" (uid ").next().unwrap_or_default())
    }
}

/// The likely cause that a failure's text names.
pub(super) fn likely_cause(message: &str) -> Option<String> {
    let failure = FailureText::of(message)?;
    failure.rest.into_iter().find(|(label, _)| *label == "likely").map(|(_, cause)| cause)
}

/// The expected and the observed state in a failure's text; `None` for other texts.
pub fn expected_and_seen(message: &str) -> Option<(String, String)> {
    FailureText::of(message).map(|failure| (failure.expected, failure.seen))
}

fn labelled(line: &str) -> Option<(&'static str, &str)> {
    LABELS.iter().find_map(|label| {
        let text = line.strip_prefix(label)?.strip_prefix(':')?;
        Some((*label, text.trim()))
    })
}

/// A continuation line below a label, without its indentation.
fn unindented(line: &str) -> &str {
    const ROOM: usize = "last seen: ".len();
    let blanks = line.len() - line.trim_start_matches(' ').len();
    &line[blanks.min(ROOM)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_taken_apart_by_its_labels() {
        let text = "expected:  no Service\nlast seen: Service ns/web (its lines:\n  a: b\n)\npromise:   it goes\n\
                    subject:   Service ns/web (uid 4be1)\ncloud:     #7 GET\n           #9 GET\nexplained:\nit is so";
        let failure = FailureText::of(text).expect("a failure");
        assert_eq!((failure.expected.as_str(), failure.subject()), ("no Service", "Service ns/web"));
        assert_eq!(failure.seen, "Service ns/web (its lines:\na: b\n)");
        let rest: Vec<(&str, &str)> =
            failure.rest.iter().map(|(label, text)| (*label, text.as_str())).collect();
        let cloud = ("cloud", "#7 GET\n#9 GET");
        let subject = ("subject", "Service ns/web (uid 4be1)");
        assert_eq!(rest, [("promise", "it goes"), subject, cloud, ("explained", "it is so")]);
    }

    #[test]
    fn the_labels_may_stand_in_another_order() {
        let older = FailureText::of("promise:   p\nexpected:  e\nlast seen: s").expect("a failure");
        assert_eq!((older.expected.as_str(), older.seen.as_str()), ("e", "s"));
    }

    #[test]
    fn other_texts_are_not_failures() {
        for text in ["", "the API server did not answer for 4 s", "promise:   yes: no", "expected: a"] {
            assert_eq!(FailureText::of(text), None, "{text}");
        }
    }
}
