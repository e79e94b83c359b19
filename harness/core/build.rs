//! Collects the files that are part of the program: profiles and manifests of CCMs, profiles of plugins, network proxies and CSI drivers, drivers and routes of their clouds,
//! topologies, manifest variants, the checks of each version, the contract.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// How the names of files end that are taken.
const DATA: &[&str] = &["yaml"];
/// The same where programs for others are.
const SOURCES: &[&str] = &["py", "rs", "toml"];

/// Folders of the workspace, what the names of their files begin with inside the program, and which files are taken.
const FOLDERS: &[(&str, &str, &[&str])] = &[
    ("fixtures/ccms", "", DATA),
    ("fixtures/image-credentials", "", DATA),
    ("fixtures/network-proxy", "", DATA),
    ("fixtures/csi-migration", "", DATA),
    ("fixtures/drivers", "drivers/", SOURCES),
    ("fixtures/routes", "routes/", DATA),
    ("kind-configs", "kind-configs/", DATA),
    ("fixtures/bootstrap", "bootstrap/", DATA),
    ("harness/golden", "golden/", DATA),
    ("docs/contract", "contract/", DATA),
];

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let workspace = here.ancestors().nth(2).ok_or("the package is two folders below the workspace")?;
    let mut table = String::from("&[\n");
    for (folder, inside, ends) in FOLDERS {
        let root = workspace.join(folder);
        let mut files = Vec::new();
        collect(&root, ends, &mut files)?;
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

/// Every file below a folder that ends so, but not what is made of sources, or belongs to them where those are not taken. A folder
/// that gains or loses one is read again.
fn collect(folder: &Path, ends: &[&str], files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    rerun_if_changed(folder);
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            if name != "target" && name != "tests" && (name != "src" || ends.contains(&"rs")) {
                collect(&path, ends, files)?;
            }
        } else if path.extension().and_then(|end| end.to_str()).is_some_and(|end| ends.contains(&end)) {
            files.push(path);
        }
    }
    Ok(())
}

fn rerun_if_changed(folder: &Path) {
    println!("cargo::rerun-if-changed={}", folder.display());
}
