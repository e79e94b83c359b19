//! Ids of instances.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which ids instances may have in a cloud. The client that creates them chooses them, not the cloud.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceIds {
    /// Any text that is allowed in a path.
    #[default]
    Text,
    /// The machine's name: the cloud tells machines apart by nothing else.
    Name,
    /// Whole numbers from 1 to 2^53 - 1, the largest that every JSON parser keeps exactly.
    Number,
    /// UUIDs in lower case. The machine's firmware has the same UUID, so it is also the `systemUUID` of its
    /// Node. A machine without firmware tables, such as a container, has one without hyphens: kubelets read
    /// `/etc/machine-id` there.
    Uuid,
    /// The same, but a kubelet reads the bytes of the first three parts of its machine's UUID in reverse
    /// order, as with vSphere: SMBIOS stores them in that order.
    UuidSwapped,
}

/// The largest number that is an id.
const GREATEST: u64 = (1 << 53) - 1;
/// Ids that are made from names have sixteen digits, so that their texts sort like numbers and do not collide
/// with numbers that people choose.
const MADE_FROM: u64 = 1_000_000_000_000_000;

impl InstanceIds {
    /// The id for the machine with this name: always the same one for the same name, and almost certainly
    /// different for another name.
    pub fn make(self, name: &str) -> String {
        match self {
            InstanceIds::Text => format!("i-{name}"),
            InstanceIds::Name => name.to_owned(),
            InstanceIds::Number => (MADE_FROM + hash(name) % (GREATEST - MADE_FROM)).to_string(),
            InstanceIds::Uuid | InstanceIds::UuidSwapped => uuid(name),
        }
    }

    /// The UUID that the machine's kubelet reads from its firmware (`status.nodeInfo.systemUUID`). If the
    /// cloud does not define it, a UUID made from the id.
    pub fn system_uuid(self, id: &str) -> String {
        match self {
            InstanceIds::Text | InstanceIds::Name | InstanceIds::Number => uuid(id),
            InstanceIds::Uuid => id.to_owned(),
            InstanceIds::UuidSwapped => swapped(id),
        }
    }

    /// The id of the machine whose kubelet reads this UUID, if the cloud uses the same for both.
    pub fn of_system_uuid(self, system_uuid: &str) -> Option<String> {
        let read = system_uuid.to_ascii_lowercase();
        let id = match self {
            InstanceIds::Text | InstanceIds::Name | InstanceIds::Number => return None,
            InstanceIds::Uuid => read,
            InstanceIds::UuidSwapped => swapped(&read),
        };
        self.allow(&id).then_some(id)
    }

    /// Whether an instance may have that id.
    pub fn allow(self, id: &str) -> bool {
        match self {
            InstanceIds::Text | InstanceIds::Name => !matches!(id, "" | "." | ".."),
            // Written in one way only, so that a number can be converted back to its id.
            InstanceIds::Number => {
                !id.starts_with(['+', '0']) && id.parse().is_ok_and(|number: u64| number <= GREATEST)
            }
            InstanceIds::Uuid | InstanceIds::UuidSwapped => is_uuid(id) || (id.len() == 32 && is_hex(id)),
        }
    }
}

/// The number of digits in each part of a UUID.
const PARTS: [usize; 5] = [8, 4, 4, 4, 12];

/// A UUID made from a text (RFC 9562, version 8: custom).
fn uuid(text: &str) -> String {
    let (high, low) = (hash(text), hash(&format!("{text}/")));
    format!(
        "{:08x}-{:04x}-8{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xFFFF,
        high & 0xFFF,
        low >> 48 & 0x3FFF | 0x8000,
        low & 0xFFFF_FFFF_FFFF
    )
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_uuid(text: &str) -> bool {
    text.split('-').map(str::len).eq(PARTS) && text.split('-').all(is_hex)
}

/// A UUID with the bytes of its first three parts in reverse order; any other text does not change.
fn swapped(uuid: &str) -> String {
    if !is_uuid(uuid) {
        return uuid.to_owned();
    }
    let turned = |part: &str| (0..part.len()).step_by(2).rev().map(|at| &part[at..at + 2]).collect();
    let parts = uuid.split('-').enumerate();
    let parts: Vec<String> =
        parts.map(|(at, part)| if at < 3 { turned(part) } else { part.to_owned() }).collect();
    parts.join("-")
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
        let uuids: std::collections::BTreeSet<String> =
            (0..10_000).map(|n| InstanceIds::Uuid.make(&format!("node-{n}"))).collect();
        assert_eq!(uuids.len(), 10_000);
        assert!(uuids.iter().all(|id| InstanceIds::Uuid.allow(id) && id.as_bytes()[14] == b'8'));
    }

    #[test]
    fn a_kubelet_reads_its_machines_uuid() {
        let (id, turned) = ("422e4956-ad22-1139-6d72-59cc8f26bc90", "56492e42-22ad-3911-6d72-59cc8f26bc90");
        for (ids, read) in [(InstanceIds::Uuid, id), (InstanceIds::UuidSwapped, turned)] {
            assert_eq!(ids.system_uuid(id), read);
            assert_eq!(ids.of_system_uuid(&read.to_uppercase()).as_deref(), Some(id));
            let container = "422e4956ad2211396d7259cc8f26bc90";
            assert_eq!(ids.of_system_uuid(container).as_deref(), Some(container));
            assert_eq!(ids.system_uuid(container), container);
            assert_eq!(ids.of_system_uuid(""), None);
        }
        let made_up = InstanceIds::Text.system_uuid("i-node-1");
        assert!(InstanceIds::Uuid.allow(&made_up), "{made_up}");
        assert_eq!(InstanceIds::Text.of_system_uuid(&made_up), None);
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
        for bad in
            ["", "i-1", "422E4956-ad22-1139-6d72-59cc8f26bc90", "422e4956ad2211396d7259cc8f26bc9", "-----"]
        {
            assert!(!InstanceIds::UuidSwapped.allow(bad), "{bad}");
        }
    }
}
