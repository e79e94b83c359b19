//! The default kubeconfig.

use std::ffi::OsString;
use std::path::PathBuf;

/// The kubeconfig that kubectl would use: the first one that `KUBECONFIG` names, or `~/.kube/config` if it exists.
pub fn usual_kubeconfig() -> Option<PathBuf> {
    default_kubeconfig(std::env::var_os("KUBECONFIG"), std::env::home_dir())
}

fn default_kubeconfig(variable: Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
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
}
