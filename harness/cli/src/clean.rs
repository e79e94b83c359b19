//! `clean`: removes the leftovers of runs, by label and name. Resources of a run that is, or may be, still
//! running are listed and left alone.

use super::arguments::CleanOptions;
use harness_clusters::images::{Engine, EngineError};
use harness_clusters::{Leftover, list_leftovers, remove_leftovers};
use harness_core::files;
use harness_core::output;
use harness_core::owner::Liveness;
use harness_report::exit;
use harness_session::RunDir;
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) fn clean(options: &CleanOptions) -> ExitCode {
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!("error: cannot start the async runtime: {}", files::why(&error)));
            return ExitCode::from(exit::ENVIRONMENT);
        }
    };
    match runtime.block_on(try_to(options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(exit::ENVIRONMENT),
        Err(Refused(why)) => {
            say(&format!("error: {why}"));
            ExitCode::from(exit::USAGE)
        }
    }
}

/// The reason why nothing was removed.
struct Refused(String);

/// Returns whether everything that had to be removed is gone.
async fn try_to(options: &CleanOptions) -> Result<bool, Refused> {
    let mut whole = true;
    let mut failed = |why: String| {
        say(&format!("error: {why}"));
        whole = false;
    };
    let engine = match Engine::connect().await {
        Ok(engine) => Some(engine),
        // Without Docker no run can have left anything there.
        Err(EngineError::NoSocket { path }) => {
            say(&format!("no Docker engine at {}: nothing to look for there", path.display()));
            None
        }
        Err(error) => {
            failed(harness_core::check::chain(&error));
            None
        }
    };
    let things = match &engine {
        None => Vec::new(),
        Some(engine) => list_leftovers(engine).await.unwrap_or_else(|error| {
            failed(harness_core::check::chain(&error));
            Vec::new()
        }),
    };
    let mut found = Found::of(RunDir::all(), things);
    let mut alone = found.alone();
    if options.all && !alone.is_empty() {
        alone.iter().for_each(|(run, why)| say(&format!("run {run}: {why}")));
        if !options.yes {
            agreed("remove all of it, though it may be in use?")?;
        }
        found.take_all();
        alone.clear();
    } else {
        alone.iter().for_each(|(run, why)| say(&format!("run {run}: left alone: {why}")));
        if !alone.is_empty() {
            say("'ccm-conformance clean --all' also removes these, after it has asked for confirmation");
        }
    }
    let mut removed = 0;
    if let Some(engine) = &engine {
        match remove_leftovers(engine, |thing| found.things.contains(thing)).await {
            Ok(things) => {
                removed += things.len();
                things.iter().for_each(|what| say(&format!("removed {} {}", what.kind, what.name)));
            }
            Err(error) => failed(harness_core::check::chain(&error)),
        }
    }
    for folder in &found.folders {
        match RunDir::clear(folder) {
            Ok(paths) => {
                removed += paths.len();
                paths.iter().for_each(|path| say(&format!("removed {}", path.display())));
            }
            // The reaper of its run may be faster.
            Err(_) if !folder.exists() => {}
            Err(error) => failed(harness_core::check::chain(&error)),
        }
    }
    if whole {
        say(&ended(removed, alone.len()));
    }
    Ok(whole)
}

/// The last line of a successful cleanup.
fn ended(removed: usize, left_alone: usize) -> String {
    match (removed, left_alone) {
        (0, 0) => "nothing to remove: no run has left anything behind".to_owned(),
        (0, _) => "nothing was removed".to_owned(),
        (1, _) => "1 thing was removed".to_owned(),
        (count, _) => format!("{count} things were removed"),
    }
}

/// Asks for confirmation if there is someone to answer.
fn agreed(question: &str) -> Result<(), Refused> {
    if !std::io::stdin().is_terminal() {
        return Err(Refused(format!(
            "'--all' asks for confirmation, and standard input is not a terminal; '--all --yes' does not ask ({question})"
        )));
    }
    output::err(&format!("{question} [y/N]"));
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    match (read, answer.trim()) {
        (Ok(_), "y" | "Y" | "yes") => Ok(()),
        _ => Err(Refused("nothing was removed".to_owned())),
    }
}

fn say(line: &str) {
    output::err(line);
}

/// The resources to remove, and those to keep.
#[derive(Debug, Default)]
struct Found {
    folders: Vec<PathBuf>,
    things: BTreeSet<Leftover>,
    /// By run: why it is left alone, and its resources.
    kept: BTreeMap<String, KeptRun>,
}

/// The resources of a run that is left alone.
#[derive(Debug, Default)]
struct KeptRun {
    why: String,
    folders: Vec<PathBuf>,
    things: Vec<Leftover>,
}

impl Found {
    fn of(folders: Vec<(PathBuf, String, Liveness)>, things: Vec<Leftover>) -> Found {
        let runs: BTreeSet<String> =
            things.iter().filter_map(run).chain(folders.iter().map(|f| f.1.clone())).collect();
        let whys: BTreeMap<String, String> = runs
            .into_iter()
            .filter_map(|run| {
                let why = stays(&run, &folders, &things)?;
                Some((run, why))
            })
            .collect();
        let mut found = Found::default();
        let kept = |found: &mut Found, run: &str| -> bool {
            let Some(why) = whys.get(run) else { return false };
            found.kept.entry(run.to_owned()).or_default().why.clone_from(why);
            true
        };
        for (path, run, _) in folders {
            if kept(&mut found, &run) {
                found.kept.entry(run).or_default().folders.push(path);
            } else {
                found.folders.push(path);
            }
        }
        for thing in things {
            match run(&thing).filter(|run| kept(&mut found, run)) {
                Some(run) => found.kept.entry(run).or_default().things.push(thing),
                None => {
                    found.things.insert(thing);
                }
            }
        }
        found
    }

    /// Describes the runs that are left alone.
    fn alone(&self) -> Vec<(String, String)> {
        let described = |kept: &KeptRun| {
            let folders = kept.folders.iter().map(|path| path.display().to_string());
            let things = kept.things.iter().map(|thing| format!("{} {}", thing.kind, thing.name));
            format!("{} ({})", kept.why, folders.chain(things).collect::<Vec<_>>().join(", "))
        };
        self.kept.iter().map(|(run, kept)| (run.clone(), described(kept))).collect()
    }

    /// Removes the resources of all runs.
    fn take_all(&mut self) {
        for (_, kept) in std::mem::take(&mut self.kept) {
            self.folders.extend(kept.folders);
            self.things.extend(kept.things);
        }
    }
}

fn run(thing: &Leftover) -> Option<String> {
    thing.run.as_ref().map(|run| run.as_str().to_owned())
}

/// The reason why a run is left alone; `None` if its owner is gone. Both the lock of its folder and the owner
/// that is recorded in its resources are considered, because the folder of a run may be outside of the places
/// where this process looks.
fn stays(name: &str, folders: &[(PathBuf, String, Liveness)], things: &[Leftover]) -> Option<String> {
    let own = folders.iter().filter(|(_, run, _)| run == name).map(|(_, _, standing)| standing.clone());
    let mine: Vec<&Leftover> = things.iter().filter(|thing| run(thing).as_deref() == Some(name)).collect();
    let noted = mine.iter().filter_map(|thing| thing.owner.as_ref()).collect::<BTreeSet<_>>();
    let all: Vec<Liveness> = own.chain(noted.into_iter().map(|owner| owner.liveness())).collect();
    let lives = all.iter().find_map(|standing| match standing {
        Liveness::Lives(who) => Some(format!("it is still running: {who}")),
        _ => None,
    });
    let unknown = || {
        all.iter().find_map(|standing| match standing {
            Liveness::Unknown(why) => Some(format!("whether it still runs is unknown: {why}")),
            _ => None,
        })
    };
    match (lives, all.contains(&Liveness::Gone)) {
        (Some(lives), _) => Some(lives),
        (None, true) => None,
        (None, false) => {
            unknown().or_else(|| (!mine.is_empty()).then(|| "no owner is noted on anything of it".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::owner::Owner;

    fn of(machine: &Leftover, folder: Option<Liveness>) -> Option<String> {
        let folders = folder.map(|standing| (PathBuf::from("/tmp/f"), "abcdefgh".to_owned(), standing));
        stays("abcdefgh", &folders.into_iter().collect::<Vec<_>>(), std::slice::from_ref(machine))
    }

    #[test]
    fn a_run_whose_folder_is_elsewhere_is_known_by_what_it_made() {
        let machine = |owner| Leftover::of_run("abcdefgh", owner);
        let on = |host: &str| -> Owner {
            format!("user=0 host={host} boot=b namespace=n pid=1 start=1").parse().expect("an owner")
        };
        let (dead, far) = (on(&Owner::here().host), on("elsewhere"));
        assert!(of(&machine(Some(Owner::here())), None).is_some_and(|why| why.contains("still running")));
        assert_eq!(of(&machine(Some(dead.clone())), None), None);
        assert!(of(&machine(Some(far)), None).is_some_and(|why| why.contains("on elsewhere")));
        assert!(of(&machine(None), None).is_some_and(|why| why.contains("no owner")));
        assert_eq!(of(&machine(None), Some(Liveness::Gone)), None);
        let lives = Liveness::Lives("process 1".to_owned());
        assert!(of(&machine(Some(dead)), Some(lives)).is_some_and(|why| why.contains("process 1")));
    }

    #[test]
    fn the_last_line_says_what_was_done() {
        assert_eq!(ended(0, 0), "nothing to remove: no run has left anything behind");
        assert_eq!(
            (ended(0, 1).as_str(), ended(1, 0).as_str()),
            ("nothing was removed", "1 thing was removed")
        );
        assert_eq!(ended(3, 1), "3 things were removed");
    }

    #[test]
    fn skipped_resources_are_named_and_kept() {
        let mine = Leftover::of_run("abcdefgh", Some(Owner::here()));
        let image = mine.clone().of_no_run();
        let folders = vec![(PathBuf::from("/tmp/f"), "abcdefgh".to_owned(), Liveness::Gone)];
        let mut found = Found::of(folders, vec![mine.clone(), image.clone()]);
        assert_eq!((found.folders.len(), found.things.len()), (0, 1));
        let alone = found.alone();
        assert!(
            matches!(alone.as_slice(), [(run, why)] if run == "abcdefgh"
            && why.contains("/tmp/f") && why.contains(&mine.name)),
            "{alone:?}"
        );
        found.take_all();
        assert_eq!((found.folders.len(), found.things.len(), found.alone().len()), (1, 2, 0));
    }
}
