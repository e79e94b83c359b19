//! The capabilities that a profile can declare, and the checks that judge them.

use harness_config::{Framework, Offer, PROMISES, Promise, RunFile, Source, plan};
use harness_core::check::{Capability, Level};
use harness_runner::{judged, plan_checks};
use std::collections::BTreeSet;

/// Capabilities that no check judges yet: reports show them as declared and not judged. This list may only
/// get shorter.
const UNJUDGED: &[Capability] = &[Capability::Clusters, Capability::SharedLb];

#[test]
fn every_promise_of_a_profile_is_read_by_a_check_or_reported_as_unjudged() {
    let judged = judged(suites::ALL);
    let open: BTreeSet<Capability> =
        Capability::ALL.iter().copied().filter(|one| !judged.contains(one)).collect();
    let known: BTreeSet<Capability> = UNJUDGED.iter().copied().collect();
    let new: Vec<_> = open.difference(&known).collect();
    assert!(new.is_empty(), "no check needs {new:?} any more, so what profiles declare is not judged");
    for (key, promise) in PROMISES {
        match promise {
            Promise::Nothing => {}
            Promise::Framework => {
                let bound = suites::ALL
                    .iter()
                    .flat_map(|suite| suite.checks())
                    .any(|check| check.claim.framework_only);
                assert!(bound, "{key}: no check is of the framework");
            }
            Promise::Of(_) | Promise::OfEach(_) => {
                let read =
                    promise.capabilities().iter().all(|one| judged.contains(one) || known.contains(one));
                assert!(read, "{key}");
            }
        }
    }
}

#[test]
fn capabilities_that_checks_need_are_judged() {
    let judged = judged(suites::ALL);
    for one in
        [Capability::Instances, Capability::LoadBalancer, Capability::LeaderElection, Capability::Zones]
    {
        assert!(judged.contains(&one), "{one}");
    }
}

#[test]
fn newer_requirements_do_not_bind_ccms_of_an_older_framework() {
    let level = |framework: Framework, id: &str| {
        let mut plan = plan(&Source::Defaults, RunFile::default()).expect("a plan");
        plan.profile.framework = framework;
        let offer = Offer::declared(&plan.profile);
        let planned = plan_checks(suites::ALL, &plan, &offer).expect("checks");
        planned.iter().find(|one| one.check.id.is_named(id)).expect("a check").level
    };
    let version = |minor| Framework::Version { minor };
    assert_eq!(level(version(28), "NODE-ADDR-V08"), Level::Info);
    assert_eq!(level(version(29), "NODE-ADDR-V08"), Level::Must);
    assert_eq!(level(Framework::Other, "NODE-ADDR-V08"), Level::Must);
    // The earlier behaviour is expected instead.
    assert_eq!(level(version(28), "NODE-LBL-08"), Level::Must);
    assert_eq!(level(version(20), "SVC-ELIG-02"), Level::Info);
}
