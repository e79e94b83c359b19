//! Names and labels of everything that a run creates, which distinguish it from other things.

use harness_core::owner::Owner;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

/// Every name of a container, network or cluster the harness makes starts with this.
pub const NAME_PREFIX: &str = "ccm-conformance-";
/// Label with the run's id.
pub const RUN_LABEL: &str = "io.ccm-conformance.run";
/// Label with the kind of thing: `network`, `fake-cloud` ...
pub const COMPONENT_LABEL: &str = "io.ccm-conformance.component";
/// Label with the process that created the thing, as [`Owner`] writes it: from it any user can tell, from any folder,
/// whether the run is still in progress.
pub const OWNER_LABEL: &str = "io.ccm-conformance.owner";
/// Registry of the images built here. The domain cannot exist (RFC 2606), so that no engine ever pulls from it.
pub const IMAGE_REGISTRY: &str = "ccm-conformance.invalid";

/// Whether that is a real name or digest of an image: engines report `<none>:<none>` and `<none>@<none>` for an image
/// without one, and do not accept these as names.
pub(crate) fn is_named(name: &str) -> bool {
    !name.is_empty() && !name.contains("<none>")
}

/// Length of a run id.
const LENGTH: usize = 8;

/// A run's own short id: eight lower-case letters and digits, beginning with a letter. If a run has several lanes, their
/// ids end with their number, as in `abcdefgh-2`, which distinguishes everything that they create.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

impl RunId {
    /// Creates a new id that no other run has.
    pub fn fresh() -> RunId {
        const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
        const MARKS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
        // The keys of the standard library's hasher are the only random numbers that need no dependency.
        let mut bits = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id());
        let mut draw = |from: &'static [u8]| {
            let length = from.len() as u64;
            let mark = from[(bits % length) as usize];
            bits /= length;
            char::from(mark)
        };
        let mut text = String::from(draw(LETTERS));
        text.extend((1..LENGTH).map(|_| draw(MARKS)));
        RunId(text)
    }

    /// The id of a lane of this run: the run's own if there is only one lane (number 0).
    #[must_use]
    pub fn lane(&self, number: u32) -> RunId {
        if number == 0 { self.clone() } else { RunId(format!("{}-{number}", self.0)) }
    }

    /// The number of the lane with this id.
    pub fn number(&self) -> u32 {
        self.0.split_once('-').and_then(|(_, lane)| lane.parse().ok()).unwrap_or(0)
    }

    /// A number for the run, the same for all its lanes.
    pub fn seed(&self) -> u32 {
        let run = self.0.bytes().take(LENGTH);
        run.fold(0, |sum: u32, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)))
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of something that a run has only one of: `ccm-conformance-<run id>`.
    pub fn name(&self) -> String {
        format!("{NAME_PREFIX}{}", self.0)
    }

    /// The name of a part of the run: `ccm-conformance-<run id>-<part>`.
    pub fn name_of(&self, part: &str) -> String {
        format!("{NAME_PREFIX}{}-{part}", self.0)
    }

    /// The run that created the cluster, container or network `name`; `None` if no run did.
    pub fn of_name(name: &str) -> Option<RunId> {
        let mut parts = name.strip_prefix(NAME_PREFIX)?.split('-');
        let run: RunId = parts.next()?.parse().ok()?;
        // The id is followed by a lane's number, or by a part of the run.
        Some(run.lane(parts.next().and_then(|part| part.parse().ok()).unwrap_or(0)))
    }

    /// The labels of things that this run creates.
    pub fn labels(&self, component: &str) -> HashMap<String, String> {
        HashMap::from([
            (RUN_LABEL.to_owned(), self.0.clone()),
            (COMPONENT_LABEL.to_owned(), component.to_owned()),
            (OWNER_LABEL.to_owned(), Owner::here().to_string()),
        ])
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for RunId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (text, lane) = text.split_once('-').unwrap_or((text, "0"));
        let lane = lane
            .parse::<u32>()
            .map_err(|_| format!("'{text}-{lane}' is not a lane of a run: the lane must be a number"))?;
        let lower = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if lower && text.len() == LENGTH && text.as_bytes()[0].is_ascii_lowercase() {
            Ok(RunId(text.to_owned()).lane(lane))
        } else {
            Err(format!(
                "'{text}' is not a run id: expected {LENGTH} lower-case letters and digits, beginning with a letter"
            ))
        }
    }
}

impl TryFrom<String> for RunId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> String {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_ids_differ_and_are_well_formed() {
        let (one, two) = (RunId::fresh(), RunId::fresh());
        assert_ne!(one, two);
        assert_ne!(one.seed(), two.seed());
        assert_eq!(one.as_str().parse(), Ok(one.clone()));
        assert_eq!(RunId::of_name(&one.name()), Some(one.clone()));
        assert_eq!(RunId::of_name(&two.name_of("cold-control-plane")), Some(two));
    }

    #[test]
    fn resources_of_a_lane_have_its_name() {
        let run = RunId::fresh();
        let (second, twelfth) = (run.lane(2), run.lane(12));
        assert_eq!(second.as_str(), format!("{run}-2"));
        assert_eq!((run.number(), second.number(), twelfth.number()), (0, 2, 12));
        assert_eq!(run.seed(), twelfth.seed());
        assert_eq!((run.lane(0), second.as_str().parse()), (run.clone(), Ok(second.clone())));
        assert_eq!(RunId::of_name(&twelfth.name_of("worker2")), Some(twelfth));
        assert_eq!(RunId::of_name(&second.name()), Some(second));
        assert_eq!(RunId::of_name(&run.name_of("worker2")), Some(run));
        assert!("abcdefgh-x".parse::<RunId>().is_err());
    }

    #[test]
    fn foreign_names_are_not_run_ids() {
        for name in [
            "kind",
            "ccm-conformance-",
            "ccm-conformance-UPPER123",
            "ccm-conformance-1bcdefgh",
            "my-ccm-conformance-abcdefgh",
        ] {
            assert_eq!(RunId::of_name(name), None, "{name}");
        }
    }
}
