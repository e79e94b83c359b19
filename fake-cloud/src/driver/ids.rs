//! Ids of instances.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which ids instances may have in a cloud: they are chosen by whoever puts them there, not by the cloud.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceIds {
    /// Any text that can stand in a path.
    #[default]
    Text,
    /// Whole numbers from 1 to 2^53 - 1, the greatest that every reader of JSON keeps exactly.
    Number,
}

/// Greatest number that is an id.
const GREATEST: u64 = (1 << 53) - 1;
/// Ids made of words have sixteen digits, so that texts of them sort as numbers and none is a number somebody would
/// choose by hand.
const MADE_FROM: u64 = 1_000_000_000_000_000;

impl InstanceIds {
    /// An id for the machine of that name: always the same one for the same name, and for two names with near certainty
    /// not the same.
    pub fn make(self, name: &str) -> String {
        match self {
            InstanceIds::Text => format!("i-{name}"),
            InstanceIds::Number => (MADE_FROM + hash(name) % (GREATEST - MADE_FROM)).to_string(),
        }
    }

    /// Whether an instance may have that id.
    pub fn allow(self, id: &str) -> bool {
        match self {
            InstanceIds::Text => !matches!(id, "" | "." | ".."),
            // Written in one way only, so that a number finds its id again.
            InstanceIds::Number => {
                !id.starts_with(['+', '0']) && id.parse().is_ok_and(|number: u64| number <= GREATEST)
            }
        }
    }
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo): the same on every machine and in every version of this program.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_made_of_names() {
        assert_eq!(InstanceIds::Text.make("node-1"), "i-node-1");
        let made: std::collections::BTreeSet<String> =
            (0..10_000).map(|n| InstanceIds::Number.make(&format!("node-{n}"))).collect();
        assert_eq!(made.len(), 10_000);
        assert!(made.iter().all(|id| id.len() == 16 && InstanceIds::Number.allow(id)));
        assert_eq!(InstanceIds::Number.make("node-1"), InstanceIds::Number.make("node-1"));
    }

    #[test]
    fn only_what_can_be_an_id_is_one() {
        for good in ["1", "42", "9007199254740991"] {
            assert!(InstanceIds::Number.allow(good), "{good}");
        }
        for bad in ["", "0", "042", "+1", "-1", "1.0", "1e3", " 1", "i-1", "9007199254740992"] {
            assert!(!InstanceIds::Number.allow(bad), "{bad}");
        }
        assert!(InstanceIds::Text.allow("i-1") && !InstanceIds::Text.allow(".."));
    }
}
