//! Random variants: known manifests with one to three changes, on a random cluster, all chosen by a seed. They find mistakes of
//! the boot model that none of the variants in the table was written for.

mod admission;
mod needs;
mod placement;
mod real;
mod set;
mod surroundings;

use super::question::{CNIS, Question, TOPOLOGIES, table};
use super::variant;
use bootstrap::{Case, Outcome, Source};
use fastrand::Rng;
use harness_config::yaml;
use harness_core::check::chain;
use set::{Change, Set};
use std::path::Path;
use std::sync::Arc;

/// The built-in variants that are changed.
const BASES: [&str; 5] =
    ["good-deployment", "good-daemonset", "good-tolerates-everything", "vendor-hcloud", "vendor-openstack"];
/// The most changes of one variant.
const MOST_CHANGES: usize = 3;

/// This many random variants, each on one cluster that can be shown according to `shown`. Left out are those about which the
/// model has no opinion, as they boot only on a condition that the manifests do not show. With `real` there are also
/// changes whose effect only a real cluster shows. The same seed gives the same variants.
///
/// # Errors
/// A built-in variant cannot be read.
pub fn random(
    seed: u64,
    count: usize,
    real: bool,
    shown: impl Fn(&Question) -> bool,
) -> Result<Vec<Question>, String> {
    let mut questions = Vec::new();
    let mut number = 0;
    // About one in three is left out.
    while questions.len() < count && number < 20 * count {
        number += 1;
        let question = one(seed, number, real)?;
        let decides = !matches!(question.cell.outcome, Outcome::BootsIf | Outcome::Undecided);
        if decides && shown(&question) {
            questions.push(question);
        }
    }
    Ok(questions)
}

/// All changes.
fn changes(real: bool) -> Vec<Change> {
    let more: &[&[Change]] =
        if real { &[surroundings::ADMISSION, real::CHANGES, admission::CHANGES] } else { &[] };
    [&[placement::CHANGES, needs::CHANGES, surroundings::CHANGES], more].concat().concat()
}

fn one(seed: u64, number: usize, real: bool) -> Result<Question, String> {
    let mut rng = Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
    let base = BASES[rng.usize(..BASES.len())];
    let text = variant::text_of(base)?;
    let documents = yaml::from_str_multi(&text, Path::new(base)).map_err(|error| chain(&error))?;
    let mut set = Set::new(documents);
    let all = changes(real);
    let mut changes = Vec::new();
    for _ in 0..rng.usize(1..=MOST_CHANGES) {
        changes.extend(all[rng.usize(..all.len())](&mut set, &mut rng));
    }
    let topology = TOPOLOGIES[rng.usize(..TOPOLOGIES.len())];
    let cni = CNIS[rng.usize(..CNIS.len())];
    let text: Arc<str> = Arc::from(set.text()?);
    let name = format!("random-{seed}-{number}");
    let what = format!("{base}: {}", changes.join("; "));
    let base = table()?.into_iter().find(|case| case.name == base);
    let base = base.ok_or_else(|| format!("{name}: its base is not in the table"))?;
    // What the table says about the base does not hold for the changed manifests.
    let case = Case { name: name.clone(), what, expect: Vec::new(), finding: None, evicted: false, ..base };
    let sources = vec![Source::new(&format!("{name}.yaml"), &text)];
    let cell = case.expectation(sources, &[case.cluster(topology, cni)])?.cells.pop();
    let cell = cell.ok_or_else(|| format!("{name}: the model has no result"))?;
    Ok(Question { case, cell, manifests: text, ccms: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bootstrap::{Cni, Topology};
    use std::collections::BTreeSet;

    fn texts(seed: u64) -> Vec<String> {
        let questions = random(seed, 40, true, |_| true).expect("variants");
        assert_eq!(questions.len(), 40);
        questions.iter().map(|question| question.manifests.to_string()).collect()
    }

    #[test]
    fn a_seed_always_gives_the_same_variants() {
        assert_eq!(texts(1), texts(1));
        assert_ne!(texts(1), texts(2));
        assert!(texts(1).iter().collect::<BTreeSet<_>>().len() > 30, "they differ from each other");
    }

    #[test]
    fn every_change_can_be_applied_and_leaves_manifests_that_the_model_reads() {
        let all = changes(true);
        for base in BASES {
            let text = variant::text_of(base).expect("a variant");
            let documents = yaml::from_str_multi(&text, Path::new(base)).expect("manifests");
            let case = table().expect("a table").into_iter().find(|case| case.name == base).expect("a case");
            let mut applied = 0;
            for (at, change) in all.iter().enumerate() {
                let mut set = Set::new(documents.clone());
                let before = set.text().expect("text");
                let what = change(&mut set, &mut Rng::with_seed(at as u64));
                let text = set.text().expect("text");
                assert_eq!(what.is_some(), text != before, "{base}, change {at}: {what:?}");
                applied += usize::from(what.is_some());
                let cluster = case.cluster(Topology::SingleNode, Cni::Independent);
                case.expectation(vec![Source::new("a.yaml", &text)], &[cluster]).expect("readable");
            }
            assert!(applied > all.len() / 2, "{base}: {applied} of {}", all.len());
        }
    }
}
