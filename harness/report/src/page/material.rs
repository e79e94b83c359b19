//! What a page is made of: runs with their events and evidence, and the rows of the contract.

use harness_core::ledger::Ledger;
use serde::Serialize;
use std::collections::BTreeMap;

/// The files of evidence of each check: name and text.
pub type Evidence = BTreeMap<String, Vec<(String, String)>>;

/// What a row of the contract demands.
#[derive(Clone, Debug, Serialize)]
pub struct Demand {
    /// What is required.
    pub requires: String,
    /// Why: what happens to a cluster otherwise.
    pub why: String,
    /// How the harness brings it about and what it looks at.
    pub provoked: String,
}

/// What the rows demand that checks judge, by id.
pub type Demands = BTreeMap<String, Demand>;

/// The records of a run in addition to its ledger.
#[derive(Debug, Default)]
pub struct Material {
    /// The text of its `events.jsonl`, empty where there is none.
    pub events: String,
    /// What was taken of failed checks.
    pub evidence: Evidence,
}

/// A run, for a page of two.
#[derive(Debug)]
pub struct Side<'a> {
    /// What it is called: the file it was read from.
    pub name: &'a str,
    /// How it ended.
    pub ledger: &'a Ledger,
    /// What else tells of it.
    pub material: &'a Material,
}
