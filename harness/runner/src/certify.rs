//! The reasons for which a certifying run refuses to start.

use super::planned::Planned;
use super::subject::{in_force, judged};
use harness_clusters::{Fidelity, facts};
use harness_config::{BACKEND, Origin, Problem, Problems, RunPlan, SHARD, declared_not_judged};
use harness_core::ledger::{SetBy, option_of};
use harness_testkit::Suite;

/// Refuses everything that would make the result partial and is known before the run starts: limits that are less strict
/// than the contract's, skipped checks, declarations that no check judges, a cluster that cannot certify.
///
/// # Errors
/// All reasons together, if the plan is to certify and there are any.
pub fn certifies(suites: &[Suite], plan: &RunPlan, planned: &[Planned]) -> Result<(), Problems> {
    if !plan.certify {
        return Ok(());
    }
    let refused = |key: &str, what: String| Problem { origin: Origin::Settings, key: key.to_owned(), what };
    let is_typed =
        |key: &str| plan.settings.iter().any(|one| one.setting == key && one.from == SetBy::Option);
    let typed = |key: &str| if is_typed(key) { Origin::CommandLine } else { Origin::Settings };
    let settings = in_force(&plan.settings, planned);
    // A part of a run cannot certify by itself; the other parts contain the remaining checks.
    let relaxed = settings.iter().filter(|one| one.relaxes() && one.setting != SHARD).map(|one| {
        let contract = one.contract.as_ref().map_or_else(
            || "leaves checks out".to_owned(),
            |contract| format!("is less strict than the contract's {contract}"),
        );
        match option_of(&one.setting).filter(|_| one.from == SetBy::Option) {
            Some(_) => {
                let value = if one.value == "true" { String::new() } else { format!("{} ", one.value) };
                let what = format!("{value}{contract}; 'certify' refuses it");
                Problem { origin: Origin::CommandLine, ..refused(&one.setting, what) }
            }
            None => {
                let what = format!("{} {contract} ({}); 'certify' refuses it", one.value, one.from);
                refused(&one.setting, what)
            }
        }
    });
    let mut problems: Vec<Problem> = relaxed.collect();
    let promises = declared_not_judged(&plan.profile, &judged(suites));
    problems.extend(promises.into_iter().map(|key| {
        let what = "the profile declares it, but no check judges it".to_owned();
        Problem { origin: Origin::File { path: plan.profile.file.clone(), line: None }, key, what }
    }));
    if plan.selection.shard.is_some() && plan.selection.run.as_deref().unwrap_or_default().is_empty() {
        let what = "'merge' refuses certifying parts without the name of their run, because they may come from \
                    different runs; give all parts the same '--shard-of NAME'";
        problems.push(Problem { origin: typed(SHARD), ..refused(SHARD, what.to_owned()) });
    }
    let backend = plan.cluster.backend();
    if facts(backend).fidelity == Fidelity::Simulated {
        let what = format!("{backend} is a simulation and cannot certify; use '--cluster kind'");
        problems.push(Problem { origin: typed(BACKEND), ..refused(BACKEND, what) });
    }
    if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_config::{
        BackendChoice, BackendKind, ClusterKeys, LimitKeys, RunFile, SelectKeys, Source, plan,
    };

    fn refused(backend: BackendChoice, typed: RunFile) -> String {
        let cluster = ClusterKeys { backend: Some(backend), ..ClusterKeys::default() };
        let wanted = plan(&Source::Defaults, RunFile { cluster, ..typed }).expect("a plan");
        let settled = wanted.cluster.clone().settled(match backend {
            BackendChoice::Embedded => BackendKind::Embedded,
            _ => BackendKind::Kind,
        });
        certifies(&[], &wanted.on(settled), &[])
            .map_or_else(|problems| problems.to_string(), |()| String::new())
    }

    #[test]
    fn everything_that_is_looser_is_refused_at_once() {
        let limits = LimitKeys { scale: Some(2.0), ..LimitKeys::default() };
        let loose = RunFile { limits, ..RunFile::default() };
        assert_eq!(refused(BackendChoice::Embedded, loose.clone()), "", "it does not certify");
        let why = refused(BackendChoice::Embedded, RunFile { certify: Some(true), ..loose });
        for part in [
            "capabilities.zones: the profile declares it, but no check judges it",
            "limits.scale: 2 is less strict than the contract's 1 (option)",
            "limits.budgets.watch: 20s is less strict than the contract's 10s (option)",
            "--cluster: embedded is a simulation",
        ] {
            assert!(why.contains(part), "{part} is not in {why}");
        }
    }

    #[test]
    fn a_part_may_certify_and_what_else_leaves_checks_out_may_not() {
        let part = |run: Option<&str>| SelectKeys {
            shard: Some("1/2".to_owned()),
            run: run.map(str::to_owned),
            ..SelectKeys::default()
        };
        let run = |select| RunFile { certify: Some(true), select, ..RunFile::default() };
        let why = refused(BackendChoice::Kind, run(part(None)));
        assert!(why.contains("--shard: 'merge' refuses certifying parts without the name"), "{why}");
        let part = part(Some("ci-7"));
        let why = refused(BackendChoice::Kind, run(part.clone()));
        assert!(!why.contains("select."), "{why}");
        let planned = plan(&Source::Defaults, run(part)).expect("a plan");
        assert!(planned.certify && !planned.require_complete, "its others have the rest");
    }

    #[test]
    fn the_contracts_own_limits_on_real_kubelets_are_not_refused() {
        let certify = RunFile { certify: Some(true), ..RunFile::default() };
        let why = refused(BackendChoice::Kind, certify);
        // Without suites, nothing that is declared is judged; there is no other reason.
        let others = why.lines().skip(1).filter(|line| !line.contains("no check judges it"));
        assert_eq!(others.count(), 0, "{why}");
    }
}
