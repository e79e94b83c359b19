//! The checks that a selection leaves.

use super::{PROFILE_HEAD, SOUND, folder};
use crate::{
    Candidate, Choice, LONG_S, Offer, Profile, RunFile, Selection, Source, plan, select, unknown_deviations,
};
use harness_core::check::{Capability, Facilities, Facility, Party, Served};
use harness_core::ledger::SkipReason;
use std::collections::BTreeSet;
use std::time::Duration;

const CLASS: Served = Served::Since { minor: 21, what: "Service spec.loadBalancerClass" };

const fn candidate(
    suite: &'static str,
    id: &'static str,
    needs: &'static [Capability],
    facilities: &[Facility],
    served: Served,
) -> Candidate {
    Candidate {
        suite,
        judges: Party::Ccm,
        id,
        needs,
        lacks: &[],
        facilities: Facilities::of(facilities),
        served,
        takes_s: 0,
        soaks: false,
        upgrades: false,
    }
}

const CANDIDATES: &[Candidate] = &[
    candidate("taint-removal", "NODE-INIT-01", &[Capability::Instances], &[], Served::Always),
    candidate(
        "taint-removal",
        "NODE-INIT-10",
        &[Capability::Instances],
        &[Facility::KubeletControl],
        Served::Always,
    ),
    candidate("loadbalancer", "SVC-ELIG-02", &[Capability::LoadBalancer], &[], CLASS),
    candidate("loadbalancer", "SVC-DEL-01", &[Capability::LoadBalancer], &[Facility::Faults], Served::Always),
    candidate("routes", "ROUTE-01", &[Capability::Routes, Capability::DualStack], &[], Served::Always),
    candidate(
        "failover",
        "HA-03",
        &[Capability::LeaderElection],
        &[Facility::ProcessControl],
        Served::Always,
    ),
];

fn everything() -> Offer {
    Offer {
        subjects: BTreeSet::from([Party::Ccm]),
        capabilities: BTreeSet::from([
            Capability::Instances,
            Capability::LoadBalancer,
            Capability::LeaderElection,
            Capability::Routes,
            Capability::DualStack,
        ]),
        facilities: Some(BTreeSet::from([
            Facility::KubeletControl,
            Facility::Faults,
            Facility::ProcessControl,
        ])),
        hosted: false,
        cloud: Some("fake-cloud".to_owned()),
        served_minor: Some(36),
    }
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

#[track_caller]
fn check(suites: &[&str], only: &[&str], skip: &[&str], runs: &[&str]) {
    let selection =
        Selection { suites: texts(suites), only: texts(only), skip: texts(skip), ..Selection::default() };
    let choices = select(CANDIDATES, &selection, &everything()).expect("every pattern matches something");
    let chosen: Vec<&str> =
        CANDIDATES.iter().zip(&choices).filter(|(_, c)| **c == Choice::Selected).map(|(c, _)| c.id).collect();
    assert_eq!(chosen, runs);
}

#[test]
fn a_check_for_ccms_without_a_capability_is_skipped_if_it_is_declared() {
    let lacks = &[Capability::Routes];
    let candidates = [Candidate { lacks, ..candidate("operation", "CAP-04", &[], &[], Served::Always) }];
    let choice = |offer: &Offer| {
        let chosen = select(&candidates, &Selection::default(), offer).expect("no pattern");
        chosen.into_iter().next()
    };
    let reason = "the profile declares routes".to_owned();
    assert_eq!(choice(&everything()), Some(Choice::Skip(SkipReason::NotDeclared, reason)));
    let mut without = everything();
    without.capabilities.remove(&Capability::Routes);
    assert_eq!(choice(&without), Some(Choice::Selected));
}

#[test]
fn patterns() {
    let all = ["NODE-INIT-01", "NODE-INIT-10", "SVC-ELIG-02", "SVC-DEL-01", "ROUTE-01", "HA-03"];
    check(&[], &[], &[], &all);
    check(&[], &["*"], &[], &all);
    check(&[], &["HA-03"], &[], &["HA-03"]);
    check(&[], &["ha-03"], &[], &["HA-03"]);
    check(&[], &["NODE-*"], &[], &["NODE-INIT-01", "NODE-INIT-10"]);
    check(&[], &["*-01"], &["SVC-*"], &["NODE-INIT-01", "ROUTE-01"]);
    check(&[], &["*INIT*1*"], &[], &["NODE-INIT-01", "NODE-INIT-10"]);
    check(&[], &["loadbalancer"], &[], &["SVC-ELIG-02", "SVC-DEL-01"]);
    check(&[], &["loadbalancer::SVC-DEL-01"], &[], &["SVC-DEL-01"]);
    check(&[], &["loadbalancer::*", "HA-03"], &[], &["SVC-ELIG-02", "SVC-DEL-01", "HA-03"]);
    check(&["failover", "taint-*"], &[], &["NODE-INIT-10"], &["NODE-INIT-01", "HA-03"]);
    check(&["failover", "taint-removal"], &["*-01"], &[], &["NODE-INIT-01"]);
}

#[test]
fn a_wrong_name_is_reported_with_file_and_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.yaml");
    let text = "apiVersion: ccm-conformance/v1\nkind: Conformance\nselect:\n  only: [NODE-INIT-1]\n";
    std::fs::write(&file, text).expect("a file");
    let selection = plan(&Source::File(file.clone()), RunFile::default()).expect("a plan").selection;
    let problems = select(CANDIDATES, &selection, &everything()).expect_err("no such check").to_string();
    let place = format!("{}:4: select.only: no check or suite matches 'NODE-INIT-1'", file.display());
    assert!(problems.starts_with(&place), "{problems}");
}

#[test]
fn patterns_that_match_nothing_name_the_nearest() {
    let selection = Selection {
        suites: texts(&["failovr", "HA-03"]),
        only: texts(&["NODE-INIT-1", "nothing-like-it"]),
        skip: texts(&["SVC-DELL-01", "NODE-INIT"]),
        ..Selection::default()
    };
    let problems = select(CANDIDATES, &selection, &everything()).expect_err("no pattern matches");
    assert_eq!(
        problems.to_string(),
        "6 problems in the configuration:\n  \
         select.suites: no suite matches 'failovr'; did you mean 'failover'?\n  \
         select.suites: no suite matches 'HA-03'; 'ccm-conformance list' shows them all\n  \
         select.only: no check or suite matches 'NODE-INIT-1'; did you mean one of 'NODE-INIT-01', 'NODE-INIT-10'?\n  \
         select.only: no check or suite matches 'nothing-like-it'; 'ccm-conformance list' shows them all\n  \
         select.skip: no check or suite matches 'SVC-DELL-01'; did you mean 'SVC-DEL-01'?\n  \
         select.skip: no check or suite matches 'NODE-INIT'; did you mean one of 'NODE-INIT-01', 'NODE-INIT-10'?"
    );
}

#[track_caller]
fn skipped(id: &str, selection: &Selection, offer: &Offer, expected: (SkipReason, &str)) {
    let choices = select(CANDIDATES, selection, offer).expect("every pattern matches something");
    let at = CANDIDATES.iter().position(|c| c.id == id).expect("the check is in the table");
    assert_eq!(choices[at], Choice::Skip(expected.0, expected.1.to_owned()));
}

#[test]
fn every_skip_has_its_reason() {
    let all = Selection::default();
    let mut offer = everything();
    offer.capabilities.remove(&Capability::Routes);
    offer.capabilities.remove(&Capability::DualStack);
    skipped(
        "ROUTE-01",
        &all,
        &offer,
        (SkipReason::NotDeclared, "the profile does not declare routes, dual-stack"),
    );
    let without_routes = Selection { skip: texts(&["routes"]), ..Selection::default() };
    skipped(
        "ROUTE-01",
        &without_routes,
        &offer,
        (SkipReason::NotDeclared, "the profile does not declare routes, dual-stack"),
    );
    skipped("ROUTE-01", &without_routes, &everything(), (SkipReason::Deselected, "left out by 'routes'"));
    let only = Selection { only: texts(&["HA-*", "NODE-*"]), ..Selection::default() };
    skipped(
        "SVC-DEL-01",
        &only,
        &everything(),
        (SkipReason::Deselected, "not among those asked for: HA-*, NODE-*"),
    );
    let suites = Selection { suites: texts(&["failover"]), ..Selection::default() };
    skipped(
        "SVC-DEL-01",
        &suites,
        &everything(),
        (SkipReason::Deselected, "suite loadbalancer was not asked for"),
    );
    let blind = Offer { facilities: Some(BTreeSet::from([Facility::ProcessControl])), ..everything() };
    let lacks = (SkipReason::NotObservable, "the cloud's driver fake-cloud lacks faults");
    skipped("SVC-DEL-01", &all, &blind, lacks);
    let bare = Offer { facilities: Some(BTreeSet::new()), served_minor: Some(20), ..everything() };
    skipped("HA-03", &all, &bare, (SkipReason::NotObservable, "this environment lacks process-control"));
    skipped(
        "SVC-ELIG-02",
        &all,
        &bare,
        (
            SkipReason::NotObservable,
            "Service spec.loadBalancerClass is served from Kubernetes 1.21 on, this cluster is 1.20",
        ),
    );
}

#[test]
fn a_quick_run_leaves_out_what_is_long_unless_it_is_named() {
    let long = Candidate { takes_s: LONG_S, ..CANDIDATES[0] };
    let short = Candidate { takes_s: LONG_S - 1, ..CANDIDATES[2] };
    let choices = |selection: Selection| select(&[long, short], &selection, &everything()).expect("sound");
    let quick = choices(Selection { quick: true, ..Selection::default() });
    assert!(
        matches!(&quick[0], Choice::Skip(SkipReason::Deselected, why) if why.contains("quick")),
        "{quick:?}"
    );
    assert_eq!(quick[1], Choice::Selected);
    let named = Selection { quick: true, only: texts(&[long.id]), ..Selection::default() };
    assert_eq!(choices(named)[0], Choice::Selected);
}

#[test]
fn soak_checks_are_only_part_of_soak_runs() {
    let soaks = Candidate { takes_s: LONG_S, soaks: true, ..CANDIDATES[0] };
    let choice = |selection: Selection| select(&[soaks], &selection, &everything()).expect("sound").remove(0);
    let why = "the run does not soak (--soak)".to_owned();
    assert_eq!(choice(Selection::default()), Choice::Skip(SkipReason::NotDeclared, why));
    let soak = Some(Duration::from_secs(60));
    assert_eq!(choice(Selection { soak, quick: true, ..Selection::default() }), Choice::Selected);
}

#[test]
fn unknown_facts_hide_no_checks() {
    let offer = Offer { facilities: None, served_minor: None, ..everything() };
    let choices = select(CANDIDATES, &Selection::default(), &offer).expect("nothing was asked for");
    assert!(choices.iter().all(|choice| *choice == Choice::Selected));
}

#[test]
fn checks_that_a_hosted_ccm_cannot_show_have_a_reason() {
    let needs = |facility: &'static [Facility]| candidate("a", "A-01", &[], facility, Served::Always);
    let skipped = |facility, hosted| {
        let offer = Offer { facilities: Some(BTreeSet::new()), hosted, ..everything() };
        select(&[needs(facility)], &Selection::default(), &offer).expect("sound").remove(0)
    };
    let unseen = |why: &str| Choice::Skip(SkipReason::NotObservable, why.to_owned());
    let boots = &[Facility::BootsInside];
    let why = "this environment lacks boots-inside, as the CCM runs outside the cluster";
    assert_eq!(skipped(boots, true), unseen(why));
    assert_eq!(skipped(boots, false), unseen("this environment lacks boots-inside"));
    let link = &[Facility::LinkControl];
    assert_eq!(
        skipped(link, true),
        unseen("this environment lacks link-control"),
        "no environment of this test has that"
    );
}

#[test]
fn deviations_must_name_checks() {
    let profile = |declared: &str| {
        let folder = folder(&[
            ("profile.yaml", &format!("{PROFILE_HEAD}{SOUND}declared: [{{id: {declared}, reason: x}}]\n")),
            ("manifests/ccm.yaml", ""),
        ]);
        Profile::load(&folder.path().to_string_lossy()).expect("the profile is sound")
    };
    assert_eq!(unknown_deviations(&profile("HA-03"), CANDIDATES), Ok(()));
    const CLAIM: Candidate = candidate("failover", "HA-09.late", &[], &[], Served::Always);
    for id in ["HA-09", "HA-09.late"] {
        assert_eq!(unknown_deviations(&profile(id), &[CLAIM]), Ok(()), "{id}");
    }
    let said = unknown_deviations(&profile("HA-3"), CANDIDATES).expect_err("there is no HA-3").to_string();
    assert!(
        said.ends_with(
            "profile.yaml: declared[0].id: no check or suite matches 'HA-3'; did you mean 'HA-03'?"
        ),
        "{said}"
    );
}

#[test]
fn a_contract_row_stands_for_all_of_its_claims() {
    let candidates = ["SVC-UPD-01.port", "SVC-UPD-01.affinity", "SVC-UPD-02"]
        .map(|id| candidate("loadbalancer", id, &[], &[], Served::Always));
    let offer = Offer {
        subjects: BTreeSet::from([Party::Ccm]),
        capabilities: BTreeSet::new(),
        facilities: None,
        hosted: false,
        cloud: None,
        served_minor: None,
    };
    for (pattern, expected) in [
        ("SVC-UPD-01", [true, true, false]),
        ("SVC-UPD-01*", [true, true, false]),
        ("svc-upd-01.port", [true, false, false]),
        ("loadbalancer::SVC-UPD-01.affinity", [false, true, false]),
    ] {
        let selection = Selection { only: vec![pattern.to_owned()], ..Selection::default() };
        let choices = select(&candidates, &selection, &offer).expect("the pattern matches");
        let selected: Vec<bool> = choices.iter().map(|choice| *choice == Choice::Selected).collect();
        assert_eq!(selected, expected, "{pattern}");
    }
}

#[test]
fn checks_of_undeclared_components_are_not_selected() {
    let of_plugins = Candidate { judges: Party::ImageCredentials, ..CANDIDATES[0] };
    let only = Selection { only: vec!["NODE-INIT-01".to_owned()], ..Selection::default() };
    let chosen = select(&[of_plugins], &only, &everything()).expect("a check of that id");
    let why = "the profile names no image credential provider".to_owned();
    assert_eq!(chosen, [Choice::Skip(SkipReason::NotDeclared, why)]);
    let offer = Offer { subjects: BTreeSet::from([Party::ImageCredentials]), ..everything() };
    assert_eq!(select(&[of_plugins], &only, &offer), Ok(vec![Choice::Selected]));
}
