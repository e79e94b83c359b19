//! A cluster that was there before: the harness has its kubeconfig and nothing else.

use super::error::ClusterError;
use super::record::{ClusterRecord, Origin};
use std::path::{Path, PathBuf};

/// A cluster the harness did not make and will not remove.
#[derive(Clone, Debug)]
pub struct ExistingCluster {
    pub(super) record: ClusterRecord,
}

impl ExistingCluster {
    /// The cluster of a kubeconfig; without one, that of `KUBECONFIG` or `~/.kube/config`, as kubectl chooses.
    pub(super) fn new(kubeconfig: Option<&Path>) -> Result<ExistingCluster, ClusterError> {
        let chosen =
            match kubeconfig {
                Some(path) => path.to_owned(),
                None => default_kubeconfig(std::env::var_os("KUBECONFIG"), std::env::home_dir()).ok_or_else(
                    || ClusterError::Usage {
                        what: "the existing cluster".to_owned(),
                        why: "no kubeconfig is given, and neither KUBECONFIG nor ~/.kube/config names one"
                            .to_owned(),
                        way_out: "give its path".to_owned(),
                    },
                )?,
            };
        std::fs::File::open(&chosen).map_err(ClusterError::file("read the kubeconfig", &chosen))?;
        let name = chosen.display().to_string();
        Ok(ExistingCluster { record: ClusterRecord { name, kubeconfig: chosen, origin: Origin::Existing } })
    }
}

fn default_kubeconfig(variable: Option<std::ffi::OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    let listed =
        variable.and_then(|list| std::env::split_paths(&list).find(|path| !path.as_os_str().is_empty()));
    listed.or_else(|| home.map(|home| home.join(".kube/config")).filter(|path| path.is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubeconfig_is_found_as_kubectl_finds_it() {
        assert_eq!(default_kubeconfig(Some("/a:/b".into()), None), Some(PathBuf::from("/a")));
        assert_eq!(default_kubeconfig(Some("".into()), Some(PathBuf::from("/nowhere"))), None);
    }

    #[test]
    fn a_kubeconfig_that_is_not_there_is_named() {
        let error = ExistingCluster::new(Some(Path::new("/nowhere/config"))).expect_err("missing");
        assert_eq!(error.to_string(), "cannot read the kubeconfig /nowhere/config");
    }
}
