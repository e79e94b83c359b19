//! The input of a page: runs with their events and evidence, and the rows of the contract.

use harness_core::ledger::Ledger;
use serde::Serialize;
use std::collections::BTreeMap;

/// The files of evidence of each check: name and text.
pub type Evidence = BTreeMap<String, Vec<(String, String)>>;

/// The texts of a row of the contract.
#[derive(Clone, Debug, Serialize)]
pub struct Demand {
    /// What is required.
    pub requires: String,
    /// The consequence for a cluster if a CCM does not do this.
    pub why: String,
    /// The steps of the check, and what it observes.
    pub provoked: String,
}

/// The texts of the rows that checks judge, by id.
pub type Demands = BTreeMap<String, Demand>;

/// The records of a run in addition to its ledger.
#[derive(Debug, Default)]
pub struct Material {
    /// The text of its `events.jsonl`; empty if there is none.
    pub events: String,
    /// The evidence of failed checks.
    pub evidence: Evidence,
}

/// A run, for a page of two.
#[derive(Debug)]
pub struct Side<'a> {
    /// Its name: the file from which it was read.
    pub name: &'a str,
    /// Its results.
    pub ledger: &'a Ledger,
    /// Its events and evidence.
    pub material: &'a Material,
}
