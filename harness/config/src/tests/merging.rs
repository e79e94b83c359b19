//! Options that override the run file.

use super::planned;
use crate::{
    Budget, ClusterKeys, HumanDuration, Keep, LimitKeys, OutputKeys, RunFile, SelectKeys, Timing, UpgradeKeys,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// A file with every key; the command line can hold the same.
fn full() -> RunFile {
    let texts = |text: &str| Some(vec![text.to_owned()]);
    RunFile {
        api_version: Some(String::from("ccm-conformance/v1")),
        kind: Some(String::from("Conformance")),
        profile: Some(String::from("null")),
        image: Some(String::from("a/b:c")),
        binary: Some(String::from("p")),
        upgrade_from: UpgradeKeys {
            profile: Some(String::from("mutants")),
            image: Some(String::from("a/b:d")),
            binary: Some(String::from("q")),
        },
        cluster: ClusterKeys {
            backend: Some(crate::BackendChoice::Kind),
            topology: Some(String::from("single")),
            kubernetes: Some(String::from("1.36")),
            kubeconfig: Some(String::from("k")),
            allow_foreign: Some(true),
            provider_id: Some(crate::ProviderId::Chosen),
            node_ip: Some(crate::NodeIp::Dropped),
            seed: Some(7),
        },
        select: SelectKeys {
            suites: texts("a"),
            only: texts("b"),
            skip: texts("c"),
            quick: Some(true),
            shard: Some(String::from("1/2")),
            run: Some(String::from("r")),
        },
        soak: Some(HumanDuration(Duration::from_secs(60))),
        output: OutputKeys { dir: Some(String::from("d")) },
        keep: Some(Keep::Always),
        jobs: Some(3),
        clusters: Some(2),
        limits: LimitKeys {
            scale: Some(1.5),
            budgets: BTreeMap::from([(Budget::Watch, HumanDuration(Duration::from_secs(5)))]),
        },
        require_complete: Some(true),
        certify: Some(true),
        timing: Some(Timing::Default),
    }
}

#[test]
fn nothing_on_top_changes_nothing_and_everything_wins() {
    assert_eq!(full().merge(RunFile::default()), full());
    assert_eq!(RunFile::default().merge(full()), full());
}

#[test]
fn budgets_are_merged_by_name() {
    let budget = |budget, s| RunFile {
        limits: LimitKeys {
            scale: None,
            budgets: BTreeMap::from([(budget, HumanDuration(Duration::from_secs(s)))]),
        },
        ..RunFile::default()
    };
    let merged = full().merge(budget(Budget::Watch, 9)).merge(budget(Budget::Boot, 8)).limits;
    assert_eq!(merged.scale, Some(1.5));
    assert_eq!(
        merged.budgets,
        BTreeMap::from([
            (Budget::Watch, HumanDuration(Duration::from_secs(9))),
            (Budget::Boot, HumanDuration(Duration::from_secs(8))),
        ])
    );
}

#[test]
fn the_command_line_wins_over_the_file() {
    let over = RunFile {
        keep: Some(Keep::Always),
        select: SelectKeys { only: Some(vec![String::from("SVC-*")]), ..SelectKeys::default() },
        ..RunFile::default()
    };
    let (_folder, plan) = planned("keep: never\njobs: 2\nselect: {only: [HA-*], skip: [HA-06]}\n", over);
    let plan = plan.expect("both are sound");
    assert_eq!((plan.keep, plan.jobs), (Keep::Always, 2));
    assert_eq!(
        (plan.selection.only.as_slice(), plan.selection.skip.as_slice()),
        (&[String::from("SVC-*")][..], &[String::from("HA-06")][..])
    );
}

#[test]
fn the_schema_knows_what_the_type_writes() {
    let text = crate::yaml::to_string(&full()).expect("plain data");
    let mut problems = crate::Problems::default();
    let (read, _) = RunFile::read(&text, Path::new("run.yaml"), &mut problems);
    assert_eq!(problems.0, []);
    assert_eq!(read, RunFile { cluster: read.cluster.clone(), ..full() });
    let value = serde_json::to_value(full()).expect("plain data");
    for (path, ..) in crate::schema::paths(&crate::run_file::SCHEMA) {
        assert!(
            value.pointer(&format!("/{}", path.replace('.', "/"))).is_some(),
            "{path} is not in the type"
        );
    }
}
