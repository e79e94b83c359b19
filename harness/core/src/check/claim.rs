//! What a check claims: written once, in the contract (`docs/contract/*.yaml`).

use super::{CheckId, Level};

/// What a check claims, how binding that is, and where the requirement comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The id of the check: that of the contract's row, or with the claim's name after a dot.
    pub check: &'static str,
    /// The claim, in the present tense.
    pub title: &'static str,
    /// How binding it is.
    pub level: Level,
    /// Whether it binds only CCMs that declare the framework profile (the contract's dagger). For others a MUST becomes a
    /// SHOULD, and a SHOULD is recorded only.
    pub framework_only: bool,
    /// Where the requirement comes from.
    pub source: &'static str,
}

/// Every claim of the contract, sorted by id. Made by `build.rs`.
const CLAIMS: &[Claim] = include!(concat!(env!("OUT_DIR"), "/claims.rs"));

impl Claim {
    /// The contract's claim for this check.
    ///
    /// # Panics
    /// When the contract has none. In a table of checks that is a compile error.
    pub const fn of(check: &CheckId) -> Claim {
        match Claim::find(check) {
            Some(claim) => claim,
            None => panic!("the contract (docs/contract) has no claim for this id"),
        }
    }

    /// The contract's claim for this check; `None` for a check that is not of the contract.
    pub const fn find(check: &CheckId) -> Option<Claim> {
        let (mut low, mut high) = (0, CLAIMS.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match check.order(CLAIMS[middle].check) {
                0 => return Some(CLAIMS[middle]),
                1.. => low = middle + 1,
                _ => high = middle,
            }
        }
        None
    }

    /// Every claim of the contract, sorted by the ids of their checks.
    pub const fn all() -> &'static [Claim] {
        CLAIMS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_is_found_by_its_id_and_no_other_is() {
        for claim in CLAIMS {
            assert_eq!(Claim::of(&CheckId::new(claim.check)), *claim);
            assert_eq!(Claim::find(&CheckId::new(claim.check)), Some(*claim));
        }
        for other in ["AAA-01", "SVC-DEL-02.x", "ZZZ-01"] {
            let id = CheckId::new(other);
            assert!(std::panic::catch_unwind(|| Claim::of(&id)).is_err(), "{other}");
            assert_eq!(Claim::find(&id), None, "{other}");
        }
    }
}
