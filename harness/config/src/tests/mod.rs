//! Files with faults and the exact messages; valid files and their meaning.

mod documents;
mod merging;
mod profiles;
mod run_files;
mod selection;
mod settings;
mod yaml_text;

use super::{Problems, RunFile, RunPlan, Source, WantedCluster, plan};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The folder of the project's documents.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder with files: path inside it, text.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().expect("the temporary folder is writable");
    for (path, text) in files {
        let path = folder.path().join(path);
        let parent = path.parent().expect("the path is inside the folder");
        std::fs::create_dir_all(parent).expect("the temporary folder is writable");
        std::fs::write(path, text).expect("the temporary folder is writable");
    }
    folder
}

/// A valid profile without its first lines, for tests that break a part of it.
const SOUND: &str = "name: acme\n\
                     manifests: [manifests]\n\
                     capabilities: {instances: v2, zones: true, loadBalancer: true}\n";

const PROFILE_HEAD: &str = "apiVersion: ccm-conformance/v1\nkind: Profile\n";
const RUN_HEAD: &str = "apiVersion: ccm-conformance/v1\nkind: Conformance\n";

/// Plans a run file with a valid profile next to it.
fn planned(run_file: &str, overrides: RunFile) -> (TempDir, Result<RunPlan<WantedCluster>, Problems>) {
    let folder = folder(&[
        ("run.yaml", &format!("{RUN_HEAD}profile: ./acme\n{run_file}")),
        ("acme/profile.yaml", &format!("{PROFILE_HEAD}{SOUND}")),
        ("acme/manifests/ccm.yaml", ""),
    ]);
    let plan = plan(&Source::File(folder.path().join("run.yaml")), overrides);
    (folder, plan)
}

/// The text of the problems, without the folder's path.
fn said(problems: &Problems, folder: &Path) -> String {
    problems.to_string().replace(&format!("{}/", folder.display()), "")
}
