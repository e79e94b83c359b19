//! A share of some work: the Kth of N.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The Kth of N shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Share {
    part: usize,
    of: usize,
}

impl Share {
    /// The largest number of shares.
    const MOST: usize = 256;
    /// All of it.
    pub const WHOLE: Share = Share { part: 1, of: 1 };

    /// Which one it is, from 1.
    pub fn part(self) -> usize {
        self.part
    }

    /// How many there are.
    pub fn of(self) -> usize {
        self.of
    }

    /// Keeps the entries of a list that belong to this share: every Nth entry, from the Kth on.
    pub fn keep<T>(self, list: Vec<T>) -> Vec<T> {
        list.into_iter().skip(self.part - 1).step_by(self.of).collect()
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Share, String> {
        let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number > 0);
        let parsed = text.split_once('/').and_then(|(part, of)| Some((number(part)?, number(of)?)));
        match parsed {
            Some((_, of)) if of > Share::MOST => Err(format!("at most {} shares, not {of}", Share::MOST)),
            Some((part, of)) if part <= of => Ok(Share { part, of }),
            _ => Err("expected K/N, the Kth of N shares, e.g. 1/3".to_owned()),
        }
    }
}

impl TryFrom<String> for Share {
    type Error = String;

    fn try_from(text: String) -> Result<Share, String> {
        text.parse()
    }
}

impl From<Share> for String {
    fn from(share: Share) -> String {
        share.to_string()
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_a_list_are_the_list_and_each_entry_is_in_one() {
        let list: Vec<u32> = (0..10).collect();
        let of = |text: &str| Share::from_str(text).expect("a share").keep(list.clone());
        assert_eq!(of("2/3"), [1, 4, 7]);
        let mut all = [of("1/3"), of("2/3"), of("3/3")].concat();
        all.sort_unstable();
        assert_eq!(all, list);
        assert_eq!(Share::WHOLE.keep(list.clone()), list);
    }

    #[test]
    fn invalid_shares_are_refused() {
        for text in ["", "1", "0/3", "4/3", "1/0", "a/b", "1/3/5"] {
            assert!(Share::from_str(text).is_err(), "{text}");
        }
    }
}
