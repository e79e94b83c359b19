//! Problems of a configuration: all of them together, each with its place and the most similar valid word.

use super::yaml::YamlError;
use harness_core::ledger::option_of;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// One problem of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where it was written.
    pub origin: Origin,
    /// Path of the key, e.g. `cluster.topology` or `manifests[1]`; empty if the problem is about the whole file.
    pub key: String,
    /// The fault and, if known, the correct form.
    pub what: String,
}

/// Where a setting was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// On the command line.
    CommandLine,
    /// In a variable of the environment ([`CLUSTER_VARIABLE`]).
    Environment,
    /// On the command line or in the run file; the key says which setting.
    Settings,
    /// In a file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1; `None` if something is missing.
        line: Option<u64>,
    },
}

/// Environment variable that chooses the cluster where no option does: `auto`, `kind`, `embedded` or `existing`.
pub const CLUSTER_VARIABLE: &str = "CCM_CONFORMANCE_CLUSTER";

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::CommandLine => {
                if let Some(option) = option_of(&self.key) {
                    return write!(f, "{option}: {}", self.what);
                }
                f.write_str("command line: ")?;
            }
            Origin::Environment => return write!(f, "{CLUSTER_VARIABLE}: {}", self.what),
            Origin::Settings => {}
            Origin::File { path, line: Some(line) } => write!(f, "{}:{line}: ", path.display())?,
            Origin::File { path, line: None } => write!(f, "{}: ", path.display())?,
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.what)
    }
}

/// All problems of a configuration; never empty when returned as an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => write!(f, "{one}"),
            many => {
                write!(f, "{} problems in the configuration:", many.len())?;
                let lists: Vec<&str> = many.iter().filter_map(Problem::known_keys).collect();
                let is_long = |list: &str| lists.iter().filter(|other| **other == list).count() > 1;
                for problem in many {
                    match problem.known_keys().filter(|list| is_long(list)) {
                        // It follows once, after all problems.
                        Some(list) => {
                            let text = problem.to_string();
                            let end = text.len() - KNOWN_KEYS.len() - list.len();
                            write!(f, "\n  {}", &text[..end])?;
                        }
                        None => write!(f, "\n  {problem}")?,
                    }
                }
                let distinct: BTreeSet<&str> = lists.iter().copied().filter(|list| is_long(list)).collect();
                distinct.into_iter().try_for_each(|list| write!(f, "\nknown keys there: {list}"))
            }
        }
    }
}

impl std::error::Error for Problems {}

/// What stands before the keys that are known where an unknown one was written.
pub(crate) const KNOWN_KEYS: &str = "; known here: ";

impl Problem {
    /// The keys that are known where an unknown one was written.
    fn known_keys(&self) -> Option<&str> {
        self.what.split_once(KNOWN_KEYS).map(|(_, list)| list)
    }
}

impl Problems {
    /// Adds a problem with the whole of `file`.
    pub(crate) fn file(&mut self, file: &Path, what: impl Into<String>) {
        self.0.push(Problem {
            origin: Origin::File { path: file.to_owned(), line: None },
            key: String::new(),
            what: what.into(),
        });
    }

    /// Adds a text that is not YAML.
    pub(crate) fn yaml(&mut self, error: YamlError) {
        self.0.push(Problem {
            origin: Origin::File { path: error.file, line: (error.line > 0).then_some(error.line) },
            key: String::new(),
            what: error.what,
        });
    }

    /// Converts the rest of the file after the schema check. The schema comes from the type, so an error here
    /// means that the two differ; it is still reported rather than hidden.
    pub(crate) fn typed<T: DeserializeOwned + Default>(
        &mut self,
        sound: Map<String, Value>,
        file: &Path,
    ) -> T {
        serde_json::from_value(Value::Object(sound)).unwrap_or_else(|error| {
            self.file(file, error.to_string());
            T::default()
        })
    }

    /// Returns `value` if there are no problems.
    ///
    /// # Errors
    /// The problems, if there are any: the command line's first, then those of each file by line.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Problems> {
        if self.0.is_empty() { Ok(value) } else { Err(self.sorted()) }
    }

    /// The problems in the order in which they are shown.
    pub(crate) fn sorted(mut self) -> Problems {
        self.0.sort_by(|a, b| a.origin.cmp(&b.origin));
        self
    }
}

/// `; did you mean 'x'?` if one of `words` is similar to `word`, otherwise nothing.
pub fn did_you_mean(word: &str, words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    match nearest(word, words) {
        Some(near) => format!("; did you mean '{near}'?"),
        None => String::new(),
    }
}

/// The most similar word, if `word` may be a misspelling of it: another case or other separators, or one
/// change in three letters.
pub fn nearest(word: &str, words: impl IntoIterator<Item = impl AsRef<str>>) -> Option<String> {
    near(word, words).into_iter().next()
}

/// All similar words, the most similar first.
pub(crate) fn near(word: &str, words: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<String> {
    let folded = fold(word);
    // The beginning of a word stands for it.
    let begins = |candidate: &str| folded.len() >= 3 && fold(candidate).starts_with(&folded);
    let distance = |candidate: &str| strsim::osa_distance(&folded, &fold(candidate));
    let mut found: Vec<(usize, String)> = words
        .into_iter()
        .map(|candidate| (distance(candidate.as_ref()), candidate.as_ref().to_owned()))
        .filter(|(far, candidate)| begins(candidate) || *far <= candidate.len().max(word.len()) / 3)
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().map(|(_, candidate)| candidate).collect()
}

fn fold(word: &str) -> String {
    word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::{Origin, Problem, Problems, did_you_mean, near};

    #[test]
    fn finds_slips_and_nothing_else() {
        let words = ["topology", "kubernetes", "require-complete", "kind"];
        for (word, said) in [
            ("topolgy", "; did you mean 'topology'?"),
            ("tpoology", "; did you mean 'topology'?"),
            ("kubernetse", "; did you mean 'kubernetes'?"),
            ("requireComplete", "; did you mean 'require-complete'?"),
            ("Kind", "; did you mean 'kind'?"),
            ("banana", ""),
            ("", ""),
        ] {
            assert_eq!(did_you_mean(word, words), said, "{word}");
        }
    }

    #[test]
    fn a_problem_names_what_was_typed() {
        let of =
            |origin, key: &str| Problem { origin, key: key.to_owned(), what: "w".to_owned() }.to_string();
        assert_eq!(of(Origin::CommandLine, "select.only"), "--only: w");
        assert_eq!(of(Origin::CommandLine, "limits.scale"), "command line: limits.scale: w");
        assert_eq!(of(Origin::Environment, "cluster.backend"), "CCM_CONFORMANCE_CLUSTER: w");
        assert_eq!(of(Origin::Settings, "select.only"), "select.only: w");
    }

    #[test]
    fn keys_that_are_known_are_listed_once() {
        let unknown = |key: &str| Problem {
            origin: Origin::File { path: "p.yaml".into(), line: Some(4) },
            key: key.to_owned(),
            what: "unknown key; known here: name, image".to_owned(),
        };
        let one = Problems(vec![unknown("foo")]).to_string();
        assert_eq!(one, "p.yaml:4: foo: unknown key; known here: name, image");
        let two = Problems(vec![unknown("foo"), unknown("bar")]).to_string();
        assert_eq!(
            two,
            "2 problems in the configuration:\n  p.yaml:4: foo: unknown key\n  p.yaml:4: bar: unknown key\n\
             known keys there: name, image"
        );
    }

    #[test]
    fn lists_the_nearest_first() {
        let ids = ["NODE-INIT-01", "NODE-INIT-10", "NODE-LIFE-01", "SVC-DEL-01"];
        assert_eq!(near("NODE-INIT-1", ids), ["NODE-INIT-01", "NODE-INIT-10", "NODE-LIFE-01"]);
    }
}
