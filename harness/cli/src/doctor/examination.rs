//! The results of examining this machine.

use harness_clusters::{Need, Remedy, Requirement, State, requirements};
use harness_config::BackendKind;
use harness_core::bounded;
use harness_core::files;

/// Programs that some commands start, and their purpose. None is needed to test a CCM.
const TOOLS: &[(&str, &[&str], &str, &str)] = &[
    (
        "helm",
        &["version", "--short"],
        "'init --helm CHART'",
        "install Helm, or render the chart elsewhere and give --manifests",
    ),
    (
        "kubectl",
        &["version", "--client"],
        "'init --kustomize DIR', and looking at a cluster that was kept",
        "install kubectl, or build the kustomization elsewhere and give --manifests",
    ),
];

/// A kind of cluster and its requirements on this machine.
pub(super) struct Examined {
    pub(super) cluster: BackendKind,
    pub(super) requirements: Vec<Requirement>,
}

impl Examined {
    /// Whether runs on it can begin.
    pub(super) fn works(&self) -> bool {
        !self.requirements.iter().any(Requirement::hinders)
    }
}

/// The results of examining a machine.
pub(super) struct Examination {
    pub(super) clusters: Vec<Examined>,
    pub(super) tools: Vec<Requirement>,
    /// Everything that was fixed, or could not be, one line each.
    pub(super) fixed: Vec<String>,
}

impl Examination {
    /// Examines the requirements of these clusters.
    pub(super) async fn of(clusters: &[BackendKind]) -> Examination {
        let mut examined = Vec::new();
        for cluster in clusters {
            examined.push(Examined { cluster: *cluster, requirements: requirements(*cluster).await });
        }
        let tools =
            TOOLS.iter().map(|(name, asked, needed_for, way_out)| tool(name, asked, needed_for, way_out));
        Examination { clusters: examined, tools: tools.collect(), fixed: Vec::new() }
    }

    /// The problems that the harness can fix itself, each once.
    pub(super) fn remedies(&self) -> Vec<Remedy> {
        let mut remedies: Vec<Remedy> = Vec::new();
        for one in self.clusters.iter().flat_map(|one| &one.requirements) {
            remedies.extend(
                one.remedy.iter().filter(|remedy| !remedies.contains(remedy)).cloned().collect::<Vec<_>>(),
            );
        }
        remedies
    }

    pub(super) fn works(&self, cluster: BackendKind) -> bool {
        self.clusters.iter().any(|one| one.cluster == cluster && one.works())
    }
}

fn tool(name: &'static str, asked: &[&str], needed_for: &'static str, way_out: &str) -> Requirement {
    let mut command = std::process::Command::new(name);
    let ran = bounded::output_of(command.args(asked).stdin(std::process::Stdio::null()));
    let (state, found) = match ran {
        Ok(ran) => {
            let said =
                String::from_utf8_lossy(&ran.stdout).lines().next().unwrap_or_default().trim().to_owned();
            (State::Fine, said)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            (State::Missing, format!("there is no program '{name}' in PATH"))
        }
        Err(error) => (State::Missing, files::why_not_started(&error)),
    };
    let way_out = if state == State::Fine { String::new() } else { way_out.to_owned() };
    Requirement { what: name, state, found, needed_for, need: Need::Advised, way_out, remedy: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn this_machine_runs_the_embedded_cluster_and_each_finding_is_whole() {
        let found = Examination::of(BackendKind::ALL).await;
        assert!(found.works(BackendKind::Embedded));
        assert_eq!(found.clusters.len(), BackendKind::ALL.len());
        for one in found.clusters.iter().flat_map(|one| &one.requirements).chain(&found.tools) {
            assert!(!one.found.is_empty() && !one.needed_for.is_empty(), "{one:?}");
            assert_eq!(one.way_out.is_empty(), one.state == State::Fine, "{one:?}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_says_what_it_would_be_for() {
        let missing = tool("no-such-program-of-anybody", &[], "nothing", "write it");
        assert_eq!((missing.state, missing.way_out.as_str()), (State::Missing, "write it"));
        assert_eq!(missing.found, "there is no program 'no-such-program-of-anybody' in PATH");
        assert!(!missing.hinders());
    }

    #[test]
    fn a_remedy_is_tried_once_however_many_need_it() {
        let remedy = || Some(Remedy::Limit { file: "fs/a".to_owned(), value: 2 });
        let low = || Requirement { remedy: remedy(), ..tool("no-such-program-of-anybody", &[], "a", "b") };
        let of = |cluster| Examined { cluster, requirements: vec![low(), low()] };
        let clusters = vec![of(BackendKind::Kind), of(BackendKind::Embedded)];
        let found = Examination { clusters, tools: Vec::new(), fixed: Vec::new() };
        assert_eq!(found.remedies().len(), 1);
    }
}
