//! The end of a run: reports, summary, teardown, exit code.

use crate::ccm::{Form, fingerprint};
use crate::cluster::Origin;
use crate::config::{Completeness, HumanDuration, Keep, RunPlan};
use crate::cx::Suite;
use crate::events::Events;
use crate::ledger::{Ledger, Outcome, Subject};
use crate::progress::Terminal;
use crate::report::{exit, exit_code, summary, to_junit, to_yaml};
use crate::session::up::{Environment, Leave};
use crate::session::{Session, load_manifests};
use sha2::{Digest, Sha256};
use std::fs::Permissions;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit code of a run that was interrupted, as shells have it for SIGINT.
const INTERRUPTED: u8 = 130;

pub(super) fn interrupted_exit() -> ExitCode {
    ExitCode::from(INTERRUPTED)
}

/// Waits for SIGINT or SIGTERM; for ever where neither can be heard.
pub(super) async fn interrupted() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// Cancels the run at the first SIGINT or SIGTERM; at the second gives up cleaning, too.
#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "the second signal asks for exactly that: no cleanup"
)]
pub(super) async fn watch_signals(cancel: CancellationToken) {
    let events = Terminal::alone();
    interrupted().await;
    events.say("interrupted: taking everything down (once more to leave it behind)");
    cancel.cancel();
    interrupted().await;
    events.say("left behind: 'ccm-conformance clean' removes it");
    std::process::exit(i32::from(INTERRUPTED));
}

/// What the end of a run needs.
pub(super) struct Finish<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) plan: &'a RunPlan,
    pub(super) ledger: &'a Ledger,
    pub(super) environment: Environment,
    pub(super) events: &'a Events,
}

/// Writes the reports, prints the summary, takes the environment down or leaves it, and says with which code to exit.
pub(super) fn finish(end: Finish<'_>) -> ExitCode {
    let Finish { runtime, plan, ledger, environment, events } = end;
    let written = write_reports(plan, ledger, events);
    events.say(&summary(ledger));
    let troubled = |outcome: &Outcome| matches!(outcome, Outcome::Fail { .. } | Outcome::Error { .. });
    let failed =
        ledger.environment_error.is_some() || ledger.entries.iter().any(|entry| troubled(&entry.outcome));
    let mut leave = match plan.keep {
        Keep::Always => Leave::Everything,
        Keep::OnFailure if failed => Leave::Everything,
        Keep::OnFailure | Keep::Never => Leave::Nothing,
    };
    if leave == Leave::Everything && environment.is_in_process() {
        runtime.block_on(keep_up(&environment, events));
        leave = Leave::Nothing;
    }
    if leave == Leave::Everything
        && let Some(dir) = environment.dir()
    {
        events.say(&format!(
            "kept: cluster {}, kubeconfig {}; 'ccm-conformance clean' removes it",
            environment.run_id().name(),
            dir.path().join("kubeconfig").display(),
        ));
    }
    if let Err(why) = runtime.block_on(environment.down(leave)) {
        events.say(&format!("left behind ('ccm-conformance clean' tries again):\n{why}"));
    }
    let completeness = if plan.require_complete { Completeness::Required } else { Completeness::Optional };
    match exit_code(ledger, completeness) {
        // A verdict that nobody can read later is none.
        exit::CONFORMANT if !written => ExitCode::from(exit::ENVIRONMENT),
        code => ExitCode::from(code),
    }
}

/// Keeps an environment up that lives in this process, for somebody to look at, as long as they want.
async fn keep_up(environment: &Environment, events: &Events) {
    let kubeconfig = environment.dir().map(|dir| dir.path().join("kubeconfig").display().to_string());
    if std::io::stderr().is_terminal() {
        events.say(&format!("kept: export KUBECONFIG={}; Ctrl-C ends it", kubeconfig.unwrap_or_default()));
        interrupted().await;
    } else {
        events.say("not kept: an embedded cluster ends with this process, and nobody sits at it to end it");
    }
}

/// Writes report.yaml and junit.xml, each whole or not at all; what cannot be written is said. Whether both were.
pub(super) fn write_reports(plan: &RunPlan, ledger: &Ledger, events: &Events) -> bool {
    let write = |name: &str, text: Result<String, String>| {
        let path = plan.output.join(name);
        let outcome = text.and_then(|text| whole(&path, &text).map_err(|error| error.to_string()));
        match &outcome {
            Ok(()) => events.say(&format!("wrote {}", path.display())),
            Err(why) => events.say(&format!("error: {} could not be written: {why}", path.display())),
        }
        outcome.is_ok()
    };
    let report = write("report.yaml", to_yaml(ledger).map_err(|error| crate::check::chain(&error)));
    write("junit.xml", to_junit(ledger).map_err(|error| crate::check::chain(&error))) && report
}

/// Writes a file beside its place and puts it there when it is whole, readable as other files of the user are.
fn whole(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    let mut file = builder.permissions(Permissions::from_mode(0o644)).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// What was tested.
pub(super) fn subject(
    suites: &'static [Suite],
    plan: &RunPlan,
    session: Option<&Arc<Session>>,
    reproduce: &str,
) -> Subject {
    let manifests = load_manifests(plan).ok().flatten();
    let mut subject = Subject {
        profile: plan.profile.name.clone(),
        manifests_sha256: manifests.map(|m| fingerprint(&m.documents)).unwrap_or_default(),
        framework_version: plan.profile.framework.version(),
        capabilities: plan.profile.capabilities.declared(),
        dialect: plan.profile.dialect.clone(),
        backend: plan.cluster.backend().to_string(),
        harness_version: env!("CARGO_PKG_VERSION").to_owned(),
        check_set: check_set(suites),
        reproduce: reproduce.to_owned(),
        declared: plan.profile.declared.iter().map(|d| (d.id.clone(), d.reason.clone())).collect(),
        ..Subject::default()
    };
    if let Some(session) = session {
        let (state, record) = (session.state(), &session.state().cluster);
        subject.image.clone_from(&state.ccm_image);
        subject.image_digest.clone_from(&state.ccm_image_digest);
        subject.backend = record.backend().to_string();
        match &record.origin {
            Origin::Kind(kind) => {
                subject.topology.clone_from(&kind.topology);
                subject.kubernetes_version.clone_from(&kind.kubernetes);
                subject.kind_version.clone_from(&kind.kind_version);
                subject.node_image.clone_from(&kind.node_image);
                subject.node_image_digest.clone_from(&kind.node_image_digest);
            }
            Origin::Embedded(embedded) => {
                subject.topology.clone_from(&embedded.topology);
                subject.kubernetes_version.clone_from(&embedded.kubernetes);
            }
            Origin::Existing => subject.kubernetes_version = format!("1.{}", state.served_minor),
        }
        subject.changes = session.ccm().rendered(Form::Replicas).map(|r| r.changes).unwrap_or_default();
        subject.changes.extend(state.changes.iter().cloned());
        let budgets = plan.profile.budgets.iter();
        subject.changes.extend(budgets.map(|(budget, limit)| {
            format!("budget {budget} is {}, as the profile asks for", HumanDuration(*limit))
        }));
    }
    subject
}

/// Identifies the set of checks.
fn check_set(suites: &[Suite]) -> String {
    let mut hash = Sha256::new();
    for check in suites.iter().flat_map(Suite::checks) {
        hash.update(format!("{} {} {}\n", check.id, check.level, check.title));
    }
    hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
