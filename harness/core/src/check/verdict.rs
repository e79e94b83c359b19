//! The result of a check's body: the claim holds, the CCM violated it, the CCM violated another claim that blocks this
//! one, the harness failed, or it is not observable.

use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt;
use std::io;

/// The result of a body: `Ok` if the claim holds.
///
/// ```
/// use harness_core::check::{CheckError, Verdict};
///
/// fn is_private(address: &str) -> Verdict {
///     match address.starts_with("10.") {
///         true => Ok(()),
///         false => Err(CheckError::violation("the address is private", "10.0.0.0/8", address)),
///     }
/// }
/// assert!(is_private("10.0.0.1").is_ok());
/// ```
pub type Verdict = Result<(), CheckError>;

/// Why a body stopped before its end.
///
/// ```
/// use harness_core::check::{CheckError, Verdict};
///
/// fn has_three_nodes(nodes: usize) -> Verdict {
///     match nodes {
///         3 => Ok(()),
///         0 => Err(CheckError::NotObservable("the cluster has no Nodes".to_owned())),
///         other => Err(CheckError::violation("the cluster has three Nodes", "3", other.to_string())),
///     }
/// }
/// assert!(has_three_nodes(3).is_ok() && has_three_nodes(2).is_err());
/// ```
#[derive(Clone, Debug)]
pub enum CheckError {
    /// The CCM violated the claim: a failure.
    Violation(Box<Violation>),
    /// The CCM violated another claim, without which this one cannot be judged.
    Blocked {
        /// The other claim.
        by: Blocker,
        /// What was observed of it.
        seen: String,
    },
    /// The harness failed: an environment error, never the CCM's fault.
    Error(String),
    /// This cluster or cloud cannot show it.
    NotObservable(String),
}

impl CheckError {
    /// A failure that was found outside of a wait, in the same form as one found by a wait.
    pub fn violation(
        promise: impl Into<String>,
        expected: impl Into<String>,
        seen: impl Into<String>,
    ) -> CheckError {
        CheckError::Violation(Box::new(Violation::new(promise, expected, seen)))
    }

    /// The text for callers that judge nothing.
    pub fn in_words(self) -> String {
        match self {
            CheckError::Violation(violation) => violation.to_string(),
            CheckError::Blocked { by, seen } => by.broken(seen).to_string(),
            CheckError::Error(text) | CheckError::NotObservable(text) => text,
        }
    }
}

/// A claim without which nothing else can be judged. Its own check fails, and the others are blocked by it.
///
/// ```
/// # use harness_core::check::*; struct Cx; async fn elects(_: &Cx) -> Verdict { Ok(()) }
/// let check: Check<Cx> = Check::of(Blocker::Elects.check(), |cx| Box::pin(elects(cx)));
/// assert_eq!(check.id.row(), "HA-01");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blocker {
    /// A cluster boots with the manifests of the CCM (contract BOOT-DYN-01).
    Boots,
    /// The CCM stays up (contract OBS-10).
    StaysUp,
    /// A replica leads by the declared Lease (contract HA-01).
    Elects,
    /// The Nodes of existing machines stay (contract NODE-LIFE-01).
    KeepsNodes,
}

impl Blocker {
    /// Id of the check that judges it.
    pub const fn check(self) -> &'static str {
        match self {
            Blocker::Boots => "BOOT-DYN-01",
            Blocker::StaysUp => "OBS-10",
            Blocker::Elects => "HA-01.elected",
            Blocker::KeepsNodes => "NODE-LIFE-01.whole-run",
        }
    }

    /// The claim as a violation.
    pub fn broken(self, seen: impl Into<String>) -> Violation {
        match self {
            Blocker::Boots => {
                Violation::new("a cluster boots with these manifests", "a Node for the Pods of the CCM", seen)
            }
            Blocker::StaysUp => {
                Violation::new("the CCM stays up", "its process exits only when a check makes it", seen)
            }
            Blocker::KeepsNodes => Violation::new(
                "the Nodes of the cluster's own machines stay",
                "no deletion of such a Node except by the harness",
                seen,
            ),
            Blocker::Elects => Violation::new(
                "a replica is elected",
                "the Lease that the profile declares, held and renewed, while every replica runs",
                seen,
            ),
        }
    }
}

impl<E: Error + 'static> From<E> for CheckError {
    /// Outside of a wait, an error is the harness's, with its whole chain of causes.
    fn from(error: E) -> CheckError {
        CheckError::Error(chain(&error))
    }
}

/// An error and its causes in one line, each cause once, and those of the system in words.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = words(error);
    let mut cause = error.source();
    while let Some(next) = cause {
        let (raw, words) = (next.to_string(), words(next));
        if raw != words && text.contains(&raw) {
            // It was written into the text by the error that it caused.
            text = text.replace(&raw, &words);
        } else if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = next.source();
    }
    system_errors::plain(&text)
}

/// An error's own text. kube appends a debug dump of the whole status to the API server's message, which is cut off.
fn words(error: &(dyn Error + 'static)) -> String {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return system_errors::why(error);
    }
    let text = error.to_string();
    match text.split_once(" (Status {") {
        Some((said, _)) => said.replace("ApiError: ", "the API server: "),
        None => text,
    }
}

/// The subject of a claim; the uid distinguishes it from another object of the same name.
///
/// ```
/// use harness_core::check::SubjectName;
///
/// let subject = SubjectName { kind: "Service", name: "default/web".to_owned(), uid: None };
/// assert_eq!(subject.to_string(), "Service default/web");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubjectName {
    /// Its kind, e.g. `Service`.
    pub kind: &'static str,
    /// Its name, with the namespace if it has one.
    pub name: String,
    /// Its uid, or the cloud's id; `None` if it has none.
    pub uid: Option<String>,
}

impl fmt::Display for SubjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)?;
        match &self.uid {
            Some(uid) => write!(f, " (uid {uid})"),
            None => Ok(()),
        }
    }
}

/// A violation: the claim and its subject, what was expected and observed, and how long the check waited.
///
/// ```
/// use harness_core::check::{CheckError, SubjectName, Violation};
///
/// let subject = Some(SubjectName { kind: "Node", name: "a".to_owned(), uid: None });
/// let violation = Violation::new("its zone is that of its machine", "zone-1", "zone-2");
/// let error = CheckError::Violation(Box::new(Violation { subject, ..violation }));
/// assert!(error.in_words().contains("zone-2"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violation {
    /// The claim, a sentence.
    pub promise: String,
    /// Its subject, if that is a single thing.
    pub subject: Option<SubjectName>,
    /// What would have fulfilled the claim.
    pub expected: String,
    /// What was observed instead.
    pub seen: String,
    /// How long and how often the check looked; `None` if it judged what had already happened.
    pub waited: Option<String>,
    /// The cloud's last calls about the subject, newest last, one line each.
    pub calls: Vec<String>,
    /// The probable reason, if there is one; several lines.
    pub explained: Option<String>,
}

impl Violation {
    /// A violation with only these texts.
    pub fn new(
        promise: impl Into<String>,
        expected: impl Into<String>,
        seen: impl Into<String>,
    ) -> Violation {
        Violation {
            promise: promise.into(),
            expected: expected.into(),
            seen: seen.into(),
            ..Violation::default()
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "expected:  {}", self.expected)?;
        writeln!(f, "last seen: {}", self.seen)?;
        write!(f, "promise:   {}", self.promise)?;
        if let Some(subject) = &self.subject {
            write!(f, "\nsubject:   {subject}")?;
        }
        if let Some(waited) = &self.waited {
            write!(f, "\nwaited:    {waited}")?;
        }
        for (at, call) in self.calls.iter().enumerate() {
            write!(f, "\n{}{call}", if at == 0 { "cloud:     " } else { "           " })?;
        }
        match &self.explained {
            Some(explained) => write!(f, "\nexplained:\n{}", explained.trim_end()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_promise_says_of_what_and_what_the_cloud_was_asked() {
        let subject = SubjectName { kind: "Service", name: "ns/web".into(), uid: Some("4be1".into()) };
        let violation = Violation {
            subject: Some(subject),
            waited: Some("10.0s, 21 reads".into()),
            calls: vec![
                "#7 1.200s ccm-a: DELETE /lb/1 -> 503 (fault)".into(),
                "#9 6.300s ccm-a: GET /lb/1 -> 200".into(),
            ],
            explained: Some("it is so\n".into()),
            ..Violation::new("the Service goes", "no Service", "Service ns/web")
        };
        insta::assert_snapshot!(violation, @r"
        expected:  no Service
        last seen: Service ns/web
        promise:   the Service goes
        subject:   Service ns/web (uid 4be1)
        waited:    10.0s, 21 reads
        cloud:     #7 1.200s ccm-a: DELETE /lb/1 -> 503 (fault)
                   #9 6.300s ccm-a: GET /lb/1 -> 200
        explained:
        it is so
        ");
        insta::assert_snapshot!(Violation::new("p", "e", "s"), @r"
        expected:  e
        last seen: s
        promise:   p
        ");
    }

    #[derive(Debug, thiserror::Error)]
    enum Failed {
        #[error("no answer")]
        Apart(#[source] io::Error),
        #[error("no answer ({0})")]
        Within(#[source] io::Error),
    }

    #[test]
    fn errors_of_the_system_are_in_words_wherever_they_stand_in_a_chain() {
        let refused = || io::Error::from_raw_os_error(111);
        let words = "connection refused: no program listens there";
        assert_eq!(chain(&refused()), words);
        assert_eq!(chain(&Failed::Apart(refused())), format!("no answer: {words}"));
        assert_eq!(chain(&Failed::Within(refused())), format!("no answer ({words})"));
        let text = io::Error::other("the peer said: Broken pipe (os error 32)");
        assert_eq!(chain(&Failed::Apart(text)), "no answer: the peer said: Broken pipe");
    }
}
