//! `controls`: proves that the checks bite, and that they bite nobody else. Every MUST check must fail with no CCM at all,
//! each mutant of the reference CCM must be noticed by the checks named for it, no check may fail on a stranger: a CCM
//! that is right in an unusual way, and an adversary, a CCM that is hostile, fails what it breaks and harms nothing else.

mod benches;
mod csi;
pub(super) mod list;
mod outcome;
mod results;
mod work;

use super::arguments::ControlOptions;
use super::planning::planned;
use benches::Benches;
use harness_clusters::facts;
use harness_config::{
    BackendKind, ClusterKeys, Given, HumanDuration, Offer, PROGRAM, Problems, ProfileKind, RunFile, RunPlan,
    Source, Topology, plan,
};
use harness_core::check::Facility;
use harness_core::ledger::Share;
use harness_report::exit;
use harness_runner::{INTERRUPTED, LastWord, ORDERLY, Planned, guard, open, plan_checks, refuse};
use harness_session::settle;
use harness_session::up::Prepared;
use harness_testkit::Suite;
use outcome::Judged;
use results::Results;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use work::Work;

/// The profile whose image has the mutants compiled in.
const MUTANTS: &str = "mutants";
/// The variable that makes its CCM a mutant; unlike a flag it is in the manifests as shipped, too.
const MUTANT_VARIABLE: &str = "REFERENCE_CCM_MUTANT";
/// The one that makes it a stranger.
const STRANGER_VARIABLE: &str = "REFERENCE_CCM_STRANGER";

/// The profile of the image credential provider.
const PLUGIN: &str = "reference-credential-provider";
/// What cannot be executed.
const NO_PLUGIN: &str = "/dev/null";
/// The command of this program that is the same plugin, able to be broken.
const ODD_PLUGIN: &str = "reference-credential-provider-mutant";

/// The profile of the network proxy.
const PROXY: &str = "reference-network-proxy";
/// The command that is the same proxy, able to be broken.
const ODD_PROXY: &str = "reference-network-proxy-mutant";
/// The variable that makes it a mutant.
const PROXY_VARIABLE: &str = "REFERENCE_NETWORK_PROXY_MUTANT";

/// On how many clusters at once no CCM at all is judged: it fails each check only when its time is up.
const NOBODY_ON: usize = 4;

/// For how long no CCM at all is watched in a soak: it does not come to its first round.
const SOAK: HumanDuration = HumanDuration(Duration::from_secs(30));

pub(super) fn controls(suites: &'static [Suite], options: &ControlOptions) -> ExitCode {
    let (with_mutants, with_nothing) = match (
        planned(&Source::Defaults, overrides(options, MUTANTS)),
        planned(&Source::Defaults, soaking(overrides(options, harness_config::NULL_PROFILE), Some(SOAK))),
    ) {
        (Ok(with_mutants), Ok(with_nothing)) => (with_mutants, with_nothing),
        (Err(code), _) | (_, Err(code)) => return code,
    };
    let everything = match plan_checks(suites, &with_mutants, &Offer::declared(&with_mutants.profile)) {
        Ok(everything) => everything,
        Err(problems) => return refuse(&problems),
    };
    let (events, runtime) = match (open(&with_mutants), Runtime::new()) {
        (Ok(events), Ok(runtime)) => (events, runtime),
        (opened, started) => {
            let why = opened.err().or(started.err()).map(|error| error.to_string()).unwrap_or_default();
            let events = harness_core::progress::Terminal::alone();
            events.say(format!("error: {} or a runtime: {why}", with_mutants.output.display()));
            return ExitCode::from(exit::ENVIRONMENT);
        }
    };
    let cancel = CancellationToken::new();
    guard(runtime.handle(), cancel.clone(), ORDERLY, LastWord::default());
    let (with_mutants, chosen) = runtime.block_on(settle(with_mutants));
    let with_nothing = with_nothing.on(with_mutants.cluster.clone());
    chosen.iter().for_each(|chosen| events.say(chosen));
    let work = match work(suites, options, &with_mutants, &with_nothing, &everything) {
        Ok(work) => work,
        Err(why) => {
            events.say(format!("error: {why}"));
            return ExitCode::from(exit::USAGE);
        }
    };
    let began = Instant::now();
    let usual = facts(with_mutants.cluster.backend()).side_by_side;
    let beside = options.side_by_side.unwrap_or(usual).max(1);
    let benches = Benches {
        suites,
        plan: &with_mutants,
        prepared: Prepared::new(Arc::new(with_mutants.clone())),
        queue: Mutex::new(work.into()),
        large: Arc::new(()),
        beside: RwLock::new(()),
        handle: runtime.handle(),
        events: &events,
        cancel: &cancel,
    };
    let outcomes: Vec<Result<Vec<Judged>, String>> = std::thread::scope(|scope| {
        let running: Vec<_> = (1..)
            .take(beside)
            .map(|lane| {
                let benches = &benches;
                scope.spawn(move || benches.judge(lane))
            })
            .collect();
        running.into_iter().filter_map(|bench| bench.join().ok()).collect()
    });
    let mut judged = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok(some) => judged.extend(some),
            Err(why) => {
                events.say(format!("error: {why}"));
                return ExitCode::from(exit::ENVIRONMENT);
            }
        }
    }
    let cluster = with_mutants.cluster.backend().to_string();
    let results = Results::of(cluster, judged, began.elapsed());
    let amiss = results.amiss();
    if !amiss.is_empty() {
        events.say(format!("not as it should be:\n{}", amiss.join("\n")));
    }
    match results.write(&with_mutants.output) {
        Ok(file) => events.say(format!("{results}; {}", file.display())),
        Err(why) => {
            events.say(format!("{results}\nerror: {why}"));
            return ExitCode::from(exit::ENVIRONMENT);
        }
    }
    if cancel.is_cancelled() {
        return ExitCode::from(INTERRUPTED);
    }
    ExitCode::from(if results.are_good() { exit::CONFORMANT } else { exit::NOT_CONFORMANT })
}

/// Everything to be judged: what takes longest first, what is judged alone last.
fn work(
    suites: &'static [Suite],
    options: &ControlOptions,
    with_mutants: &RunPlan,
    with_nothing: &RunPlan,
    everything: &[Planned],
) -> Result<Vec<Work>, String> {
    let all = options.mutant.is_empty() && options.stranger.is_empty() && options.adversary.is_empty();
    // The plan and the checks of the mutants' profile with something laid over it.
    let planned_with = |over_profile: Map<String, Value>, soak: Option<HumanDuration>| {
        let typed = soaking(overrides(options, MUTANTS), soak);
        let given = |typed| {
            let over_profile = over_profile.clone();
            plan(&Source::Defaults, Given { typed, over_profile, ..Given::default() })
        };
        let (mut plan, mut cluster) = (given(typed.clone())?, with_mutants.cluster.clone());
        if plan.profile.is_hosted() && !facts(cluster.backend()).manages {
            // Whichever the others have, it has what there can be a management cluster beside.
            plan = given(RunFile { cluster: ClusterKeys::default(), ..typed })?;
            cluster = plan.cluster.clone().settled(BackendKind::Embedded);
        }
        let plan = plan.on(cluster);
        let planned = plan_checks(suites, &plan, &Offer::declared(&plan.profile))?;
        Ok::<_, Problems>((plan, planned))
    };
    // The same of a plugin, of which this is the command.
    let plugin_with = |command: Value, mut over_profile: Map<String, Value>, by_a_kubelet: bool| {
        let keys = over_profile.entry("imageCredentials").or_insert_with(|| json!({}));
        keys["command"] = command;
        // It needs no cluster, whichever the others have, but for what a real kubelet makes of it.
        let typed = RunFile { cluster: ClusterKeys::default(), ..overrides(options, PLUGIN) };
        let plan = plan(&Source::Defaults, Given { typed, over_profile, ..Given::default() })?;
        let real = facts(with_mutants.cluster.backend()).facilities.contains(&Facility::ImageCredentials);
        let cluster = match by_a_kubelet && real {
            true => with_mutants.cluster.clone(),
            false => plan.cluster.clone().settled(BackendKind::Absent),
        };
        let plan = plan.on(cluster);
        let planned = plan_checks(suites, &plan, &Offer::declared(&plan.profile))?;
        Ok::<_, Problems>((plan, planned))
    };
    // The same of a network proxy, which is this program; on a cluster for what an API server makes of it.
    let proxy_with = |mutant: Option<&str>, mut over_profile: Map<String, Value>, by_a_server: bool| {
        let keys = over_profile.entry("networkProxy").or_insert_with(|| json!({}));
        if let Some(id) = mutant {
            keys["program"] = json!([PROGRAM, ODD_PROXY]);
            keys["environment"] = json!({PROXY_VARIABLE: id});
            over_profile.insert("image".to_owned(), json!({"command": ODD_PROXY}));
        }
        let typed = RunFile { cluster: ClusterKeys::default(), ..overrides(options, PROXY) };
        let plan = plan(&Source::Defaults, Given { typed, over_profile, ..Given::default() })?;
        let real = facts(with_mutants.cluster.backend()).facilities.contains(&Facility::NetworkProxy);
        let cluster = match by_a_server && real {
            // Agents are on other machines than the API server.
            true => with_mutants.cluster.clone().with(|own| {
                if own.topology == Topology::Single {
                    own.topology = Topology::ThreeNode;
                }
            }),
            false => plan.cluster.clone().settled(BackendKind::Absent),
        };
        let plan = plan.on(cluster);
        let planned = plan_checks(suites, &plan, &Offer::declared(&plan.profile))?;
        Ok::<_, Problems>((plan, planned))
    };
    let odd_plugin = |flag: &str, id: &str| json!([PROGRAM, ODD_PLUGIN, format!("--{flag}={id}")]);
    let share = options.share.unwrap_or(Share::WHOLE);
    let mut work = Vec::new();
    if all || !options.stranger.is_empty() {
        for one in list::strangers(&options.stranger, share)? {
            let text = |problems: Problems| format!("stranger {}: {problems}", one.stranger);
            let mut over = one.profile.clone();
            let (plan, planned) = match one.of {
                ProfileKind::ImageCredentials => {
                    plugin_with(odd_plugin("stranger", &one.stranger), over, true)
                }
                ProfileKind::NetworkProxy => {
                    proxy_with((!one.as_is).then_some(one.stranger.as_str()), over, true)
                }
                ProfileKind::CsiMigration => {
                    let odd = (!one.as_is).then_some(one.stranger.as_str());
                    let typed = overrides(options, csi::DRIVERS);
                    csi::drivers_with(suites, typed, with_mutants, odd, over)
                }
                ProfileKind::Profile => {
                    if !one.as_is {
                        over.insert("environment".to_owned(), json!({STRANGER_VARIABLE: one.stranger}));
                    }
                    planned_with(over, one.soak)
                }
            }
            .map_err(text)?;
            work.extend(Work::of_stranger(&one, &plan, &planned)?);
        }
    }
    if all || !options.adversary.is_empty() {
        for one in list::adversaries(&options.adversary, share)? {
            work.push(Work::of_adversary(&one, with_mutants, everything)?);
        }
    }
    if all || options.mutant == [list::ALL] {
        let plan = RunPlan { output: with_mutants.output.join("no-ccm"), ..with_nothing.clone() };
        let soaking = planned_with(Map::new(), Some(SOAK)).map_err(|problems| problems.to_string())?;
        work.extend(Work::of_nothing("no CCM", plan, &soaking.1, NOBODY_ON));
        let nobody =
            plugin_with(json!([NO_PLUGIN]), Map::new(), true).map_err(|problems| problems.to_string())?;
        let plan = RunPlan { output: with_mutants.output.join("no-plugin"), ..nobody.0 };
        work.extend(Work::of_nothing("no plugin", plan, &nobody.1, 1));
    }
    if all || !options.mutant.is_empty() {
        for control in list::mutants(&options.mutant, share)? {
            let text = |problems: Problems| format!("mutant {}: {problems}", control.mutant);
            let mut over = control.profile.clone();
            let (plan, planned) = match control.of {
                ProfileKind::ImageCredentials => {
                    let odd = odd_plugin("mutant", &control.mutant);
                    let command = if control.as_is { json!([PROGRAM, PLUGIN]) } else { odd };
                    plugin_with(command, over, control.checks.iter().any(|id| by_a_kubelet(everything, id)))
                }
                ProfileKind::NetworkProxy => {
                    let by_a_server = |id: &String| needs(everything, id, Facility::NetworkProxy);
                    let mutant = (!control.as_is).then_some(control.mutant.as_str());
                    proxy_with(mutant, over, control.checks.iter().any(by_a_server))
                }
                ProfileKind::CsiMigration => {
                    let mutant = (!control.as_is).then_some(control.mutant.as_str());
                    let typed = overrides(options, csi::DRIVERS);
                    csi::drivers_with(suites, typed, with_mutants, mutant, over)
                }
                ProfileKind::Profile => {
                    if !control.as_is {
                        over.insert("environment".to_owned(), json!({MUTANT_VARIABLE: control.mutant}));
                    }
                    planned_with(over, control.soak)
                }
            }
            .map_err(text)?;
            work.push(Work::of_mutant(&control, plan, &planned)?);
        }
    }
    // One that is judged alone has the others wait until it is done.
    work.sort_by_key(|one| (one.alone, Reverse(one.takes_s)));
    Ok(work)
}

/// Whether the check of that id needs a kubelet that runs the plugin.
fn by_a_kubelet(everything: &[Planned], id: &str) -> bool {
    needs(everything, id, Facility::ImageCredentials)
}

/// Whether the check of that id needs a cluster with that facility.
fn needs(everything: &[Planned], id: &str, facility: Facility) -> bool {
    everything.iter().any(|one| one.check.id == *id && one.check.facilities.contains(facility))
}

/// The same, soaking for so long.
fn soaking(run: RunFile, soak: Option<HumanDuration>) -> RunFile {
    RunFile { soak, ..run }
}

/// What was typed, for the profile of that name.
fn overrides(options: &ControlOptions, profile: &str) -> RunFile {
    RunFile { profile: Some(profile.to_owned()), ..options.overrides() }
}
