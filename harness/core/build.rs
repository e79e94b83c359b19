//! Collects the files that are part of the program: profiles and manifests of CCMs; profiles of plugins, network proxies
//! and CSI drivers; drivers and routes of their clouds; topologies; manifest variants; the checks of each version; the
//! contract. Generates the table of the contract's claims.

use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Suffixes of the names of included files.
const DATA: &[&str] = &["yaml"];
/// Suffixes for folders with programs.
const SOURCES: &[&str] = &["py", "rs", "toml"];

/// The file with the changes of the framework from which claims apply.
const CHANGES: &str = "framework.yaml";

/// Folders of the workspace, the prefix of their files' names inside the program, and which files are included.
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
    let output = PathBuf::from(std::env::var("OUT_DIR")?);
    fs::write(output.join("built_in.rs"), table)?;
    fs::write(output.join("claims.rs"), claims(&workspace.join("docs/contract"))?)?;
    Ok(())
}

/// A document in YAML.
fn read(file: &Path) -> Result<Value, Box<dyn Error>> {
    let document = serde_saphyr::from_str(&fs::read_to_string(file)?);
    Ok(document.map_err(|error| format!("{}: {error}", file.display()))?)
}

/// The changes of the framework, by name.
struct Changes(BTreeMap<String, Value>);

impl Changes {
    fn of(contract: &Path) -> Result<Changes, Box<dyn Error>> {
        let file = contract.join(CHANGES);
        let mut changes = BTreeMap::new();
        for change in read(&file)?.as_array().into_iter().flatten() {
            changes.insert(text(change, "name", &file)?.to_owned(), change.clone());
        }
        Ok(Changes(changes))
    }

    /// The change from which a claim applies, as Rust code: its own, or that of its row.
    fn since(&self, row: &Value, claim: &Value, file: &Path) -> Result<String, Box<dyn Error>> {
        let own = claim.get("since").is_some();
        let of = if own { claim } else { row };
        let Some(name) = of["since"].as_str() else { return Ok("None".to_owned()) };
        let change =
            self.0.get(name).ok_or_else(|| format!("{}: no change '{name}' in {CHANGES}", file.display()))?;
        let version = text(change, "version", file)?;
        let minor = version.strip_prefix("1.").and_then(|minor| minor.parse::<u32>().ok());
        let minor = minor.ok_or_else(|| format!("{CHANGES}: '{version}' is not a version such as 1.36"))?;
        let before = match of["before"].as_str() {
            Some(what) => format!("Before::Otherwise({what:?})"),
            None => "Before::NotJudged".to_owned(),
        };
        let (what, older) = (text(change, "change", file)?, text(change, "older", file)?);
        Ok(format!("Some(Since {{ minor: {minor}, what: {what:?}, older: {older:?}, before: {before} }})"))
    }
}

/// The claims of the contract as Rust code, sorted by the ids of their checks.
fn claims(contract: &Path) -> Result<String, Box<dyn Error>> {
    let mut files = Vec::new();
    collect(contract, DATA, &mut files)?;
    let (mut claims, changes) = (BTreeMap::new(), Changes::of(contract)?);
    for file in files {
        let document = read(&file)?;
        // Files without rows describe the rows of others.
        for row in document["rows"].as_array().into_iter().flatten().filter(|row| row.is_object()) {
            let id = text(row, "id", &file)?;
            for claim in row["claims"].as_array().into_iter().flatten() {
                let check = claim["claim"].as_str().map_or(id.to_owned(), |name| format!("{id}.{name}"));
                let source = claim["source"].as_str().map_or_else(|| text(row, "source", &file), Ok)?;
                let title = text(claim, "requires", &file)?;
                let level = level_of(claim["level"].as_str().map_or_else(|| text(row, "level", &file), Ok)?)?;
                let framework_only =
                    if claim["level"].is_string() { &claim["framework"] } else { &row["framework"] };
                let framework_only = framework_only.as_bool().unwrap_or(false);
                let since = changes.since(row, claim, &file)?;
                let entry = format!(
                    "    Claim {{ check: {check:?}, title: {title:?}, level: Level::{level}, \
                     framework_only: {framework_only}, since: {since}, source: {source:?} }},\n"
                );
                if claims.insert(check.clone(), entry).is_some() {
                    return Err(format!("{}: duplicate claim {check}", file.display()).into());
                }
            }
        }
    }
    Ok(format!("&[\n{}]", claims.into_values().collect::<String>()))
}

/// The text of a required key.
fn text<'a>(of: &'a Value, key: &str, file: &Path) -> Result<&'a str, String> {
    of[key].as_str().ok_or_else(|| format!("{}: the key '{key}' has no text in {of}", file.display()))
}

/// The level of a check, from the words of RFC 2119 in the contract.
fn level_of(obligation: &str) -> Result<&'static str, String> {
    match obligation {
        "MUST" | "MUST NOT" => Ok("Must"),
        "SHOULD" | "SHOULD NOT" => Ok("Should"),
        "MAY" | "INFO" => Ok("Info"),
        other => Err(format!("unknown level of the contract '{other}'")),
    }
}

/// All files below a folder with such a suffix, except build results and, where sources are not included, files that
/// belong to sources. A folder is read again when a file is added or removed.
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
