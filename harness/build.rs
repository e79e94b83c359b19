//! Collects the files that are part of the program: profiles and manifests of CCMs, profiles of plugins, drivers and routes of their clouds,
//! topologies, manifest variants, the checks of each version, the contract.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders of the workspace, and what the names of their files begin with inside the program.
const FOLDERS: &[(&str, &str)] = &[
    ("fixtures/ccms", ""),
    ("fixtures/image-credentials", ""),
    ("fixtures/drivers", "drivers/"),
    ("fixtures/routes", "routes/"),
    ("kind-configs", "kind-configs/"),
    ("fixtures/bootstrap", "bootstrap/"),
    ("harness/golden", "golden/"),
    ("docs/contract", "contract/"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let workspace = here.parent().ok_or("the package is a folder of the workspace")?;
    let mut table = String::from("&[\n");
    for (folder, inside) in FOLDERS {
        let root = workspace.join(folder);
        let mut files = Vec::new();
        collect(&root, &mut files)?;
        files.sort();
        for file in files {
            let name = file.strip_prefix(&root)?.to_str().ok_or("file names are UTF-8")?;
            let path = file.to_str().ok_or("file names are UTF-8")?;
            writeln!(table, "    ({:?}, include_str!({path:?})),", format!("{inside}{name}"))?;
        }
    }
    table.push(']');
    fs::write(Path::new(&std::env::var("OUT_DIR")?).join("built_in.rs"), table)?;
    Ok(())
}

/// Every YAML file and Python program below a folder, but not what belongs to sources. A folder that gains or loses one is read again.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    rerun_if_changed(folder);
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            if name != "src" && name != "tests" {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|end| end == "yaml" || end == "py") {
            files.push(path);
        }
    }
    Ok(())
}

fn rerun_if_changed(folder: &Path) {
    println!("cargo::rerun-if-changed={}", folder.display());
}
