//! The command that repeats a check: with the same CCM, the same kind of cluster and the same options.

use harness_core::ledger::Subject;

/// The command with which every run starts.
const RUN: &str = "ccm-conformance run";
/// The command that judges the harness's own CCMs, each with the checks that are about it.
const CONTROLS: &str = "ccm-conformance controls --";
/// Options with a value that select checks, repeat them, or set the output folder.
const WITH_VALUE: [&str; 9] = [
    "--only",
    "--skip",
    "--suite",
    "--failed-from",
    "--shard",
    "--shard-of",
    "--out",
    "--repeat",
    "--sonobuoy-results",
];
/// Options of that sort without a value, and options that cannot be combined with a selection of checks.
const FLAGS: [&str; 4] = ["--quick", "--watch", "--certify", "--require-complete"];

/// The command of a run, quoted for a shell, up to the selection of checks: `--only ID` follows, except after the command of
/// a mutant, variant or adversary.
pub(super) fn again(subject: &Subject) -> String {
    if subject.reproduce.starts_with(CONTROLS) {
        return subject.reproduce.clone();
    }
    let mut options = typed(&subject.reproduce).unwrap_or_default();
    let has = |options: &[String], name: &str| {
        options
            .iter()
            .any(|word| word == name || word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
    };
    // The run file contains all settings.
    if !has(&options, "--config") {
        let mut add = |name: &str, value: &str| {
            if !value.is_empty() && !has(&options, name) {
                options.extend([name.to_owned(), value.to_owned()]);
            }
        };
        add("--profile", &subject.profile);
        add("--cluster", &subject.backend);
    }
    let words = options.iter().map(|word| quoted(word));
    std::iter::once(RUN.to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The options of a run without those that select checks; `None` if another command created the report.
fn typed(reproduce: &str) -> Option<Vec<String>> {
    let words = shlex::split(reproduce.strip_prefix(RUN)?)?;
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if WITH_VALUE.contains(&word.as_str()) {
            words.next();
        } else if !FLAGS.contains(&word.as_str()) && !is_left_out(&word) {
            kept.push(word);
        }
    }
    Some(kept)
}

/// Whether it is one of these options with its value after a `=`.
fn is_left_out(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| WITH_VALUE.contains(&name))
}

/// A word, quoted so that a shell reads it as one word. A word that no shell can read stays as it is.
fn quoted(word: &str) -> String {
    if let Some((name, value)) = word.split_once('=').filter(|_| word.starts_with("--")) {
        return format!("{name}={}", quoted(value));
    }
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(reproduce: &str) -> String {
        let (profile, backend) = ("acme".to_owned(), "kind".to_owned());
        again(&Subject { profile, backend, reproduce: reproduce.to_owned(), ..Subject::default() })
    }

    #[test]
    fn the_command_is_that_of_the_run_without_its_choice_of_checks() {
        for (typed, again) in [
            ("", " --profile acme --cluster kind"),
            (
                " --profile ./my --image 'a b' --kubernetes 1.36",
                " --profile ./my --image 'a b' --kubernetes 1.36 --cluster kind",
            ),
            (
                " --cluster=embedded --binary /ccm --only HA-* --out x --quick",
                " --cluster=embedded --binary /ccm --profile acme",
            ),
            (
                " --only=A-1 --shard 1/3 --shard-of 7 --certify --jobs 4",
                " --jobs 4 --profile acme --cluster kind",
            ),
            (" --config run.yaml --skip 'HA-*'", " --config run.yaml"),
        ] {
            assert_eq!(of(&format!("{RUN}{typed}")), format!("{RUN}{again}"));
        }
    }

    #[test]
    fn a_mutant_is_repeated_as_a_whole() {
        let controls = "ccm-conformance controls --cluster embedded --mutant M-SV-07";
        assert_eq!(of(controls), controls);
    }

    #[test]
    fn a_run_of_another_command_is_repeated_by_what_it_tested() {
        assert_eq!(of("cargo test --test e2e -- HA"), format!("{RUN} --profile acme --cluster kind"));
    }
}
