//! `junit.xml` in the format of nextest: one `testsuite` for each suite, one `testcase` for each check with the name in the
//! test list.
//!
//! A failed check is a `failure`, and so is a MUST check that was blocked by another violation of the CCM. An environment
//! error is an `error`, and a check that was not judged is `skipped` with its reason. A failed check below MUST is a failure
//! too; its type contains its level.

use super::profile_result::{ProfileResult, profile_results};
use super::wording::{failure_in_short, one_line, outcome_word, printable as text};
use harness_core::check::Level;
use harness_core::ledger::{Entry, Ledger, Outcome, Setting, StageTime, Subject};
use quick_junit::{NonSuccessKind, Property, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};
use std::time::Duration;

/// The text of `junit.xml`. Characters that XML cannot represent are left out.
///
/// # Errors
/// The XML writer fails, which does not happen with filtered text.
pub fn to_junit(ledger: &Ledger) -> Result<String, SerializeError> {
    let mut report = Report::new("ccm-conformance");
    report.timestamp = ledger.started.parse().ok();
    report.set_time(Duration::from_millis(ledger.duration_ms));
    if let Some(error) = &ledger.environment_error {
        report.add_test_suite(environment(ledger, error));
    }
    let standing = |one: ProfileResult| Property::new(format!("profile.{}", one.profile), one.standing);
    let profiles: Vec<Property> = profile_results(ledger).into_iter().map(standing).collect();
    for (name, entries) in by_suite(&ledger.entries) {
        let mut suite = suite(name, &entries, ledger);
        suite.add_properties(profiles.iter().cloned());
        report.add_test_suite(suite);
    }
    for (name, entries) in by_suite(&ledger.private) {
        let mut suite = suite(name, &entries, ledger);
        suite.add_property(Property::new("private", "true"));
        report.add_test_suite(suite);
    }
    report.to_string()
}

/// The entries of each suite, in the order of the ledger.
fn by_suite(entries: &[Entry]) -> Vec<(&str, Vec<&Entry>)> {
    let mut suites: Vec<(&str, Vec<&Entry>)> = Vec::new();
    for entry in entries {
        match suites.iter_mut().find(|(name, _)| *name == entry.suite) {
            Some((_, of_suite)) => of_suite.push(entry),
            None => suites.push((&entry.suite, vec![entry])),
        }
    }
    suites
}

fn suite(name: &str, entries: &[&Entry], ledger: &Ledger) -> TestSuite {
    let mut suite = TestSuite::new(text(name));
    suite.timestamp = entries.iter().filter_map(|entry| entry.started.parse().ok()).min();
    suite.set_time(Duration::from_millis(entries.iter().map(|entry| entry.duration_ms).sum()));
    suite.add_properties(facts(&ledger.subject));
    suite.add_test_cases(entries.iter().map(|entry| case(entry, &ledger.subject)));
    suite
}

fn environment(ledger: &Ledger, error: &str) -> TestSuite {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status
        .set_type("environment error")
        .set_message(text(&failure_in_short(error)))
        .set_description(text(error));
    let mut case = TestCase::new("environment::comes-up", status);
    case.set_classname("environment");
    case.timestamp = ledger.started.parse().ok();
    let mut suite = TestSuite::new("environment");
    suite.timestamp = ledger.started.parse().ok();
    let took =
        |stage: &StageTime| Property::new(format!("stage.{}", stage.stage), format!("{}ms", stage.took_ms));
    suite.add_properties(ledger.stages.iter().map(took));
    suite.add_properties(facts(&ledger.subject));
    suite.add_test_case(case);
    suite
}

fn case(entry: &Entry, subject: &Subject) -> TestCase {
    let mut case = TestCase::new(text(&format!("{}::{}", entry.suite, entry.id)), status(entry));
    case.set_classname(text(&entry.suite));
    case.timestamp = entry.started.parse().ok();
    case.set_time(Duration::from_millis(entry.duration_ms));
    let mut property = |name: &str, value: &str| {
        case.add_property(Property::new(text(name), text(value)));
    };
    property("title", &entry.title);
    property("level", &entry.level.to_string());
    if let Some(percent) = entry.budget_used_percent {
        property("budget-used-percent", &percent.to_string());
    }
    if let Some(evidence) = &entry.evidence {
        property("evidence", evidence);
    }
    if let Some(reason) = subject.deviation(&entry.id) {
        property("declared-deviation", &one_line(reason));
    }
    for (name, value) in &entry.facts {
        property(&format!("fact.{name}"), &one_line(value));
    }
    case
}

fn status(entry: &Entry) -> TestCaseStatus {
    let trouble = |kind, what: &str, message: &str| {
        let mut status = TestCaseStatus::non_success(kind);
        status.set_type(what).set_message(text(&failure_in_short(message))).set_description(text(message));
        status
    };
    let skipped = |why: &str| {
        let mut status = TestCaseStatus::skipped();
        status.set_message(text(why));
        status
    };
    match &entry.outcome {
        Outcome::Pass => TestCaseStatus::success(),
        Outcome::Fail { message } => {
            let what = match entry.level {
                Level::Must => "test failure",
                Level::Should | Level::Info => "advisory test failure",
            };
            trouble(NonSuccessKind::Failure, what, message)
        }
        Outcome::Error { message } => trouble(NonSuccessKind::Error, "environment error", message),
        Outcome::Blocked { by, message } => {
            let why = format!("blocked by {by}: {}", one_line(message));
            match entry.level {
                Level::Must => trouble(NonSuccessKind::Failure, "blocked", &why),
                Level::Should | Level::Info => skipped(&why),
            }
        }
        Outcome::Skip { detail, .. } => {
            skipped(&format!("{}: {}", outcome_word(&entry.outcome), one_line(detail)))
        }
    }
}

fn facts(subject: &Subject) -> Vec<Property> {
    let Subject {
        profile,
        image,
        image_digest,
        manifests_sha256,
        framework_version,
        capabilities,
        declared_not_judged,
        dialect,
        driver,
        backend,
        simulated: _,
        topology,
        kubernetes_version,
        kind_version,
        node_image,
        node_image_digest,
        harness_version,
        check_set,
        certify,
        settings,
        declared: _,
        reproduce,
        shard: _,
        merged: _,
    } = subject;
    let capabilities = capabilities.join(" ");
    let mut properties: Vec<Property> = [
        ("profile", profile),
        ("image", image),
        ("image-digest", image_digest),
        ("manifests-sha256", manifests_sha256),
        ("capabilities", &capabilities),
        ("dialect", dialect),
        ("driver", driver),
        ("backend", backend),
        ("topology", topology),
        ("kubernetes-version", kubernetes_version),
        ("kind-version", kind_version),
        ("node-image", node_image),
        ("node-image-digest", node_image_digest),
        ("harness-version", harness_version),
        ("check-set", check_set),
        ("reproduce", reproduce),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(name, value)| Property::new(name, text(&one_line(value))))
    .collect();
    properties
        .extend(framework_version.iter().map(|version| Property::new("framework-version", text(version))));
    let unjudged = |key: &String| Property::new("declared-not-judged", text(key));
    properties.extend(declared_not_judged.iter().map(unjudged));
    properties.extend(certify.then(|| Property::new("certify", "true")));
    let setting = |one: &Setting| Property::new("setting", text(&one_line(&one.to_string())));
    properties.extend(settings.iter().map(setting));
    properties
}
