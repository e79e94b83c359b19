//! `bisect`: the first commit of a CCM at which a check fails.
//!
//! The work is that of `git bisect`, in a worktree of its own: the checkout that the user works in stays as it is.

use super::arguments::BisectOptions;
use harness_clusters::images::own_program;
use harness_core::files;
use harness_core::ledger::{Ledger, Outcome};
use harness_core::output;
use harness_report::exit;
use harness_runner::{INTERRUPTED, Signals};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Output, Stdio};
use tokio::process::Command;

/// How many of the last lines of a failed build are shown.
const LINES: usize = 20;

/// What a commit is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Commit {
    /// The check passes.
    Good,
    /// The check fails, or is blocked by what the CCM did; why.
    Bad(String),
    /// It cannot be built, or the check was not judged; why.
    Unknown(String),
}

/// Why there is no answer.
enum Failure {
    /// What was typed is wrong.
    Usage(String),
    /// Git, a build or a run failed.
    Environment(String),
    Interrupted,
}

/// Finds the commit and prints it.
pub(super) fn bisect(options: &BisectOptions) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return failed(
                exit::ENVIRONMENT,
                &format!("cannot start the async runtime: {}", files::why(&error)),
            );
        }
    };
    match runtime.block_on(found(options)) {
        Ok(text) => {
            output::out(&text);
            ExitCode::from(exit::CONFORMANT)
        }
        Err(Failure::Usage(why)) => failed(exit::USAGE, &why),
        Err(Failure::Environment(why)) => failed(exit::ENVIRONMENT, &why),
        Err(Failure::Interrupted) => failed(INTERRUPTED, "interrupted"),
    }
}

fn failed(code: u8, why: &str) -> ExitCode {
    output::err(&format!("error: {why}"));
    ExitCode::from(code)
}

/// What can be wrong with the options by themselves.
fn checked(options: &BisectOptions) -> Result<(), String> {
    let BisectOptions { binary, check, run, .. } = options;
    if binary.is_absolute() {
        let shown = binary.display();
        return Err(format!(
            "--binary {shown}: name the file by its path in the checkout, such as bin/acme-ccm"
        ));
    }
    if check.contains(['*', ',']) {
        return Err(format!("--check {check}: one check decides; 'ccm-conformance list' has the ids"));
    }
    let chooses = |option: &&String| {
        ["--only", "--skip", "--suite", "--failed-from", "--quick"]
            .contains(&option.split('=').next().unwrap_or_default())
    };
    match run.iter().find(chooses) {
        Some(option) => Err(format!("{option}: only the check of --check runs; leave it out")),
        None => Ok(()),
    }
}

async fn found(options: &BisectOptions) -> Result<String, Failure> {
    checked(options).map_err(Failure::Usage)?;
    // Not in the folder of temporary files, which a run hides from its CCM.
    let inside = git(&options.repository, &["rev-parse", "--path-format=absolute", "--git-common-dir"]).await;
    let inside = inside.map_err(|_| {
        Failure::Usage(format!("--repository {}: not a Git repository", options.repository.display()))
    })?;
    let place =
        tempfile::Builder::new().prefix("ccm-conformance-bisect-").tempdir_in(&inside).map_err(|error| {
            Failure::Environment(format!("cannot create a folder in {inside}: {}", files::why(&error)))
        })?;
    let work = Work { options, tree: place.path().join("checkout"), results: place.path().join("results") };
    let (good, bad) =
        (work.commit("--good", &options.good).await?, work.commit("--bad", &options.bad).await?);
    let comes_before = async |one: &str, other: &str| {
        git(&options.repository, &["merge-base", "--is-ancestor", one, other]).await.is_ok()
    };
    if good != bad && comes_before(&bad, &good).await {
        let why = format!("--bad {} comes before --good {}; exchange them", options.bad, options.good);
        return Err(Failure::Usage(why));
    }
    git(
        &options.repository,
        &["worktree", "add", "--quiet", "--detach", &work.tree.display().to_string(), &bad],
    )
    .await?;
    let mut signals = Signals::heard();
    let found = tokio::select! {
        found = work.bisected(&good, &bad) => found,
        () = signals.next() => Err(Failure::Interrupted),
    };
    let tree = work.tree.display().to_string();
    let removed = git(&options.repository, &["worktree", "remove", "--force", &tree]).await;
    found.and_then(|text| removed.map(|_| text))
}

/// A search.
struct Work<'a> {
    options: &'a BisectOptions,
    tree: PathBuf,
    results: PathBuf,
}

impl Work<'_> {
    /// The full name of a commit.
    async fn commit(&self, option: &str, typed: &str) -> Result<String, Failure> {
        let named = format!("{typed}^{{commit}}");
        let parsed = git(&self.options.repository, &["rev-parse", "--verify", "--quiet", &named]).await;
        parsed.map_err(|_| {
            let repository = self.options.repository.display();
            Failure::Usage(format!("{option} {typed}: there is no such commit in {repository}"))
        })
    }

    async fn bisected(&self, good: &str, bad: &str) -> Result<String, Failure> {
        if good == bad {
            return Err(Failure::Usage(format!("--good and --bad are the same commit, {good}")));
        }
        for (name, commit, is_good) in [("--bad", bad, false), ("--good", good, true)] {
            git(&self.tree, &["checkout", "--quiet", "--detach", commit]).await?;
            match self.judged(commit).await? {
                Commit::Good if is_good => {}
                Commit::Bad(_) if !is_good => {}
                // What was built and judged has been shown.
                Commit::Unknown(_) => {
                    let why = "the check was not judged there, so there is nothing to compare with";
                    return Err(Failure::Usage(format!("{name} {commit}: {why}")));
                }
                is => {
                    let did = if matches!(is, Commit::Bad(_)) { "fails" } else { "passes" };
                    let check = &self.options.check;
                    let why = format!("{check} {did} at {name} {commit}: there is nothing to search");
                    return Err(Failure::Usage(why));
                }
            }
        }
        let mut answer = git(&self.tree, &["bisect", "start", bad, good]).await?;
        loop {
            if answer.contains("is the first bad commit") {
                let commit = answer.split_whitespace().next().unwrap_or_default();
                let shown =
                    git(&self.tree, &["show", "--no-patch", "--format=%H%n%an, %ad%n%s", commit]).await?;
                return Ok(format!("first commit at which {} fails:\n{shown}\n", self.options.check));
            }
            let commit = git(&self.tree, &["rev-parse", "HEAD"]).await?;
            let word = match self.judged(&commit).await? {
                Commit::Good => "good",
                Commit::Bad(_) => "bad",
                Commit::Unknown(_) => "skip",
            };
            answer = match git(&self.tree, &["bisect", word]).await {
                Ok(answer) => answer,
                // Only skipped commits are left.
                Err(Failure::Environment(why)) if word == "skip" => {
                    return Err(Failure::Environment(format!("no commit can be named: {why}")));
                }
                Err(failure) => return Err(failure),
            };
        }
    }

    /// Builds what is checked out, and runs the check.
    async fn judged(&self, commit: &str) -> Result<Commit, Failure> {
        let commit = commit.get(..12).unwrap_or(commit);
        let is = match self.built().await? {
            Err(why) => Commit::Unknown(why),
            Ok(()) => self.checked().await?,
        };
        output::err(&match &is {
            Commit::Good => format!("{commit}: {} passes", self.options.check),
            Commit::Bad(why) => format!("{commit}: {} fails: {why}", self.options.check),
            Commit::Unknown(why) => format!("{commit}: skipped: {why}"),
        });
        Ok(is)
    }

    async fn built(&self) -> Result<Result<(), String>, Failure> {
        let mut build = Command::new("sh");
        build.args(["-c", &self.options.build]).current_dir(&self.tree);
        let built = output_of(build, "sh").await?;
        if built.status.success() {
            let program = self.tree.join(&self.options.binary);
            let missing = || format!("the build wrote no {}", self.options.binary.display());
            return Ok(if program.is_file() { Ok(()) } else { Err(missing()) });
        }
        let said =
            format!("{}{}", String::from_utf8_lossy(&built.stdout), String::from_utf8_lossy(&built.stderr));
        let lines: Vec<&str> = said.lines().collect();
        let last = &lines[lines.len().saturating_sub(LINES)..];
        let shown = if last.is_empty() { String::new() } else { format!(":\n  {}", last.join("\n  ")) };
        Ok(Err(format!("the build failed ({}){shown}", files::ended(built.status))))
    }

    async fn checked(&self) -> Result<Commit, Failure> {
        let program = own_program().map_err(|error| {
            Failure::Environment(format!("cannot find this program's own file: {}", files::why(&error)))
        })?;
        let mut run = Command::new(program);
        run.arg("run").args(["--only", &self.options.check]).args(&self.options.run);
        run.arg("--binary").arg(self.tree.join(&self.options.binary)).arg("--out").arg(&self.results);
        let ran = output_of(run, "run").await?;
        let report = self.results.join("report.yaml");
        let ledger = super::compare::read(&report);
        // The next run has results of its own.
        let _ = std::fs::remove_dir_all(&self.results);
        match ledger {
            Ok(ledger) => Ok(outcome(&ledger, &self.options.check)),
            Err(_) if ran.status.code() == Some(i32::from(exit::USAGE)) => {
                let said = String::from_utf8_lossy(&ran.stderr);
                let why = said.trim().trim_start_matches("error: ").replacen("--only: ", "--check: ", 1);
                Err(Failure::Usage(why))
            }
            Err(_) => {
                let said = String::from_utf8_lossy(&ran.stderr);
                let last = said.lines().last().unwrap_or("it said nothing").to_owned();
                Ok(Commit::Unknown(format!("the run left no report ({}): {last}", files::ended(ran.status))))
            }
        }
    }
}

fn outcome(ledger: &Ledger, check: &str) -> Commit {
    let Some(entry) = ledger.all().find(|entry| entry.id == check) else {
        return Commit::Unknown(format!("the report does not contain {check}"));
    };
    match &entry.outcome {
        Outcome::Pass => Commit::Good,
        Outcome::Fail { message } => Commit::Bad(in_short(message)),
        Outcome::Blocked { by, message } => Commit::Bad(format!("blocked by {by}: {}", in_short(message))),
        Outcome::Error { message } => Commit::Unknown(format!("the environment failed: {message}")),
        Outcome::Skip { detail, .. } => Commit::Unknown(format!("it was not judged: {detail}")),
    }
}

/// What a failure says first: what was expected and what was seen.
fn in_short(message: &str) -> String {
    /// The lines of a failure with that.
    const FIRST: usize = 2;
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    message.lines().take(FIRST).map(words).collect::<Vec<_>>().join("; ")
}

/// What a Git command says, without the line end.
async fn git<A: AsRef<OsStr>>(folder: &Path, arguments: &[A]) -> Result<String, Failure> {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(arguments);
    let ran = output_of(git, "git").await?;
    if !ran.status.success() {
        let words: Vec<_> = arguments.iter().map(|word| word.as_ref().to_string_lossy()).collect();
        let said =
            format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        return Err(Failure::Environment(format!("git {}: {}", words.join(" "), said.trim())));
    }
    Ok(String::from_utf8_lossy(&ran.stdout).trim_end().to_owned())
}

/// Runs a command that ends with this process.
async fn output_of(mut command: Command, name: &str) -> Result<Output, Failure> {
    let command = command.stdin(Stdio::null()).kill_on_drop(true);
    command.output().await.map_err(|error| {
        Failure::Environment(format!("{name} cannot be run: {}", files::why_not_started(&error)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Level;
    use harness_core::ledger::{Entry, SkipReason};

    #[test]
    fn options_that_cannot_work_are_refused_before_anything_is_built() {
        let of = |binary: &str, check: &str, run: &[&str]| {
            checked(&BisectOptions {
                good: "v1".to_owned(),
                bad: "HEAD".to_owned(),
                build: "make".to_owned(),
                binary: binary.into(),
                check: check.to_owned(),
                repository: ".".into(),
                run: run.iter().map(|&option| option.to_owned()).collect(),
            })
        };
        assert_eq!(of("bin/ccm", "NODE-INIT-01", &["--profile", "./acme"]), Ok(()));
        for (refused, why) in [
            (of("/bin/ccm", "NODE-INIT-01", &[]), "--binary /bin/ccm: "),
            (of("ccm", "NODE-*", &[]), "--check NODE-*: "),
            (of("ccm", "NODE-INIT-01", &["--only=SVC-*"]), "--only=SVC-*: "),
        ] {
            assert!(refused.as_ref().is_err_and(|text| text.starts_with(why)), "{refused:?}");
        }
    }

    #[test]
    fn a_commit_with_an_unjudged_check_is_skipped() {
        let is = |outcome| {
            let entries = vec![Entry::sample("A-01", Level::Must, outcome)];
            outcome_of(&Ledger { entries, ..Ledger::default() })
        };
        fn outcome_of(ledger: &Ledger) -> Commit {
            outcome(ledger, "A-01")
        }
        assert_eq!(is(Outcome::Pass), Commit::Good);
        let message = "expected:  a\nlast seen: b\npromise:   c".to_owned();
        assert_eq!(
            is(Outcome::Fail { message: message.clone() }),
            Commit::Bad("expected: a; last seen: b".to_owned())
        );
        let blocked = is(Outcome::Blocked { by: "B-01".to_owned(), message });
        assert_eq!(blocked, Commit::Bad("blocked by B-01: expected: a; last seen: b".to_owned()));
        let skipped = Outcome::Skip { reason: SkipReason::NotObservable, detail: "no routes".to_owned() };
        assert_eq!(is(skipped), Commit::Unknown("it was not judged: no routes".to_owned()));
        let absent = outcome(&Ledger::default(), "A-01");
        assert_eq!(absent, Commit::Unknown("the report does not contain A-01".to_owned()));
    }
}
