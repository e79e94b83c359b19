//! The behavioural contract for external cloud controller managers: what each row requires and why, how the
//! harness provokes it, and how a person can reproduce it.
//!
//! The tables are `docs/contract/*.yaml`, which are part of the program. The pages in the same folder are
//! generated from them (`REWRITE_DOCUMENTS=1 cargo test -p harness-config --lib documents`).

mod change;
mod coverage;
#[cfg(test)]
mod page;
mod profile;
mod row;
mod terms;

pub use change::Change;
pub use coverage::{AreaCount, CountedCheck, Coverage, Missing, coverage};
pub use harness_core::check::Party;
pub use profile::ConformanceProfile;
pub use row::{Area, Claim, Obligation, Owner, Row};
pub use terms::Terms;

use crate::yaml::{self, YamlError};
use harness_core::files;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use std::sync::OnceLock;

/// The folder of the tables.
const FOLDER: &str = "contract";
/// The file with the abbreviations in the tables.
const TERMS: &str = "contract/terms.yaml";
/// The file of the rows that no check judges.
const UNCHECKED: &str = "contract/unchecked.yaml";

/// The file of bugs that users have reported.
const BUGS: &str = "contract/bugs.yaml";
/// The file of the profiles of conformance.
const PROFILES: &str = "contract/profiles.yaml";
/// The file of changes of the framework.
const CHANGES: &str = "contract/framework.yaml";

/// Rows that no check judges, and why.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Unchecked {
    /// The reason.
    pub reason: String,
    /// Whether checks judge a part of each row, so that the reason is about the rest.
    #[serde(default)]
    pub in_part: bool,
    /// The rows.
    pub rows: Vec<String>,
}

/// A bug that users of a CCM have reported.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bug {
    /// Repository and number of its issue or change.
    pub issue: String,
    /// A description of the bug.
    pub what: String,
    /// The rows that cover it.
    pub rows: Vec<String>,
}

/// All known bugs of real CCMs.
pub fn bugs() -> &'static [Bug] {
    static ALL: OnceLock<Vec<Bug>> = OnceLock::new();
    // A test makes sure that they can be read.
    ALL.get_or_init(|| read(&files::built_in(BUGS)).unwrap_or_default())
}

/// The bugs that a row covers.
pub fn bugs_of(row: &str) -> impl Iterator<Item = &'static Bug> + use<'_> {
    bugs().iter().filter(move |bug| bug.rows.iter().any(|named| named == row))
}

/// The whole contract.
#[derive(Clone, Debug)]
pub struct Contract {
    /// Its areas, in their order.
    pub areas: Vec<Area>,
    /// The abbreviations in its tables.
    pub terms: Terms,
    /// The rows that no check judges.
    pub unchecked: Vec<Unchecked>,
    /// Its profiles of conformance.
    pub profiles: Vec<ConformanceProfile>,
    /// The changes of the framework on which rows and claims are based, the oldest first.
    pub changes: Vec<Change>,
}

/// An error in a table of the contract.
#[derive(Debug, thiserror::Error)]
pub enum ContractError {
    /// A file is missing from the program.
    #[error("the contract: {0}")]
    Absent(#[from] std::io::Error),
    /// A file has an invalid form.
    #[error(transparent)]
    Form(#[from] YamlError),
}

impl Contract {
    /// The contract in this program.
    ///
    /// # Errors
    /// A file is missing from the program or is not valid, which a test excludes.
    pub fn built_in() -> Result<Contract, ContractError> {
        let mut areas = Vec::new();
        for file in files::list(&files::built_in(FOLDER))? {
            if ![TERMS, UNCHECKED, PROFILES, BUGS, CHANGES].iter().any(|other| file == files::built_in(other))
            {
                areas.push(read::<Area>(&file)?);
            }
        }
        areas.sort_by_key(|area| area.order);
        let terms = read(&files::built_in(TERMS))?;
        let unchecked = read(&files::built_in(UNCHECKED))?;
        let profiles = read(&files::built_in(PROFILES))?;
        let changes = read(&files::built_in(CHANGES))?;
        Ok(Contract { areas, terms, unchecked, profiles, changes })
    }

    /// Every row with its area, in the order of the areas.
    pub fn rows(&self) -> impl Iterator<Item = (&Area, &Row)> {
        self.areas.iter().flat_map(|area| area.rows.iter().map(move |row| (area, row)))
    }

    /// The row with this id, in upper or lower case.
    pub fn row(&self, id: &str) -> Option<(&Area, &Row)> {
        self.rows().find(|(_, row)| row.id.eq_ignore_ascii_case(id))
    }

    /// The reasons why no check judges a row, or a part of it.
    pub fn reasons<'a>(&'a self, row: &'a str) -> impl Iterator<Item = &'a Unchecked> {
        self.unchecked.iter().filter(move |one| one.rows.iter().any(|named| named == row))
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, ContractError> {
    Ok(yaml::from_str(&files::read(path)?, path)?)
}

#[cfg(test)]
mod tests;
