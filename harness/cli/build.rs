//! Makes the pages of the book part of the program, so that messages can refer to them without a checkout.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let book = here.ancestors().nth(2).ok_or("the package is two folders below the workspace")?.join("docs");
    let mut pages = Vec::new();
    for folder in ["", "contract/"] {
        for entry in fs::read_dir(book.join(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "md") {
                let name = path.file_stem().and_then(|name| name.to_str()).ok_or("file names are UTF-8")?;
                pages.push((format!("{folder}{name}"), path.clone()));
            }
        }
    }
    pages.retain(|(name, _)| name != "SUMMARY");
    pages.sort();
    let mut table = String::from("&[\n");
    for (name, path) in pages {
        let path = path.to_str().ok_or("file names are UTF-8")?;
        writeln!(table, "    ({name:?}, include_str!({path:?})),")?;
    }
    table.push(']');
    fs::write(PathBuf::from(std::env::var("OUT_DIR")?).join("pages.rs"), table)?;
    Ok(())
}
