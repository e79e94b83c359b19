//! Leftovers in the cloud of an attempt that an environment error ended: they are removed, and not attributed
//! to the CCM.

use harness_config::{BackendChoice, RunFile, Source, plan};
use harness_core::check::{CheckError, Party, Verdict};
use harness_core::ledger::{Ledger, Outcome};
use harness_runner::{Quiet, Run, Watch, exit_code_of};
use harness_testkit::{Check, CheckCx, Suite, load_balancer};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio_util::sync::CancellationToken;

/// How often the check was tried.
static TRIES: AtomicU32 = AtomicU32::new(0);

/// Removes the finalizer of a Service, so that its load balancer stays. The first attempt ends with an
/// environment error.
async fn strips_and_is_ended(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    if TRIES.fetch_add(1, Ordering::SeqCst) > 0 {
        return Ok(());
    }
    web.rests().await?;
    web.patch(&json!({"metadata": {"finalizers": null}})).await?;
    web.delete().await?;
    Err(CheckError::Error("etcd has stopped".to_owned()))
}

const CHECKS: [Check; 1] =
    [Check::own("SVC-DEL-11", "is ended once", "none", |cx| Box::pin(strips_and_is_ended(cx)))];

#[test]
fn cloud_leftovers_of_an_aborted_attempt_do_not_count_against_the_ccm() {
    harness_clusters::images::set_own_program(Path::new(env!("CARGO_BIN_EXE_ccm-conformance")));
    let all = suites::ALL.iter().flat_map(|suite| suite.tables.iter()).flat_map(|table| table.iter());
    let whole_run = all.into_iter().find(|check| check.id == *"SVC-DEL-09.whole-run").expect("there is one");
    let tables: &'static [&'static [Check]] =
        Box::leak(Box::new([&CHECKS[..], std::slice::from_ref(whole_run)]));
    let suite = Suite { name: "loadbalancer-provisioning", proves: "nothing", judges: Party::Ccm, tables };
    let suites: &'static [Suite] = Box::leak(Box::new([suite]));
    let folder = tempfile::tempdir().expect("a folder");
    let mut file = RunFile::default();
    file.cluster.backend = Some(BackendChoice::Embedded);
    let mut plan = plan(&Source::Defaults, file).expect("a plan");
    plan.output = folder.path().join("out");
    let (reproduce, cancel) = (String::new(), CancellationToken::new());
    let run = Run { suites, plan, reproduce, watch: Watch::No, cancel };
    let code = exit_code_of(run, &mut Quiet { wanted: |_: &str| true, at_once: Some(1) });
    let report = folder.path().join("out/report.yaml");
    let text = std::fs::read_to_string(&report).expect("a report");
    let Ledger { entries, .. } = harness_report::parse(&text, &report).expect("a report of this version");
    let passed: Vec<(&str, bool)> =
        entries.iter().map(|one| (one.id.as_str(), one.outcome == Outcome::Pass)).collect();
    assert_eq!(passed, [("SVC-DEL-11", true), ("SVC-DEL-09.whole-run", true)], "{text}");
    assert_eq!((code, TRIES.load(Ordering::SeqCst)), (0, 2), "{text}");
}
